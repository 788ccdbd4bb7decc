"""Metrics of a training step: weighted means, and how its episodes went."""

from __future__ import annotations

from collections.abc import ItemsView, Sequence
from typing import Any

import numpy as np

from gamespiel.agents.rollout import Episode


class Means:
    """Weighted means by name."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}

    def add(self, name: str, value: float, weight: float) -> None:
        total, count = self._sums.get(name, (0.0, 0.0))
        self._sums[name] = (total + value * weight, count + weight)

    def record(self, name: str, value: float) -> None:
        """Sets a number that is final already."""
        self._sums[name] = (value, 1.0)

    def floor(self, *names: str) -> None:
        """Raises means of what cannot be negative to 0, below which rounding can take them."""
        for name in names:
            self.record(name, max(self[name], 0.0))

    def merge(self, other: Means) -> None:
        """Adds all that was added to ``other``."""
        for name, (total, count) in other._sums.items():
            own_total, own_count = self._sums.get(name, (0.0, 0.0))
            self._sums[name] = (own_total + total, own_count + count)

    def __contains__(self, name: str) -> bool:
        return name in self._sums

    def __getitem__(self, name: str) -> float:
        total, count = self._sums[name]
        return total / count

    def items(self) -> ItemsView[str, float]:
        return {name: self[name] for name in self._sums}.items()


def rollout_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Returns metrics of a step's episodes; faults are counted and left out of everything else.

    Rewards are the environments' own, before ``cut_penalty``. Replies add ``illegal``, the share that the
    environment refused, ``reply_tokens``, and ``cut_share``, the share cut at ``max_new_tokens``.
    Without any decision there is no legal mass. ``against/NAME/`` has the episodes, the mean reward and the
    share of successes of each opponent, and ``game/NAME/`` those of each game.
    """
    played = [episode for episode in episodes if not episode.fault]
    out: dict[str, float] = {"episodes": len(played), "faults": len(episodes) - len(played)}
    if not played:
        return out
    turns = [turn for episode in played for turn in episode.turns]
    out |= {
        **_outcomes(played),
        "turns": len(turns) / len(played),
        "cut": _mean_of([episode.truncated for episode in played]),
    }
    measures = [turn.measures for turn in turns]  # none, if all games end before the seat's first turn
    out |= {name: _mean_of([row[name] for row in measures]) for name in (measures[0] if measures else ())}
    if any(not turn.action_mask.size for turn in turns):  # nothing masked them
        out["illegal"] = _mean_of([turn.refused for turn in turns])
    for seat in sorted({e.info["seat"] for e in played if e.info.get("seat") is not None}):
        rewards = [e.total_reward for e in played if e.info.get("seat") == seat]
        out[f"seat{seat}_reward"] = _mean_of(rewards)
    return out | _metrics_by(played, "opponent", "against") | _metrics_by(played, "game", "game")


def _metrics_by(played: Sequence[Episode], key: str, prefix: str) -> dict[str, float]:
    """Returns metrics per value of a key of the info, of episodes that have it."""
    groups: dict[str, list[Episode]] = {}
    for episode in played:
        if key in episode.info:
            groups.setdefault(str(episode.info[key]), []).append(episode)
    out: dict[str, float] = {}
    for name, group in sorted(groups.items()):
        out |= {
            f"{prefix}/{name}/episodes": len(group),
            **{f"{prefix}/{name}/{measure}": mean for measure, mean in _outcomes(group).items()},
        }
    return out


def _outcomes(episodes: Sequence[Episode]) -> dict[str, float]:
    return {
        "reward": _mean_of([episode.total_reward for episode in episodes]),
        "success": _mean_of([bool(episode.info.get("success", False)) for episode in episodes]),
    }


def _mean_of(values: Sequence[Any]) -> float:
    return float(np.mean(values))
