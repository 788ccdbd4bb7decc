"""Leduc poker: two betting rounds, one private card a player, one public card."""

from __future__ import annotations

import re
from functools import lru_cache

from game_gym.games.cards import bet_words, ranks
from game_gym.spec import Budget, GameSpec, Params, State

SUITS = "♠♥"

# The information state; it has [Public: …] from the second round on.
_FIELDS = re.compile(
    r"\[Observer: (?P<seat>\d+)\]\[Private: (?P<card>\d+)\].*?\[Pot: (?P<pot>\d+)\]"
    r"\[Money: (?P<money>[\d ]+)\](?:\[Public: (?P<public>\d+)\])?"
    r"\[Round1: (?P<first>[\d ]*)\]\[Round2: (?P<second>[\d ]*)\]"
)
_MOVES = ("fold", "call", "raise")
_NO_CARD = -10_000


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's leduc_poker plays."""
    players = params["players"]
    order = " < ".join(ranks(players))
    return (
        f"Leduc poker for {players} players. The deck has {2 * (players + 1)} cards: ranks {order}, each "
        "in the suits ♠ and ♥. Everyone pays 1 chip into the pot and is dealt one private card.\n"
        "There are two betting rounds; Player 0 (or the next player still in) speaks first in each. After "
        "the first round one public card is turned up.\n"
        "Fold: give up the pot (possible only when facing a raise). Call: match the highest bet; with "
        "nothing to match this is a check and costs nothing. Raise: match it and add 2 chips in round 1, "
        "4 chips in round 2; a round allows two raises in all. A round ends when everyone still in has "
        "spoken and has matched the highest bet.\n"
        "If one player is left, that player takes the pot. Otherwise a private card of the public card's "
        "rank (a pair) wins, else the higher private rank; suits do not count and equal hands share the "
        "pot.\n"
        "Your return is the number of chips you win or lose."
    )


def describe(state: State, seat: int) -> str:
    """Returns cards, each round's betting in words, and the pot: the information state, and nothing else."""
    return _words(state.information_state_string(seat))


def name_chance(state: State, outcome: int) -> str:
    """Returns the card that is dealt."""
    return _card(str(outcome), ranks(state.num_players()))


def show(state: State) -> str:
    """Returns all cards, each round's betting in words, and the pot."""
    players = range(state.num_players())
    views = [state.information_state_string(seat) for seat in players]
    dealt = [int(view.partition("[Private: ")[2].partition("]")[0]) for view in views]
    cards = [
        f"Player {seat}: {'no card yet' if card == _NO_CARD else name_chance(state, card)}"
        for seat, card in enumerate(dealt)
    ]
    # The rest is the same for all seats. No player is the one that is spoken to.
    table = re.sub(r"Observer: \d+\]\[Private: -?\d+", "Observer: 99][Private: 0", views[0])
    return "\n".join([*cards, *_words(table).splitlines()[1:]])


# Leduc for two has 936 information states; with more players some are only computed again.
@lru_cache(maxsize=4096)
def _words(information: str) -> str:
    fields = _FIELDS.match(information)
    if fields is None:
        raise RuntimeError(f"leduc_poker's information state is not as expected: {information!r}")
    seat, players = int(fields["seat"]), len(fields["money"].split())
    letters = ranks(players)
    first = [int(move) for move in fields["first"].split()]
    second = [int(move) for move in fields["second"].split()]
    folded: set[int] = set()
    rounds = [bet_words(_speakers(moves, players, folded), moves, _MOVES, seat) for moves in (first, second)]
    public = fields["public"]
    return (
        f"Your card: {_card(fields['card'], letters)}\n"
        f"Public card: {'none' if public is None else _card(public, letters)}\n"
        f"Round 1: {rounds[0]}\n"
        f"Round 2: {rounds[1]}\n"
        f"Pot: {fields['pot']}"
    )


def _card(number: str, letters: str) -> str:
    return letters[int(number) // 2] + SUITS[int(number) % 2]


def _speakers(moves: list[int], players: int, folded: set[int]) -> list[int]:
    """Returns who made each move of a round. Turns pass over ``folded``, which is updated."""
    speakers, speaker = [], -1
    for move in moves:
        speaker = (speaker + 1) % players
        while speaker in folded:
            speaker = (speaker + 1) % players
        speakers.append(speaker)
        if move == 0:
            folded.add(speaker)
    return speakers


SPEC = GameSpec(
    name="leduc_poker",
    notation="Fold, Call or Raise. With nothing to match, Call is a check.",
    rules=rules,
    describe=describe,
    params=lambda config: {"players": 2},
    allowed={"players": (2, 3, 4)},
    budget=Budget(3000, 200),
    fixed_names=True,
    name_chance=name_chance,
    show=show,
)
