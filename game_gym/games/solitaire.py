"""Klondike solitaire with an open waste, alone."""

from __future__ import annotations

from game_gym.spec import GameSpec, Params, State

# The sign for a face-down card, OpenSpiel's and ours.
_HIDDEN, _DOWN = "🂠", "#"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's solitaire plays, up to the number of actions that ends it."""
    return (
        "Klondike solitaire with a deck of 52 cards, ranks A < 2 < … < 9 < T < J < Q < K. Seven "
        "columns hold 1 to 7 cards, of which the last is face up; # is a face-down card. The "
        "other 24 cards are the waste, all face up. Four foundations, one a suit, begin empty.\n"
        "An action is written TARGET ← SOURCE: the source card goes onto the target card. On a "
        "foundation cards go up in their suit from the ace (onto an empty one, written as its "
        "bare suit). In a column a card goes onto the last card if that is one rank higher and of "
        "the other colour (♥ ♦ red, ♠ ♣ black); a face-up card of a column takes all cards after "
        "it along, but to a foundation only the last card of a column goes. A king from the "
        "waste, or one that is not the first card of its column, goes into an empty column, which "
        "is written 🂿 and not listed among the columns. Sources are the face-up cards of the "
        "columns, the top cards of the foundations, and the first, fourth, seventh … card of the "
        "waste as it is now. A face-down card that becomes the last of its column is turned up.\n"
        "When nothing else is legal, kEnd ends the game; so does action number "
        f"{params['depth_limit']}, where every card turned up counts as an action, the 31 of the start "
        "included.\n"
        "Points: to a foundation A 100, 2 90, 3 80, 4 70, 5 60, 6 50, 7 40, 8 30, 9 20, T, J, Q and K 10 "
        "each, lost again if the card leaves it; 20 for turning up a card of a column; 20 for a card taken "
        "from the waste.\n"
        "Your return is the sum of your points."
    )


def describe(state: State, seat: int) -> str:
    """Returns actions and points so far, waste, foundations and columns: all that can be seen."""
    # WASTE, FOUNDATIONS, the heading and lines of TABLEAUS that are not empty, TARGETS and SOURCES.
    lines = [line.strip() for line in state.observation_string(seat).replace(_HIDDEN, _DOWN).split("\n")]
    waste, foundations = (line.partition(":")[2].split() for line in lines[:2])
    columns = [" ".join(line.split()) for line in lines[3:-2]]
    return (
        f"Actions: {len(state.history())}\n"
        f"Points: {state.returns()[seat]:.0f}\n"
        f"Waste: {' '.join(waste) or 'none'}\n"
        f"Foundations: {' '.join(foundations)}\n"
        f"Columns:\n{chr(10).join(columns) or 'none'}"
    )


SPEC = GameSpec(
    name="solitaire",
    notation=(
        "where a card goes, an arrow and the card, as 8♠ ← 7♥; ♠ is an empty foundation and 🂿 an "
        "empty column. kEnd ends the game."
    ),
    rules=rules,
    describe=describe,
    allowed={"players": (1,), "is_colored": (False,), "depth_limit": (100, 150, 200, 300, 500, 1000)},
    fixed_names=True,
)
