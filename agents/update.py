"""The update: passes over a step's turns that improve the policy."""

from __future__ import annotations

import functools
import itertools
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.buffer import TurnBatch, TurnBuffer
from gamespiel.agents.decoding import ChoiceEvaluation
from gamespiel.agents.engines import memory
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.learning.losses import clipped_policy_loss, illegality_loss, value_loss
from gamespiel.agents.learning.metrics import Means
from gamespiel.agents.models.snapshots import Snapshot
from gamespiel.agents.policy import Evaluation, LLMPolicy
from gamespiel.agents.sampling import noise
from gamespiel.agents.tokens.index import spans

REFERENCE_BATCH = 256
"""Turns that the reference scores together, if an optimizer step has fewer."""

SKIPPED_AT_MOST = 3
"""Updates in a row that are not finite: with the last of them the run has diverged."""

log = logging.getLogger(__name__)

Turns = npt.NDArray[np.int64]


class Update:
    """The update of one step.

    An optimizer step has ``mini_batch_size * gradient_accumulation_steps`` turns, or, with
    ``num_minibatches``, an equal part of the step's. ``tokens_per_backward`` splits them into forwards, which
    changes only the order of float sums. Out of memory, the budget is halved and the optimizer step is
    repeated. An optimizer step whose loss or gradient is not finite is skipped.

    A turn is one decision, the choice of an action, or as many as its reply has tokens. Each token's ratio is
    its own, and its advantage is its turn's. The policy's loss, the entropy and the divergence are means over
    all decisions of an optimizer step, so that a long reply weighs as much as its tokens do ("token-level
    policy gradient loss", DAPO, arXiv:2503.14476, section 3.3). The value loss is a mean over its turns.

    In float32 each epoch draws its own optimizer batches. In other types a turn's log-probability depends on
    the turns that share its forward, by more than an update changes it. There the batches are drawn once,
    epochs permute their order, and the rollout's log-probabilities are replaced by those of the same
    forwards. If memory runs out after the first optimizer step, smaller forwards keep those of the larger.

    Metrics in ``means``; those without another word are means over decisions, ``value_loss`` over turns:
        policy_loss, value_loss, entropy: The parts of the loss.
        kl_ref: KL(policy || reference). For replies ``kl_estimator`` says how it is found.
        kl_magnet: KL(policy || magnet), found as ``kl_ref`` is; only with a magnet, and not in warm-up.
        legal_loss: Minus the log of the legal mass on the turn's path, as far as it is below the target.
        legal_mass: Mass that the model without a mask gives to legal answers on the turn's path, every token
            and the end of turn included. Replies have neither of the two.
        approx_kl: Estimate of KL(policy that played || policy).
        clip_fraction: Share of decisions outside the trust region.
        exact_entropy: Share of turns whose entropy and ``kl_ref`` are exact; not for replies.
        actor_grad_norm, critic_grad_norm: Mean norms before clipping.
        sampler_gap, sampler_gap_max: Mean and largest absolute difference between the log-probability of the
            rollout and that of the update's own forward, before the first optimizer step. In float32 they are
            over the first optimizer batch, in other types over all turns.
        epochs: Passes over the turns; a fraction if ``max_step_kl`` ended them.
        skipped_updates: Optimizer steps that were not finite.

    Args:
        policy: The policy to improve.
        buffer: The step's turns, at least one, with advantages.
        hyperparameters: The learning rule.
        seed: Seed of the run.
        step: Number of complete steps.
        ent_coef: Weight of the entropy bonus.
        kl_coef: Weight of the divergence from the reference.
        magnet: The magnet (``gamespiel.agents.learning.magnet``), or None.
        magnet_coef: Weight of the divergence from it.
        tokens_per_backward: The budget in force; it may be lower afterwards.
        skipped_in_a_row: Updates skipped since the last one that was not.
        on_progress: Called with the phase, turns done and turns in all.
    """

    def __init__(
        self,
        policy: LLMPolicy,
        buffer: TurnBuffer,
        hyperparameters: Hyperparameters,
        *,
        seed: int,
        step: int,
        ent_coef: float,
        kl_coef: float,
        magnet: Snapshot | None = None,
        magnet_coef: float = 0.0,
        tokens_per_backward: int,
        skipped_in_a_row: int = 0,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.policy, self.buffer, self.hyperparameters = policy, buffer, hyperparameters
        self.seed, self.step, self.ent_coef, self.kl_coef = seed, step, ent_coef, kl_coef
        self.magnet, self.magnet_coef = magnet, magnet_coef
        self.tokens_per_backward, self.skipped_in_a_row = tokens_per_backward, skipped_in_a_row
        self.on_progress = on_progress
        self.means = Means()
        self._exact = hyperparameters.kl_estimator == "exact"
        self._float32 = policy.dtype == torch.float32
        self._played = np.array(buffer.log_probs)
        self._steps_taken = 0
        self._skipped = 0
        self._magnet: _Reference | None = None
        self._critic_only = step < hyperparameters.critic_warmup_steps
        masked = policy.writer is None
        self._mass = masked and hyperparameters.legal_coef > 0 and not self._critic_only

    def run(self) -> Means:
        """Makes the passes; returns the metrics.

        Raises:
            DivergedError: three updates in a row were not finite.
            MemoryLimitError: not even one turn fits into memory.
        """
        n, epochs = len(self.buffer), self.hyperparameters.ppo_epochs
        reference = self._reference(self.policy.reference())
        if self.magnet is not None and not self._critic_only:
            self._magnet = self._reference(self.magnet.playing(self.policy))
        if not self._float32:
            self._score_again()
        done = 0
        for index in itertools.chain.from_iterable(map(self._batches, range(epochs))):
            self.on_progress("turns learned from", done, epochs * n)
            memory.give_back()
            if not self._optimizer_step(index, reference):
                break
            done += len(index)
        self.means.record("epochs", done / n)
        self.means.record("skipped_updates", self._skipped)
        return self.means

    # -- what is read together -----------------------------------------------------------------------------

    def _batches(self, epoch: int) -> list[Turns]:
        """Returns the turns of an epoch's optimizer steps; the last of them may be fewer."""
        n, size = len(self.buffer), self._batch_size
        order = noise.permutation(self.seed, self.step, epoch if self._float32 else 0, n)
        batches = [order[start : start + size] for start in range(0, n, size)]
        if self._float32 or epoch == 0:
            return batches
        return [batches[i] for i in noise.permutation(self.seed, self.step, epoch, len(batches))]

    @property
    def _batch_size(self) -> int:
        numbers = self.hyperparameters
        if numbers.num_minibatches:
            return math.ceil(len(self.buffer) / numbers.num_minibatches)
        return numbers.mini_batch_size * numbers.gradient_accumulation_steps

    def _split(self, batch: TurnBatch, tokens: int) -> list[TurnBatch]:
        """Returns a batch in parts that each read at most ``tokens`` tokens, or one turn."""
        groups = self.policy.split(
            batch.observations, batch.actions, batch.action_masks, tokens, mass=self._mass
        )
        return [batch.take(rows) for rows in groups]

    def _forwards(self, index: Turns) -> list[TurnBatch]:
        """Returns turns in the parts that share a forward with gradients."""
        return self._split(self.buffer.batch(index), self.tokens_per_backward)

    def _evaluate(self, batch: TurnBatch, *, mass: bool) -> tuple[Evaluation, Tensor]:
        return self.policy.evaluate(batch.observations, batch.actions, batch.action_masks, mass=mass)

    def _halve(self, index: Turns) -> None:
        """Halves the budget after these turns found no memory."""
        memory.release()
        texts = self.policy.prompts([self.buffer.observations[turn] for turn in index])
        if self.policy.writer is not None:
            texts = [(*text, *self.buffer.actions[turn]) for text, turn in zip(texts, index, strict=True)]
        self.tokens_per_backward = memory.halved("ppo.tokens_per_backward", self.tokens_per_backward, texts)

    # -- without gradients ---------------------------------------------------------------------------------

    def _reference(self, other: AbstractContextManager[None]) -> _Reference:
        """Returns another policy's scores of all turns; the policy is that one within the context."""
        if self._float32:
            batches = list(self.buffer.get(max(self._batch_size, REFERENCE_BATCH)))
        else:
            batches = [batch for index in self._batches(0) for batch in self._forwards(index)]
        parts: list[_Scored] = []
        with other:
            for batch in batches:
                parts += memory.without_gradients(
                    self.policy, batch.observations, functools.partial(self._in_parts, batch)
                )
        return _Reference(len(self.buffer), parts)

    def _in_parts(self, batch: TurnBatch) -> list[_Scored]:
        """Returns the scores of a batch's turns under the policy as it is, in parts."""
        budget, scored = self.policy.engine.tokens_per_forward, []
        # The engine keeps to the budget by itself. But after it was lowered, logits have to be fewer too.
        lowered = budget < self.hyperparameters.tokens_per_forward
        for part in self._split(batch, budget) if lowered else [batch]:
            # The reference reads the end of answers too, but only if a forward's shape matters.
            evaluation, _ = self._evaluate(part, mass=self._mass and not self._float32)
            count = np.bincount(evaluation.turns.cpu().numpy(), minlength=len(part.index))
            scored.append(_Scored(part.index, count, self._kept(evaluation)))
        return scored

    def _kept(self, evaluation: Evaluation) -> Tensor:
        """Returns the scores of an evaluation: a row per branching node, or per token."""
        if isinstance(evaluation, ChoiceEvaluation):
            return evaluation.nodes
        return evaluation.states if self._exact else evaluation.log_probs[:, None]

    def _divergence(self, evaluation: Evaluation, reference: Tensor) -> Tensor:
        """Returns KL(policy || reference) at each decision, (k,)."""
        if isinstance(evaluation, ChoiceEvaluation) or self._exact:
            return evaluation.kl_to(reference)
        return evaluation.kl_estimate(reference[:, 0])

    def _score_again(self) -> None:
        """Replaces the log-probabilities of the rollout by those of the update's own forwards."""
        for index in self._batches(0):
            try:
                self._score_batch(index)
                continue
            except Exception as error:
                if not memory.is_out_of_memory(error):
                    raise
            self._halve(index)
            self._score_again()  # from the first batch: its forwards are others now, too
            return
        self._record_gap(torch.tensor(self.buffer.log_probs) - torch.tensor(self._played))

    @torch.no_grad()
    def _score_batch(self, index: Turns) -> None:
        for batch in self._forwards(index):
            evaluation, _ = self._evaluate(batch, mass=self._mass)
            self.buffer.replace_log_probs(batch.index, evaluation.log_probs.tolist())

    def _record_gap(self, gap: Tensor) -> None:
        self.means.record("sampler_gap", float(gap.abs().mean()))
        self.means.record("sampler_gap_max", float(gap.abs().max()))

    # -- with gradients ------------------------------------------------------------------------------------

    def _optimizer_step(self, index: Turns, reference: _Reference) -> bool:
        """Makes one update from these turns; returns whether the step goes on.

        Raises:
            DivergedError: it is the third in a row that is not finite.
        """
        while True:
            try:
                tried = self._gradient(index, reference)
                break
            except Exception as error:
                if not memory.is_out_of_memory(error):
                    raise
            self.policy.optimizer.zero_grad(set_to_none=True)
            self._halve(index)
            if not (self._float32 or self._steps_taken):
                self._score_again()  # the policy is still the one that played
        if not tried.finite:
            self._skip()
            return True
        self.skipped_in_a_row = 0
        if self._float32 and not self._steps_taken:
            self._record_gap(torch.cat(tried.gaps))
        self.means.merge(tried.means)
        limit = self.hyperparameters.max_step_kl
        if limit is not None and tried.means["approx_kl"] > limit:
            return False
        self.policy.optimizer.step()
        self._steps_taken += 1
        return True

    def _skip(self) -> None:
        """Counts an update that is not finite, and forgets its gradient."""
        self.policy.optimizer.zero_grad(set_to_none=True)
        self._skipped += 1
        self.skipped_in_a_row += 1
        log.warning("step %d: an update whose loss or gradient is not finite was skipped", self.step + 1)
        if self.skipped_in_a_row >= SKIPPED_AT_MOST:
            raise DivergedError(
                f"step {self.step + 1}: the loss or the gradient of {self.skipped_in_a_row} updates in a row "
                "is not finite",
                self.step,
            )

    def _gradient(self, index: Turns, reference: _Reference) -> _Tried:
        """Accumulates the gradient of the mean loss of these turns, and clips it."""
        tried = _Tried()
        self.policy.optimizer.zero_grad(set_to_none=True)
        forwards = self._forwards(index)
        decisions = sum(len(batch.old_log_prob) for batch in forwards)
        for batch in forwards:
            parts = self._loss(batch, reference.of(batch.index), tried)
            loss = parts.decisions * (len(batch.old_log_prob) / decisions)
            loss = loss + parts.turns * (len(batch.index) / len(index))
            if not (math.isfinite(loss.detach()) and math.isfinite(tried.means["kl_ref"])):
                tried.finite = False
                return tried
            loss.backward()
        for name, group in zip(("actor", "critic"), self.policy.optimizer.param_groups, strict=True):
            # Apart, or the critic's gradient, which dwarfs the actor's at first, would scale that away.
            norm = torch.nn.utils.clip_grad_norm_(group["params"], self.hyperparameters.max_grad_norm)
            tried.means.add(f"{name}_grad_norm", float(norm), 1)
            tried.finite &= math.isfinite(norm)
        return tried

    def _loss(self, batch: TurnBatch, reference: Tensor, tried: _Tried) -> _Loss:
        numbers = self.hyperparameters
        with torch.set_grad_enabled(not self._critic_only):
            evaluation, values = self._evaluate(batch, mass=self._mass)
        tried.gaps.append(evaluation.log_probs.detach() - batch.old_log_prob)
        advantages = batch.advantages.index_select(0, batch.turns)
        policy = clipped_policy_loss(evaluation.log_probs, batch.old_log_prob, advantages, numbers.cliprange)
        critic = value_loss(values, batch.returns)
        entropy, kl = evaluation.entropy.mean(), self._divergence(evaluation, reference).mean()
        legal = self._legality(evaluation, tried) if isinstance(evaluation, ChoiceEvaluation) else 0.0
        tried.add("value_loss", critic, len(batch.index))
        for name, value in {
            "policy_loss": policy.loss,
            "entropy": entropy,
            "kl_ref": kl,
            "approx_kl": policy.approx_kl,
            "clip_fraction": policy.clip_fraction,
        }.items():
            tried.add(name, value, len(batch.old_log_prob))
        if self._critic_only:
            # These hidden states carry no gradient, so an untrained critic cannot move the adapters.
            critic = value_loss(self.policy.value_of(evaluation.hidden), batch.returns)
            return _Loss(0.0, numbers.vf_coef * critic)
        loss = policy.loss - self.ent_coef * entropy + self.kl_coef * kl + numbers.legal_coef * legal
        if self._magnet is not None:
            pull = self._divergence(evaluation, self._magnet.of(batch.index)).mean()
            tried.add("kl_magnet", pull, len(batch.old_log_prob))
            loss = loss + self.magnet_coef * pull
        return _Loss(loss, numbers.vf_coef * critic)

    def _legality(self, evaluation: ChoiceEvaluation, tried: _Tried) -> Tensor | float:
        """Returns the loss of probability on illegal answers, if it is trained, and notes what is legal."""
        turns = len(evaluation.exact)
        tried.add("exact_entropy", evaluation.exact.mean(), turns)
        if evaluation.log_mass is None:
            return 0.0
        loss = illegality_loss(evaluation.log_mass, self.hyperparameters.legal_target)
        tried.add("legal_loss", loss, turns)
        tried.add("legal_mass", evaluation.log_mass.detach().exp().mean(), turns)
        return loss


class _Loss(NamedTuple):
    """The loss of a forward: the mean over its decisions, and that over its turns (the critic's)."""

    decisions: Tensor | float
    turns: Tensor


class _Tried:
    """One attempt at an optimizer step: its metrics, and whether it is finite."""

    def __init__(self) -> None:
        self.means = Means()
        self.gaps: list[Tensor] = []
        self.finite = True

    def add(self, name: str, value: Any, weight: int) -> None:
        self.means.add(name, float(value.detach() if isinstance(value, Tensor) else value), weight)


class _Scored(NamedTuple):
    """The reference's values at the branching nodes, or the tokens, of some turns.

    Attributes:
        index: The turns, int64 (b,).
        count: Nodes or tokens per turn, int64 (b,).
        rows: One row each, (k, c): log-probabilities of a node's children, padded with -inf, or of a token,
            or the hidden state that predicts a token.
    """

    index: Turns  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    count: Turns  # type: ignore[assignment]  # and tuple.count
    rows: Tensor


class _Reference:
    """The reference's values on all turns.

    Args:
        turns: Number of turns in all.
        parts: Each turn is in one of them.
    """

    def __init__(self, turns: int, parts: Sequence[_Scored]) -> None:
        self._first, self._count = np.zeros((2, turns), dtype=np.int64)
        width, tables, filled = max(part.rows.shape[1] for part in parts), [], 0
        for index, count, rows in parts:
            self._first[index], self._count[index] = filled + count.cumsum() - count, count
            filled += len(rows)
            tables.append(torch.nn.functional.pad(rows, (0, width - rows.shape[1]), value=-torch.inf))
        self._rows = torch.cat(tables)

    def of(self, index: Turns) -> Tensor:
        """Returns the rows of the given turns, in the turns' order."""
        return self._rows[spans(self._first, self._count, index)]
