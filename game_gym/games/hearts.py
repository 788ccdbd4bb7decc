"""Hearts: four hands, thirteen tricks, as few points as possible."""

from __future__ import annotations

import re

from game_gym.games.cards import Play, tell_plays, tell_tricks
from game_gym.spec import Budget, GameSpec, Params, State

_RANKS = "23456789TJQKA"
# Steps from a player to the one who receives the cards.
_PASSES = {"No Pass": 0, "Left": 1, "Across": 2, "Right": 3}

# The information state before the end. It has received cards from the last pass on, tricks and points from
# the first card on.
_FIELDS = re.compile(
    r"Pass Direction: (?P<direction>[^\n]+)\n\nHand: \n(?P<hand>(?:[SHDC] [^\n]+\n){4})"
    r"(?:\nPassed Cards: (?P<passed>[^\n]*)\n(?:\nReceived Cards: (?P<received>[^\n]*)\n)?)?"
    r"(?:\nTricks:\nN  E  S  W  N  E  S\n(?P<tricks>(?:[^\n]+\n)+)\nPoints:\n(?P<points>[\s\S]+))?"
)


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's hearts plays.

    Without ``pass_cards`` they are the same: its chance outcomes still include all four ways to pass.
    """
    breakers = "a heart or QS" if params["qs_breaks_hearts"] else "a heart"
    spared = " or only hearts and QS" if params["can_lead_hearts_instead_of_qs"] else ""
    lines = [
        "Hearts for 4 players, each alone; the fewest points are best. Turns go round 0, 1, 2, 3. The 52 "
        "cards are dealt out, 13 each. A card is its rank, lowest first 23456789TJQKA, and its suit: C "
        "clubs, D diamonds, H hearts, S spades.",
        "Passing: at random, everyone gives 3 cards left (to the next player), across, right (to the "
        "previous player), or nobody does. Players choose in the order 0, 1, 2, 3, one card an action; "
        "the cards change hands when all have chosen.",
        "Play: the holder of 2C leads first, "
        + ("with any club. " if params["can_lead_any_club"] else "with that card. ")
        + "Everyone plays one card a trick and must follow the suit led if able; otherwise any card may be "
        "played. The highest card of the suit led takes the trick, and its player leads the next.",
    ]
    if params["no_pts_on_first_trick"]:
        lines.append("In the first trick hearts and QS may be played only by a hand that has nothing else.")
    if params["must_break_hearts"]:
        lines.append(
            f"Until {breakers} has been played in any trick, hearts may be led only by a hand that has "
            f"only hearts{spared}."
        )
    lines.append(
        "Points for the cards taken: 1 a heart, 13 for QS"
        + (", -10 for JD" if params["jd_bonus"] else "")
        + ". A player who takes all the hearts and QS scores 26 less, and each of the others 26 more."
    )
    if params["avoid_all_tricks_bonus"]:
        lines.append("Taking no trick at all is worth -5, unless someone takes all the hearts and QS.")
    lines.append("Your return is 26 minus your points.")
    return "\n".join(lines)


def describe(state: State, seat: int) -> str:
    """Returns hand, passed cards, every trick and the points: the information state, and nothing else."""
    information = state.information_state_string(seat)
    fields = _FIELDS.fullmatch(information)
    if fields is None:
        raise RuntimeError(f"hearts' information state is not as expected: {information!r}")
    hand = [rank + line[0] for line in fields["hand"].splitlines() if line[2:] != "none" for rank in line[2:]]
    tricks = [_read_trick(line) for line in (fields["tricks"] or "").splitlines()]
    current = tricks.pop() if tricks and len(tricks[-1]) < 4 else []
    points = re.findall(r": (\S+)", fields["points"] or "") or ["0"] * 4
    return "\n".join(
        [
            f"Pass: {_tell_pass(fields['direction'], seat)}",
            f"You passed: {(fields['passed'] or '').strip() or 'none'}",
            f"You received: {(fields['received'] or '').strip() or 'none'}",
            f"Your hand: {' '.join(hand)}",
            *tell_tricks(tricks, [_taker(trick) for trick in tricks], seat),
            f"Current trick: {tell_plays(current, seat)}",
            f"Points: {tell_plays(list(enumerate(points)), seat)}",
        ]
    )


def _tell_pass(direction: str, seat: int) -> str:
    step = _PASSES[direction]
    if step == 0:
        return "none"
    return f"{direction.lower()}, you give to P{(seat + step) % 4} and receive from P{(seat - step) % 4}"


def _read_trick(line: str) -> list[Play]:
    # Three columns per seat, the leader's first.
    leader = (len(line) - len(line.lstrip())) // 3
    return [((leader + turn) % 4, card) for turn, card in enumerate(line.split())]


def _taker(trick: list[Play]) -> int:
    suit = trick[0][1][1]
    return max((_RANKS.index(card[0]), seat) for seat, card in trick if card[1] == suit)[1]


SPEC = GameSpec(
    name="hearts",
    notation="a card, rank and suit, as QS.",
    rules=rules,
    describe=describe,
    params=lambda config: {
        "pass_cards": bool(config & 1),
        "jd_bonus": bool(config & 2),
        "avoid_all_tricks_bonus": bool(config & 4),
    },
    variants=8,
    allowed={
        "pass_cards": (True, False),
        "no_pts_on_first_trick": (True, False),
        "can_lead_any_club": (False, True),
        "jd_bonus": (False, True),
        "avoid_all_tricks_bonus": (False, True),
        "must_break_hearts": (True, False),
        "qs_breaks_hearts": (True, False),
        "can_lead_hearts_instead_of_qs": (False, True),
    },
    budget=Budget(500, 50),
    fixed_names=True,
)
