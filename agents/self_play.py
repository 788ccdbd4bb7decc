"""Self-play: games in which the policy, as it is or as it was, plays every seat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.learning.snapshots import Pool, Snapshot
from gamespiel.agents.models import NEWEST
from gamespiel.agents.models.adapters import Adapters
from gamespiel.agents.rollout import Episode, Masks
from gamespiel.agents.sampling import noise
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.sampling.sampler import Sampler
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.contract import is_success, result_of
from task_gym.errors import TaskGymError
from task_gym.opponents import OPEN, SELF

DecideAs = Callable[[list[str], Masks, list[int], int, Sequence[str]], Sequence[Answer]]
"""Texts, masks, episodes, turn number and a name of adapters per row to answers (see ``rollout.Decide``)."""

LEARNER = -1
"""The player that is the policy as it is; others are members of the pool."""


class SeatsError(TaskGymError, ValueError):
    """An environment that does not leave every seat to the caller until the game is over."""


class SelfPlay:
    """The state of self-play between steps.

    The environment leaves every seat to the caller (``opponent="open"`` in games). With ``learn="both"`` the
    policy plays all of them and learns from all. With ``learn="one"`` it plays one seat, seat
    ``episode mod seats``, and a snapshot from the pool plays the others. An environment that draws its
    opponents may draw others too (``game_gym.wrappers.MixedOpponents``): those games are played as they are.

    Attributes:
        settings: As given.
        pool: The snapshots; None if no seat is played by one.
    """

    def __init__(self, settings: SelfPlaySettings) -> None:
        self.settings = settings
        self.pool = None if settings.learn == "both" else Pool(settings)
        self._published: dict[str, Snapshot] = {}

    def begin(
        self,
        sampler: Sampler,
        adapters: Adapters,
        env: TextVecEnv,
        decide: DecideAs,
        seed: int,
        step: int,
        games: int,
        ranks: int = 1,
    ) -> Round:
        """Returns a step's games before their first turn; the pool has grown, if it is time.

        Args:
            sampler: Gets the adapters of the pool's members.
            adapters: The adapters that learn.
            env: The environments, each with attributes ``seat`` (to move) and ``seats`` (how many); of those
                that draw opponents also ``opponent`` (now) and ``opponents`` (all that may be drawn).
            decide: Decides under named adapters.
            seed: Seed of the run.
            step: Complete steps.
            games: Games of the step.
            ranks: The ranks among which they are dealt.
        """
        drawn = [LEARNER] * games
        names = [NEWEST]
        if self.pool is not None:
            self.pool.grow(adapters, step)
            self._publish_members(sampler)
            drawn = self.pool.draw(noise.opponent_uniforms(seed, step, games))
            names = [member.name for member in self.pool.members]
        return Round(self, env, decide, drawn, names, ranks)

    def forget_members(self, sampler: Sampler) -> None:
        """Makes the sampler forget all members."""
        for name in self._published:
            sampler.forget(name)
        self._published = {}

    def _publish_members(self, sampler: Sampler) -> None:
        """Makes the sampler know the pool's members, and no earlier ones."""
        assert self.pool is not None
        members = {member.name: member.snapshot for member in self.pool.members}
        for name in self._published.keys() - members.keys():
            sampler.forget(name)
        for name, snapshot in members.items():
            if self._published.get(name) is not snapshot:
                sampler.publish(name, snapshot.adapters)
        self._published = members

    def finish(self, games: Sequence[SeatEpisodes]) -> dict[str, float | list[float]]:
        """Notes results against the pool, in the games' order; returns metrics."""
        if self.pool is None:
            return {}
        scores: list[list[float]] = [[] for _ in self.pool.members]
        for game in games:
            if game.opponent is None:
                continue
            for episode in game.episodes:
                scores[game.opponent].append(episode.info["score"])
                points = {"win": 1.0, "draw": 0.5}.get(episode.info["result"], 0.0)
                self.pool.record(game.opponent, points)
        return self.pool.metrics(scores)


@dataclass
class SeatEpisodes:
    """A game as its learning seats saw it.

    Attributes:
        index: The game's number among those of the step.
        opponent: The pool's member on the other seats, or ``LEARNER``; None if the environment played them.
        episodes: One per learning seat; none if the game is a fault.
        fault: The game, if it is a fault, which counts for nothing.
    """

    index: int
    opponent: int | None
    episodes: list[Episode]
    fault: Episode | None = None


class Round:
    """A step's games: who plays which seat, and who made which move."""

    def __init__(
        self,
        of: SelfPlay,
        env: TextVecEnv,
        decide: DecideAs,
        opponents: Sequence[int],
        names: Sequence[str],
        ranks: int,
    ) -> None:
        self._of, self._env, self._decide, self._opponents, self._names = of, env, decide, opponents, names
        self._ranks = ranks
        self._both = of.pool is None
        #: Names of the opponents that the environments may draw; those of self-play alone if they draw none.
        self._drawn = env.get_attr("opponents", [0])[0] if env.has_attr("opponents") else (OPEN,)
        #: Games whose other seats the environment plays.
        self._theirs: set[int] = set()
        #: The seats of each game's moves, in order.
        self._moved: list[list[int]] = [[] for _ in opponents]
        self._seats: dict[int, int] = {}
        self._learned = 0

    def decide(self, texts: list[str], masks: Masks, episodes: list[int], turn: int) -> Sequence[Answer]:
        """Decides for the seats to move: all that one player decides share forwards."""
        # A rank has each ``ranks``-th game: the first of its own is in the first environment.
        slots = [episode // self._ranks % self._env.num_envs for episode in episodes]
        if turn == 0:
            self._seats.update(zip(episodes, self._env.get_attr("seats", slots), strict=True))
            if self._drawn != (OPEN,):
                playing = zip(episodes, self._env.get_attr("opponent", slots), strict=True)
                self._theirs.update(episode for episode, name in playing if name != OPEN)
        players = []
        for episode, seat in zip(episodes, self._env.get_attr("seat", slots), strict=True):
            self._moved[episode].append(seat)
            learner = self._both or episode in self._theirs or seat == episode % self._seats[episode]
            players.append(NEWEST if learner else self._names[self._opponents[episode]])
        self._learned += players.count(NEWEST)
        return self._decide(texts, masks, episodes, turn, players)

    def take_learned(self) -> int:
        """Returns the number of the learner's decisions since the last call."""
        learned, self._learned = self._learned, 0
        return learned

    def finish(self, games: Sequence[SeatEpisodes]) -> tuple[list[Episode], dict[str, float | list[float]]]:
        """Returns the episodes of the learning seats of all games of the step, and metrics of the pool."""
        metrics = self._of.finish(games)
        seats = (game.episodes if game.fault is None else [game.fault] for game in games)
        episodes = [episode for game in seats for episode in game]
        for index, episode in enumerate(episodes):
            episode.index = index
        return episodes, metrics

    def split_seats(self, game: Episode) -> SeatEpisodes:
        """Returns a game that was played in this round as its learning seats saw it.

        Raises:
            SeatsError: not every seat was left to the caller until the game was over.
        """
        opponent = self._opponents[game.index]
        if game.fault:
            return SeatEpisodes(game.index, opponent, [], game)
        if OPEN in self._drawn and game.info.get("opponent", OPEN) != OPEN:
            return SeatEpisodes(game.index, None, [game])
        scores = _read_scores(game)
        moved = self._moved[game.index]
        if not self._both:
            game.info["snapshot"] = self._names[opponent]
        return SeatEpisodes(
            game.index,
            opponent,
            [
                _seat_episode(game, seat, scores, moved)
                for seat in range(len(scores))
                if self._both or seat == game.index % len(scores)
            ],
        )


def check_learns(env: Any, settings: SelfPlaySettings) -> None:
    """Raises SeatsError if environments say that not all seats of their games can learn.

    They say it by an attribute ``zero_sum``. An environment without one is its author's responsibility.
    """
    if settings.learn != "both" or env is None or not env.has_attr("zero_sum"):
        return
    if not all(env.get_attr("zero_sum")):
        raise SeatsError(
            "self-play: learn 'both' was given with games whose returns do not sum to zero; allowed: "
            "zero-sum games, or SelfPlaySettings(learn='one')"
        )


def _read_scores(game: Episode) -> Sequence[float]:
    """Returns a game's scores, one per seat.

    Raises:
        SeatsError: the environment played a seat itself, or cut the game, or does not say the scores.
    """
    info, allowed = game.info, 'environments that leave every seat to the caller, as opponent="open" does'
    scores: Sequence[float] | None = info.get("scores")
    if info.get("opponent", OPEN) != OPEN:
        problem = f"was played against opponent {info['opponent']!r}"
    elif scores is None:
        problem = "ended without info['scores'], one per seat"
    elif len(scores) < 2:
        problem, allowed = "has one seat", "games of at least two"
    elif game.truncated:
        problem, allowed = "was cut, so that no seat has a score", "games that are played to their end"
    else:
        return scores
    raise SeatsError(f"self-play: an episode of {info.get('game')!r} {problem}; allowed: {allowed}")


def _seat_episode(game: Episode, seat: int, scores: Sequence[float], moved: Sequence[int]) -> Episode:
    """Returns the game as one seat saw it: its own turns, the last of which is paid its own score.

    The environment pays the end to the seat that moved last.
    """
    turns = [turn for turn, mover in zip(game.turns, moved, strict=True) if mover == seat]
    if turns and moved[-1] != seat:
        turns[-1].reward += scores[seat]
    others = [score for other, score in enumerate(scores) if other != seat]
    info = game.info | {
        "opponent": SELF,
        "seat": seat,
        "score": scores[seat],
        "success": is_success(scores[seat]),
        "result": result_of(scores[seat] - max(others)),
    }
    return replace(game, info=info, turns=turns)
