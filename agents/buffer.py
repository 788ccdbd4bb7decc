"""A rollout buffer for episodes of different lengths, with Stable-Baselines3's verbs.

Stable-Baselines3's ``RolloutBuffer`` needs a rectangle of steps by environments, numeric observations and
float32 masks. Text games have ragged episodes and answers of several tokens. In this buffer a turn is a row,
which has the policy's decision, and an episode is complete or absent.

Log-probabilities are one per ratio unit: a choice is one, and each token of a text. They have two columns,
what the sampler gave and what the scorer found. Rewards, values, advantages and returns are one per turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.advantages import KnownValues, gae, normalize_by_group
from gamespiel.agents.rollout import Episode
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens import Positions, Tokens
from gamespiel.agents.tokens.constraints import ActionTrie


class TurnBatch(NamedTuple):
    """A minibatch of b turns with u ratio units and k decided tokens in all.

    Attributes:
        index: Positions in the buffer, int64 (b,).
        decisions: The policy's decisions, b of them.
        unit_of_token: The unit of each decided token, int64 (k,).
        turn_of_unit: The turn of each unit, its position in this minibatch, int64 (u,).
        sampler_log_probs: Log-probabilities of the units, as the sampler gave them, float32 (u,).
        old_log_probs: Those of the scorer before the update, float32 (u,); the sampler's, if it found none.
        advantages: float32 (b,).
        returns: float32 (b,).
        weights: Of each turn in all terms of the loss, float32 (b,); their mean over the buffer is 1.
    """

    index: Positions  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    decisions: list[Decision]
    unit_of_token: Tensor
    turn_of_unit: Tensor
    sampler_log_probs: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    returns: Tensor
    weights: Tensor

    def sum_over_units(self, per_token: Tensor) -> Tensor:
        """Returns the sums of numbers of decided tokens (k,) over their units, (u,)."""
        zeros = torch.zeros(len(self.turn_of_unit), dtype=per_token.dtype, device=per_token.device)
        return zeros.index_add(0, self.unit_of_token, per_token)


@dataclass
class _EpisodeTurns:
    group: Hashable
    turns: list[int] = field(default_factory=list)
    last_value: float = 0.0


class TurnBuffer:
    """The turns of one step's episodes.

    Args:
        hyperparameters: Say how advantages are found. Those of ``gae`` may be normalised over the rollout
            within each group; known ones are divided by ``advantage_scale`` instead.
        device: Device of the minibatches' tensors.

    Attributes:
        decisions: The policy's decisions, one per turn.
        rewards: One per turn.
        values: The critic's estimates, one per turn.
        advantages: float64 (turns,); None before ``compute_returns_and_advantage``.
        returns: float64 (turns,); likewise.
        weights: Of each row in the loss, float64 (rows,); 1 before ``merge_turns``.
        turns: Number of turns that were played; rows are others after ``merge_turns``.
        variances: Of advantages as ``gae`` has them and of known ones, in squared units of the reward; empty
            if none are known.
    """

    def __init__(self, hyperparameters: Hyperparameters, device: torch.device | str = "cpu") -> None:
        self.hyperparameters, self.device = hyperparameters, device
        self.reset()

    def __len__(self) -> int:
        return len(self.decisions)

    def reset(self) -> None:
        """Removes all turns and episodes."""
        self.decisions: list[Decision] = []
        self.rewards: list[float] = []
        self.values: list[float] = []
        self.advantages: npt.NDArray[np.float64] | None = None
        self.returns: npt.NDArray[np.float64] | None = None
        self.weights: npt.NDArray[np.float64] | None = None
        self.variances: dict[str, float] = {}
        self.turns = 0
        self._unit_sizes: list[npt.NDArray[np.int64]] = []
        self._sampler_log_probs: list[npt.NDArray[np.float32]] = []
        self._scorer_log_probs: dict[int, npt.NDArray[np.float32]] = {}
        self._episodes: dict[int, _EpisodeTurns] = {}

    def add(
        self, episode: int, decision: Decision, reward: float, value: float, group: Hashable = None
    ) -> None:
        """Adds one turn at the end of an episode.

        Turns of different episodes may come in any order, those of one episode in order. If the buffer
        normalises, advantages are normalised within ``group`` (game and seat).

        Args:
            episode: The episode's number.
            decision: What the policy decided.
            reward: The reward of the turn.
            value: The critic's estimate.
            group: Turns whose advantages are normalised together.

        Raises:
            ValueError: the decision has not one log-probability per decided token.
        """
        sizes = _size_units(decision)
        if sizes.sum() != len(decision.log_probs):
            raise ValueError(
                f"a decision with {sizes.sum()} decided tokens was given {len(decision.log_probs)} "
                "log-probabilities, allowed: one for each of them"
            )
        self.advantages = self.returns = self.weights = None  # computed before this turn was added
        self._episodes.setdefault(episode, _EpisodeTurns(group)).turns.append(len(self))
        self.turns += 1
        self.decisions.append(decision)
        self.rewards.append(float(reward))
        self.values.append(float(value))
        self._unit_sizes.append(sizes)
        self._sampler_log_probs.append(_sum_units(decision, sizes))

    @property
    def whole_episodes(self) -> bool:
        """Whether an episode's turns are learned from together: prompts are conversations."""
        return any(decision.left_out is not None for decision in self.decisions)

    def list_episodes(self) -> list[list[int]]:
        """Returns each episode's turns, by their positions in the buffer."""
        return [episode.turns for episode in self._episodes.values() if episode.turns]

    def list_prompts(self) -> list[list[int]]:
        """Returns each distinct prompt's turns, by their positions in the buffer."""
        turns: dict[Tokens, list[int]] = {}
        for turn, decision in enumerate(self.decisions):
            turns.setdefault(decision.prompt, []).append(turn)
        return list(turns.values())

    def fill(self, episodes: Sequence[Episode], cut_penalty: float) -> None:
        """Removes all turns, and adds those of whole episodes; a reply that was cut loses ``cut_penalty``."""
        self.reset()
        for episode in episodes:
            for turn in episode.turns:
                decision = turn.decision
                assert decision is not None and decision.value is not None  # the policy's, with its value
                reward = turn.reward - cut_penalty * decision.cut
                self.add(episode.index, decision, reward, decision.value, episode.group)
            if episode.truncated:
                self.bootstrap(episode.index, episode.last_value)

    def bootstrap(self, episode: int, last_value: float) -> None:
        """Sets the critic's estimate of the last state of an episode that was cut."""
        self._episodes[episode].last_value = last_value

    def compute_returns_and_advantage(self, known: Mapping[int, KnownValues] | None = None) -> None:
        """Fills ``advantages`` and ``returns``, float64 (turns,), when all episodes are in.

        Args:
            known: What is known of each episode without the critic; None for ``gae``. Known advantages are
                divided by ``advantage_scale`` alone: neither their mean nor their deviation is noise.
        """
        numbers = self.hyperparameters
        self.advantages, self.returns = np.zeros(len(self)), np.zeros(len(self))
        self.weights = np.ones(len(self))
        groups: list[Hashable] = [None] * len(self)
        rewards, values = np.array(self.rewards), np.array(self.values)
        for episode in self._episodes.values():
            turns = episode.turns
            self.advantages[turns], self.returns[turns] = gae(
                rewards[turns], values[turns], episode.last_value, numbers.gamma, numbers.lam
            )
            for turn in turns:
                groups[turn] = episode.group
        if known is not None:
            self.variances["gae"] = float(self.advantages.var())
            for number, episode in self._episodes.items():
                self.advantages[episode.turns] = known[number].advantages
                self.returns[episode.turns] = known[number].values
            self.variances["exact"] = float(self.advantages.var())
            self.advantages /= numbers.advantage_scale
        elif numbers.normalize_advantage:
            self.advantages = normalize_by_group(self.advantages, groups)

    def merge_turns(self, known: Mapping[int, KnownValues], *, all_actions: bool, floor: float = 0.0) -> None:
        """Replaces turns of equal prompts and actions by one row, whose weight is their number.

        With ``all_actions``, a turn counts for each legal action by its probability, in the place of the one
        that was drawn: the loss is then its mean over the policy that played.

        Equal prompts may be of different states, where an action has other advantages. PPO's term is linear
        in those of one sign, so positive and negative ones are merged apart.

        A softmax's gradient has the action's probability as a factor, so that an action which the first steps
        gave up hardly ever comes back. With ``all_actions``, one that is better than the policy (over all
        states of its prompt) counts at least as one of probability ``floor``, unless it has none. Where no
        action is better, nothing changes. Hennes et al. 2020 (arXiv:1906.00190) count all actions alike.
        """
        assert self.returns is not None
        sums: dict[tuple[Tokens, Tokens, bool], list[float]] = {}
        rows: list[tuple[Decision, int]] = []
        chance_of: dict[int, float] = {}  # by row, with all_actions
        for number, episode in self._episodes.items():
            played, episode.turns = episode.turns, []
            for turn, action_probs, gains in zip(
                played, known[number].chances, known[number].gains, strict=True
            ):
                trie = self.decisions[turn].constraint
                assert isinstance(trie, ActionTrie)
                chances = dict(zip(trie.paths, action_probs.tolist(), strict=True))
                for action, gain in zip(trie.paths, gains.tolist(), strict=True):
                    tokens = trie.tokens[action]
                    weight = chances[action] if all_actions else float(tokens == self.decisions[turn].tokens)
                    if not weight:
                        continue
                    key = self.decisions[turn].prompt, tokens, gain > 0
                    if key not in sums:
                        sums[key] = [0.0, 0.0, 0.0, 0.0]
                        episode.turns.append(len(rows))
                        decision = self.decisions[turn]
                        if all_actions:
                            chance_of[len(rows)] = weight
                            log_probs = trie.path_log_probs(action, chances)
                            decision = replace(decision, tokens=tokens, log_probs=log_probs)
                        rows.append((decision, turn))
                    for place, value in enumerate((1.0, gain, self.returns[turn], self.values[turn])):
                        sums[key][place] += weight * value
        self.decisions = [decision for decision, _ in rows]
        self.rewards = [self.rewards[turn] for _, turn in rows]
        totals = np.array(list(sums.values())).reshape(-1, 4)
        weights, means = totals[:, 0], totals[:, 1:] / totals[:, :1]
        self.advantages, self.returns = means[:, 0] / self.hyperparameters.advantage_scale, means[:, 1]
        for row, (prompt, tokens, is_gain) in enumerate(sums):
            opposite = sums.get((prompt, tokens, not is_gain), (0.0, 0.0))
            if row in chance_of and totals[row, 1] + opposite[1] > 0:
                self.advantages[row] *= max(1.0, floor / max(chance_of[row], 1e-30))
        self.values = means[:, 2].tolist()
        self.weights = weights * (len(rows) / self.turns)
        self._unit_sizes = [_size_units(decision) for decision in self.decisions]
        self._sampler_log_probs = list(map(_sum_units, self.decisions, self._unit_sizes))

    def weigh(self, index: Positions) -> dict[str, float]:
        """Returns the weight of the given turns in a mean over turns, and in one over their ratio units."""
        assert self.weights is not None
        weights = self.weights[index]
        sizes = [len(self._unit_sizes[turn]) for turn in index]
        return {"units": float(weights @ sizes), "turns": float(weights.sum())}

    def put_scored(self, index: Sequence[int] | Positions, log_probs: Tensor) -> None:
        """Puts the scorer's log-probabilities of the given turns' units, turn after turn, float32 (u,)."""
        ends = np.cumsum([len(self._unit_sizes[turn]) for turn in index])
        turn_log_probs = np.split(transfer.read(log_probs)[0].numpy(), ends[:-1])
        self._scorer_log_probs.update(zip((int(turn) for turn in index), turn_log_probs, strict=True))

    def sampler_gap(self) -> Tensor:
        """Returns what the scorer found minus what the sampler gave, of all units, float64 (units,)."""
        every = range(len(self))
        sampler = np.concatenate(self._sampler_log_probs)
        return torch.from_numpy(self._old_log_probs(every).astype(np.float64) - sampler)

    def _old_log_probs(self, index: Sequence[int] | Positions) -> npt.NDArray[np.float32]:
        sampler, scorer = self._sampler_log_probs, self._scorer_log_probs
        return np.concatenate([scorer.get(int(turn), sampler[turn]) for turn in index])

    def batch(self, index: Positions) -> TurnBatch:
        """Returns the given turns as a minibatch.

        Raises:
            RuntimeError: ``compute_returns_and_advantage`` has not been called.
        """
        if self.advantages is None or self.returns is None or self.weights is None:
            raise RuntimeError("call compute_returns_and_advantage() before taking minibatches")

        def tensor(values: npt.NDArray[np.float64]) -> Tensor:
            return transfer.send(values[index].astype(np.float32), self.device)

        sizes = [self._unit_sizes[turn] for turn in index]
        all_sizes = np.concatenate([np.zeros(0, dtype=np.int64), *sizes])
        return TurnBatch(
            index=index,
            decisions=[self.decisions[turn] for turn in index],
            unit_of_token=self._repeat_index(all_sizes),
            turn_of_unit=self._repeat_index(np.array([len(units) for units in sizes], dtype=np.int64)),
            sampler_log_probs=transfer.send(
                np.concatenate([self._sampler_log_probs[turn] for turn in index]), self.device
            ),
            old_log_probs=transfer.send(self._old_log_probs(index), self.device),
            advantages=tensor(self.advantages),
            returns=tensor(self.returns),
            weights=tensor(self.weights),
        )

    def _repeat_index(self, counts: npt.NDArray[np.int64]) -> Tensor:
        """Returns the numbers from 0, each as often as it counts."""
        return transfer.send(np.repeat(np.arange(len(counts)), counts), self.device)


def _size_units(decision: Decision) -> npt.NDArray[np.int64]:
    """Returns the decided tokens of each of a decision's units, int64 (units,)."""
    return np.array(decision.constraint.unit_sizes(decision.tokens), dtype=np.int64)


def _sum_units(decision: Decision, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Returns the sum of each unit's log-probabilities, float32 (units,), added one after the other."""
    log_probs = np.asarray(decision.log_probs, dtype=np.float32)
    if (sizes == 1).all():
        return log_probs
    ends = np.cumsum(sizes).tolist()
    units = [log_probs[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
    # Not numpy's sum, which adds longer rows in pairs: the scorer adds from the root on.
    sums = [np.add.accumulate(unit)[-1] if len(unit) else 0.0 for unit in units]
    return np.array(sums, dtype=np.float32)
