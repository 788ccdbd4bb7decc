"""Games on boards: words against the game."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.game_gym.play import load, make, reach

# As Black has just taken b1 and c1: if White takes a1, the stones are those of two moves ago.
KO = ("B b2", "W a2", "B c2", "W b1", "B d1", "W c1", "B a1")

# The parameters, the moves, the seat that looks, and what it sees.
DESCRIPTIONS: list[tuple[str, dict[str, Any], tuple[int | str, ...], int, str]] = [
    # All four sides of the top left box, the last by Player 1, who moves again and draws v(1,2).
    (
        "dots_and_boxes", {"num_rows": 2, "num_cols": 2}, (0, 2, 6, 7, 11), 0,
        "Your mark: 1\nBoxes: you 0, opponent 1\n"
        "h    0   1\nv  0   1   2\n"
        "h0 +---+   +\nv0 | 2 |\nh1 +---+   +\nv1         |\nh2 +   +   +",
    ),
    # The man on d6 takes e5 and lands on f4; from f6, which would have another way, the man has left.
    (
        "checkers", {}, ("c3d4", "f6g5", "d4e5"), 1,
        "You: x (kings X), moving down\n"
        "8 . x . x . x . x\n"
        "7 x . x . x . x .\n"
        "6 . x . x . . . x\n"
        "5 . . . . o . x .\n"
        "4 . . . . . . . .\n"
        "3 o . . . o . o .\n"
        "2 . o . o . o . o\n"
        "1 o . o . o . o .\n"
        "  a b c d e f g h\n"
        "Moves without a capture: 3 of 40\n"
        "Must go on capturing from: none",
    ),
    # The man that came from f2 could capture again; the man on f4 could too, but has to wait.
    (
        "checkers", {"rows": 8, "columns": 6},
        ("e3f4", "f6e5", "f2e3", "b6c5", "e3d4", "c5e3", "e1f2", "d6c5", "f2d4"), 0,
        "You: o (kings O), moving up\n"
        "8 . x . x . x\n"
        "7 x . x . x .\n"
        "6 . . . . . .\n"
        "5 . . x . x .\n"
        "4 . . . o . o\n"
        "3 o . o . . .\n"
        "2 . o . o . .\n"
        "1 o . o . . .\n"
        "  a b c d e f\n"
        "Moves without a capture: 0 of 40\n"
        "Must go on capturing from: d4",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("game", "params", "moves", "seat", "text"), DESCRIPTIONS, ids=[case[0] for case in DESCRIPTIONS]
)
def test_descriptions_in_full(
    game: str, params: dict[str, Any], moves: tuple[int | str, ...], seat: int, text: str
) -> None:
    variant = load(game, **params)
    assert variant.spec.describe(reach(variant, moves), seat) == text


@pytest.mark.parametrize(
    ("game", "params", "moves", "seat", "lines"),
    [
        # B ends in a, which makes it 2: they are captured.
        ("oware", {}, (5, 0, 2, 5, 1), 0, {0: "You captured: 2", 1: "Player 1 captured: 0"}),
        ("go", {"board_size": 5, "komi": 7.5}, KO, 1,
         {4: " 2 O X X . .", 5: " 1 X . . X .", 6: "   a b c d e",
          7: "Moves (7 of 50, black first): b2 a2 c2 b1 d1 c1 a1", 8: "Repeating: b1", -1: "Repeating: b1"}),
        # A large board has room for its labels.
        ("go", {"board_size": 19}, ("B t19",), 1,
         {1: "19 " + ". " * 18 + "X", 20: "   " + " ".join("abcdefghjklmnopqrst")}),
        ("checkers", {"rows": 8, "columns": 6},
         ("c3d4", "b6c5", "d4b6", "c7a5", "e3d4", "f6e5", "d4f6", "d8c7", "f6d8"), 1,
         {1: "8 . x . O . x"}),  # a king
    ],
)  # fmt: skip
def test_lines_of_descriptions(
    game: str, params: dict[str, Any], moves: tuple[int | str, ...], seat: int, lines: dict[int, str]
) -> None:
    variant = load(game, **params)
    shown = variant.spec.describe(reach(variant, moves), seat).split("\n")
    assert {number: shown[number] for number in lines} == lines


# -- chess ---------------------------------------------------------------------------------------------------


def test_the_moves_listed_lead_to_every_position_that_can_come_again() -> None:
    variant, rng = load("chess"), random.Random(0)
    for _ in range(4):
        state, since, seen = variant.game.new_initial_state(), [], Counter[str]()
        while not state.is_terminal():
            fen = str(state).rsplit(" ", 2)
            seen[fen[0]] += 1
            lines = variant.spec.describe(state, state.current_player()).split("\n")
            side, *board, files, shown, quiet, times = lines
            assert side.startswith(("You: black", "You: white")[state.current_player()])
            assert shown == f"FEN: {state}"
            assert quiet == f"Moves since the last capture or pawn move: {' '.join(since) or 'none'}"
            assert len(since) == int(fen[1])
            assert times == f"Times this position has occurred: {seen[fen[0]]}"
            rows = [row.split() for row in board]
            assert [row[0] for row in rows] == list("87654321")
            placed = "/".join("".join(row[1:]) for row in rows)
            for run in range(8, 0, -1):
                placed = placed.replace("." * run, str(run))
            assert placed == fen[0].split(" ")[0]
            assert files.split() == list("abcdefgh")
            action = rng.choice(state.legal_actions())
            name = state.action_to_string(action)
            state.apply_action(action)
            last = state.moves_history()[-1].to_lan()
            since = [] if "x" in name or name[0] in "abcdefgh" else [*since, last]


# -- oware ---------------------------------------------------------------------------------------------------


def test_a_game_of_oware_that_never_ends_is_a_fault() -> None:
    """OpenSpiel refuses oware's 1001st move. Players who capture as little as they can get there."""
    env = make(game="oware", params={"num_seeds_per_house": 5}, opponent="open", rules=False)
    env.reset(seed=0)
    rng = random.Random(0)
    for _ in range(1000):
        children = [(env.state.child(action), action) for action in env.state.legal_actions()]
        going_on = [(child, action) for child, action in children if not child.is_terminal()]
        _, action = min(going_on, key=lambda pair: (captured(pair[0]), rng.random()))
        *_, terminated, truncated, info = env.step(action)
        assert not (terminated or truncated)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0, False, True)
    assert (info["result"], info["score"], len(info["history"])) == ("fault", None, 1000)
    assert "Result: fault" in text


def captured(state: Any) -> int:
    return sum(int(count) for count in state.observation_string(0).split("|")[1].split())
