"""Environments in workers as a vector of Gymnasium, for any library that takes one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.errors import ArgumentError, MissingPackageError, nearest
from task_gym.workers.group import ATTRIBUTES, Frame, MakeEnv, Slots
from task_gym.workers.pool import STEP_SECONDS, RemoteGroup, WorkerPool
from task_gym.workers.processes import make_launcher

try:
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
except ImportError as error:
    raise MissingPackageError(
        f"environments in workers as a vector need Gymnasium 1.1 or newer, and this is {gym.__version__}; "
        "pip install 'gymnasium>=1.1'"
    ) from error

# isort: split

from gymnasium.vector.utils import iterate


class WorkerVectorEnv(SyncVectorEnv):
    """A ``SyncVectorEnv`` whose environments are played by worker processes, or on a Ray cluster.

    The results are those of ``SyncVectorEnv``, autoreset included, if an episode follows from seed, options
    and actions. What a lost worker played is played again. With ``autoreset_mode="SameStep"``, environments
    that end in the same step are reset one after the other.

    Args:
        env_fns: Functions that each make an environment. They go to the workers by cloudpickle.
        workers: Number of workers.
        ray_address: "auto" or "host:6379" for a Ray cluster; None for processes of this machine.
        seconds: Seconds that a worker may take for a step, before another one plays it again.
        autoreset_mode: As ``SyncVectorEnv`` has it.

    Attributes:
        pool: The workers; ``pool.take_counts()`` says what was played again.

    Raises:
        TaskGymError: the workers cannot be had.
    """

    closed = True  # what ``__init__`` could not make is not to be closed

    def __init__(
        self,
        env_fns: Sequence[MakeEnv],
        *,
        workers: int,
        ray_address: str | None = None,
        seconds: float = STEP_SECONDS,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        if not env_fns:
            raise ArgumentError("env_fns: none were given, allowed: one function per environment")
        self.pool = WorkerPool(make_launcher(ray_address), workers, seconds=seconds)
        template = env_fns[0]()
        self._group = RemoteGroup(
            self.pool, list(env_fns), waits=bool(getattr(template.unwrapped, "waits", False))
        )
        slots = Slots(self._group.advance, len(env_fns))
        self._remote = [_RemoteEnv(template, slots, index) for index in range(len(env_fns))]
        self._slots = slots
        template.close()
        super().__init__(
            [lambda env=env: env for env in self._remote],  # type: ignore[misc]
            autoreset_mode=autoreset_mode,
        )
        self.closed = False

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns all masks: bool, shape (num_envs, n), True = legal."""
        return np.stack([env.action_masks() for env in self._remote])

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every environment, or in those of ``options["reset_mask"]``; all at once."""
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ArgumentError(
                f"seed: {len(seeds)} were given, allowed: {self.num_envs}, one per environment"
            )
        self._begin_nothing()
        chosen: Sequence[int] = range(self.num_envs)
        rest = options
        if options is not None and "reset_mask" in options:
            chosen = np.flatnonzero(options["reset_mask"]).tolist()
            rest = {name: value for name, value in options.items() if name != "reset_mask"}
        self._begin(chosen, self._slots.reset(chosen, [seeds[i] for i in chosen], [rest] * len(chosen)))
        return super().reset(seed=seeds, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Makes a step in every environment, all at once; those that have ended begin anew, by the mode."""
        self._begin_nothing()
        moves = list(iterate(self.action_space, actions))
        over = self._autoreset_envs if self.autoreset_mode is AutoresetMode.NEXT_STEP else None
        again = [] if over is None else np.flatnonzero(over).tolist()
        going = [i for i in range(self.num_envs) if i not in set(again)]
        self._begin(again, self._slots.reset(again, [None] * len(again), [None] * len(again)))
        self._begin(going, self._slots.step(going, [moves[i] for i in going]))
        return super().step(actions)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the workers."""
        self._group.give_up()
        self.pool.close()
        super().close_extras(**kwargs)

    def _begin_nothing(self) -> None:
        """Forgets turns that nobody took, as after an error."""
        self._group.give_up()
        for env in self._remote:
            env.begun = None

    def _begin(self, indices: Sequence[int], frames: Iterator[Frame]) -> None:
        """Has environments take these turns at their next reset or step."""
        for index in indices:
            self._remote[index].begun = frames


class _RemoteEnv(gym.Env[Any, Any]):
    """An environment of a group, as ``SyncVectorEnv`` calls it: in the order in which turns were begun."""

    def __init__(self, template: gym.Env[Any, Any], slots: Slots, index: int) -> None:
        self.observation_space, self.action_space = template.observation_space, template.action_space
        self.metadata, self.render_mode, self.spec = template.metadata, template.render_mode, template.spec
        self._slots, self._index = slots, index
        self.begun: Iterator[Frame] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        frame = self._take() or next(self._slots.reset([self._index], [seed], [options]))
        return frame.observation, frame.info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        frame = self._take() or next(self._slots.step([self._index], [action]))
        return frame[:5]

    def action_masks(self) -> NDArray[np.bool_]:
        mask = self._frame().mask
        if mask is None:
            raise ArgumentError(
                f"action_masks: {self.spec} was given, allowed: an environment that has masks"
            )
        return mask

    def has_wrapper_attr(self, name: str) -> bool:
        return name in ATTRIBUTES or super().has_wrapper_attr(name)

    def get_wrapper_attr(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return self._frame().attributes[name]
        if not super().has_wrapper_attr(name):
            allowed = (*ATTRIBUTES, "action_masks")
            raise ArgumentError(
                f"attribute of environments: {name!r} was given, and workers play them; allowed: "
                f"{', '.join(allowed)}{nearest(name, allowed)}"
            )
        return super().get_wrapper_attr(name)

    def _take(self) -> Frame | None:
        begun, self.begun = self.begun, None
        return None if begun is None else next(begun)

    def _frame(self) -> Frame:
        frame = self._slots.frames[self._index]
        if frame is None:
            raise ArgumentError("attribute of environments: asked for before the first reset")
        return frame
