"""The base of every task environment: it draws tasks, reads seeds and options, renders and is copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import logger
from gymnasium.utils.seeding import np_random

from task_gym.arguments import check_whole
from task_gym.errors import EpisodeError, OptionError, SeedError, TaskGymError, check_choice, nearest, quote
from task_gym.picture import picture
from task_gym.seeding import DRAWN_LIMIT, SEED_LIMIT
from task_gym.visible import show_controls

Observation = TypeVar("Observation")
Action = TypeVar("Action")


class LazyGeneratorEnv(gym.Env[Observation, Action]):
    """An environment whose ``reset(seed=)`` keeps the seed, and seeds ``np_random`` with it at its first use.

    Seeding NumPy's generator takes about 10 µs, as long as a hand of poker. An environment whose episodes
    follow from the seed itself seldom draws from the generator.
    """

    _generator: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Takes a seed, as ``gymnasium.Env.reset`` does."""
        if seed is not None:
            self._generator, self._np_random_seed = None, seed

    # Gymnasium's own attribute, which its np_random, np_random_seed and checker read and write.
    @property
    def _np_random(self) -> np.random.Generator | None:
        if self._generator is None and self._np_random_seed is not None:
            self._generator, _ = np_random(self._np_random_seed)
        return self._generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._generator = generator


OUTSIDE = "step was called outside an episode; allowed: after reset and before the end"
"""The message of the error for a step outside an episode."""


class Tasks(Protocol):
    """The tasks that an environment may draw."""

    def draw(self, generator: Callable[[], np.random.Generator]) -> int | None:
        """Returns a task id, or None if the only task has no id.

        Args:
            generator: Returns the generator to draw from. It is not called if there is only one task.
        """

    def __contains__(self, task_id: Any) -> bool:
        """Returns whether the task may be drawn.

        Raises:
            TaskGymError: this is no task id.
        """


def say(text: str) -> None:
    """Prints a text, with control characters and those that standard output cannot encode as escapes."""
    text = show_controls(text)
    try:
        print(text)
    except UnicodeEncodeError as error:
        print(text.encode(error.encoding, "backslashreplace").decode(error.encoding))


class TaskEnv(LazyGeneratorEnv[str, Any], gym.Env[str, Any]):
    """An environment whose episodes follow from an address and the actions given.

    The address is (task id, seed, ...). ``_read_options`` returns the rest. A copy carries
    the constructor's arguments, the address and the actions, and plays the episode again.

    A subclass defines the methods below that raise NotImplementedError, appends every action to ``_history``,
    and sets ``_over`` when an episode ends.

    Args:
        tasks: The tasks that may be drawn.
        arguments: The constructor's arguments by name, ``render_mode`` included.
    """

    # render_fps is required by Gymnasium's checker of every environment that renders.
    metadata = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 4}  # noqa: RUF012  (Gymnasium's)

    reset_options: tuple[str, ...] = ("task_id",)
    """The keys that ``reset(options=...)`` may have."""

    def __init__(self, tasks: Tasks, arguments: dict[str, Any]) -> None:
        self.render_mode = arguments["render_mode"]
        check_choice("render_mode", self.render_mode, (None, *self.metadata["render_modes"]))
        # Copied, because the caller may change a list or mapping afterwards, and a copy is made from these.
        self._arguments, self._tasks = deepcopy(arguments), tasks
        self._address: tuple[Any, ...] | None
        self._history: list[Any]  # every action of this episode, illegal ones included
        self._leave()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: The seed to play, 0 … 2**32 - 1; None draws one from the environment's generator.
            options: For this episode only: "task_id" (of the declared set), and in games "opponent", "seat"
                (in place of the seed's; chance and opponents stay the seed's) and "list_actions".
        """
        if options is None:
            options = {}
        elif not isinstance(options, Mapping):
            raise OptionError(
                f"reset options: {quote(options)} was given, allowed: None or a mapping with "
                f"{', '.join(self.reset_options)}"
            )
        for name in options:
            if name not in self.reset_options:
                allowed = ", ".join(self.reset_options)
                raise OptionError(
                    f"reset option {quote(name)} was given, allowed: {allowed}"
                    f"{nearest(name, self.reset_options)}"
                )
        named = "task_id" in options
        task_id = self._check_task(options["task_id"]) if named else None
        more = self._read_options(options)
        if seed is not None:
            seed = check_whole("seed", seed, SEED_LIMIT, SeedError)
            super().reset(seed=seed)
        if not named:
            task_id = self._tasks.draw(lambda: self.np_random)
        if seed is None:
            # Eight times as fast as integers(), and as even: 53 random bits for 32.
            generator = self._generator or self.np_random  # the property takes a third of the draw's time
            seed = int(generator.random() * DRAWN_LIMIT)
        self._start((task_id, seed, *more))
        if self.render_mode == "human":
            self.render()
        return self._opening()

    def render(self) -> Any:
        """Returns the current observation ("ansi") or its picture ("rgb_array"), or prints it ("human").

        A picture is a uint8 array of shape ``task_gym.picture.SHAPE``. Without a render mode, ``render``
        warns and returns None.
        """
        if self.render_mode == "ansi":
            return self._shown()
        if self.render_mode == "rgb_array":
            return picture(self._shown())
        if self.render_mode == "human":
            say(self._shown())
            return None
        # A warning and no error, as in Gymnasium's own environments (toy_text, classic_control): code that
        # renders if it can goes on.
        name = type(self).__name__ if self.spec is None else self.spec.id
        call = f"{name}(..." if self.spec is None else f'gym.make("{name}"'
        modes = ", ".join(map(repr, self.metadata["render_modes"]))
        logger.warn(
            f"{name}: render() was called without a render mode, allowed: {modes}; the mode is an argument "
            f'when the environment is made, as in {call}, render_mode="ansi")',
            stacklevel=2,
        )
        return None

    def _read_options(self, options: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the parts of the address after task id and seed, checked."""
        return ()

    def _begin(self, *address: Any) -> None:
        """Prepares the first turn of the episode of this address."""
        raise NotImplementedError

    def _opening(self) -> tuple[str, dict[str, Any]]:
        """Returns the first observation and its info, for ``reset``."""
        raise NotImplementedError

    def _shown(self) -> str:
        """Returns the current observation; "" before the first."""
        raise NotImplementedError

    def _repeat(self, action: Any) -> None:
        """Takes an action of ``_history`` once more."""
        self.step(action)

    def _check_playing(self) -> None:
        if self._over:
            raise EpisodeError(OUTSIDE)

    def _check_task(self, task_id: Any) -> int:
        try:
            known = task_id in self._tasks
        except TaskGymError as error:
            raise OptionError(f"reset option 'task_id': {error}") from error
        if not known:
            raise OptionError(f"reset option 'task_id': {quote(task_id)} was given, allowed: {self._tasks}")
        return int(task_id)

    def _start(self, address: tuple[Any, ...]) -> None:
        self._leave()  # stays so if there is no such episode
        self._begin(*address)
        self._address, self._over = address, False

    def _leave(self) -> None:
        """Leaves the episode: a step is an error, and a copy has no episode."""
        self._address, self._history, self._over = None, [], True

    def __getstate__(self) -> dict[str, Any]:
        """Returns arguments, address and the actions so far, from which a copy plays again."""
        return {
            "arguments": self._arguments,
            "address": self._address,
            "actions": self._history,
            "spec": self.spec,
            "generator": (self._np_random, self._np_random_seed),
            "spaces": (self.observation_space, self.action_space),
        }

    def __setstate__(self, carried: dict[str, Any]) -> None:
        self.__init__(**carried["arguments"])  # type: ignore[misc]
        self.spec = carried["spec"]
        self.observation_space, self.action_space = carried["spaces"]
        if carried["address"] is not None:
            mode, self.render_mode = self.render_mode, None  # what was printed once is not printed again
            self._start(carried["address"])
            for action in carried["actions"]:
                self._repeat(action)
            self.render_mode = mode
        self._np_random, self._np_random_seed = carried["generator"]
