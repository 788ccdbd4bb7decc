"""The collection of one step: its episodes, played to the end, and their turns in the buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.learning.metrics import rollout_metrics
from gamespiel.agents.models.names import NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.rollout import Episode, Masks, play
from gamespiel.agents.sampling import noise
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.self_play import Round, SelfPlay
from gamespiel.agents.starts import Starts
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.samplers import Start

OnTurns = Callable[[list[bool], int], bool]
"""(whether each episode is over that was reset or stepped, decisions of the learner) -> whether to go on."""


class Collector:
    """Plays one step's episodes into the buffer.

    Args:
        policy: Decides; its sampler has the newest adapters already.
        buffer: Gets the turns.
        hyperparameters: The number of episodes, and what a reply that is cut loses.
        seed: Seed of the run.
        step: Number of complete steps.
        starts: Chooses the episodes' tasks, opponents and seeds; None for neither.
        self_play: Plays every seat; None if the environment plays the others.
        parts: Parts of a round; see ``TextEnvs.parts``.
        on_progress: Called with the phase, episodes that are over, and episodes in all.

    Attributes:
        metrics: Of the step, by name, after ``collect``.
    """

    def __init__(
        self,
        policy: LLMPolicy,
        buffer: TurnBuffer,
        hyperparameters: Hyperparameters,
        *,
        seed: int,
        step: int,
        starts: Starts | None = None,
        self_play: SelfPlay | None = None,
        parts: int = 1,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.policy, self.buffer, self.hyperparameters = policy, buffer, hyperparameters
        self.seed, self.step, self.starts, self.self_play = seed, step, starts, self_play
        self.parts, self.on_progress = parts, on_progress
        self.metrics: dict[str, object] = {}
        self._dones: list[bool] = []
        self._over = 0

    def collect(self, env: TextVecEnv, on_turns: OnTurns) -> list[Episode] | None:
        """Returns the step's episodes, whose turns are in the buffer; None if ``on_turns`` stopped it.

        Raises:
            DivergedError: the model's logits are not finite.
        """
        starts = self._draw_starts()
        games = self._begin_games(env, len(starts))
        decide = self.decide if games is None else games.decide

        def after_turns(turns: int) -> bool:
            dones, self._dones = self._dones, []
            return on_turns(dones, turns if games is None else games.take_learned())

        def after_step(ended: bool, turns: int) -> None:
            self._over += ended
            self._dones.append(ended)
            self.on_progress("episodes played", self._over, len(starts))

        seeds, options = [start.seed or 0 for start in starts], [start.options or None for start in starts]
        self.policy.sampler.take_metrics()  # of evaluations since the last step
        try:
            episodes = play(env, seeds, decide, after_turns, after_step, options, self.parts)
        finally:
            self.policy.sampler.end_episodes()
        if episodes is None:
            return None
        served = self.policy.sampler.take_metrics()
        self.metrics |= {f"sampler/{name}": figure for name, figure in served.items()}
        if games is not None:
            episodes, pool = games.finish(episodes)
            self.metrics |= {f"pool/{name}": figure for name, figure in pool.items()}
        self.fill_buffer(episodes)
        self.metrics |= {f"rollout/{name}": value for name, value in rollout_metrics(episodes).items()}
        if self.starts is not None:
            self.starts.record(starts, [episode.info for episode in episodes])
            self.metrics |= self.starts.metrics()
        return episodes

    def _draw_starts(self) -> list[Start]:
        """Returns the starts of this step's episodes, each with a seed."""
        seeds = noise.episode_seeds(self.seed, self.step, self.hyperparameters.batch_size)
        if self.starts is None:
            return [Start(seed=seed) for seed in seeds]
        return self.starts.draw(self.step, seeds)

    def _begin_games(self, env: TextVecEnv, count: int) -> Round | None:
        """Returns the step's games if every seat is this policy's to play, else None."""
        if self.self_play is None:
            return None
        sampler, learning = self.policy.sampler, self.policy.adapters.learning
        return self.self_play.begin(sampler, learning, env, self.decide, self.seed, self.step, count)

    def decide(
        self,
        texts: list[str],
        masks: Masks,
        episodes: list[int],
        turn: int,
        adapters: str | Sequence[str] = NEWEST,
    ) -> list[Answer]:
        """Returns answers to a round of turns; the third and fourth argument address the noise."""
        purpose = noise.Purpose.ACTIONS
        drawn = [noise.Address(self.seed, purpose, self.step, turn, episode) for episode in episodes]
        try:
            decisions = self.policy.decide(texts, masks, drawn, adapters=adapters)
        except FloatingPointError as error:
            raise DivergedError(f"step {self.step + 1}: {error}", self.step, in_play=True) from error
        return [self.policy.answer_of(decision) for decision in decisions]

    def fill_buffer(self, episodes: Sequence[Episode]) -> None:
        """Puts the turns of episodes that are no faults into the buffer, with their advantages."""
        buffer, penalty = self.buffer, self.hyperparameters.cut_penalty
        buffer.reset()
        played = [episode for episode in episodes if not episode.fault]
        turns = [(episode, turn) for episode in played for turn in episode.turns]
        decisions = [turn.decision for _, turn in turns if turn.decision is not None]
        values = self.policy.values_of(decisions)
        for (episode, turn), decision, value in zip(turns, decisions, values, strict=True):
            reward = turn.reward - penalty * decision.cut
            buffer.add(episode.index, decision, reward, value, episode.group)
        if cut := [episode for episode in played if episode.truncated]:
            with torch.no_grad():
                last_values = self.policy.predict_values([episode.final_observation for episode in cut])
            for episode, value in zip(cut, last_values.flatten().tolist(), strict=True):
                buffer.bootstrap(episode.index, value)
        buffer.compute_returns_and_advantage()
