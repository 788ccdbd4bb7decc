"""Games on boards: words against the game."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.game_gym.play import load, make, reach

SILENT, COUNTED = ("reveal-nothing", "reveal-numturns")

# As Black has just taken b1 and c1: if White takes a1, the stones are those of two moves ago.
KO = ("B b2", "W a2", "B c2", "W b1", "B d1", "W c1", "B a1")

# The parameters, the moves, the seat that looks, and what it sees.
DESCRIPTIONS: list[tuple[str, dict[str, Any], tuple[int | str, ...], int, str]] = [
    ("tic_tac_toe", {}, (4, 2, 6), 1, "Your mark: o\n..o\n.x.\nx.."),  # the centre, then row 0 column 2
    (
        "othello", {}, (19,), 1,  # d3, which turns d4
        "Your discs: o\n  a b c d e f g h\n1 . . . . . . . .\n2 . . . . . . . .\n3 . . . x . . . .\n"
        "4 . . . x x . . .\n5 . . . x o . . .\n6 . . . . . . . .\n7 . . . . . . . .\n8 . . . . . . . .\n"
        "Count: x 4, o 1",
    ),
    (
        "clobber", {"rows": 3, "columns": 4}, ("a1b1",), 1,
        "Your pieces: x\n3 o x o x\n2 x o x o\n1 . o o x\n  a b c d",
    ),
    (
        "hex", {"board_size": 3}, (1, 6), 0,  # b1, a3
        "Your stones: x, to connect top and bottom\n   a b c\n1  . x .\n2   . . .\n3    o . .",
    ),
    # The three actions of a turn: the amazon on (5, 1) goes to (3, 1) and shoots at (1, 1).
    (
        "amazons", {"board_size": 6}, (24,), 0,
        "Your amazons: X\nNow: move the amazon from (5, 1)\n"
        "Board:\n.O..O.\nO....O\n......\n......\n.....X\n.X..X.",
    ),
    (
        "amazons", {"board_size": 6}, (24, 12), 0,
        "Your amazons: X\nNow: shoot from (3, 1)\n"
        "Board:\n.O..O.\nO....O\nX.....\n......\n.....X\n.X..X.",
    ),
    (
        "amazons", {"board_size": 6}, (24, 12, 0), 1,
        "Your amazons: O\nNow: choose an amazon\n"
        "Board:\n#O..O.\nO....O\nX.....\n......\n.....X\n.X..X.",
    ),
    # A 2 in each of the first two cells, Right, a 2 in the third cell.
    (
        "2048", {"max_tile": 64}, (0, 2, 1, 4), 0,
        "Points: 4\nBoard:\n"
        "    0    0    2    4\n    0    0    0    0\n    0    0    0    0\n    0    0    0    0",
    ),
    # All four sides of the top left box, the last by Player 1, who moves again and draws v(1,2).
    (
        "dots_and_boxes", {"num_rows": 2, "num_cols": 2}, (0, 2, 6, 7, 11), 0,
        "Your mark: 1\nBoxes: you 0, opponent 1\n"
        "h    0   1\nv  0   1   2\n"
        "h0 +---+   +\nv0 | 2 |\nh1 +---+   +\nv1         |\nh2 +   +   +",
    ),
    # Both pawns step towards each other, Player 0 walls below b1, Player 1 right of d3.
    (
        "quoridor", {"board_size": 5, "wall_count": 4}, ("c4", "c2", "b1h", "d3v", "c3"), 1,
        "You: @ at c2, goal row 5, walls left 3\n"
        "Opponent: O at c3, goal row 1, walls left 3\n"
        "Moves made: 5 of 100\n"
        "   a b c d e\n"
        " 1 . . . . .\n"
        "     -+-\n"
        " 2 . . @ . .\n"
        "\n"
        " 3 . . O .|.\n"
        "          +\n"
        " 4 . . . .|.\n"
        "\n"
        " 5 . . . . .",
    ),
    (
        "oware", {}, (5,), 1,  # F: one seed each into a, b, c and d
        "You captured: 0\nPlayer 0 captured: 0\n"
        "Your houses: a 5, b 5, c 5, d 5, e 4, f 4\n"
        "Player 0's houses: A 4, B 4, C 4, D 4, E 4, F 0",
    ),
    (
        "go", {"board_size": 5, "komi": 7.5}, ("B b1", "W PASS", "B a2", "W c3", "B e5"), 1,
        "You: white, O\n"
        " 5 . . . . X\n"
        " 4 . . . . .\n"
        " 3 . . O . .\n"
        " 2 X . . . .\n"
        " 1 . X . . .\n"
        "   a b c d e\n"
        "Moves (5 of 50, black first): b1 PASS a2 c3 e5\nRepeating: none",
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
    (
        "chess", {}, ("e4", "e5", "Nf3", "Nf6", "Ng1", "Ng8"), 1,
        "You: white, capital letters\n"
        "8 r n b q k b n r\n"
        "7 p p p p . p p p\n"
        "6 . . . . . . . .\n"
        "5 . . . . p . . .\n"
        "4 . . . . P . . .\n"
        "3 . . . . . . . .\n"
        "2 P P P P . P P P\n"
        "1 R N B Q K B N R\n"
        "  a b c d e f g h\n"
        "FEN: rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 4 4\n"
        "Moves since the last capture or pawn move: g1f3 g8f6 f3g1 f6g8\n"
        "Times this position has occurred: 2",
    ),
    # x takes the centre; o tries the centre, is shown it and takes a corner.
    (
        "phantom_ttt", {"obstype": SILENT}, (4, 4, 0), 0,
        "Your mark: x\nYour view:\n...\n.x.\n...\nYour tries: you (1,1) placed",
    ),
    (
        "phantom_ttt", {"obstype": SILENT}, (4, 4, 0), 1,
        "Your mark: o\nYour view:\no..\n.x.\n...\nYour tries: you (1,1) taken, you (0,0) placed",
    ),
    (
        "phantom_ttt", {"obstype": COUNTED}, (4, 4, 0), 0,
        "Your mark: x\nYour view:\n...\n.x.\n...\nTries: you (1,1) placed, Player 1, Player 1",
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
        ("phantom_ttt", {"obstype": COUNTED}, (), 0, {-1: "Tries: none"}),
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


# -- oware and phantom tic-tac-toe ---------------------------------------------------------------------------


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


@pytest.mark.parametrize("obstype", [SILENT, COUNTED])
@pytest.mark.parametrize("gameversion", ["classical", "abrupt"])
def test_a_description_of_phantom_ttt_is_an_information_state(obstype: str, gameversion: str) -> None:
    variant, rng = load("phantom_ttt", obstype=obstype, gameversion=gameversion), random.Random(2)
    texts: dict[tuple[int, str], str] = {}
    histories: dict[tuple[int, str], set[tuple[int, ...]]] = {}
    for _ in range(3000):
        state = variant.game.new_initial_state()
        for _ in range(rng.randint(0, 8)):
            if not state.is_terminal():
                state.apply_action(rng.choice(state.legal_actions()))
        for seat in (0, 1) if not state.is_terminal() else ():
            key, text = (seat, state.information_state_string(seat)), variant.spec.describe(state, seat)
            assert texts.setdefault(key, text) == text
            histories.setdefault(key, set()).add(tuple(state.history()))
    assert len(set(texts.values())) == len(texts)
    assert sum(len(seen) > 1 for seen in histories.values()) > 100  # the hidden part did vary
