"""Kuhn poker: one card a player, one bet."""

from __future__ import annotations

from functools import lru_cache

from game_gym.games.cards import bet_words, ranks
from game_gym.spec import Budget, GameSpec, Params, State

_MOVES = ("pass", "bet")


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's kuhn_poker plays."""
    players = params["players"]
    order = " < ".join(ranks(players))
    return (
        f"Kuhn poker for {players} players. The deck has one card of each rank: {order}. Everyone pays 1 "
        "chip into the pot and is dealt one private card.\n"
        "Turns go round from Player 0. Pass: stay without paying; once someone has bet, this gives up the "
        "pot. Bet: pay 1 chip; once someone has bet, this calls. After the first bet every other player "
        "answers once, and the game ends; it also ends when everyone has passed.\n"
        "The highest card among those who paid the most takes the pot.\n"
        "Your return is the number of chips you win or lose."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's card, the betting in words, and the pot: the information state, and nothing else."""
    return _words(state.information_state_string(seat), seat, state.num_players())


def name_chance(state: State, outcome: int) -> str:
    """Returns the card that is dealt."""
    return ranks(state.num_players())[outcome]


def show(state: State) -> str:
    """Returns all cards, the betting in words, and the pot."""
    players = state.num_players()
    history = state.history()
    dealt, moves = history[:players], history[players:]
    cards = [f"Player {seat}: {name_chance(state, card)}" for seat, card in enumerate(dealt)]
    cards += [f"Player {seat}: no card yet" for seat in range(len(dealt), players)]
    said = bet_words([turn % players for turn in range(len(moves))], moves, _MOVES, seat=-1)
    return "\n".join([*cards, f"Betting: {said}", f"Pot: {players + sum(moves)}"])


@lru_cache(maxsize=4096)
def _words(information: str, seat: int, players: int) -> str:
    # The card's number, then one letter per move: p or b.
    card = int(information[0])
    moves = ["pb".index(letter) for letter in information[1:]]
    said = bet_words([turn % players for turn in range(len(moves))], moves, _MOVES, seat)
    return f"Your card: {ranks(players)[card]}\nBetting: {said}\nPot: {players + sum(moves)}"


SPEC = GameSpec(
    name="kuhn_poker",
    notation="Pass or Bet.",
    rules=rules,
    describe=describe,
    params=lambda config: {"players": 2},
    allowed={"players": (2, 3, 4)},
    # Not in the task-id table, so upstream has no budget for it: this one solves the two-player tree.
    budget=Budget(1000, 20),
    fixed_names=True,
    name_chance=name_chance,
    show=show,
)
