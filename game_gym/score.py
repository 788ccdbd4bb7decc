"""Scores in [0, 1] and results, from the returns of a game."""

from __future__ import annotations

from collections.abc import Sequence

from game_gym.spec import Variant
from task_gym.contract import SUCCESS, result_of


def seat_score(returns: Sequence[float], seat: int, zero_sum: bool, low: float, high: float) -> float:
    """Returns the score of a seat.

    Zero-sum and one-player games scale the return from [low, high], the game's least and greatest return.
    Other games score the rank, 1 - (players ahead)/(players - 1), and with two players 1, 0.5 or 0.

    Args:
        returns: One per seat, shape (players,).
        seat: The seat.
        zero_sum: Whether the game's returns always sum to zero.
        low: The least possible return.
        high: The greatest possible return.
    """
    seat_return = returns[seat]
    if zero_sum or len(returns) == 1:
        # Bounded, because play can pass the bounds that some games state (2048: by a few points).
        return min(max((seat_return - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    ahead = sum(other > seat_return for other in returns)
    if len(returns) > 2:
        return 1.0 - ahead / (len(returns) - 1)
    return 0.5 if returns[0] == returns[1] else 1.0 - ahead


def seat_scores(variant: Variant, returns: Sequence[float]) -> list[float]:
    """Returns the score of every seat of a game, as ``seat_score`` does."""
    return [
        seat_score(returns, seat, variant.zero_sum, variant.low, variant.high)
        for seat in range(variant.players)
    ]


def outcome(returns: Sequence[float], seat: int, own_score: float) -> str:
    """Returns "win" if nobody did as well, "draw" if somebody did and nobody did better, else "loss".

    With one seat the score decides: above, at or below 0.5.
    """
    others = [value for other, value in enumerate(returns) if other != seat]
    return result_of(returns[seat] - max(others) if others else own_score - SUCCESS)


def forfeit_returns(returns: Sequence[float], seat: int, zero_sum: bool, low: float) -> list[float]:
    """Returns the returns after a seat gave the game up: its own is the least possible one.

    In zero-sum games the other seats share the gain equally. So a forfeit is never worth more than playing
    on, in returns as in score.
    """
    others = len(returns) - 1
    shared = -low / others if zero_sum and others else None
    return [low if p == seat else value if shared is None else shared for p, value in enumerate(returns)]
