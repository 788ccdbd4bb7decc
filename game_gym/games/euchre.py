"""Euchre: two partnerships, five tricks, a trump suit that is bid for."""

from __future__ import annotations

from dataclasses import dataclass, field

from game_gym.games.cards import Play, name_seat, tell_plays, tell_tricks
from game_gym.spec import Budget, GameSpec, Params, State

_RANKS = "9TJQKA"
_SUITS = "CDHS"
_NAMES = dict(zip(_SUITS, ("clubs", "diamonds", "hearts", "spades"), strict=True))
_COLOUR = dict(zip(_SUITS, "SHDC", strict=True))

# The history's positions: the dealer, twenty dealt cards, the upcard, then the players' actions.
_UPCARD = 21
# Action ids.
_PASS, _FIRST_SUIT, _ALONE = 24, 25, 29


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's euchre plays."""
    alone = "The maker then says whether to play alone, without the partner."
    if params["allow_lone_defender"]:
        alone += (
            " Next the defenders, from the dealer's left on, are asked in turn whether to defend alone, "
            "until one does."
        )
    stuck = (
        "the dealer, if reached again, must name one."
        if params["stick_the_dealer"]
        else "if all pass again, the game ends and everyone's return is 0."
    )
    euchred = " (4 against a lone defender)" if params["allow_lone_defender"] else ""
    return (
        "Euchre for 4 players: Players 0 and 2 against Players 1 and 3. Turns go round 0, 1, 2, 3. There "
        "are 24 cards: a suit (C clubs, D diamonds, H hearts, S spades) and a rank, lowest first 9TJQKA. "
        "A dealer is drawn, everyone gets 5 cards, and one card, the upcard, is turned up.\n"
        "Bidding starts at the dealer's left. Round 1: pass, or make the upcard's suit trump; then the "
        "dealer takes the upcard and discards another card, unseen. Round 2, if all four passed: pass, or "
        f"name one of the other three suits; {stuck} Whoever makes trump is the maker. {alone}\n"
        "The player at the dealer's left leads first (or the next one in play). Follow the suit led if "
        "able; otherwise any card may be played. The highest trump takes the trick, or, without trumps, "
        "the highest card of the suit led; its player leads the next.\n"
        "The jack of trump is the highest trump. The other jack of the same colour (C with S, D with H) "
        "is the second highest and belongs to the trump suit, not to its own. Then come A, K, Q, T, 9.\n"
        "The makers' side scores 1 for 3 or 4 tricks, 2 for all 5, or 4 for all 5 by a lone maker; with "
        f"fewer than 3 tricks the other side scores 2{euchred}.\n"
        "Your return is your side's points; what one side scores, the other loses."
    )


@dataclass
class _Public:
    """The players' bids and plays, and the dealer's discard, which only the dealer may see."""

    dealer: int
    upcard: str
    bids: list[Play] = field(default_factory=list)
    trump: str | None = None
    discard: str | None = None
    alone: list[Play] = field(default_factory=list)
    tricks: list[list[Play]] = field(default_factory=list)


def describe(state: State, seat: int) -> str:
    """Returns the seat's hand and discard, bids, every trick: all that it has seen, and nothing else.

    OpenSpiel's string leaves out three things that the seat has seen, and that are shown here: a suit named
    by the first bidder of round 2, which defenders declined to play alone, and the dealer's own discard.
    """
    public = _read(state)
    asked = state.get_game().get_parameters()["allow_lone_defender"]
    done = [trick for trick in public.tricks if len(trick) == _hands_in_play(public)]
    current = public.tricks[-1] if len(done) < len(public.tricks) else []
    takers = [_taker(trick, public.trump) for trick in done]
    ours = sum(taker % 2 == seat % 2 for taker in takers)
    lines = [
        f"Your partner: P{(seat + 2) % 4}",
        f"Dealer: {name_seat(public.dealer, seat)}",
        f"Upcard: {public.upcard}",
        f"Bids: {tell_plays(public.bids, seat)}",
        f"Trump: {'none yet' if public.trump is None else _NAMES[public.trump]}",
        f"{'Alone (maker, then defenders)' if asked else 'Alone'}: {tell_plays(public.alone, seat)}",
    ]
    if seat == public.dealer:
        lines.append(f"You discarded: {public.discard or 'none'}")
    lines += [
        f"Your hand: {' '.join(_hand(state, seat))}",
        *tell_tricks(done, takers, seat),
        f"Current trick: {tell_plays(current, seat)}",
        f"Tricks taken: your side {ours}, the other side {len(done) - ours}",
    ]
    return "\n".join(lines)


def _read(state: State) -> _Public:
    """Reads the moves after the deal; of the deal itself, the dealer and the upcard only."""
    moves = [(move.player, move.action) for move in state.full_history()]
    public = _Public(dealer=moves[0][1], upcard=_card(moves[_UPCARD][1]))
    for player, action in moves[_UPCARD + 1 :]:
        if action == _PASS:
            public.bids.append((player, "pass"))
        elif action >= _ALONE:
            public.alone.append((player, "yes" if action == _ALONE else "no"))
        elif action >= _FIRST_SUIT:
            public.trump = _SUITS[action - _FIRST_SUIT]
            public.bids.append((player, _NAMES[public.trump]))
        elif len(public.bids) <= 4 and public.discard is None:
            public.discard = _card(action)
        else:
            if not public.tricks or len(public.tricks[-1]) == _hands_in_play(public):
                public.tricks.append([])
            public.tricks[-1].append((player, _card(action)))
    return public


def _hands_in_play(public: _Public) -> int:
    return 4 - sum(answer == "yes" for _, answer in public.alone)


def _card(card: int) -> str:
    # Rank by rank, lowest first.
    return _SUITS[card % 4] + _RANKS[card // 4]


def _hand(state: State, seat: int) -> list[str]:
    # Lines "S AQ", "H none", … in the seat's information state.
    lines = state.information_state_string(seat).partition("Hand:\n")[2].split("\n")[:4]
    return [line[0] + rank for line in lines if line[2:] != "none" for rank in line[2:]]


def _taker(trick: list[Play], trump: str | None) -> int:
    assert trump is not None  # no trick before a trump suit
    suit = _suit(trick[0][1], trump)
    return max((_strength(card, trump), seat) for seat, card in trick if _suit(card, trump) in (suit, trump))[
        1
    ]


def _suit(card: str, trump: str) -> str:
    return trump if card == _COLOUR[trump] + "J" else card[0]


def _strength(card: str, trump: str) -> tuple[bool, int]:
    rank = _RANKS.index(card[1])
    if card[1] == "J" and _suit(card, trump) == trump:
        rank = 20 if card[0] == trump else 10
    return _suit(card, trump) == trump, rank


SPEC = GameSpec(
    name="euchre",
    notation="a card, suit and rank, as HQ; or Pass, Clubs, Diamonds, Hearts, Spades, Alone or Partner.",
    rules=rules,
    describe=describe,
    params=lambda config: {"allow_lone_defender": bool(config & 1), "stick_the_dealer": bool(config & 2)},
    variants=4,
    allowed={"allow_lone_defender": (False, True), "stick_the_dealer": (True, False)},
    budget=Budget(1000, 100),
    fixed_names=True,
)
