"""Dots and boxes: the game plays by the rules in its text."""

from __future__ import annotations

import random
import re

import pytest

from game_gym.games import find_game
from game_gym.games.dots_and_boxes import SPEC, describe, rules
from game_gym.spec import load_variant


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 4), (2, 5)])
def test_the_rules_told_are_the_rules_played(rows: int, columns: int, margin: bool) -> None:
    params = {"num_rows": rows, "num_cols": columns, "utility_margin": margin}
    game = load_variant(find_game("dots_and_boxes"), params).game
    rng = random.Random(rows)
    for _ in range(10):
        state, drawn, owners, mover = game.new_initial_state(), set(), {}, 0
        while not state.is_terminal():
            assert state.current_player() == mover
            check_words(describe(state, mover), mover, drawn, owners, rows, columns)
            action = rng.choice(state.legal_actions())
            line = re.fullmatch(rf"P{mover + 1}\((.),(\d+),(\d+)\)", state.action_to_string(mover, action))
            assert line is not None
            drawn.add((line[1], int(line[2]), int(line[3])))
            closed = [
                (r, c)
                for r in range(rows)
                for c in range(columns)
                if {("h", r, c), ("h", r + 1, c), ("v", r, c), ("v", r, c + 1)} <= drawn
                and (r, c) not in owners
            ]
            owners.update(dict.fromkeys(closed, mover))
            state.apply_action(action)
            mover = mover if closed else 1 - mover
        assert len(drawn) == (rows + 1) * columns + rows * (columns + 1)
        lead = 2 * sum(owner == 0 for owner in owners.values()) - len(owners)
        value = lead if margin else (lead > 0) - (lead < 0)
        assert state.returns() == [value, -value]


def check_words(
    text: str,
    seat: int,
    drawn: set[tuple[str, int, int]],
    owners: dict[tuple[int, int], int],
    rows: int,
    columns: int,
) -> None:
    """Marks are looked up where the labels say they are."""
    mine, boxes, across, along, *board = text.split("\n")
    assert mine == f"Your mark: {seat + 1}"
    own = sum(owner == seat for owner in owners.values())
    assert boxes == f"Boxes: you {own}, opponent {len(owners) - own}"
    lines = {line[:2]: line.ljust(4 * columns + 4) for line in board}
    for r in range(rows + 1):
        for c in range(columns):
            assert (lines[f"h{r}"][across.index(str(c))] == "-") == (("h", r, c) in drawn)
    for r in range(rows):
        for c in range(columns + 1):
            assert (lines[f"v{r}"][along.index(str(c))] == "|") == (("v", r, c) in drawn)
        for c in range(columns):
            owner = owners.get((r, c))
            assert lines[f"v{r}"][across.index(str(c))] == (" " if owner is None else str(owner + 1))


def test_a_description_in_full() -> None:
    # All four sides of the top left box, the last by Player 1, who moves again and draws v(1,2).
    state = load_variant(find_game("dots_and_boxes"), {"num_rows": 2, "num_cols": 2}).game.new_initial_state()
    for action in (0, 2, 6, 7, 11):
        state.apply_action(action)
    assert describe(state, 0) == (
        "Your mark: 1\n"
        "Boxes: you 0, opponent 1\n"
        "h    0   1\n"
        "v  0   1   2\n"
        "h0 +---+   +\n"
        "v0 | 2 |\n"
        "h1 +---+   +\n"
        "v1         |\n"
        "h2 +   +   +"
    )


def test_rules_follow_the_parameters() -> None:
    params = load_variant(find_game("dots_and_boxes"), {**SPEC.params(2), "utility_margin": True}).params
    assert "on 5 rows and 5 columns" in rules(params)
    assert "minus the opponent's" in rules(params)
