"""Euchre: the game plays by the rules in its text."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym.games import find_game
from game_gym.games.euchre import SPEC, describe
from game_gym.spec import load_variant

SUITS = ("clubs", "diamonds", "hearts", "spades")
PARTNER_COLOUR = {0: 3, 3: 0, 1: 2, 2: 1}
JACK = 2


def name(card: int) -> str:
    return "CDHS"[card % 4] + "9TJQKA"[card // 4]


class Euchre:
    """The rules text, played: an implementation of its own."""

    def __init__(self, params: dict[str, Any], dealer: int, deal: list[int]) -> None:
        self.params, self.dealer, self.upcard = params, dealer, deal[20]
        self.hands = [set(deal[(seat - dealer) % 4 : 20 : 4]) for seat in range(4)]
        self.bids: list[str] = []
        self.speaker = (dealer + 1) % 4
        self.phase = "bid"
        self.trump = self.maker = self.defender = -1
        self.out: set[int] = set()
        self.asked: list[int] = []
        self.tricks: list[list[tuple[int, int]]] = []
        self.takers: list[int] = []
        self.discard: int | None = None

    def suit(self, card: int) -> int:
        left = card // 4 == JACK and card % 4 == PARTNER_COLOUR[self.trump]
        return self.trump if left else card % 4

    def rank(self, card: int) -> int:
        if card // 4 == JACK and self.suit(card) == self.trump:
            return 8 if card % 4 == self.trump else 7
        return card // 4

    def legal(self) -> list[int]:
        hand = self.hands[self.speaker]
        if self.phase == "bid":
            first = len(self.bids) < 4
            stuck = self.params["stick_the_dealer"] and len(self.bids) == 7
            up = self.upcard % 4
            return [24] * (not stuck) + [25 + s for s in range(4) if (s == up) == first]
        if self.phase == "discard":
            return sorted(hand - {self.upcard})
        if self.phase == "alone":
            return [29, 30]
        if self.tricks and len(self.tricks[-1]) < 4 - len(self.out):
            led = self.suit(self.tricks[-1][0][1])
            follow = [card for card in hand if self.suit(card) == led]
            return sorted(follow or hand)
        return sorted(hand)

    def after(self, seat: int) -> int:
        seat = (seat + 1) % 4
        return self.after(seat) if seat in self.out else seat

    def start(self) -> None:
        self.phase, self.speaker = "play", self.after(self.dealer)

    def act(self, action: int) -> None:
        if self.phase == "bid":
            self.bids.append("pass" if action == 24 else SUITS[action - 25])
            if action != 24:
                self.trump, self.maker = action - 25, self.speaker
                self.phase = "alone"
                if len(self.bids) <= 4:
                    self.phase, self.speaker = "discard", self.dealer
                    self.hands[self.dealer].add(self.upcard)
            elif len(self.bids) == 8:
                self.phase = "over"
            else:
                self.speaker = (self.speaker + 1) % 4
        elif self.phase == "discard":
            self.hands[self.dealer].remove(action)
            self.discard, self.phase, self.speaker = action, "alone", self.maker
        elif self.phase == "alone":
            self.asked.append(self.speaker)
            if action == 29:
                self.out.add((self.speaker + 2) % 4)
            defenders = [(self.dealer + step) % 4 for step in range(1, 5)]
            defenders = [s for s in defenders if (s - self.maker) % 2 and s not in self.asked]
            if self.speaker != self.maker and action == 29:
                self.defender = self.speaker
            if self.params["allow_lone_defender"] and defenders and self.defender < 0:
                self.speaker = defenders[0]
            else:
                self.start()
        else:
            self.hands[self.speaker].remove(action)
            if not self.tricks or len(self.tricks[-1]) == 4 - len(self.out):
                self.tricks.append([])
            trick = self.tricks[-1]
            trick.append((self.speaker, action))
            self.speaker = self.after(self.speaker)
            if len(trick) == 4 - len(self.out):
                wanted = {self.trump} & {self.suit(c) for _, c in trick} or {self.suit(trick[0][1])}
                _, self.speaker = max((self.rank(c), s) for s, c in trick if self.suit(c) in wanted)
                self.takers.append(self.speaker)
                if len(self.takers) == 5:
                    self.phase = "over"

    def returns(self) -> list[int]:
        if self.maker < 0:
            return [0] * 4
        won = sum((taker - self.maker) % 2 == 0 for taker in self.takers)
        alone = (self.maker + 2) % 4 in self.out
        made = (4 if alone else 2) if won == 5 else 1 if won >= 3 else -4 if self.defender >= 0 else -2
        return [made if (seat - self.maker) % 2 == 0 else -made for seat in range(4)]


@pytest.mark.parametrize("config", range(4))
def test_the_rules_told_are_the_rules_played(config: int) -> None:
    variant = load_variant(find_game("euchre"), SPEC.params(config))
    rng = random.Random(config)
    for _ in range(150):
        dealer, deal = rng.randrange(4), rng.sample(range(24), 21)
        state, ours = variant.game.new_initial_state(), Euchre(variant.params, dealer, deal)
        state.apply_action(dealer)
        for card in deal:
            state.apply_action(card)
        while ours.phase != "over":
            assert state.current_player() == ours.speaker
            assert state.legal_actions() == ours.legal()
            check_words(describe(state, ours.speaker), ours)
            legal = ours.legal()
            passes = ours.phase == "bid" and legal[0] == 24 and rng.random() < 0.6
            action = 24 if passes else rng.choice(legal)
            state.apply_action(action)
            ours.act(action)
        assert state.is_terminal()
        assert state.returns() == ours.returns()


def check_words(text: str, ours: Euchre) -> None:
    """Every line against the true game."""
    seat = ours.speaker

    def who(player: int) -> str:
        return "you" if player == seat else f"P{player}"

    lines = dict(line.split(": ", 1) for line in text.split("\n"))
    assert lines["Dealer"] == who(ours.dealer)
    assert lines["Upcard"] == name(ours.upcard)
    bids = [f"{who((ours.dealer + 1 + turn) % 4)} {bid}" for turn, bid in enumerate(ours.bids)]
    assert lines["Bids"] == (", ".join(bids) or "none")
    assert lines["Trump"] == ("none yet" if ours.trump < 0 else SUITS[ours.trump])
    assert ("You discarded" in lines) == (seat == ours.dealer)
    if seat == ours.dealer:
        assert lines["You discarded"] == ("none" if ours.discard is None else name(ours.discard))
    assert set(lines["Your hand"].split()) == {name(card) for card in ours.hands[seat]}
    answers = next(value for key, value in lines.items() if key.startswith("Alone"))
    told = [f"{who(s)} {'yes' if (s + 2) % 4 in ours.out else 'no'}" for s in ours.asked]
    assert answers == (", ".join(told) or "none")
    shown = [value for key, value in lines.items() if key.startswith("Trick ")]
    cards = [", ".join(f"{who(s)} {name(c)}" for s, c in trick) for trick in ours.tricks]
    takers = [who(taker) for taker in ours.takers]
    assert shown == [f"{trick}; taken by {taker}" for trick, taker in zip(cards, takers, strict=False)]
    assert lines["Current trick"] == ("none" if len(cards) == len(takers) else cards[-1])


def test_a_description_in_full() -> None:
    # Dealer 3, so cards go to 3, 0, 1, 2 in turn: Player 0 gets 1, 5, 9, 13, 17 (the diamonds 9 to K). The
    # upcard is 20 (the ace of clubs). All pass; Player 0 names diamonds and plays with the partner.
    state = load_variant(find_game("euchre"), {}).game.new_initial_state()
    for action in (3, *range(20), 20, 24, 24, 24, 24, 26, 30, 9):
        state.apply_action(action)
    # Player 1 holds the hearts 9 to K, of which the jack is a trump and has to follow.
    assert state.legal_actions() == [10]
    assert describe(state, 1) == (
        "Your partner: P3\n"
        "Dealer: P3\n"
        "Upcard: CA\n"
        "Bids: P0 pass, you pass, P2 pass, P3 pass, P0 diamonds\n"
        "Trump: diamonds\n"
        "Alone: P0 no\n"
        "Your hand: HK HQ HJ HT H9\n"
        "Current trick: P0 DJ\n"
        "Tricks taken: your side 0, the other side 0"
    )
