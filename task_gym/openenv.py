"""Task environments for OpenEnv: an environment for its server, and the client that plays there."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym

from task_gym.errors import ArgumentError, ImportNameError, TaskGymError, check_choice, explain_unknown

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
except ModuleNotFoundError as error:
    raise ImportNameError(
        "task_gym.openenv: OpenEnv is not installed; pip install 'gamespiel[openenv]'"
    ) from error

OPPONENTS = ("random", "first", "mcts")
"""The opponents that ``reset`` may name. A client cannot ask for a longer search than upstream's."""


class TaskAction(Action):
    """A move or a reply.

    Attributes:
        action: The number of a legal action, also as text, or a reply if the action space is text.
    """

    action: str | int


class TaskObservation(Observation):
    """The observation of the seat to move; OpenEnv adds ``reward`` and ``done``.

    Attributes:
        text: The environment's observation.
        action_mask: 1 = legal, one for each action; all 0 after the end. Empty, as the next two, if the
            environment asks for an output.
        legal_actions: The legal actions' numbers.
        admissible_commands: Their names.
        seat: The seat to move.
        error: Why the last action was illegal.
        result: At the end: "win", "draw", "loss", "cut" or "fault".
        score: At the end: the score in [0, 1].
    """

    text: str
    action_mask: list[int]
    legal_actions: list[int]
    admissible_commands: list[str]
    seat: int
    error: str | None = None
    result: str | None = None
    score: float | None = None


class TaskState(State):
    """The address of the episode.

    Attributes:
        id: The environment, by the name that Gymnasium has for it.
        game: OpenSpiel's name, or "code_trace".
        task_id: None if the game was named.
        seed: The seed.
        opponent: Who plays the other seats.
    """

    id: str | None = None
    game: str | None = None
    task_id: int | None = None
    seed: int | None = None
    opponent: str | None = None


class TaskEnvironment(Environment[TaskAction, TaskObservation, TaskState]):
    """Registered environments as OpenEnv's server plays them: rewards, ends and illegal actions are theirs.

    Args:
        *ids: The environments that ``reset`` may name, as ``gym.make`` takes them: "game_gym:GameSpiel-v0".
            The first is the usual one.
        **arguments: Arguments of ``gym.make``.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, *ids: str, **arguments: Any) -> None:
        super().__init__()
        self._ids = {name.rpartition(":")[2]: name for name in ids}
        self._arguments = arguments
        self._state = TaskState()
        self._env_key: tuple[str, dict[str, Any]] = next(iter(self._ids)), arguments
        self._env: Any = gym.make(ids[0], **arguments).unwrapped

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        id: str | None = None,
        task_id: int | None = None,
        game: str | None = None,
        params: dict[str, Any] | None = None,
        opponent: str | None = None,
        **others: Any,
    ) -> TaskObservation:
        """Begins the episode of ``gym.make(id, task_id=..., ...)`` and ``reset(seed=seed)``.

        Args:
            seed: Its seed; None draws one.
            episode_id: A name, which the state returns.
            id: The environment; None for the usual one.
            task_id: Its task.
            game: An OpenSpiel game by name, in place of a task.
            params: Parameters of the game.
            opponent: One of ``OPPONENTS``.
            **others: Refused: OpenEnv would leave them out without a word.

        Raises:
            TaskGymError: an argument or the seed is outside what is allowed.
        """
        named = {"task_id": task_id, "game": game, "params": params, "opponent": opponent}
        for name in others:
            raise ArgumentError(explain_unknown("argument", name, ["seed", "episode_id", "id", *named]))
        id = next(iter(self._ids)) if id is None else id
        check_choice("id", id, self._ids)
        if opponent is not None:
            check_choice("opponent", opponent, OPPONENTS)
        overrides = {name: value for name, value in named.items() if value is not None}
        wanted = id, self._arguments | overrides
        if wanted != self._env_key:
            env = gym.make(self._ids[id], **wanted[1]).unwrapped
            self._env.close()
            self._env, self._env_key = env, wanted
        text, info = self._env.reset(seed=seed)
        address = {key: info[key] for key in ("game", "task_id", "seed", "opponent")}
        self._state = TaskState(episode_id=episode_id, id=id, **address)
        over = "result" in info
        return _observe(text, info, info["score"] if over else None, over)

    def step(self, action: TaskAction, timeout_s: float | None = None, **ignored: Any) -> TaskObservation:
        """Makes a move or answers; the time is not limited."""
        env_action = action.action
        if isinstance(self._env.action_space, gym.spaces.Discrete) and str(env_action).isdecimal():
            env_action = int(env_action)
        text, reward, terminated, truncated, info = self._env.step(env_action)
        self._state.step_count += 1
        return _observe(text, info, reward, terminated or truncated)

    @property
    def state(self) -> TaskState:
        """The address of the episode, and the number of steps."""
        return self._state

    def close(self) -> None:
        """Abandons the episode."""
        self._env.close()


class TaskClient(EnvClient[TaskAction, TaskObservation, TaskState]):
    """Plays on a server: ``TaskClient(base_url=...)``, with ``reset(seed=...)`` and ``step(action)``."""

    def _step_payload(self, action: TaskAction) -> dict[str, Any]:
        return {"action": action.action}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TaskObservation]:
        observation, ended = payload["observation"], {"reward": payload["reward"], "done": payload["done"]}
        return StepResult(observation=TaskObservation(**observation, **ended), **ended)

    def _parse_state(self, payload: dict[str, Any]) -> TaskState:
        return TaskState(**payload)


def app(*ids: str, max_concurrent_envs: int = 64, **arguments: Any) -> Any:
    """Returns OpenEnv's server as an ASGI application, one episode at a time per connection.

    Args:
        *ids: The environments, as ``gym.make`` takes them: "game_gym:GameSpiel-v0".
        max_concurrent_envs: The most connections.
        **arguments: Arguments of ``gym.make``.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """
    from starlette.responses import JSONResponse

    play = partial(TaskEnvironment, *ids, **arguments)
    play().close()  # an error now, not at the first connection
    server = create_app(
        play, TaskAction, TaskObservation, "game_spiel", max_concurrent_envs, state_cls=TaskState
    )
    # Over a WebSocket, OpenEnv sends the message itself.
    server.add_exception_handler(TaskGymError, lambda _, error: JSONResponse({"detail": str(error)}, 422))
    return server


def _observe(text: str, info: dict[str, Any], reward: float | None, done: bool) -> TaskObservation:
    return TaskObservation(
        text=text,
        action_mask=info["action_mask"].tolist() if "action_mask" in info else [],
        legal_actions=info.get("legal_actions", []),
        admissible_commands=info.get("admissible_commands", []),
        seat=info["seat"],
        error=info["error"]["message"] if "error" in info else None,
        result=info.get("result"),
        score=info.get("score"),
        reward=reward,
        done=done,
    )
