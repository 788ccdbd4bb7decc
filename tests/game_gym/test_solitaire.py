"""Solitaire: the game plays by the rules in its text."""

from __future__ import annotations

import random

from game_gym.games import find_game
from game_gym.games.solitaire import describe
from game_gym.spec import load_variant

RANKS = "A23456789TJQK"
POINTS = dict(zip(RANKS, (100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 10, 10, 10), strict=True))


def red(card: str) -> bool:
    return card[1] in "♥♦"


def moves(waste: list[str], tops: list[str], columns: list[list[str]]) -> set[str]:
    """The legal moves by the rules text; a top is a card or, of an empty foundation, a bare suit."""
    sources = {card: (column, i) for column in columns for i, card in enumerate(column) if card != "#"}
    free = set(waste[::3])
    found = set()
    for top in tops:
        rank = RANKS.index(top[0]) + 1 if len(top) == 2 else 0
        if rank < 13:
            card = RANKS[rank] + top[-1]
            last = card in sources and sources[card][0][-1] == card
            if last or card in free:
                found.add(f"{top} ← {card}")
    for column in columns:
        target = column[-1]
        for card in [*sources, *free, *(top for top in tops if len(top) == 2)]:
            if red(card) != red(target) and RANKS.index(card[0]) + 1 == RANKS.index(target[0]):
                found.add(f"{target} ← {card}")
    if len(columns) < 7:
        kings = [card for card in sources if card[0] == "K" and sources[card][1] > 0]
        found |= {f"🂿 ← {card}" for card in [*kings, *(card for card in free if card[0] == "K")]}
    return found


def test_the_rules_told_are_the_rules_played() -> None:
    game = load_variant(find_game("solitaire"), {}).game
    rng = random.Random(0)
    ends, empty = set(), 0
    for _ in range(60):
        state, points = game.new_initial_state(), 0
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
                continue
            lines = describe(state, 0).split("\n")
            assert lines[:2] == [f"Actions: {len(state.history())}", f"Points: {points}"]
            waste = lines[2].split()[1:] if lines[2] != "Waste: none" else []
            tops = lines[3].split()[1:]
            columns = [line.split() for line in lines[5:]]
            legal = {state.action_to_string(0, action) for action in state.legal_actions()}
            assert legal == (moves(waste, tops, columns) or {"kEnd"})
            empty += len(columns) < 7
            # Prefer what goes to foundations, so that columns empty and kings move.
            best = [a for a in state.legal_actions() if state.action_to_string(0, a)[0] in "♠♥♣♦"]
            action = rng.choice(best or state.legal_actions())
            target, _, card = state.action_to_string(0, action).partition(" ← ")
            if card:
                points += POINTS[card[0]] * (target in tops and (len(target) == 1 or target[1] == card[1]))
                points -= POINTS[card[0]] * (card in tops)
                points += 20 * (card in waste)
                points += 20 * any(card in column and column[column.index(card) - 1] == "#"
                                   for column in columns if column[0] != card)  # fmt: skip
            state.apply_action(action)
        assert state.returns() == [points]
        ends.add(len(state.history()) == 150)
    assert ends == {True, False} and empty


def test_a_start_in_full() -> None:
    # Cards 1 … 52 are A♠ … K♠, then ♥, ♣, ♦; the seven columns are turned up first, then the waste.
    state = load_variant(find_game("solitaire"), {}).game.new_initial_state()
    for card in range(1, 32):
        state.apply_action(card)
    assert describe(state, 0) == (
        "Actions: 31\nPoints: 0\n"
        "Waste: 8♠ 9♠ T♠ J♠ Q♠ K♠ A♥ 2♥ 3♥ 4♥ 5♥ 6♥ 7♥ 8♥ 9♥ T♥ J♥ Q♥ K♥ A♣ 2♣ 3♣ 4♣ 5♣\n"
        "Foundations: ♠ ♥ ♣ ♦\n"
        "Columns:\nA♠\n# 2♠\n# # 3♠\n# # # 4♠\n# # # # 5♠\n# # # # # 6♠\n# # # # # # 7♠"
    )
