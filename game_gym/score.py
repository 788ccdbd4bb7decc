"""From the returns of a game to a score in [0, 1] and a result."""

from __future__ import annotations

from collections.abc import Sequence

from task_gym.contract import SUCCESS


def seat_score(returns: Sequence[float], seat: int, zero_sum: bool, low: float, high: float) -> float:
    """The score of a seat.

    Zero-sum and one-player games scale the return from [low, high], the game's least and greatest return;
    other games score the rank, 1 - (players ahead)/(players - 1), and with two players 1, 0.5 or 0.

    Args:
        returns: One a seat, shape (players,).
        seat: Whose score.
    """
    own = returns[seat]
    if zero_sum or len(returns) == 1:
        # Bounded, because some games state bounds that play can pass (2048: a few points more than its best).
        return min(max((own - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    ahead = sum(other > own for other in returns)
    if len(returns) > 2:
        return 1.0 - ahead / (len(returns) - 1)
    return 0.5 if returns[0] == returns[1] else 1.0 - ahead


def outcome(returns: Sequence[float], seat: int, own_score: float) -> str:
    """ "win" where nobody did as well, "draw" where somebody did and nobody better, else "loss".

    Alone at the table it is the score that tells: above 0.5, at 0.5, below.
    """
    others = [value for other, value in enumerate(returns) if other != seat]
    margin = returns[seat] - max(others) if others else own_score - SUCCESS
    return "win" if margin > 0 else "draw" if margin == 0 else "loss"


def forfeit_returns(returns: Sequence[float], seat: int, zero_sum: bool, low: float) -> list[float]:
    """Returns where a seat gave the game up: its least possible return; zero-sum games share it out equally.

    So that a forfeit is never worth more than playing on, in returns as in score.
    """
    others = len(returns) - 1
    shared = -low / others if zero_sum and others else None
    return [low if p == seat else value if shared is None else shared for p, value in enumerate(returns)]
