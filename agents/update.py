"""The update: passes over a step's turns that improve the policy."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.buffer import TurnBatch, TurnBuffer
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.learning.divergence import SkippedUpdates
from gamespiel.agents.learning.metrics import Means
from gamespiel.agents.learning.terms import Played, Scored, Term, critic_error, select_terms
from gamespiel.agents.models import BASE, MAGNET, memory
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.sampling import noise
from gamespiel.agents.scoring.scorer import OtherScores
from gamespiel.agents.tokens import Positions
from task_gym.errors import TaskGymError

log = logging.getLogger(__name__)

WATCHED = ("kl_ref", "actor_grad_norm", "critic_grad_norm")
"""Metrics that must be finite in an optimizer step: a weight of 0 hides the first of them in the loss."""

_ScoredTurns = tuple[Positions, Tensor]
"""Turns, and the log-probabilities of their units, float32 (u,), on the device."""


class Update:
    """The update of one step.

    An optimizer step has ``mini_batch_size * gradient_accumulation_steps`` turns, or, with
    ``num_minibatches``, an equal part of the step's. If prompts are conversations, it has whole episodes, as
    many as have that many turns: each turn's prompt begins with the one before, and is read once with it.
    With ``minibatch_unit`` "prompt" it has distinct prompts likewise, each with all of its turns: an epoch
    then reads no prompt twice, however many optimizer steps it has.

    ``tokens_per_backward`` splits an optimizer step into forwards, which changes only the order of float
    sums. Out of memory, the budget is halved and the optimizer step is repeated. An optimizer step whose loss
    or gradient is not finite is skipped. A GPU is waited for once per optimizer step, when its metrics are
    read together.

    Several ranks share the forwards of an optimizer step, and add their gradients before these are clipped.
    Every rank then makes the same optimizer step. What is a mean is one over the turns of all ranks.

    A turn is one ratio unit, the choice of an action, or as many as its reply has tokens. Each unit's ratio
    is its own, and its advantage is its turn's. The policy's loss, the entropy and the divergence are means
    over all units of an optimizer step, so that a long reply weighs as much as its tokens do ("token-level
    policy gradient loss", DAPO, arXiv:2503.14476, section 3.3). The value loss is a mean over its turns.

    In float32 each epoch draws its own optimizer batches. In other types a turn's log-probability depends on
    the turns that share its forward, by more than an update changes it. There the batches are drawn once,
    epochs permute their order, and the ratio's old log-probabilities are scored by those same forwards before
    the first optimizer step. So they are, in any type, if ``sampler_weight_cap`` asks for the weight between
    sampler and scorer. If memory runs out after the first optimizer step, smaller forwards keep those of the
    larger.

    Metrics in ``means``; those without another word are means over units:
        policy_loss, entropy: Parts of the loss; value_loss: Likewise, a mean over turns.
        kl_ref: KL(policy || reference), if it is measured. For replies ``kl_estimator`` says how it is found.
        kl_magnet: KL(policy || magnet), found as ``kl_ref`` is; only with a magnet, and not in warm-up.
        legal_loss: Minus the log of the legal mass on the turn's path, as far as it is below the target.
        legal_mass: Mass that the model without a mask gives to legal answers on the turn's path, every token
            and the end of turn included, a mean over turns. Replies have neither of the two.
        approx_kl: Estimate of KL(policy that played || policy).
        clip_fraction: Share of units outside the trust region.
        exact_entropy: Share of turns whose entropy and ``kl_ref`` are exact; not for replies.
        actor_grad_norm, critic_grad_norm: Mean norms before clipping.
        sampler_gap, sampler_gap_max: Mean and largest absolute difference between the sampler's
            log-probability and that of the update's own forward, before the first optimizer step. They are
            over all turns if these were scored before it, else over the first optimizer batch.
        sampler_weight, sampler_capped: Mean weight between sampler and scorer, and the share of capped ones;
            only with ``sampler_weight_cap``.
        epochs: Passes over the turns; a fraction if ``max_step_kl`` ended them.
        skipped_updates: Optimizer steps that were not finite.

    Args:
        policy: The policy to improve.
        buffer: The step's turns, at least one, with advantages.
        hyperparameters: The learning rule.
        coefficients: The coefficients of this step's loss.
        magnet: Whether the scorer knows a magnet, a divergence from which is trained.
        reference: Whether the divergence from the reference is measured, for which the reference reads all
            turns. It must be if it has a weight.
        terms: The user's own terms of the loss.
        seed: Seed of the run.
        step: Number of complete steps.
        skipped: Counts updates in a row that are skipped; it outlives the step.
        ranks: The ranks that make the update together, those of the scorer.
        on_progress: Called with the phase, turns done and turns in all.
    """

    def __init__(
        self,
        policy: LLMPolicy,
        buffer: TurnBuffer,
        hyperparameters: Hyperparameters,
        coefficients: Coefficients,
        *,
        magnet: bool = False,
        reference: bool = True,
        terms: Sequence[Term] = (),
        seed: int,
        step: int,
        skipped: SkippedUpdates,
        ranks: Ranks = ALONE,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.sampler, self.scorer, self.optimizer = policy.sampler, policy.scorer, policy.optimizer
        self.ranks = ranks
        self._device = policy.value_head.weight.device
        self.buffer, self.hyperparameters, self.coefficients = buffer, hyperparameters, coefficients
        self.seed, self.step, self.skipped, self.on_progress = seed, step, skipped, on_progress
        self.means = Means()
        self._critic_only = step < hyperparameters.critic_warmup_steps
        trained_mass = coefficients.legal_coef > 0 and not self._critic_only
        self._mass = trained_mass and self.scorer.knows_mass(buffer.decisions)
        magnet = magnet and not self._critic_only
        self._others = [BASE] * reference + [MAGNET] * magnet
        self._terms = select_terms(mass=self._mass, magnet=magnet, reference=reference, more=terms)
        self._same_forwards = self.scorer.depends_on_forwards
        self._score_first = self._same_forwards or coefficients.sampler_weight_cap is not None
        self._first_scores_itself = self._score_first  # until the first optimizer step has been tried
        self._scored_with = 0  # the budget of the forwards that scored the old log-probabilities
        self._steps_taken = 0
        self._skipped_here = 0
        self._other_scores: dict[str, OtherScores] = {}

    def run(self) -> Means:
        """Makes the passes; returns the metrics.

        Raises:
            DivergedError: three updates in a row were not finite.
            TaskGymError: the sampler has another model, before the first optimizer step.
            MemoryLimitError: not even one turn fits into memory.
        """
        n, epochs = len(self.buffer), self.hyperparameters.ppo_epochs
        for name in self._others:
            self._other_scores[name] = self.scorer.prepare(
                self.buffer.decisions,
                name,
                self._draw_batches(0),
                estimator=self.hyperparameters.kl_estimator,
                mass=self._mass,
            )
        if self._score_first:
            self._score_again()
        done = 0
        for index in itertools.chain.from_iterable(map(self._draw_batches, range(epochs))):
            self.on_progress("turns learned from", done, epochs * n)
            memory.give_back()
            if not self._optimizer_step(index):
                break
            done += len(index)
        self.means.record("epochs", done / n)
        self.means.record("skipped_updates", self._skipped_here)
        return self.means

    # -- what is read together -----------------------------------------------------------------------------

    def _draw_batches(self, epoch: int) -> list[Positions]:
        """Returns the turns of an epoch's optimizer steps, as many as weigh enough; the last may be fewer."""
        numbers, buffer = self.hyperparameters, self.buffer
        if buffer.whole_episodes:  # turns that are read together stay together
            groups = buffer.list_episodes()
        elif numbers.minibatch_unit == "prompt":
            groups = buffer.list_prompts()
        else:
            groups = [[turn] for turn in range(len(buffer))]
        size = numbers.mini_batch_size * numbers.gradient_accumulation_steps
        if numbers.num_minibatches:
            size = math.ceil(len(buffer) / numbers.num_minibatches)
        drawn = 0 if self._same_forwards else epoch
        batches, turns, weight = list[Positions](), list[int](), 0.0
        for group in noise.permutation(self.seed, self.step, drawn, len(groups)):
            turns += groups[group]
            weight += buffer.weigh(np.array(groups[group]))["turns"]
            if weight > size - 1e-6:
                batches.append(np.array(turns))
                turns, weight = [], 0.0
        batches += [np.array(turns)] if turns else []
        if drawn == epoch:
            return batches
        return [batches[i] for i in noise.permutation(self.seed, self.step, epoch, len(batches))]

    def _split_forwards(self, index: Positions) -> list[TurnBatch]:
        """Returns the parts of turns that share a forward with gradients, as far as they are this rank's."""
        decisions = [self.buffer.decisions[turn] for turn in index]
        parts = self.scorer.split(decisions, mass=self._mass)
        return [self.buffer.batch(index[part]) for part in self.ranks.take_share(parts)]

    # -- without gradients ---------------------------------------------------------------------------------

    def _score_again(self) -> None:
        """Scores the ratio's old log-probabilities by the update's own forwards, unless they are already.

        The forwards of the first optimizer step find its turns' own: nothing has moved before them.
        """
        if self._scored_with == self.scorer.budgets.tokens_per_backward:
            return
        pairs: list[_ScoredTurns] = []
        while self._scored_with != self.scorer.budgets.tokens_per_backward:
            self._scored_with, pairs = self.scorer.budgets.tokens_per_backward, []
            for index in self._draw_batches(0)[int(self._first_scores_itself) :]:
                pairs += self._retry_in_memory(partial(self._score_batch, index), index)
        if self.ranks.size > 1:  # all ranks have what each has scored
            log_probs = transfer.read(*(scored for _, scored in pairs))
            share = [(turns, scored) for (turns, _), scored in zip(pairs, log_probs, strict=True)]
            pairs = list(itertools.chain.from_iterable(self.ranks.gather(share)))
        self._put_scored(pairs)

    @torch.no_grad()
    def _score_batch(self, index: Positions) -> list[_ScoredTurns]:
        return [
            (
                batch.index,
                batch.sum_over_units(self.scorer.score(batch.decisions, mass=self._mass).log_probs),
            )
            for batch in self._split_forwards(index)
        ]

    def _put_scored(self, pairs: Sequence[_ScoredTurns]) -> None:
        """Puts old log-probabilities into the buffer; once all turns have them, their gap is known."""
        if pairs:
            turns, log_probs = zip(*pairs, strict=True)
            self.buffer.put_scored(np.concatenate(turns), torch.cat(log_probs))
        if not self._first_scores_itself:
            gap = self.buffer.sampler_gap().abs()
            self.means.record("sampler_gap", float(gap.mean()))
            self.means.record("sampler_gap_max", float(gap.max()))
            if len(finite := gap[gap.isfinite()]):  # a forward that overflowed is skipped, and says nothing
                self._check_gap(float(finite.mean()))

    def _check_gap(self, gap: float) -> None:
        """Asks the sampler about its mean gap; if it is too much, no gradient stays."""
        try:
            self.sampler.check_gap(gap)
        except TaskGymError:
            self.optimizer.zero_grad(set_to_none=True)
            raise

    # -- with gradients ------------------------------------------------------------------------------------

    def _retry_in_memory(self, work: Callable[[], Any], index: Positions) -> Any:
        """Returns ``work()``, which is repeated with half the budget if these turns find no memory."""
        decisions = [self.buffer.decisions[turn] for turn in index]
        return self.scorer.retry(work, decisions, lambda: self.optimizer.zero_grad(set_to_none=True))

    def _optimizer_step(self, index: Positions) -> bool:
        """Makes one update from these turns; returns whether the step goes on.

        Raises:
            DivergedError: it is the third in a row that is not finite.
        """

        def attempt() -> _Attempt:
            if self._score_first and not self._steps_taken:
                self._score_again()  # if the budget has fallen; the policy is still the one that played
            return self._accumulate_gradient(index)

        last_attempt = self._retry_in_memory(attempt, index)
        # Add the ranks' gradients, clip their sum, and read what all of them have found.
        self.ranks.add_gradients()
        for name, group in zip(("actor", "critic"), self.optimizer.param_groups, strict=True):
            # Apart, or the critic's gradient, which dwarfs the actor's at first, would scale that away.
            norm = torch.nn.utils.clip_grad_norm_(group["params"], self.hyperparameters.max_grad_norm)
            # Without any gradient, as the actor's in warm-up, PyTorch's 0 is on the CPU.
            last_attempt.add(f"{name}_grad_norm", transfer.send(norm, self._device), 1)
        if not self._score_first and not self._steps_taken:
            gap = self.ranks.join(last_attempt.gaps, self._device).abs()
            last_attempt.add("sampler_gap", gap.mean(), 1)
            last_attempt.add("sampler_gap_max", gap.max(), 1)
        last_attempt.read(self.ranks)
        if self._first_scores_itself:
            self._first_scores_itself = False
            self._put_scored(last_attempt.scored)
        if not last_attempt.finite:
            self.optimizer.zero_grad(set_to_none=True)
            self._skipped_here += 1
            log.warning("step %d: an update whose loss or gradient is not finite was skipped", self.step + 1)
            self.skipped.add(self.step)
            return True
        if "sampler_gap" in last_attempt.means:
            self._check_gap(last_attempt.means["sampler_gap"])
        self.skipped.in_a_row = 0
        self.means.merge(last_attempt.means)
        limit = self.hyperparameters.max_step_kl
        if limit is not None and last_attempt.means["approx_kl"] > limit:
            return False
        self.optimizer.step()
        self._steps_taken += 1
        return True

    def _accumulate_gradient(self, index: Positions) -> _Attempt:
        """Accumulates the gradient of the mean loss of these turns, as far as this rank reads them."""
        attempt = _Attempt()
        self.optimizer.zero_grad(set_to_none=True)
        totals = self.buffer.weigh(index)
        for batch in self._split_forwards(index):
            loss = self.sum_terms(batch, totals, attempt)
            attempt.losses.append(loss.detach())
            loss.backward()
        return attempt

    def sum_terms(self, batch: TurnBatch, totals: Mapping[str, float], attempt: _Attempt) -> Tensor:
        """Returns the forward's part of the loss, the sum of its terms, and notes their metrics."""
        others = {name: other.take(batch.index) for name, other in self._other_scores.items()}
        scores = self.scorer.score(batch.decisions, others, mass=self._mass, critic_only=self._critic_only)
        scored = Scored(
            log_probs=batch.sum_over_units(scores.log_probs),
            entropy=batch.sum_over_units(scores.entropy),
            values=scores.values,
            divergences={name: batch.sum_over_units(kl) for name, kl in scores.divergences.items()},
            log_mass=scores.log_mass,
        )
        log_probs = scored.log_probs.detach()
        old_log_probs = batch.old_log_probs
        if self._first_scores_itself:
            old_log_probs = log_probs
            attempt.scored.append((batch.index, log_probs))
        attempt.gaps.append(log_probs - old_log_probs)
        for name, share in scores.measures.items():
            attempt.add(name, share, len(batch.index))
        played = Played(
            old_log_probs=old_log_probs,
            sampler_log_probs=batch.sampler_log_probs,
            advantages=batch.advantages.index_select(0, batch.turn_of_unit),
            returns=batch.returns,
            unit_weights=batch.weights.index_select(0, batch.turn_of_unit),
            turn_weights=batch.weights,
        )
        counts = self.buffer.weigh(batch.index)
        parts: dict[str, Tensor] = {}
        for term in self._terms:
            part = term(scored, played, self.coefficients)
            for name, value in part.metrics.items():
                attempt.add(name, value, counts[part.over])
            if term is critic_error or not self._critic_only:
                parts[part.over] = parts[part.over] + part.loss if part.over in parts else part.loss
        weighted = [loss * (counts[over] / totals[over]) for over, loss in parts.items()]
        return sum(weighted[1:], weighted[0])


@dataclass
class _Attempt:
    """One attempt at an optimizer step. Its numbers stay on the device until they are read together.

    Attributes:
        losses: Each forward's part of the loss.
        scored: Each forward's turns and their units' log-probabilities, if those are the ratio's old ones;
            on the CPU and of all ranks after ``read``.
        gaps: Each forward's differences between log-probabilities and the old ones, (units,).
        means: The metrics of all ranks, after ``read``.
        finite: Whether losses, metrics that would hide in them, and gradients are finite, after ``read``.
    """

    losses: list[Tensor] = field(default_factory=list)
    scored: list[_ScoredTurns] = field(default_factory=list)
    gaps: list[Tensor] = field(default_factory=list)
    means: Means = field(default_factory=Means)
    finite: bool = True
    _added: list[tuple[str, Tensor | float, float]] = field(default_factory=list)

    def add(self, name: str, value: Tensor | float, weight: float) -> None:
        """Adds to a weighted mean what is a number already, or a scalar on the device."""
        self._added.append((name, value.detach() if isinstance(value, Tensor) else value, weight))

    def read(self, ranks: Ranks) -> None:
        """Reads all numbers of this rank, with one wait, and joins what all ranks have read."""
        there = [value for _, value, _ in self._added if isinstance(value, Tensor)]
        turns, log_probs = [at for at, _ in self.scored], [scores for _, scores in self.scored]
        read, *log_probs = transfer.read(torch.stack([*self.losses, *there]), *log_probs)
        self.scored = list(zip(turns, log_probs, strict=True))
        losses, numbers = read[: len(self.losses)].tolist(), iter(read[len(self.losses) :].tolist())
        for name, value, weight in self._added:
            self.means.add(name, next(numbers) if isinstance(value, Tensor) else value, weight)
        finite = all(map(math.isfinite, losses))
        first, *others = ranks.gather((self.means, finite, self.scored))
        self.means, self.finite, self.scored = first
        for means, finite, scored in others:
            self.means.merge(means)
            self.finite &= finite
            self.scored += scored
        watched = [self.means[name] for name in WATCHED if name in self.means]
        self.finite &= all(map(math.isfinite, watched))
