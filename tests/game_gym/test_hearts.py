"""Hearts: the game plays by the rules in its text."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym.games import find_game
from game_gym.games.hearts import SPEC, describe, rules
from game_gym.spec import load_variant

RANKS = "23456789TJQKA"


def name(card: int) -> str:
    return RANKS[card // 4] + "CDHS"[card % 4]


def suit(card: int) -> int:
    return card % 4


class Hearts:
    """The rules text, played: an implementation of its own."""

    def __init__(self, params: dict[str, Any], step: int, deal: list[int]) -> None:
        self.params, self.step = params, step
        self.hands = [set(deal[seat::4]) for seat in range(4)]
        self.given: list[list[int]] = [[], [], [], []]
        self.tricks: list[list[tuple[int, int]]] = []
        self.won: list[list[int]] = [[], [], [], []]
        self.taken = [0] * 4
        self.speaker = 0
        if step == 0:
            self.speaker = self.holder()

    def holder(self) -> int:
        return next(seat for seat in range(4) if 0 in self.hands[seat])

    def passing(self) -> bool:
        return self.step > 0 and any(len(cards) < 3 for cards in self.given)

    def over(self) -> bool:
        return sum(map(len, self.tricks)) == 52

    def leads(self) -> bool:
        return not self.tricks or len(self.tricks[-1]) == 4

    def legal(self) -> list[int]:
        hand = self.hands[self.speaker]
        if self.passing():
            return sorted(hand)
        if not self.tricks:
            return sorted(c for c in hand if suit(c) == 0) if self.params["can_lead_any_club"] else [0]
        hearts_and_queen = {c for c in hand if suit(c) == 2 or name(c) == "QS"}
        if self.leads():
            played = [c for trick in self.tricks for _, c in trick]
            broken = any(
                suit(c) == 2 or (self.params["qs_breaks_hearts"] and name(c) == "QS") for c in played
            )
            only = {c for c in hand if suit(c) == 2}
            spared = self.params["can_lead_hearts_instead_of_qs"] and hand == hearts_and_queen
            if not self.params["must_break_hearts"] or broken or hand == only or spared:
                return sorted(hand)
            return sorted(hand - only)
        follow = {c for c in hand if suit(c) == suit(self.tricks[-1][0][1])}
        if follow:
            return sorted(follow)
        if self.params["no_pts_on_first_trick"] and len(self.tricks) == 1 and hand - hearts_and_queen:
            return sorted(hand - hearts_and_queen)
        return sorted(hand)

    def act(self, card: int) -> None:
        self.hands[self.speaker].remove(card)
        if self.passing():
            self.given[self.speaker].append(card)
            self.speaker += len(self.given[self.speaker]) == 3
            if not self.passing():
                for seat, cards in enumerate(self.given):
                    self.hands[(seat + self.step) % 4].update(cards)
                self.speaker = self.holder()
            return
        if self.leads():
            self.tricks.append([])
        self.tricks[-1].append((self.speaker, card))
        self.speaker = (self.speaker + 1) % 4
        if len(self.tricks[-1]) == 4:
            led = suit(self.tricks[-1][0][1])
            _, winner = max((c, seat) for seat, c in self.tricks[-1] if suit(c) == led)
            self.won[winner] += [c for _, c in self.tricks[-1]]
            self.taken[winner] += 1
            self.speaker = winner

    def points(self, seat: int) -> int:
        jack = -10 * self.params["jd_bonus"]
        return sum(1 if suit(c) == 2 else {"QS": 13, "JD": jack}.get(name(c), 0) for c in self.won[seat])

    def returns(self) -> list[int]:
        points = [self.points(seat) for seat in range(4)]
        all_26 = [sum(suit(c) == 2 or name(c) == "QS" for c in cards) == 14 for cards in self.won]
        if any(all_26):
            points = [p - 26 if moon else p + 26 for p, moon in zip(points, all_26, strict=True)]
        elif self.params["avoid_all_tricks_bonus"]:
            points = [p - 5 * (taken == 0) for p, taken in zip(points, self.taken, strict=True)]
        return [26 - p for p in points]


PARAMS = [SPEC.params(config) for config in range(8)] + [
    {"can_lead_any_club": True, "qs_breaks_hearts": False},
    {"must_break_hearts": False, "no_pts_on_first_trick": False},
    {"can_lead_hearts_instead_of_qs": True, "qs_breaks_hearts": False},
]


@pytest.mark.parametrize("params", PARAMS)
def test_the_rules_told_are_the_rules_played(params: dict[str, Any]) -> None:
    variant = load_variant(find_game("hearts"), params)
    rng = random.Random(str(params))
    for game in range(16):
        step = game % 4  # also without pass_cards, whose chance outcomes are the same four
        deal = rng.sample(range(52), 52)
        state, ours = variant.game.new_initial_state(), Hearts(variant.params, step, deal)
        assert [outcome for outcome, _ in state.chance_outcomes()] == [0, 1, 2, 3]
        state.apply_action(step)
        for card in deal:
            state.apply_action(card)
        while not ours.over():
            assert state.current_player() == ours.speaker
            assert state.legal_actions() == ours.legal()
            check_words(describe(state, ours.speaker), ours)
            # Odd games: the highest card, so that one player can take all the points.
            action = max(ours.legal()) if game % 2 and ours.speaker == 0 else rng.choice(ours.legal())
            state.apply_action(action)
            ours.act(action)
        assert state.returns() == ours.returns()


def check_words(text: str, ours: Hearts) -> None:
    """Every line against the true game."""
    seat = ours.speaker
    lines = dict(line.split(": ", 1) for line in text.split("\n"))
    assert set(lines["Your hand"].split()) == {name(card) for card in ours.hands[seat]}
    given = [name(card) for card in sorted(ours.given[seat])]
    assert lines["You passed"] == (" ".join(given) or "none")
    received = [] if ours.passing() else [name(card) for card in sorted(ours.given[(seat - ours.step) % 4])]
    assert lines["You received"] == (" ".join(received) or "none")
    told = [value.split("; ")[0] for key, value in lines.items() if key.startswith(("Trick", "Current"))]
    tricks = ours.tricks + [[]] * ours.leads()
    assert told == [
        ", ".join(f"{'you' if s == seat else f'P{s}'} {name(c)}" for s, c in trick) or "none"
        for trick in tricks
    ]
    points = [f"{'you' if s == seat else f'P{s}'} {ours.points(s)}" for s in range(4)]
    assert lines["Points"] == ", ".join(points)


def test_a_player_who_takes_all_26_points() -> None:
    # Cards are dealt in order, so Player 0 has all the clubs and takes every trick, and JD too: 26 - 26 - 10
    # points for Player 0, 26 for everyone else, and no bonus for taking no trick.
    game = load_variant(find_game("hearts"), {"jd_bonus": True, "avoid_all_tricks_bonus": True}).game
    state = game.new_initial_state()
    for action in (0, *range(52)):
        state.apply_action(action)
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    assert state.returns() == [36, 0, 0, 0]


def test_a_description_in_full() -> None:
    # Cards are dealt in order, so Player 0 has the clubs, 1 the diamonds, 2 the hearts, 3 the spades. Each
    # passes the three lowest to the left; then 2C, now Player 1's, is led.
    state = load_variant(find_game("hearts"), {}).game.new_initial_state()
    for action in (1, *range(52), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0):
        state.apply_action(action)
    assert describe(state, 2) == (
        "Pass: left, you give to P3 and receive from P1\n"
        "You passed: 2H 3H 4H\n"
        "You received: 2D 3D 4D\n"
        "Your hand: AH KH QH JH TH 9H 8H 7H 6H 5H 4D 3D 2D\n"
        "Current trick: P1 2C\n"
        "Points: P0 0, P1 0, you 0, P3 0"
    )


def test_rules_follow_the_parameters() -> None:
    params = load_variant(find_game("hearts"), {"jd_bonus": True}).params
    assert "-10 for JD" in rules(params)
    assert "no trick" not in rules(params)
