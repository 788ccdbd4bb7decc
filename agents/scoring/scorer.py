"""The scorer: what the weights that learn, and others by name, make of decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.models.adapters import AdapterSets
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.scoring import Scores
from gamespiel.agents.scoring.choice_scores import ChoiceScorer
from gamespiel.agents.scoring.text_scores import TextScorer
from gamespiel.agents.tokens import Index, Positions, Tokens, spans
from gamespiel.agents.tokens.constraints import FreeText


class OtherPart(NamedTuple):
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


class OtherRows(NamedTuple):
    """Another policy's numbers for the decisions of one forward.

    Attributes:
        rows: See ``OtherPart``.
        estimator: How divergences from it are found: "exact" or "k3".
    """

    rows: Tensor
    estimator: str


class OtherScores:
    """Another policy's numbers for all decisions of a step.

    Args:
        decisions: Number of decisions in all.
        parts: Each decision is in one of them.
        estimator: See ``OtherRows``.
    """

    def __init__(self, decisions: int, parts: Sequence[OtherPart], estimator: str) -> None:
        self.estimator = estimator
        self._first, self._count = np.zeros((2, decisions), dtype=np.int64)
        width, tables, filled = max(part.rows.shape[1] for part in parts), [], 0
        for where, counts, rows in parts:
            self._first[where], self._count[where] = filled + counts.cumsum() - counts, counts
            filled += len(rows)
            tables.append(pad(rows, (0, width - rows.shape[1]), value=-torch.inf))
        self._rows = torch.cat(tables)

    def take(self, where: Positions) -> OtherRows:
        """Returns the rows of the decisions at these positions, in their order."""
        rows = transfer.send(spans(self._first, self._count, where), self._rows.device)
        return OtherRows(self._rows.index_select(0, rows), self.estimator)


T = TypeVar("T")

PREPARED_AT_ONCE = 256
"""Decisions that another policy scores together, if an optimizer step has fewer."""


class Scorer:
    """Scores decisions with the model that learns.

    Args:
        engine: Runs the forwards, within its budgets.
        adapters: The sets of adapters by name.
        critic: Returns values (n,) from hidden states (n, hidden).

    Attributes:
        ranks: The ranks that share the work of ``prepare`` and of what ``split`` returns.
        budgets: The token budgets, which the local sampler shares.
    """

    def __init__(self, engine: Engine, adapters: AdapterSets, critic: Callable[[Tensor], Tensor]) -> None:
        self._engine, self._adapters, self._critic = engine, adapters, critic
        self.ranks: Ranks = ALONE
        self.budgets = engine.budgets
        self._choices, self._texts = ChoiceScorer(engine), TextScorer(engine)

    @property
    def depends_on_forwards(self) -> bool:
        """Returns whether a decision's log-probability depends on those that share its forward.

        It does in types shorter than float32, by more than an update changes it.
        """
        return self._engine.dtype != torch.float32

    def knows_mass(self, decisions: Sequence[Decision]) -> bool:
        """Returns whether something says what is legal, so that ``score`` can find the mass on it."""
        return not isinstance(decisions[0].constraint, FreeText)

    # -- with gradients ------------------------------------------------------------------------------------

    def score(
        self,
        decisions: Sequence[Decision],
        others: Mapping[str, OtherRows] | None = None,
        *,
        mass: bool = False,
        critic_only: bool = False,
    ) -> Scores:
        """Returns the scores of decisions, all of which choose or all of which write.

        Args:
            decisions: The decisions, n of them.
            others: By name, what other policies made of these decisions.
            mass: Whether the mass on legal answers is asked for. Then every token of a choice is read.
            critic_only: Whether only the critic has gradients. Hidden states then carry none, so an
                untrained critic cannot move the adapters.
        """
        with torch.set_grad_enabled(torch.is_grad_enabled() and not critic_only):
            scores = self._scorer_of(decisions).score(decisions, mass=mass)
        values = self._critic(scores.hidden)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not critic_only):
            divergences = {
                name: scores.divergence(other.rows, other.estimator) for name, other in (others or {}).items()
            }
        return replace(scores, values=values, divergences=divergences)

    def split(
        self, decisions: Sequence[Decision], *, mass: bool = False, budget: int | None = None
    ) -> list[Positions]:
        """Returns decisions in groups that ``score`` reads within the budget, by default with gradients.

        Groups are arrays of positions, int64. Decisions with a common beginning come together. If one group
        is enough, it has the given order. For several ranks there are as many groups for each, of about the
        same size.
        """
        rows_of: dict[Tokens, list[int]] = {}
        for row, sequence in enumerate(self._read_sequences(decisions, mass=mass)):
            rows_of.setdefault(sequence, []).append(row)
        sequences = list(rows_of)
        limit = self.budgets.tokens_per_backward if budget is None else budget
        chunks = self._divide(sequences, limit, self.ranks.size if budget is None else 1)
        if len(chunks) <= 1:
            return [np.arange(len(decisions))] if decisions else []
        return [np.array([row for i in chunk for row in rows_of[sequences[i]]]) for chunk in chunks]

    def _divide(self, sequences: Sequence[Tokens], limit: int, ranks: int) -> list[list[int]]:
        """Returns the sequences of each forward, by their positions.

        Ranks wait for the one with the most to read. So the budget is lowered as far as the number of
        forwards, rounded up to the same for each rank, allows.
        """
        chunks = list(self._engine.chunks(sequences, limit))
        if ranks == 1 or not sequences:
            return chunks
        most = ranks * math.ceil(len(chunks) / ranks)
        low, high = 1, min(limit, sum(map(len, sequences)))
        while high - low > max(1, high // 50):  # the last percents are not worth the search
            middle = (low + high) // 2
            tried = list(self._engine.chunks(sequences, middle))
            low, high, chunks = (low, middle, tried) if len(tried) <= most else (middle, high, chunks)
        return chunks

    def retry(self, work: Callable[[], T], decisions: Sequence[Decision], undo: Callable[[], None]) -> T:
        """Returns ``work()``, scores of these decisions with gradients (see ``Budgets.retry``)."""
        texts = self._read_sequences(decisions, mass=False)
        agree = self.ranks.agree
        return self.budgets.retry(work, texts, self._engine.count, gradients=True, undo=undo, agree=agree)

    # -- without gradients ---------------------------------------------------------------------------------

    @torch.no_grad()
    def prepare(
        self,
        decisions: Sequence[Decision],
        name: str,
        batches: Sequence[Positions],
        *,
        estimator: str = "exact",
        mass: bool = False,
    ) -> OtherScores:
        """Returns what other adapters make of all decisions of a step.

        Args:
            decisions: The step's decisions.
            name: Name of the other adapters.
            batches: Positions of the decisions of each optimizer step of an epoch. If scores depend on what
                shares a forward, these are the forwards' too.
            estimator: "exact", or "k3" to estimate divergences of text from the sampled tokens.
            mass: Whether ``score`` will be asked for the mass, which makes its forwards longer.

        Raises:
            UnknownAdaptersError: nothing was published by this name.
            MemoryLimitError: not even one decision fits into memory.
        """
        if self.depends_on_forwards:
            groups = [
                batch[part]
                for batch in batches
                for part in self.split([decisions[at] for at in batch], mass=mass)
            ]
        else:
            size, mass = max(len(batches[0]), PREPARED_AT_ONCE), False
            size = min(size, math.ceil(len(decisions) / self.ranks.size))
            groups = [
                np.arange(start, min(start + size, len(decisions)))
                for start in range(0, len(decisions), size)
            ]
        home = self._engine.device
        way = home if self.ranks.size == 1 else torch.device("cpu")

        def prepare_share() -> list[OtherPart]:
            parts: list[OtherPart] = []
            with self._adapters.use(name):
                for where in self.ranks.take_share(groups):
                    parts += self._prepare_group(decisions, where, estimator, mass)
            return [part._replace(rows=part.rows.to(way)) for part in parts]

        shares = self.ranks.share_work(prepare_share)
        parts = [part._replace(rows=part.rows.to(home)) for share in shares for part in share]
        return OtherScores(len(decisions), parts, estimator)

    def _prepare_group(
        self, decisions: Sequence[Decision], where: Positions, estimator: str, mass: bool
    ) -> list[OtherPart]:
        """Returns the parts of one forward; of several, if memory runs out."""
        group = [decisions[at] for at in where]

        def work() -> list[OtherPart]:
            # The engine keeps to the budget by itself. But after it was lowered, logits have to be fewer too.
            lowered, budget = self.budgets.forward_is_lowered, self.budgets.tokens_per_forward
            groups = self.split(group, budget=budget, mass=mass) if lowered else [np.arange(len(group))]
            parts: list[OtherPart] = []
            for rows in groups:
                shared = [group[row] for row in rows]
                scores = self._scorer_of(shared).score(shared, mass=mass)
                counts = np.array([len(decision.log_probs) for decision in shared], dtype=np.int64)
                parts.append(OtherPart(where[rows], counts, scores.keep(estimator)))
            return parts

        return self.budgets.retry(work, [decision.prompt for decision in group], self._engine.count)

    def values(self, prompts: Sequence[Tokens]) -> Tensor:
        """Returns the critic's values of prompts, float32 (n,).

        Raises:
            MemoryLimitError: not even one prompt fits into memory.
        """
        distinct = Index[Tokens]()
        where = [distinct(prompt) for prompt in prompts]
        last = [len(prompt) - 1 for prompt in distinct.items]

        def read() -> Tensor:
            hidden = self._engine.read(distinct.items, range(len(last)), last)
            return self._critic(hidden.index_select(0, transfer.send(where, hidden.device)))

        return self.budgets.retry(read, prompts, self._engine.count)

    # -- choosing and writing ------------------------------------------------------------------------------

    def _scorer_of(self, decisions: Sequence[Decision]) -> ChoiceScorer | TextScorer:
        """Returns the part that scores decisions of this kind."""
        return self._texts if isinstance(decisions[0].constraint, FreeText) else self._choices

    def _read_sequences(self, decisions: Sequence[Decision], *, mass: bool) -> list[Tokens]:
        """Returns what is read of each decision, its prompt first."""
        return [
            (*decision.prompt, *self._scorer_of([decision]).read_tokens(decision, mass=mass))
            for decision in decisions
        ]
