"""Oware: sow seeds, capture twos and threes."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_LETTERS = ("ABCDEFGHIJ", "abcdefghij")

# The numbers of seeds of upstream's variants, under OpenSpiel's name of the parameter.
_SEEDS = (4, 3, 5)


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's oware plays, by the number of houses and seeds."""
    houses, seeds = params["num_houses_per_player"], params["num_seeds_per_house"]
    upper, lower = (letters[houses - 1] for letters in _LETTERS)
    total = 2 * houses * seeds
    return (
        f"Oware. Each player has {houses} houses: A to {upper} are Player 0's, a to {lower} Player 1's. "
        f"Every house begins with {seeds} seeds, {total} in all. Player 0 moves first; turns alternate.\n"
        "A move names one of your houses that has seeds. Its seeds are taken out and sown one a house in "
        f"the order A … {upper}, a … {lower}, then A again; the house they came from is left out.\n"
        "If the last seed falls in a house of the other player and makes it 2 or 3 seeds, these are "
        "captured; so are those of the houses just before it, one after another, as long as they are the "
        "other player's and hold 2 or 3 as well. A capture that would take all the other player's seeds is "
        "not made: the move stands and nothing is captured.\n"
        "If the other player has no seeds, you must make a move that gives some.\n"
        f"The game ends when a player has captured more than {total // 2} seeds or both have captured "
        f"{total // 2}; also when the player to move has no legal move, or when a position comes again: then "
        "each player also gets the seeds in their own houses. More seeds win.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns captured seeds, and the seeds in every house in sowing order, from the seat's first."""
    _, captured, board = state.observation_string(seat).split("|")
    taken, seeds = captured.split(), board.split()
    houses = len(seeds) // 2
    other = 1 - seat
    return (
        f"You captured: {taken[seat]}\n"
        f"Player {other} captured: {taken[other]}\n"
        f"Your houses: {_row(seat, houses, seeds)}\n"
        f"Player {other}'s houses: {_row(other, houses, seeds)}"
    )


def _row(player: int, houses: int, seeds: list[str]) -> str:
    held = seeds[player * houses : (player + 1) * houses]
    return ", ".join(f"{_LETTERS[player][house]} {count}" for house, count in enumerate(held))


SPEC = GameSpec(
    name="oware",
    notation="the letter of one of your houses, as C.",
    rules=rules,
    describe=describe,
    params=lambda config: {"num_seeds_per_house": _SEEDS[config % 3]},
    variants=3,
    allowed={"num_houses_per_player": (3, 4, 5, 6), "num_seeds_per_house": (2, 3, 4, 5, 6)},
    budget=Budget(300, 30),
    fixed_names=True,
)
