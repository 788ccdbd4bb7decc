"""Several comparisons at once: what each may claim if all of them together may err once in twenty."""

from __future__ import annotations

from collections.abc import Sequence


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Returns Holm's adjusted p-values (Holm 1979), in the order given.

    Those of at most 0.05 may be called differences, and the probability that any such claim is wrong is at
    most 0.05, however the comparisons depend on each other.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def share_confidence(confidence: float, members: int) -> float:
    """Returns the confidence of each interval of a family, so that all are right with ``confidence``.

    It is Bonferroni's, which holds however the intervals depend on each other.
    """
    return 1 - (1 - confidence) / max(1, members)
