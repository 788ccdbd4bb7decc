"""A rollout buffer for episodes of different lengths, with Stable-Baselines3's verbs.

Stable-Baselines3's ``RolloutBuffer`` needs a rectangle of steps by environments, numeric observations and
float32 masks. Text games have ragged episodes, texts, and masks of thousands of actions. In this buffer a
turn is a row, a mask takes one bit per action, and an episode is complete or absent.

A turn is one decision, the choice of an action, or several: the tokens of a reply. Log-probabilities are one
per decision; rewards, values, advantages and returns are one per turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.advantages import gae, normalize_by_group
from gamespiel.agents.tokens import Tokens


class TurnBatch(NamedTuple):
    """A minibatch of b turns with k decisions in all.

    Attributes:
        index: Positions in the buffer, int64 (b,).
        observations: Texts, b of them.
        actions: Actions taken, int64 (b,), or the tokens of replies, b tuples.
        action_masks: bool (b, n_actions), true = legal.
        decisions: Decisions of each turn, int64 (b,): 1, or a reply's tokens.
        old_values: The critic's estimates during the rollout, float32 (b,).
        old_log_prob: Log-probabilities of the decisions during the rollout, turn after turn, float32 (k,).
        advantages: float32 (b,).
        returns: float32 (b,).
    """

    index: npt.NDArray[np.int64]  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    observations: list[str]
    actions: npt.NDArray[np.int64] | list[Tokens]
    action_masks: npt.NDArray[np.bool_]
    decisions: npt.NDArray[np.int64]
    old_values: Tensor
    old_log_prob: Tensor
    advantages: Tensor
    returns: Tensor

    @property
    def turns(self) -> Tensor:
        """Returns the turn of each decision, its position in this minibatch, int64 (k,)."""
        turns = np.repeat(np.arange(len(self.index)), self.decisions)
        return torch.from_numpy(turns).to(self.old_log_prob.device)

    def take(self, rows: npt.NDArray[np.int64]) -> TurnBatch:
        """Returns some of the turns, given by their positions in this minibatch."""
        actions = self.actions
        return TurnBatch(
            index=self.index[rows],
            observations=[self.observations[row] for row in rows],
            actions=[actions[row] for row in rows] if isinstance(actions, list) else actions[rows],
            action_masks=self.action_masks[rows],
            decisions=self.decisions[rows],
            old_values=self.old_values[rows],
            old_log_prob=self.old_log_prob[_spans(self.decisions, rows)],
            advantages=self.advantages[rows],
            returns=self.returns[rows],
        )


@dataclass
class _Episode:
    group: Hashable
    turns: list[int] = field(default_factory=list)
    last_value: float = 0.0


class TurnBuffer:
    """The turns of one step's episodes.

    Args:
        n_actions: Size of the Discrete action space; 0 if turns are replies as text.
        gamma: Discount per turn.
        gae_lambda: Mixing weight of the advantage estimator, per turn.
        normalize: Whether advantages are normalised over the rollout within each group.
        device: Device of the minibatches' tensors.
    """

    def __init__(
        self,
        n_actions: int,
        gamma: float = Hyperparameters.gamma,
        gae_lambda: float = Hyperparameters.lam,
        normalize: bool = Hyperparameters.normalize_advantage,
        device: torch.device | str = "cpu",
    ) -> None:
        self.n_actions, self.gamma, self.gae_lambda, self.normalize = n_actions, gamma, gae_lambda, normalize
        self.device = device
        self.reset()

    def __len__(self) -> int:
        return len(self.actions)

    def reset(self) -> None:
        """Removes all turns and episodes."""
        self.observations: list[str] = []
        self.actions: list[int | Tokens] = []
        self._masks: list[npt.NDArray[np.uint8]] = []
        self.rewards: list[float] = []
        self.values: list[float] = []
        #: One per decision, turn after turn.
        self.log_probs: list[float] = []
        self.decisions: list[int] = []
        self._episodes: dict[int, _Episode] = {}
        self.advantages: npt.NDArray[np.float64] | None = None
        self.returns: npt.NDArray[np.float64] | None = None

    def add(
        self,
        episode: int,
        observation: str,
        action: int | Tokens,
        action_mask: npt.NDArray[np.bool_],
        reward: float,
        value: float,
        log_prob: float | npt.NDArray[np.float32],
        group: Hashable = None,
    ) -> None:
        """Adds an episode's next turn; advantages are normalised within ``group`` (game and seat).

        Args:
            episode: The episode's number.
            observation: The text before the decision.
            action: The action, or the tokens of a reply.
            action_mask: bool (n_actions,), true = legal.
            reward: The reward of the turn.
            value: The critic's estimate.
            log_prob: The action's log-probability, or those of the reply's tokens, (tokens,).
            group: Turns whose advantages are normalised together.

        Raises:
            ValueError: the mask has another length, the action is not legal under it, or a reply does not
                have as many tokens as log-probabilities, at least one.
        """
        mask = np.asarray(action_mask, dtype=bool)
        if mask.shape != (self.n_actions,):
            raise ValueError(f"the action mask has shape {mask.shape}, expected ({self.n_actions},)")
        log_probs = np.atleast_1d(np.asarray(log_prob, dtype=np.float64)).tolist()
        if isinstance(action, tuple):
            if self.n_actions or not 0 < len(action) == len(log_probs):
                raise ValueError(
                    f"a reply of {len(action)} tokens with {len(log_probs)} log-probabilities was given to a "
                    f"buffer of {self.n_actions} actions; allowed: one for each of its tokens, and 0 actions"
                )
        elif not self.n_actions or not mask[action]:
            raise ValueError(
                f"action {action} is not legal under its mask: {np.flatnonzero(mask).tolist()} are"
            )
        self.advantages = self.returns = None  # computed before this turn was added
        self._episodes.setdefault(episode, _Episode(group)).turns.append(len(self.actions))
        self.observations.append(observation)
        self.actions.append(action if isinstance(action, tuple) else int(action))
        self._masks.append(np.packbits(mask))
        self.rewards.append(float(reward))
        self.values.append(float(value))
        self.log_probs += log_probs
        self.decisions.append(len(log_probs))

    def bootstrap(self, episode: int, last_value: float) -> None:
        """Sets the critic's estimate of the last state of an episode that was cut."""
        self._episodes[episode].last_value = last_value

    def compute_returns_and_advantage(self) -> None:
        """Fills ``advantages`` and ``returns``, float64 (turns,), when all episodes are in."""
        self.advantages, self.returns = np.zeros(len(self)), np.zeros(len(self))
        groups: list[Hashable] = [None] * len(self)
        rewards, values = np.array(self.rewards), np.array(self.values)
        for episode in self._episodes.values():
            turns = episode.turns
            self.advantages[turns], self.returns[turns] = gae(
                rewards[turns], values[turns], episode.last_value, self.gamma, self.gae_lambda
            )
            for turn in turns:
                groups[turn] = episode.group
        if self.normalize:
            self.advantages = normalize_by_group(self.advantages, groups)

    def action_masks(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Returns the masks of the given turns, bool (b, n_actions), true = legal."""
        packed = np.stack([self._masks[i] for i in index])
        return np.unpackbits(packed, axis=1, count=self.n_actions).astype(bool)

    def replace_log_probs(self, index: npt.NDArray[np.int64], log_probs: Sequence[float]) -> None:
        """Replaces the log-probabilities of the given turns' decisions, turn after turn."""
        where = _spans(np.array(self.decisions), index)
        for decision, log_prob in zip(where.tolist(), log_probs, strict=True):
            self.log_probs[decision] = log_prob

    def batch(self, index: npt.NDArray[np.int64]) -> TurnBatch:
        """Returns the given turns as a minibatch.

        Raises:
            RuntimeError: ``compute_returns_and_advantage`` has not been called.
        """
        if self.advantages is None or self.returns is None:
            raise RuntimeError("call compute_returns_and_advantage() before taking minibatches")

        def tensor(values: npt.NDArray[np.float64]) -> Tensor:
            return torch.tensor(values[index], dtype=torch.float32, device=self.device)

        decisions = np.array(self.decisions)
        log_probs = np.array(self.log_probs)[_spans(decisions, index)]
        actions = [self.actions[i] for i in index]
        return TurnBatch(
            index=index,
            observations=[self.observations[i] for i in index],
            actions=np.array(actions, dtype=np.int64) if self.n_actions else actions,
            action_masks=self.action_masks(index),
            decisions=decisions[index],
            old_values=tensor(np.array(self.values)),
            old_log_prob=torch.tensor(log_probs, dtype=torch.float32, device=self.device),
            advantages=tensor(self.advantages),
            returns=tensor(self.returns),
        )

    def get(self, batch_size: int, order: npt.NDArray[np.int64] | None = None) -> Iterator[TurnBatch]:
        """Yields minibatches of ``batch_size`` turns in the given order; the last one may be smaller."""
        order = np.arange(len(self)) if order is None else order
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])


def _spans(counts: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the positions of the decisions of the given turns, turn after turn, int64 (k,)."""
    first = counts.cumsum() - counts
    spans = [np.arange(first[row], first[row] + counts[row]) for row in rows]
    return np.concatenate([np.zeros(0, dtype=np.int64), *spans])
