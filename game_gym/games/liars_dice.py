"""Liar's dice: rising bids on everyone's dice, until one is called a lie."""

from __future__ import annotations

from game_gym.games.cards import bet_words
from game_gym.spec import Budget, GameSpec, Params, State


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's liars_dice plays."""
    dice, sides = params["numdice"], params["dice_sides"]
    if params["bidding_rule"] == "reset-face":
        higher = "more dice of any face, or as many dice of a higher face"
    else:
        higher = "any number of dice of a higher face, or more dice of the same face"
    return (
        f"Liar's dice for 2 players. Each rolls {dice} dice with faces 1 to {sides}, and sees only their "
        f"own; {2 * dice} dice are in play.\n"
        f"Face {sides} is wild: it counts as every face. A bid N-F claims that among all dice at least N "
        f"show face F or {sides}.\n"
        "Player 0 bids first, then turns alternate. On your turn make a higher bid or, once there is a bid, "
        f"say Liar to challenge the last one. A bid is higher if it names {higher}. N is at most "
        f"{2 * dice}; after the highest possible bid one can only say Liar.\n"
        "Liar ends the game: all dice are shown. If the last bid was true, its bidder wins, otherwise the "
        "challenger does.\n"
        "Your return is 1 for a win, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's dice and all bids: its information state, and nothing else."""
    # The dice as digits, lowest first, then the bids; Player 0 made the first.
    dice, *bids = state.information_state_string(seat).split()
    players = [turn % 2 for turn in range(len(bids))]
    return f"Your dice: {' '.join(dice)}\nBids: {bet_words(players, range(len(bids)), bids, seat)}"


def show(state: State) -> str:
    """Returns both players' dice and all bids."""
    count = state.get_game().get_parameters()["numdice"]
    faces = [outcome + 1 for outcome in state.history()[: 2 * count]]  # first Player 0 rolls all
    hands = (sorted(faces[:count]), sorted(faces[count:]))
    dice = [f"Player {seat}: {' '.join(map(str, hand)) or 'no dice yet'}" for seat, hand in enumerate(hands)]
    bids = [] if state.is_chance_node() else state.information_state_string(0).split()[1:]
    players = [turn % 2 for turn in range(len(bids))]
    return "\n".join([*dice, f"Bids: {bet_words(players, range(len(bids)), bids, seat=-1)}"])


SPEC = GameSpec(
    name="liars_dice",
    notation="a bid N-F, as 1-4; or Liar.",
    rules=rules,
    describe=describe,
    params=lambda config: {"players": 2, "numdice": 5},
    allowed={
        "players": (2,),
        "numdice": (1, 2, 3, 4, 5, 6),
        # With more than nine faces, information states would be ambiguous.
        "dice_sides": (2, 3, 4, 5, 6, 7, 8, 9),
        "bidding_rule": ("reset-face", "reset-quantity"),
    },
    budget=Budget(3000, 200),
    fixed_names=True,
    show=show,
)
