"""The episodes of one step, played to the end by all ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.models import NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.rollout import Episode, Masks, play
from gamespiel.agents.sampling import noise
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.self_play import Round, SeatEpisodes, SelfPlay
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.remote.loop import AbandonedWaitError
from task_gym.samplers import Start

OnTurns = Callable[[list[bool], int], bool]
"""(whether each episode is over that was reset or stepped, decisions of the learner) -> whether to go on."""


Games = list[Episode] | list[SeatEpisodes]
"""Episodes, or games of self-play as their learning seats saw them, by their numbers."""


@dataclass
class _Share:
    """One rank's share of a step.

    Attributes:
        games: Its episodes or games, in order.
        learned: Decisions of the learner.
        tokens: Tokens that the sampler and the critic read.
        workers: Counts of what its environments' workers lost and played again.
        budget: Its tokens per forward after any out-of-memory.
    """

    games: Games
    learned: int
    tokens: int
    workers: dict[str, float]
    budget: int


class Collector:
    """Plays one step's episodes. Of several ranks each plays its share, and then all have all episodes.

    Args:
        policy: Decides; its sampler is given the newest adapters first.
        seed: Seed of the run.
        step: Number of complete steps.
        self_play: Plays every seat; None if the environment plays the others.
        parts: Parts of a round; see ``TextEnvs.parts``.
        ranks: The ranks among which episodes are dealt.
        on_progress: Called with the phase, episodes that are over, and episodes in all, of this rank.

    Attributes:
        metrics: Of the workers and the pool, by name, after ``collect``.
        learned: Decisions of the learner, likewise.
        tokens: Tokens that were read, likewise.
    """

    def __init__(
        self,
        policy: LLMPolicy,
        *,
        seed: int,
        step: int,
        self_play: SelfPlay | None = None,
        parts: int = 1,
        ranks: Ranks = ALONE,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.policy, self.seed, self.step, self.self_play = policy, seed, step, self_play
        self.parts, self.ranks, self.on_progress = parts, ranks, on_progress
        self.metrics: dict[str, object] = {}
        self.learned = self.tokens = 0
        self._games: Round | None = None

    def collect(self, env: TextVecEnv, starts: Sequence[Start], on_turns: OnTurns) -> list[Episode] | None:
        """Returns the episodes that began with ``starts``; None if any rank was stopped.

        ``on_turns`` and an abandoned wait for a server stop a rank.

        Raises:
            DivergedError: the model's logits are not finite.
            RankFailedError: another rank met an error.
        """
        every = self.ranks.share_work(lambda: self._play_share(env, starts, on_turns))
        shares = [share for share in every if share is not None]
        if len(shares) < len(every):
            return None
        self.learned = sum(share.learned for share in shares)
        self.tokens = sum(share.tokens for share in shares)
        self.policy.budgets.tokens_per_forward = min(share.budget for share in shares)
        for name in shares[0].workers:
            self.metrics[f"machine/{name}"] = sum(share.workers[name] for share in shares)
        games: list[Any] = sorted((game for share in shares for game in share.games), key=lambda g: g.index)
        if self._games is None:
            return games
        episodes, pool = self._games.finish(games)
        self.metrics |= {f"pool/{name}": figure for name, figure in pool.items()}
        return episodes

    def _play_share(self, env: TextVecEnv, starts: Sequence[Start], on_turns: OnTurns) -> _Share | None:
        """Plays this rank's episodes, with the critic's values; returns None if it was stopped."""
        sampler, adapters = self.policy.sampler, self.policy.adapters.learning
        numbers, read = self.ranks.take_share(range(len(starts))), sampler.tokens_read
        over, dones = 0, list[bool]()

        def after_turns(turns: int) -> bool:
            nonlocal dones
            round_dones, dones = dones, []
            learned = turns if self._games is None else self._games.take_learned()
            self.learned += learned
            return on_turns(round_dones, learned)

        def after_step(ended: bool, turns: int) -> None:
            nonlocal over
            over += ended
            dones.append(ended)
            self.on_progress("episodes played", over, len(numbers))

        try:
            sampler.publish(NEWEST, adapters)
            if self.self_play is not None:
                self._games = self.self_play.begin(
                    sampler, adapters, env, self.decide, self.seed, self.step, len(starts), self.ranks.size
                )
            seeds = [starts[number].seed or 0 for number in numbers]
            options = [starts[number].options or None for number in numbers]
            decide = self.decide if self._games is None else self._games.decide
            episodes = play(env, seeds, decide, after_turns, after_step, options, self.parts, numbers)
        except AbandonedWaitError:
            self.ranks.ask_stop()
            return None
        finally:
            sampler.end_episodes()
        if episodes is None:
            return None
        games: Games = episodes
        if self._games is not None:
            games = split = [self._games.split_seats(game) for game in episodes]
            episodes = [episode for game in split for episode in game.episodes]
        self._add_values(episodes)
        budget, workers = self.policy.budgets.tokens_per_forward, env.take_worker_metrics()
        return _Share(games, self.learned, sampler.tokens_read - read, workers, budget)

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
