"""The base of the wrappers that let a sampler choose the starts of episodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym

from task_gym.arguments import check_whole
from task_gym.errors import ArgumentError, SamplerError, SeedError, quote
from task_gym.samplers.base import Outcome, Start, TaskSampler
from task_gym.seeding import SEED_LIMIT
from task_gym.wrappers.base import Info, MaskedWrapper

REPLAY = "replay"
"""The key in the info that says whether an episode is a replay."""


class Choice(NamedTuple):
    """The arguments of a reset, and who chose them.

    Attributes:
        start: The start whose outcome counts; None for none.
        seed: The reset's seed.
        options: The reset's options.
        seeded: None if the caller chose the task; if a sampler did, whether the caller gave the seed. A
            failure replay inside may put its own start in the place of a sampler's.
    """

    start: Start | None
    seed: int | None
    options: Info | None
    seeded: bool | None = None


class SampledWrapper(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that takes the starts of episodes from a sampler, and reports their outcomes to it.

    Args:
        env: A task environment.
        sampler: The sampler.

    Raises:
        ArgumentError: the environment does not take a task id as a reset option, or this is no sampler.
    """

    key = ""
    """The key of the sampler's numbers in the info."""

    def __init__(self, env: gym.Env[Any, Any], sampler: TaskSampler) -> None:
        # A copy of the sampler would learn nothing from this environment.
        super().__init__(env, _disable_deepcopy=True, sampler=sampler)
        if "task_id" not in getattr(env.unwrapped, "reset_options", ()):
            raise ArgumentError(
                f"{self.class_name()}: {env.unwrapped} was given, which takes no task id at reset; allowed: "
                "a task environment"
            )
        if isinstance(sampler, type) or not hasattr(sampler, "draw") or not hasattr(sampler, "record"):
            raise ArgumentError(
                f"sampler: {quote(sampler)} was given, allowed: a sampler, as those of task_gym.samplers"
            )
        self.sampler = sampler
        self._start: Start | None = None
        self._seed: int | None = None  # the caller's last, and the draws since then
        self._drawn = 0
        self._shown: Info = {}
        # ``Choice.seeded`` of the wrapper outside, during its reset. Options cannot carry it: wrappers in
        # between may copy them.
        self._outside: bool | None = None

    def choose(self, seed: int | None, options: Info | None, seeded: bool | None) -> Choice:
        """Returns the reset's arguments.

        Args:
            seed: The seed that was given.
            options: The options that were given.
            seeded: Who chose these options; see ``Choice``.
        """
        raise NotImplementedError

    def address(self, seed: int | None) -> tuple[int, int] | None:
        """Returns the address of the next draw: (the caller's last seed, draws since then).

        It is None, for the sampler's own count, as long as the caller has given no seed.
        """
        if seed is not None:
            self._seed, self._drawn = seed, 0
        if self._seed is None:
            return None
        self._drawn += 1
        return self._seed, self._drawn - 1

    def about(self, start: Start | None) -> Info:
        """Returns the info's additions beside the sampler's numbers."""
        return {}

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begins an episode from a start of the sampler, or from the caller's.

        Raises:
            SeedError: this is no seed. The draws go on as before.
        """
        if seed is not None:  # checked here, because it begins the address of the draws to come
            seed = check_whole("seed", seed, SEED_LIMIT, SeedError)
        self._start = None  # stays so if the reset fails
        choice, inner = self.choose(seed, options, self._outside), sampled(self.env)
        if inner is not None:
            inner._outside = choice.seeded
        try:
            observation, info = self.env.reset(seed=choice.seed, options=choice.options)
        finally:
            if inner is not None:
                inner._outside = None
        self._start = choice.start
        self._shown = self.about(choice.start)
        if "result" in info:  # the game is over at its reset
            return observation, self._end(info)
        return observation, self._show({**self.sampler.stats()}, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """Steps the wrapped environment, and reports the outcome at the end."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = self._end(info) if terminated or truncated else self._show({}, info)
        return observation, reward, terminated, truncated, info

    def state_dict(self) -> Info:
        """Returns all from which later episodes follow, as plain data; an episode under way is not in it.

        The state of a wrapper of this kind inside is part of it.
        """
        inner = sampled(self.env)
        return {
            "seed": self._seed,
            "drawn": self._drawn,
            "sampler": self.sampler.state_dict(),
            "generator": self.unwrapped.np_random.bit_generator.state,
            "inner": None if inner is None else inner.state_dict(),
        }

    def load_state_dict(self, state: Info) -> None:
        """Continues exactly from a state, with the next reset.

        Raises:
            SamplerError: it is the state of other wrappers or another sampler.
        """
        inner = sampled(self.env)
        if not isinstance(state, dict) or (state.get("inner") is None) != (inner is None):
            raise SamplerError(
                f"state: one of {'other wrappers' if isinstance(state, dict) else repr(state)} was given, "
                f"allowed: the state of {self}"
            )
        self.sampler.load_state_dict(state["sampler"])
        if inner is not None:
            inner.load_state_dict(state["inner"])
        self._seed, self._drawn, self._start = state["seed"], state["drawn"], None
        self.unwrapped.np_random.bit_generator.state = state["generator"]

    def _end(self, info: Info) -> Info:
        if self._start is None:  # the caller chose it, or it was reported at its reset
            return self._show({}, info)
        start, self._start = self._start, None
        if info.get(REPLAY, {}).get("replayed"):
            start = replace(start, replayed=True)
        events = self.sampler.record([Outcome.of(start, info)])
        info = self._show(self.sampler.stats(), info)
        if events:
            info[self.key]["events"] = events
        return info

    def _show(self, news: Info, info: Info) -> Info:
        self._shown = {**self._shown, **news}
        info[self.key] = dict(self._shown)
        return info


def sampled(env: gym.Env[Any, Any]) -> SampledWrapper | None:
    """Returns the outermost wrapper of an environment that takes starts from a sampler; None without one."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, SampledWrapper):
            return env
        env = env.env
    return None


def asks(options: Info | None) -> bool:
    """Returns whether reset options choose a task or an opponent."""
    return options is not None and any(name in options for name in ("task_id", "opponent"))


class Curriculum(SampledWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Plays the tasks and opponents that a sampler chooses, and reports the outcomes to it.

    Every ``reset`` asks the sampler for a task id, an opponent and a seed. ``reset(seed=s)`` plays the seed
    s. From then on, draws are addressed by s and their number since then, and not by the sampler's own
    count. Reset options that name a task or an opponent are played as they are, and their outcomes count for
    nothing.

    The environment's own ``task_ids`` must contain all that the sampler may draw (``sampler.task_ids``).
    ``info["curriculum"]`` has the sampler's numbers: of ``task_gym.samplers.stages.Stages``, ``stage``,
    its ``name``, ``progress``, ``success_rate``, ``stage_episodes``, ``episodes`` and ``changes``; at the end
    of an episode that changed the stage also ``events``.

    Args:
        env: A task environment.
        sampler: A sampler, or a shared one (``task_gym.samplers.sharing.share``).

    Raises:
        ArgumentError: the environment does not take a task id as a reset option.
    """

    key = "curriculum"

    def choose(self, seed: int | None, options: Info | None, seeded: bool | None) -> Choice:
        """Returns the sampler's start, unless the caller or a failure replay outside has chosen one."""
        if seeded is not None or asks(options):
            return Choice(None, seed, options, seeded)
        start = self.sampler.draw(self.address(seed))
        has_seed = seed is not None
        return Choice(start, seed if has_seed else start.seed, {**(options or {}), **start.options}, has_seed)


class FailureReplay(SampledWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Starts a share of the episodes as an earlier failure started: same task, same opponent, same seed.

    It replays starts and no transitions. ``reset(seed=s)`` plays the seed s and no replay. From then on,
    draws are addressed by s and their number since then, and not by the sampler's own count. Reset options
    that name a task or an opponent are played as they are, and their outcomes count for nothing.

    ``info["replay"]`` has ``replayed`` (whether this episode is a replay) and the numbers of
    ``task_gym.samplers.failures.Failures``: ``size``, ``share`` of replays, ``mean_priority``,
    ``episodes``, ``replays``, ``stored``, ``mastered``, ``given_up`` and ``pushed_out``.

    Args:
        env: A task environment, with or without a ``task_gym.wrappers.sampled.Curriculum`` inside; a
            Curriculum may also be outside.
        sampler: A ``Failures``, or a shared one (``task_gym.samplers.sharing.share``).

    Raises:
        ArgumentError: the environment does not take a task id as a reset option.
    """

    key = REPLAY

    def choose(self, seed: int | None, options: Info | None, seeded: bool | None) -> Choice:
        """Returns a start of the store, or an empty one, with which everything stays as it was."""
        if asks(options) and seeded is None:
            return Choice(None, seed, options)
        if seed is not None if seeded is None else seeded:
            self.address(seed)
            return Choice(Start(), seed, options, seeded)
        start = self.sampler.draw(self.address(None))
        if start.replayed:
            return Choice(start, start.seed, {**(options or {}), **start.options}, seeded=False)
        return Choice(start, seed, options, seeded)

    def about(self, start: Start | None) -> Info:
        """Returns whether the episode is a replay."""
        return {"replayed": start is not None and start.replayed}
