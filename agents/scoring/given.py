"""Another policy's numbers for a step's decisions, from which divergences are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from gamespiel.agents import transfer
from gamespiel.agents.tokens.index import Positions, spans


class GivenPart(NamedTuple):
    """Another policy's numbers for decisions that shared a forward.

    Attributes:
        where: Positions of the decisions, int64 (b,).
        counts: Decided tokens of each, int64 (b,).
        rows: One row per decided token, (k, c): log-probabilities of a node's children, padded with -inf, or
            of a token, or the hidden state that predicts a token.
    """

    where: Positions
    counts: Positions
    rows: Tensor

    def move(self, device: torch.device) -> GivenPart:
        """Returns the part on a device."""
        return self._replace(rows=self.rows.to(device))


class GivenRows(NamedTuple):
    """Another policy's numbers for the decisions of one forward.

    Attributes:
        rows: See ``GivenPart``.
        estimator: How divergences from it are found: "exact" or "k3".
    """

    rows: Tensor
    estimator: str


class Given:
    """Another policy's numbers for all decisions of a step.

    Args:
        decisions: Number of decisions in all.
        parts: Each decision is in one of them.
        estimator: See ``GivenRows``.
    """

    def __init__(self, decisions: int, parts: Sequence[GivenPart], estimator: str) -> None:
        self.estimator = estimator
        self._first, self._count = np.zeros((2, decisions), dtype=np.int64)
        width, tables, filled = max(part.rows.shape[1] for part in parts), [], 0
        for where, counts, rows in parts:
            self._first[where], self._count[where] = filled + counts.cumsum() - counts, counts
            filled += len(rows)
            tables.append(pad(rows, (0, width - rows.shape[1]), value=-torch.inf))
        self._rows = torch.cat(tables)

    def take(self, where: Positions) -> GivenRows:
        """Returns the rows of the decisions at these positions, in their order."""
        rows = transfer.send(spans(self._first, self._count, where), self._rows.device)
        return GivenRows(self._rows.index_select(0, rows), self.estimator)
