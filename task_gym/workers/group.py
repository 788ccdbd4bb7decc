"""A group of environments whose episodes follow from what is asked: any process may play them, and again.

A call has the whole address of a turn: slot, seed, options and all actions so far. So a call may be made
twice, and a call whose process died is made in another one, which plays the episode again.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.contract import ending_info
from task_gym.env import OUTSIDE
from task_gym.errors import EpisodeError
from task_gym.opponents import explain_no_replay

Seed: TypeAlias = int | Mapping[str, Any]
"""A seed, or the state of the bit generator from which the environment draws one."""

MakeEnv = Callable[[], gym.Env[Any, Any]]

ATTRIBUTES = ("seat", "seats", "opponent")
"""The attributes of environments that frames carry: what self-play asks for at each turn."""

MOST_WAITING = 64
"""The most environments of a worker that wait for a server at once."""


class Call(NamedTuple):
    """The address of a turn.

    Attributes:
        slot: The environment's place in the group.
        seed: The seed of the reset.
        options: The options of the reset.
        actions: All actions since the reset; none asks for the first turn.
        shown: The ``digest`` of the observation that the last action answers; None if nobody compares it.
    """

    slot: int
    seed: Seed
    options: dict[str, Any] | None = None
    actions: tuple[Any, ...] = ()
    shown: bytes | None = None


class Frame(NamedTuple):
    """A turn, with all that a caller asks an environment about it. Nobody may change it.

    Attributes:
        observation: The observation: a text, with names and conversation if a wrapper adds them.
        reward: The reward of the last action; 0 after a reset.
        terminated: Whether the episode ended.
        truncated: Whether it was cut, by a limit or a fault.
        info: The environment's info: legal actions, names, task and, at the end, the score.
        mask: ``action_masks()``: bool (n,), true = legal; None without such a method.
        attributes: The values of ``ATTRIBUTES`` that the environment has.
        generator: The state of the environment's bit generator after the turn.
        replayed: Steps that were made once more for this turn.
        replay_seconds: Seconds that they took, the reset included.
    """

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    mask: NDArray[np.bool_] | None
    attributes: dict[str, Any]
    generator: Mapping[str, Any]
    replayed: int = 0
    replay_seconds: float = 0.0


class EnvGroup:
    """Environments in this process, made when they are first asked for.

    Args:
        env_fns: Functions that each make an environment, by slot.
        waits: Whether the environments wait for a server, so that each has a thread.
    """

    def __init__(self, env_fns: Sequence[MakeEnv], *, waits: bool = False) -> None:
        self._env_fns, self._slots = env_fns, dict[int, _Slot]()
        self._threads = ThreadPoolExecutor(MOST_WAITING, "EnvGroup") if waits else None

    def advance(self, calls: Sequence[Call]) -> list[Frame | Exception]:
        """Returns the turn of each call, or the error of its environment.

        A slot that is one action behind makes a step. One that is at the turn returns it again. Any other one
        is reset, and plays the episode again. The slots of one call of this method must differ.

        An episode is a fault if its opponent cannot play it again, or did so otherwise.
        """
        if self._threads is None:
            return [self._advance_one(call) for call in calls]
        return list(self._threads.map(self._advance_one, calls))

    def close(self) -> None:
        """Closes the environments."""
        if self._threads is not None:
            self._threads.shutdown()
        for slot in self._slots.values():
            slot.env.close()
        self._slots.clear()

    def _advance_one(self, call: Call) -> Frame | Exception:
        try:
            slot = self._slots.get(call.slot)
            if slot is None:
                slot = self._slots[call.slot] = _Slot(self._env_fns[call.slot]())
            return slot.advance(call)
        except Exception as error:
            return error


class _Slot:
    """An environment, and the turn at which it is."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env
        self._frame: Frame | None = None  # None if it is at no turn
        self._call = Call(0, 0)

    def advance(self, call: Call) -> Frame:
        frame, before, self._call = self._frame, self._call, call
        if frame is not None and _is_equal((before.seed, before.options), (call.seed, call.options)):
            if _is_equal(before.actions, call.actions):
                return frame
            if call.actions and _is_equal(before.actions, call.actions[:-1]):
                self._frame = None  # stays so if the step fails
                self._frame = self._step(frame, call.actions[-1])
                return self._frame
        self._frame = None
        self._frame = self._replay(call)
        return self._frame

    def _replay(self, call: Call) -> Frame:
        """Returns the turn of a call, of an episode that is played from its beginning."""
        began = time.monotonic()
        frame = self._reset(call)
        if not call.actions:
            return frame
        if reason := explain_no_replay(frame.info.get("opponent")):
            return _make_fault(frame, f"a worker was lost, and the episode cannot be played again: {reason}")
        for action in call.actions[:-1]:
            frame = self._step(frame, action)
        if call.shown is not None and digest(frame.observation) != call.shown:
            return _make_fault(
                frame, "a worker was lost, and the episode was another one when it was replayed"
            )
        seconds = time.monotonic() - began
        last = self._step(frame, call.actions[-1])
        return last._replace(replayed=len(call.actions) - 1, replay_seconds=seconds)

    def _reset(self, call: Call) -> Frame:
        if isinstance(call.seed, Mapping):
            generator = getattr(np.random, call.seed["bit_generator"])()
            generator.state = call.seed
            self.env.unwrapped.np_random = np.random.Generator(generator)
            observation, info = self.env.reset(options=call.options)
        else:
            observation, info = self.env.reset(seed=call.seed, options=call.options)
        return self._make_frame(observation, 0.0, False, False, info)

    def _step(self, frame: Frame, action: Any) -> Frame:
        if "fault" in frame.info and frame.truncated:  # the environment itself may know of none
            raise EpisodeError(OUTSIDE)
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._make_frame(observation, float(reward), terminated, truncated, info)

    def _make_frame(
        self, observation: Any, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> Frame:
        env = self.env
        mask = env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None
        attributes = {name: env.get_wrapper_attr(name) for name in ATTRIBUTES if env.has_wrapper_attr(name)}
        generator = env.unwrapped.np_random.bit_generator.state
        return Frame(observation, reward, terminated, truncated, info, mask, attributes, generator)


def digest(observation: Any) -> bytes:
    """Returns what tells an observation from others."""
    text = observation if isinstance(observation, str) else None
    data = pickle.dumps(observation) if text is None else text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()


def _make_fault(frame: Frame, reason: str) -> Frame:
    """Returns the end of an episode that was lost."""
    info = {**frame.info, **ending_info(None, None, "fault", None), "fault": reason}
    return frame._replace(reward=0.0, terminated=False, truncated=True, info=info)


def _is_equal(one: Any, other: Any) -> bool:
    """Returns whether two values are equal, which may be or contain arrays."""
    try:
        return bool(one == other)
    except ValueError:  # the truth value of an array
        return pickle.dumps(one) == pickle.dumps(other)


class Slots:
    """Each environment's reset, its actions since, and its last turn.

    A reset without a seed draws from the generator that the last turn left, as the environment itself would.

    Args:
        advance: Begins calls at once, and returns an iterator of their turns.
        count: Number of environments.

    Attributes:
        frames: The last turn of each that was taken; None before the first.
    """

    def __init__(self, advance: Callable[[Sequence[Call]], Iterable[Frame]], count: int) -> None:
        self._advance = advance
        self.frames: list[Frame | None] = [None] * count
        self._calls: list[Call | None] = [None] * count

    def reset(
        self, indices: Sequence[int], seeds: Sequence[int | None], options: Sequence[dict[str, Any] | None]
    ) -> Iterator[Frame]:
        """Begins an episode in each of these environments; returns their first turns, in order."""
        calls = []
        for index, seed, option in zip(indices, seeds, options, strict=True):
            calls.append(Call(index, self._draw_seed(index) if seed is None else seed, option))
        return self._begin(calls)

    def step(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Frame]:
        """Gives each of these environments an action; returns their next turns, in order.

        Raises:
            EpisodeError: one of them was never reset.
        """
        calls = []
        for index, action in zip(indices, actions, strict=True):
            call, frame = self._calls[index], self.frames[index]
            if call is None or frame is None:
                raise EpisodeError(OUTSIDE)
            history = (*call.actions, action)
            calls.append(call._replace(actions=history, shown=digest(frame.observation)))
        return self._begin(calls)

    def _draw_seed(self, index: int) -> Seed:
        frame = self.frames[index]
        return np.random.default_rng().bit_generator.state if frame is None else frame.generator

    def _begin(self, calls: Sequence[Call]) -> Iterator[Frame]:
        for call in calls:
            self._calls[call.slot] = call
        return self._take(calls, self._advance(calls))

    def _take(self, calls: Sequence[Call], frames: Iterable[Frame]) -> Iterator[Frame]:
        for call, frame in zip(calls, frames, strict=True):
            self.frames[call.slot] = frame
            yield frame
