"""Backgammon: the game plays by the rules in its text."""

from __future__ import annotations

import random
import re

import pytest

from game_gym.games.backgammon import SPEC, describe
from game_gym.spec import load_variant

# A player's view: the player's and the opponent's checkers by point, then the player's checkers off. Point 25
# is the player's bar, point 0 the opponent's.
Position = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...], int]


def read(text: str, seat: int) -> tuple[list[int], Position]:
    """A description's dice and position."""
    dice, mine, theirs = text.split("\n")
    assert mine.startswith("Your checkers: ")
    assert theirs.startswith(f"Player {1 - seat}'s checkers: ")
    own, other = (dict(re.findall(r"(\w+):(\d+)", line.split(": ", 1)[1])) for line in (mine, theirs))
    return (
        [int(die) for die in re.findall(r"\d", dice)],
        (points(own, 25), points(other, 0), int(own["off"])),
    )


def points(fields: dict[str, str], bar: int) -> tuple[tuple[int, int], ...]:
    held = {int(name): int(count) for name, count in fields.items() if name.isdigit()}
    held[bar] = int(fields["bar"])
    return tuple(sorted((point, count) for point, count in held.items() if count))


def steps(position: Position, die: int) -> set[Position]:
    """Every way to play one die."""
    own, other, off = dict(position[0]), dict(position[1]), position[2]
    found = set()
    for start in [25] if 25 in own else own:
        end = start - die
        if end <= 0:
            if max(own) > 6 or (end < 0 and max(own) > start):
                continue
        elif other.get(end, 0) > 1:
            continue
        mine, theirs, done = dict(own), dict(other), off
        mine[start] -= 1
        if end <= 0:
            done += 1
        else:
            mine[end] = mine.get(end, 0) + 1
            if theirs.pop(end, 0):
                theirs[0] = theirs.get(0, 0) + 1
        found.add((tuple(sorted((p, n) for p, n in mine.items() if n)), tuple(sorted(theirs.items())), done))
    return found


def plays(position: Position, low: int, high: int) -> set[Position]:
    """Every position one action may lead to."""
    both = {
        last
        for one, two in ((low, high), (high, low))
        for first in steps(position, one)
        for last in steps(first, two)
    }
    return both or steps(position, high) or steps(position, low) or {position}


def after(state: object, action: int, seat: int) -> Position:
    child = state.child(action)  # type: ignore[attr-defined]
    return read(describe(child, seat), seat)[1]


def test_the_rules_told_are_the_rules_played() -> None:
    game = load_variant(SPEC, {}).game
    rng = random.Random(5)
    bars = offs = 0
    for _ in range(6):
        state = game.new_initial_state()
        second = False
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice([action for action, _ in state.chance_outcomes()]))
                continue
            seat = state.current_player()
            dice, position = read(describe(state, seat), seat)
            doubled = dice[0] == dice[1]
            assert len(dice) == (4 if doubled and not second else 2)
            legal = state.legal_actions()
            if rng.random() < 0.3:  # enumerating is slow
                assert {after(state, action, seat) for action in legal} == plays(position, dice[0], dice[1])
                bars += 25 in dict(position[0])
                offs += position[2] > 0
            state.apply_action(rng.choice(legal))
            second = doubled and not second and state.current_player() == seat
        winner = 0 if "X: 15" in state.observation_string(0) else 1
        assert state.returns() == [1.0 - 2 * (player != winner) for player in range(2)]
    assert bars > 10 and offs > 10


def test_a_description_in_full() -> None:
    # The first roll, 3 and 1, is X's; 8/5 6/5 makes the 5-point, the 20-point as Player 1 sees it.
    state = load_variant(SPEC, {}).game.new_initial_state()
    roll = next(a for a in state.legal_actions() if "X starts, (roll: 13)" in state.action_to_string(-1, a))
    state.apply_action(roll)
    assert state.current_player() == 0
    move = next(a for a in state.legal_actions() if state.action_to_string(0, a).endswith("8/5 6/5"))
    state.apply_action(move)
    state.apply_action(35)  # two sixes
    assert describe(state, 1) == (
        "Dice to play: 6 6 6 6\n"
        "Your checkers: 24:2 13:5 8:3 6:5 bar:0 off:0\n"
        "Player 0's checkers: 20:2 19:4 17:2 12:5 1:2 bar:0 off:0"
    )
    assert describe(state, 0).split("\n")[1] == "Your checkers: 24:2 13:5 8:2 6:4 5:2 bar:0 off:0"


@pytest.mark.parametrize("scoring", ["enable_gammons", "full_scoring"])
def test_returns_by_scoring(scoring: str) -> None:
    # Random play until there was a gammon and a backgammon would be slow: the bounds say what pays.
    variant = load_variant(SPEC, {"scoring_type": scoring})
    assert variant.high == -variant.low == {"enable_gammons": 2, "full_scoring": 3}[scoring]
    assert "gammon" in variant.rules
