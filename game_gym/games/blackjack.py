"""Blackjack: one player against a dealer who follows fixed rules."""

from __future__ import annotations

from functools import lru_cache

from game_gym.spec import GameSpec, Params, State

_RANKS = "A23456789TJQK"
_SUITS = "♣♦♥♠"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's blackjack plays."""
    return (
        "Blackjack, one player against the dealer, with one deck of 52 cards. You get two cards, both open; "
        "the dealer gets two, of which you see one.\n"
        "Cards 2 to 9 count their number; T (ten), J, Q and K count 10; an ace counts 11 where that keeps "
        "the hand at 21 or less, else 1.\n"
        "Hit: take another card; a hand above 21 loses at once. Stand: take no more. Then the dealer turns "
        "over the hidden card and draws until the dealer's hand is 17 or more.\n"
        "A dealer above 21 loses. Otherwise the higher hand wins and equal hands are a draw. Two cards that "
        "make 21 are an ordinary 21; there is no doubling, splitting or insurance.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's cards, what they count, and the dealer's open card."""
    return _words(state.information_state_string(seat))


@lru_cache(maxsize=4096)
def _words(information: str) -> str:
    # The player's two cards, the dealer's open card, then a hit and its card in turn.
    numbers = [int(number) for number in information.split()]
    hand = numbers[:2] + numbers[4::2]
    total, soft = count(hand)
    kind = "soft" if soft else "hard"
    return (
        f"Your cards: {' '.join(_card(number) for number in hand)}\n"
        f"Your total: {total} ({kind})\n"
        f"Dealer's open card: {_card(numbers[2])}"
    )


def count(cards: list[int]) -> tuple[int, bool]:
    """Returns the value of a hand, and whether one of its aces counts 11."""
    least = sum(min(number % 13 + 1, 10) for number in cards)
    soft = least <= 11 and any(number % 13 == 0 for number in cards)
    return least + 10 * soft, soft


def _card(number: int) -> str:
    return _RANKS[number % 13] + _SUITS[number // 13]


SPEC = GameSpec(
    name="blackjack",
    notation="Hit or Stand.",
    rules=rules,
    describe=describe,
    fixed_names=True,
)
