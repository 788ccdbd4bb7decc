"""What every task environment does alike: it draws tasks, reads seeds and options, renders, and is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from gymnasium import logger

from task_gym.errors import EpisodeError, OptionError, TaskGymError, check_choice, nearest
from task_gym.lazy_generator import LazyGeneratorEnv
from task_gym.picture import picture
from task_gym.seeding import SEED_LIMIT, check_seed


class Tasks(Protocol):
    """The tasks an environment may draw."""

    def draw(self, generator: Callable[[], np.random.Generator]) -> int | None:
        """A task id; None stands for a single task that has none.

        Args:
            generator: What to draw from; not called where there is but one task.
        """

    def __contains__(self, task_id: Any) -> bool:
        """Whether it is one of them; a TaskGymError where it is no task id."""


class TaskEnv(LazyGeneratorEnv[str, Any]):
    """An environment whose episodes follow from an address and the actions given.

    The address is (task id, seed, ...), the rest being what :meth:`_read_options` returns. A copy carries the
    constructor's arguments, the address and the actions, and plays the episode again from these.

    A subclass defines the methods below that raise NotImplementedError, notes every action in ``_given``, and
    sets ``_over`` where an episode ends.

    Args:
        tasks: What may be drawn.
        arguments: The constructor's, by name, ``render_mode`` among them.
    """

    # render_fps is required by Gymnasium's checker of every environment that renders.
    metadata = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 4}  # noqa: RUF012  (Gymnasium's)

    #: What ``reset(options=...)`` may hold.
    reset_options: tuple[str, ...] = ("task_id",)

    def __init__(self, tasks: Tasks, arguments: dict[str, Any]) -> None:
        self.render_mode = arguments["render_mode"]
        check_choice("render_mode", self.render_mode, (None, *self.metadata["render_modes"]))
        self._arguments, self._tasks = arguments, tasks
        self._address: tuple[Any, ...] | None = None
        #: Every action of this episode, illegal ones included.
        self._given: list[Any] = []
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Played itself, 0 … 2**32 - 201; None draws one from the environment's generator.
            options: For this episode only: "task_id" (of the declared set), and "opponent" in games.
        """
        options = options or {}
        for name in options:
            if name not in self.reset_options:
                allowed = ", ".join(self.reset_options)
                raise OptionError(
                    f"reset option {name!r} was given, allowed: {allowed}{nearest(name, self.reset_options)}"
                )
        named = "task_id" in options
        task_id = self._check_task(options["task_id"]) if named else None
        more = self._read_options(options)
        if seed is not None:
            seed = check_seed(seed)
            super().reset(seed=seed)
        if not named:
            task_id = self._tasks.draw(lambda: self.np_random)
        if seed is None:
            # Eight times as fast as integers(), and as even: 53 random bits for 32.
            seed = int(self.np_random.random() * SEED_LIMIT)
        self._start((task_id, seed, *more))
        if self.render_mode == "human":
            self.render()
        return self._opening()

    def render(self) -> Any:
        """The current observation: a string ("ansi"), its picture ("rgb_array"), or printed ("human").

        A picture is a uint8 array of shape ``task_gym.picture.SHAPE``. Without a render mode, ``render``
        warns and returns None.
        """
        if self.render_mode == "ansi":
            return self._shown()
        if self.render_mode == "rgb_array":
            return picture(self._shown())
        if self.render_mode == "human":
            print(self._shown())
            return None
        # A warning and no error, as in Gymnasium's own environments (toy_text, classic_control): code that
        # renders if it can goes on.
        name = type(self).__name__ if self.spec is None else self.spec.id
        modes = ", ".join(map(repr, self.metadata["render_modes"]))
        logger.warn(
            f"{name}: render() was called without a render mode, allowed: {modes}; the mode is an argument "
            f'when the environment is made, as in gym.make("{name}", render_mode="ansi")',
            stacklevel=2,
        )
        return None

    def _read_options(self, options: dict[str, Any]) -> tuple[Any, ...]:
        """What the address holds beside task id and seed, checked."""
        return ()

    def _begin(self, *address: Any) -> None:
        """Make ready for the first turn of the episode of this address."""
        raise NotImplementedError

    def _opening(self) -> tuple[str, dict[str, Any]]:
        """What ``reset`` returns."""
        raise NotImplementedError

    def _shown(self) -> str:
        """The current observation; "" before the first."""
        raise NotImplementedError

    def _repeat(self, action: Any) -> None:
        """Take an action of ``_given`` once more."""
        self.step(action)

    def _check_playing(self) -> None:
        if self._over:
            raise EpisodeError("step was called outside an episode; allowed: after reset and before the end")

    def _check_task(self, task_id: Any) -> int:
        try:
            known = task_id in self._tasks
        except TaskGymError as error:
            raise OptionError(f"reset option 'task_id': {error}") from error
        if not known:
            raise OptionError(f"reset option 'task_id': {task_id!r} was given, allowed: {self._tasks}")
        return int(task_id)

    def _start(self, address: tuple[Any, ...]) -> None:
        self._address, self._given, self._over = None, [], True  # stays so if there is no such episode
        self._begin(*address)
        self._address, self._over = address, False

    def __getstate__(self) -> dict[str, Any]:
        """Arguments, address and the actions so far: what a copy plays again."""
        return {
            "arguments": self._arguments,
            "address": self._address,
            "given": self._given,
            "spec": self.spec,
            "generator": (self._np_random, self._np_random_seed),
            "spaces": (self.observation_space, self.action_space),
        }

    def __setstate__(self, carried: dict[str, Any]) -> None:
        self.__init__(**carried["arguments"])  # type: ignore[misc]
        self.spec = carried["spec"]
        self.observation_space, self.action_space = carried["spaces"]
        if carried["address"] is not None:
            shown, self.render_mode = self.render_mode, None  # what was printed once is not printed again
            self._start(carried["address"])
            for action in carried["given"]:
                self._repeat(action)
            self.render_mode = shown
        self._np_random, self._np_random_seed = carried["generator"]
