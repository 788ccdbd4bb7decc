"""Leduc poker: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.leduc_poker import describe, rules
from game_gym.spec import load_variant


class Leduc:
    """The rules text, played: an implementation of its own."""

    def __init__(self, players: int, cards: list[int]) -> None:
        self.players, self.hands, self.public = players, cards[:players], cards[players]
        self.paid = [1] * players
        self.inside = list(range(players))
        self.round, self.raises, self.spoken = 1, 0, 0
        self.speaker = 0

    def legal(self) -> list[int]:
        facing = self.paid[self.speaker] < max(self.paid)
        return [0] * facing + [1] + [2] * (self.raises < 2)

    def over(self) -> bool:
        return len(self.inside) == 1 or self.round > 2

    def act(self, action: int) -> None:
        speaker = self.speaker
        if action == 0:
            self.inside.remove(speaker)
        else:
            self.paid[speaker] = max(self.paid) + (2 * self.round if action == 2 else 0)
            self.spoken = 1 if action == 2 else self.spoken + 1
            self.raises += action == 2
        if self.spoken == len(self.inside):  # all have spoken since the last raise, so all have matched
            self.round, self.raises, self.spoken, self.speaker = self.round + 1, 0, 0, self.inside[0]
        else:
            after = [seat for seat in self.inside if seat > speaker]
            self.speaker = (after or self.inside)[0]

    def returns(self) -> list[float]:
        def strength(seat: int) -> tuple[bool, int]:
            return (self.hands[seat] // 2 == self.public // 2, self.hands[seat] // 2)

        best = max(strength(seat) for seat in self.inside)
        winners = [seat for seat in self.inside if len(self.inside) == 1 or strength(seat) == best]
        share = sum(self.paid) / len(winners)
        return [share * (seat in winners) - self.paid[seat] for seat in range(self.players)]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_rules_told_are_the_rules_played(players: int) -> None:
    game = load_variant(find_game("leduc_poker"), {"players": players}).game
    rng = random.Random(players)
    for _ in range(1500):
        cards = rng.sample(range(2 * players + 2), players + 1)
        state, ours = game.new_initial_state(), Leduc(players, cards)
        for card in cards[:players]:
            state.apply_action(card)
        while not ours.over():
            if state.is_chance_node():
                state.apply_action(cards[players])
            assert state.current_player() == ours.speaker
            assert state.legal_actions() == ours.legal()
            check_words(state, ours)
            action = rng.choice(ours.legal())
            state.apply_action(action)
            ours.act(action)
        assert state.is_terminal()
        assert state.returns() == pytest.approx(ours.returns())


def check_words(state: object, ours: Leduc) -> None:
    """The description's last line is the pot, and its rounds name who said what, from the true history."""
    seat = ours.speaker
    lines = dict(line.split(": ", 1) for line in describe(state, seat).split("\n"))
    assert list(lines) == ["Your card", "Public card", "Round 1", "Round 2", "Pot"]
    assert lines["Pot"] == str(sum(ours.paid))
    assert (lines["Public card"] == "none") == (ours.round == 1)
    moves = [move for move in state.full_history() if move.player >= 0]  # type: ignore[attr-defined]
    words = ("fold", "call", "raise")
    said = [f"{'you' if m.player == seat else f'Player {m.player}'} {words[m.action]}" for m in moves]
    told = [word for key in ("Round 1", "Round 2") if lines[key] != "none" for word in lines[key].split(", ")]
    assert told == said


def test_a_description_in_full() -> None:
    # Cards 0 (J♠) and 3 (Q♥), then raise, call, and the public card 5 (K♥), then a check: pot 1 + 1 + 2 + 2.
    state = load_variant(find_game("leduc_poker"), {"players": 2}).game.new_initial_state()
    for action in (0, 3, 2, 1, 5, 1):
        state.apply_action(action)
    assert describe(state, 1) == (
        "Your card: Q♥\nPublic card: K♥\nRound 1: Player 0 raise, you call\nRound 2: Player 0 call\nPot: 6"
    )


def test_rules_follow_the_number_of_players() -> None:
    assert "8 cards: ranks J < Q < K < A" in rules({"players": 3})
