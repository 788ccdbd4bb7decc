"""Pictures of positions: what each game's state is drawn as."""

from __future__ import annotations

from typing import Any

import pyspiel

from gamespiel.replay.boards import read_board


def start(game: str, actions: tuple[int, ...] = (), **params: Any) -> Any:
    state = pyspiel.load_game(game, params).new_initial_state()
    for action in actions:
        state.apply_action(action)
    return read_board(game, str(state))


def rows(found: Any) -> list[str]:
    return list(found["rows"])


def test_squares_are_read() -> None:
    assert start("tic_tac_toe", (4, 0)) == {"kind": "grid", "rows": ["o..", ".x.", "..."]}
    assert rows(start("connect_four", (3,))) == ["......."] * 5 + ["...x..."]
    # Black has d5 and e4 in the beginning, White d4 and e5.
    middle = ["........"] * 3 + ["...ox...", "...xo..."] + ["........"] * 3
    assert rows(start("othello")) == middle
    # The first player of clobber and of amazons has "o" in OpenSpiel's text, and moves a3 to b3.
    assert rows(start("clobber", (1,), rows=3, columns=4)) == [".xxo", "oxox", "xoxo"]
    assert rows(start("breakthrough"))[0] == "x" * 8 and rows(start("breakthrough"))[-1] == "o" * 8
    # A row's label is one sign, a digit up to the ninth.
    assert rows(start("breakthrough", rows=11, columns=3)) == ["xxx"] * 2 + ["..."] * 7 + ["ooo"] * 2
    amazons = rows(start("amazons", board_size=6))
    assert (amazons[0], amazons[5]) == (".x..x.", ".o..o.")


def test_chess_and_checkers() -> None:
    chess = start("chess")
    assert chess["pieces"] == "chess"
    assert rows(chess) == ["rnbqkbnr", "pppppppp", *["........"] * 4, "PPPPPPPP", "RNBQKBNR"]
    checkers = rows(start("checkers"))
    assert checkers[0] == ".o.o.o.o" and checkers[-1] == "x.x.x.x." and len(checkers) == 8
    kings = read_board(
        "checkers", "8.8.+....\n" + "".join(f"{row}........\n" for row in range(7, 0, -1)) + " abcdefgh"
    )
    assert rows(kings)[0] == ".X.o...."


def test_stones_are_read() -> None:
    points = [".....", ".....", "..x..", ".....", "....."]
    assert start("go", (12,), board_size=5) == {"kind": "points", "rows": points}
    assert start("hex", (0, 4), board_size=3) == {"kind": "hex", "rows": ["x..", ".o.", "..."]}


def test_numbers_are_read() -> None:
    found = read_board(
        "2048", "    2    4    0    0\n    0    0    0    0\n    8    0    0    0\n    0    0    0 2048\n"
    )
    assert found == {"kind": "numbers", "rows": [[2, 4, 0, 0], [0, 0, 0, 0], [8, 0, 0, 0], [0, 0, 0, 2048]]}


def test_cards_are_read() -> None:
    # Leduc's cards are numbered by rank, two suits each. Player 0 has Q♥, Player 1 K♠.
    dealt = start("leduc_poker", (3, 4))
    assert dealt["groups"] == [["Player 0", ["Q♥"]], ["public", ["?"]], ["Player 1", ["K♠"]]]
    assert dealt["note"] == "pot 2"
    assert start("kuhn_poker", (2, 0))["groups"] == [["Player 0", ["K"]], ["Player 1", ["J"]]]
    hand = read_board("blackjack", "Player 0: Cards: C9 HT\nDealer: Cards: SA ??")
    assert hand is not None and hand["groups"] == [["Player 0", ["9♣", "10♥"]], ["Dealer", ["A♠", "?"]]]
    assert read_board("bridge", "anything") is None and read_board("leduc_poker", "three players") is None
