"""Bridge: the auction of one deal, scored by what perfect play of the cards would make.

Variants 1 and 2 of the task ids mean Chicago and duplicate scoring, which upstream asks for by names that
OpenSpiel does not have. In a single deal these change only who is vulnerable, which OpenSpiel does have:
variant 1 is a middle deal of a Chicago rubber, the dealer's side vulnerable; variant 2 is the duplicate board
that has both sides vulnerable with this dealer (board 13 of 16).
"""

from __future__ import annotations

from collections.abc import Sequence

from game_gym.spec import Budget, GameSpec, Params, State

_NAMES = ("North", "East", "South", "West")
_CARDS = 52
_RANKS = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A")
# Cards are numbered by rank, then suit; hands are shown from spades down.
_SUITS = "♣♦♥♠"

_VARIANTS: tuple[dict[str, bool], ...] = (
    {},
    {"dealer_vul": True, "non_dealer_vul": False},
    {"dealer_vul": True, "non_dealer_vul": True},
)


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's bridge plays, by dealer and vulnerability."""
    dealer = _NAMES[params["dealer"]]
    return (
        "The auction of contract bridge. Players 0 North, 1 East, 2 South and 3 West hold 13 cards each. "
        "North and South are partners against East and West. "
        f"{dealer} is the dealer and speaks first; turns go North, East, South, West and round.\n"
        "A bid names a level from 1 to 7, which promises 6 tricks more than that, and trumps ♣ < ♦ < ♥ < ♠ "
        "or NT (no trumps, the highest). Each bid must be higher than the last: a higher level, or the same "
        "with higher trumps. Dbl doubles the other side's last bid; RDbl redoubles your side's bid after it "
        "was doubled; a new bid cancels both. Three passes after a bid end the auction and the last bid is "
        "the contract; four passes with no bid end the game with 0 for all.\n"
        "The declarer is the player of the contract's side who first bid its trumps. The cards are not "
        "played: the declarer gets the tricks that perfect play of all four hands gives, the player after "
        "the declarer leading.\n"
        "Score of a made contract: 20 a promised trick above 6 in ♣ or ♦, 30 in ♥, ♠ or NT, 10 more in NT; "
        "this twice if doubled, four times if redoubled. If it comes to 100 or more there is a bonus of 300, "
        "vulnerable 500, else 50. Level 6 has a bonus of 800 (vulnerable 1250) and level 7 of 1300 (2000) "
        "instead. A doubled contract adds 50, a redoubled one 100. A trick beyond the promise pays as above, "
        "20 or 30; doubled 100 (vulnerable 200), redoubled twice that.\n"
        "A trick too few costs 50, vulnerable 100. Doubled, the first costs 100, the second and third 200 "
        "each, further ones 300 each; vulnerable the first 200, further ones 300 each. Redoubled costs twice "
        "as much as doubled.\n"
        "Your return is the declarer's score if the declarer is of your side, else minus that."
    )


def describe(state: State, seat: int) -> str:
    """Returns seat, vulnerability, the seat's hand by suit, and the auction as it was spoken."""
    params = state.get_game().get_parameters()
    dealer = params["dealer"]
    history = state.history()
    # Cards are dealt in turn, North first, no matter who the dealer is.
    hand = history[seat:_CARDS:4]
    calls = history[_CARDS:]
    said = [
        f"{'you' if speaker == seat else _NAMES[speaker]} {state.action_to_string(speaker, call)}"
        for speaker, call in zip(((dealer + turn) % 4 for turn in range(len(calls))), calls, strict=True)
    ]
    return (
        f"You: {_NAMES[seat]}, partner {_NAMES[(seat + 2) % 4]}\n"
        f"Dealer: {_NAMES[dealer]}\n"
        f"Vulnerable: {_vulnerable(params)}\n"
        f"{_hand(hand)}\n"
        f"Auction: {', '.join(said) or 'none'}"
    )


def _vulnerable(params: Params) -> str:
    sides = ("North-South", "East-West")
    dealer_side, other = params["dealer"] % 2, 1 - params["dealer"] % 2
    both = sorted([dealer_side] * params["dealer_vul"] + [other] * params["non_dealer_vul"])
    return " and ".join(sides[side] for side in both) or "none"


def _hand(cards: Sequence[int]) -> str:
    """Returns the hand as four lines, spades first, each from the ace down."""
    lines = []
    for suit in (3, 2, 1, 0):
        held = sorted((card // 4 for card in cards if card % 4 == suit), reverse=True)
        lines.append(f"{_SUITS[suit]} {' '.join(_RANKS[rank] for rank in held) or 'none'}")
    return "\n".join(lines)


SPEC = GameSpec(
    name="bridge",
    slow_deal=True,  # OpenSpiel solves each for the play of all contracts, in a quarter of a second
    notation="a bid of level and suit, as 1♣ or 3NT; or Pass, Dbl or RDbl.",
    rules=rules,
    describe=describe,
    params=lambda config: dict(_VARIANTS[config % 3]),
    variants=3,
    allowed={
        "dealer": (0, 1, 2, 3),
        "dealer_vul": (False, True),
        "non_dealer_vul": (False, True),
        # The play of the cards is not described, so it is not offered.
        "use_double_dummy_result": (True,),
    },
    budget=Budget(200, 30),
    fixed_names=True,
)
