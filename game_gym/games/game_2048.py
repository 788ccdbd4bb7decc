"""2048: slide and merge tiles, alone."""

from __future__ import annotations

from game_gym.spec import GameSpec, Params, State


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's 2048 plays, up to the tile that ends it."""
    top = params["max_tile"]
    return (
        "2048, alone, on a board of 4 rows and 4 columns. A tile is a power of two; 0 is an empty cell. The "
        "game begins with two tiles in random cells.\n"
        "A move slides every tile as far as it goes: Up, Right, Down or Left. Two equal tiles that meet "
        "become one tile of twice the value, at most once a tile and move; of three in a row the two on the "
        "side moved to become one. A move is legal if some tile slides, or merges with the tile ahead of it "
        "where that was not itself merged by the last move. After each move a new tile comes into a random "
        "empty cell: 2 nine times out of ten, else 4.\n"
        f"A merge pays the value of the new tile. The game ends when a tile reaches {top}, when no move is "
        f"legal, or after {4 * top} moves, new tiles counted as moves.\n"
        "Your return is the sum of what your merges paid."
    )


def describe(state: State, seat: int) -> str:
    """Returns the board, row by row from the top, and the points so far."""
    return f"Points: {state.returns()[seat]:.0f}\nBoard:\n{state.observation_string(seat).rstrip()}"


SPEC = GameSpec(
    name="2048",
    notation="Up, Down, Left or Right.",
    rules=rules,
    describe=describe,
    allowed={"max_tile": (64, 128, 256, 512, 1024, 2048, 4096, 8192)},
    fixed_names=True,
)
