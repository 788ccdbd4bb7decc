"""The measures of an agent behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from task_gym.stats import Interval, mean_interval, wilson


@dataclass(frozen=True)
class Row:
    """Measures of a group of episodes.

    Attributes:
        episodes: Number of episodes that count.
        faults: Number of episodes that failed, which are left out.
        score: Mean score with its 95% interval, as ``mean_interval`` has it; None if all failed.
        success: Share of successes with its 95% Wilson interval; None if all failed.
        given_up: Episodes given up by replies that named no legal action; None if the server does not count.
        refused: Replies that named no legal action; None if the server does not count them.
    """

    episodes: int
    faults: int
    score: Interval | None
    success: Interval | None
    given_up: int | None
    refused: int | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the measures as plain data."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


def rows_of(
    records: Sequence[Mapping[str, Any]], groups: Callable[[Mapping[str, Any]], list[str]]
) -> dict[str, Row]:
    """Returns the measures by group, "all" last. A group that has all episodes is left out.

    Args:
        records: Results of ``evaluate``.
        groups: Result to the names of its groups.
    """
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for name in [] if has_failed(record) else groups(record):
            by_group.setdefault(name, []).append(record)
    parts = {name: part for name, part in sorted(by_group.items()) if len(part) < len(records)}
    return {name: _summarize_episodes(part) for name, part in {**parts, "all": records}.items()}


def _summarize_episodes(records: Sequence[Mapping[str, Any]]) -> Row:
    played = [record for record in records if not has_failed(record)]
    scores = [float(record["score"]) for record in played]
    success = sum(bool(record["success"]) for record in played)
    return Row(
        episodes=len(played),
        faults=len(records) - len(played),
        score=mean_interval(scores, (0.0, 1.0)) if scores else None,
        success=wilson(success, len(scores)) if scores else None,
        given_up=_sum_counts(played, "given_up"),
        refused=_sum_counts(played, "refused_replies"),
    )


def has_failed(record: Mapping[str, Any]) -> bool:
    """Returns whether an episode has a reason why its score does not count; null is none."""
    return record.get("error") is not None


def _sum_counts(records: Sequence[Mapping[str, Any]], name: str) -> int | None:
    counts = [record.get("extra", {}).get(name) for record in records]
    return None if not counts or None in counts else sum(int(count) for count in counts)
