"""The collection of one step: its episodes, played to the end, and their turns in the buffer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.advantages import FindValues
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.learning.metrics import join_served, rollout_metrics
from gamespiel.agents.models import NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.rollout import Episode, Masks, play
from gamespiel.agents.sampling import noise
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.self_play import Round, SeatEpisodes, SelfPlay
from gamespiel.agents.starts import Starts
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.remote.loop import AbandonedWaitError
from task_gym.samplers import Start

OnTurns = Callable[[list[bool], int], bool]
"""(whether each episode is over that was reset or stepped, decisions of the learner) -> whether to go on."""


Games = list[Episode] | list[SeatEpisodes]
"""Episodes, or games of self-play as their learning seats saw them, by their numbers."""


@dataclass
class _Played:
    """One rank's share of a step.

    Attributes:
        games: Its episodes or games, in order.
        learned: Decisions of the learner.
        tokens: Tokens that the sampler and the critic read.
        served: The sampler's own figures.
        workers: Counts of what its environments' workers lost and played again.
        budget: Its tokens per forward after any out-of-memory.
    """

    games: Games
    learned: int
    tokens: int
    served: dict[str, float]
    workers: dict[str, float]
    budget: int


class Collector:
    """Plays one step's episodes into the buffer.

    Of several ranks each plays its share, and then all have all episodes.

    Args:
        policy: Decides; its sampler is given the newest adapters first.
        buffer: Gets the turns.
        hyperparameters: The number of episodes, and what a reply that is cut loses.
        seed: Seed of the run.
        step: Number of complete steps.
        starts: Chooses the episodes' tasks, opponents and seeds; None for neither.
        self_play: Plays every seat; None if the environment plays the others.
        parts: Parts of a round; see ``TextEnvs.parts``.
        ranks: The ranks among which episodes are dealt.
        find_values: Finds advantages without the critic; None for ``gae``.
        on_progress: Called with the phase, episodes that are over, and episodes in all, of this rank.

    Attributes:
        metrics: Of the step, by name, after ``collect``.
        learned: Decisions of the learner, likewise.
        tokens: Tokens that were read, likewise.
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
        ranks: Ranks = ALONE,
        find_values: FindValues | None = None,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.policy, self.buffer, self.hyperparameters = policy, buffer, hyperparameters
        self.seed, self.step, self.starts, self.self_play = seed, step, starts, self_play
        self.parts, self.ranks, self.on_progress = parts, ranks, on_progress
        self.find_values = find_values
        self.metrics: dict[str, object] = {}
        self.learned = self.tokens = 0
        self._games: Round | None = None
        self._dones: list[bool] = []
        self._over = 0

    def collect(self, env: TextVecEnv, on_turns: OnTurns) -> list[Episode] | None:
        """Returns the step's episodes, whose turns are in the buffer; None if any rank was stopped.

        ``on_turns`` and an abandoned wait for a server stop a rank.

        Raises:
            DivergedError: the model's logits are not finite.
            RankFailedError: another rank met an error.
        """
        starts = self._draw_starts()
        shares = self.ranks.share_work(lambda: self._play_share(env, starts, on_turns))
        played = [share for share in shares if share is not None]
        if len(played) < len(shares):
            return None
        self.learned, self.tokens = (
            sum(getattr(own, name) for own in played) for name in ("learned", "tokens")
        )
        self.policy.budgets.tokens_per_forward = min(own.budget for own in played)
        served = join_served([own.served for own in played])
        self.metrics |= {f"sampler/{name}": figure for name, figure in served.items()}
        for name in played[0].workers:
            self.metrics[f"machine/{name}"] = sum(own.workers[name] for own in played)
        every: list[Any] = [game for own in played for game in own.games]
        every.sort(key=lambda game: game.index)
        episodes: list[Episode] = every
        if self._games is not None:
            episodes, pool = self._games.finish(every)
            self.metrics |= {f"pool/{name}": figure for name, figure in pool.items()}
        self.fill_buffer(episodes)
        for name, variance in self.buffer.variances.items():
            self.metrics[f"rollout/advantage_variance/{name}"] = variance
        self.metrics |= {f"rollout/{name}": value for name, value in rollout_metrics(episodes).items()}
        if self.starts is not None:
            self.starts.record(starts, [episode.info for episode in episodes])
            self.metrics |= self.starts.metrics()
        return episodes

    def _play_share(self, env: TextVecEnv, starts: Sequence[Start], on_turns: OnTurns) -> _Played | None:
        """Plays this rank's episodes, with the critic's values; returns None if it was stopped."""
        sampler = self.policy.sampler
        read = sampler.tokens_read
        try:
            sampler.publish(NEWEST, self.policy.adapters.learning)
            self._games = self._begin_games(env, len(starts))
            episodes = self._play_episodes(env, starts, on_turns)
        except AbandonedWaitError:
            self.ranks.ask_stop()
            return None
        finally:
            sampler.end_episodes()
        if episodes is None:
            return None
        served = dict(sampler.take_metrics())
        games: Games = episodes
        if self._games is not None:
            games = split = [self._games.split_seats(game) for game in episodes]
            episodes = [episode for game in split for episode in game.episodes]
        self._add_values(episodes)
        budget, workers = self.policy.budgets.tokens_per_forward, env.take_worker_metrics()
        return _Played(games, self.learned, sampler.tokens_read - read, served, workers, budget)

    def _play_episodes(
        self, env: TextVecEnv, starts: Sequence[Start], on_turns: OnTurns
    ) -> list[Episode] | None:
        """Plays this rank's episodes; returns None if ``on_turns`` stopped it."""
        numbers, games = self.ranks.take_share(range(len(starts))), self._games

        def after_turns(turns: int) -> bool:
            dones, self._dones = self._dones, []
            learned = turns if games is None else games.take_learned()
            self.learned += learned
            return on_turns(dones, learned)

        def after_step(ended: bool, turns: int) -> None:
            self._over += ended
            self._dones.append(ended)
            self.on_progress("episodes played", self._over, len(numbers))

        seeds = [starts[number].seed or 0 for number in numbers]
        options = [starts[number].options or None for number in numbers]
        decide = self.decide if games is None else games.decide
        self.policy.sampler.take_metrics()  # of evaluations since the last step
        return play(env, seeds, decide, after_turns, after_step, options, self.parts, numbers)

    def _add_values(self, episodes: Sequence[Episode]) -> None:
        """Adds the critic's estimates to the turns and ends of episodes that are no faults."""
        played = [episode for episode in episodes if not episode.fault]
        turns = [turn for episode in played for turn in episode.turns]
        decisions = [turn.decision for turn in turns if turn.decision is not None]
        for turn, value in zip(turns, self.policy.values_of(decisions), strict=True):
            if turn.decision is not None and turn.decision.value is None:
                turn.decision = dataclasses.replace(turn.decision, value=value)
        if cut := [episode for episode in played if episode.truncated]:
            with torch.no_grad():
                values = self.policy.predict_values([episode.final_observation for episode in cut])
            for episode, value in zip(cut, values.flatten().tolist(), strict=True):
                episode.last_value = value

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
        return self.self_play.begin(
            sampler, learning, env, self.decide, self.seed, self.step, count, self.ranks.size
        )

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
        for episode in episodes:
            if episode.fault:
                continue
            for turn in episode.turns:
                decision = turn.decision
                assert decision is not None and decision.value is not None  # the policy's, with its value
                reward = turn.reward - penalty * decision.cut
                buffer.add(episode.index, decision, reward, decision.value, episode.group)
            if episode.truncated:
                buffer.bootstrap(episode.index, episode.last_value)
        played = [episode for episode in episodes if not episode.fault]
        known = self.find_values and self.find_values(played)
        buffer.compute_returns_and_advantage(known)
        if known:
            buffer.merge_turns(known, all_actions=self.hyperparameters.all_actions)
