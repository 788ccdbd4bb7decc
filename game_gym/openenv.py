"""Games for OpenEnv: an environment for its server, and the client that plays there."""

from __future__ import annotations

from functools import partial
from typing import Any

from game_gym.env import GameSpielEnv
from task_gym.errors import ImportNameError

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.openenv: OpenEnv is not installed; pip install 'gamespiel[openenv]'"
    ) from error


class GameAction(Action):
    """A move.

    Attributes:
        action: The number of a legal action.
    """

    action: int


class GameObservation(Observation):
    """A position; ``reward`` and ``done`` are beside it.

    Attributes:
        text: The observation of ``GameSpiel-v0``.
        action_mask: 1 = legal, one for each action; all 0 after the end.
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


class GameState(State):
    """The address of the game.

    Attributes:
        game: OpenSpiel's name.
        task_id: None if the game was named.
        seed: The seed.
        opponent: Who plays the other seats.
    """

    game: str | None = None
    task_id: int | None = None
    seed: int | None = None
    opponent: str | None = None


class GameSpielOpenEnv(Environment[GameAction, GameObservation, GameState]):
    """A game as OpenEnv's server plays it: rewards, ends and illegal actions are those of ``GameSpiel-v0``.

    Args:
        **arguments: Those of ``GameSpiel-v0``.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._env = GameSpielEnv(**arguments)
        self._state = GameState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: int | None = None,
        **ignored: Any,
    ) -> GameObservation:
        """Begins a game.

        Args:
            seed: Its seed; None draws one.
            episode_id: A name, which the state returns.
            task_id: Its task, among those of the arguments.
            **ignored: Others have no meaning here.
        """
        options = None if task_id is None else {"task_id": task_id}
        text, info = self._env.reset(seed=seed, options=options)
        address = {key: info[key] for key in ("game", "task_id", "seed", "opponent")}
        self._state = GameState(episode_id=episode_id, **address)
        over = "result" in info
        return _observed(text, info, info["score"] if over else None, over)

    def step(self, action: GameAction, timeout_s: float | None = None, **ignored: Any) -> GameObservation:
        """Makes a move; the time is not limited."""
        text, reward, terminated, truncated, info = self._env.step(action.action)
        self._state.step_count += 1
        return _observed(text, info, reward, terminated or truncated)

    @property
    def state(self) -> GameState:
        """The address of the game, and the number of steps."""
        return self._state

    def close(self) -> None:
        """Abandons the game."""
        self._env.close()


class GameSpielClient(EnvClient[GameAction, GameObservation, GameState]):
    """Plays on a server: ``GameSpielClient(base_url=...)``, with ``reset(seed=...)`` and ``step(action)``."""

    def _step_payload(self, action: GameAction) -> dict[str, Any]:
        return {"action": action.action}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult:
        observation, ended = payload["observation"], {"reward": payload["reward"], "done": payload["done"]}
        return StepResult(observation=GameObservation(**observation, **ended), **ended)

    def _parse_state(self, payload: dict[str, Any]) -> GameState:
        return GameState(**payload)


def app(max_concurrent_envs: int = 64, **arguments: Any) -> Any:
    """Returns OpenEnv's server as an ASGI application, one game per connection.

    Args:
        max_concurrent_envs: The most connections.
        **arguments: Those of ``GameSpiel-v0``.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """
    GameSpielOpenEnv(**arguments).close()  # an error now, not at the first connection
    play = partial(GameSpielOpenEnv, **arguments)
    server = create_app(play, GameAction, GameObservation, "gamespiel", max_concurrent_envs)
    server.add_middleware(_QuietLeave)
    return server


class _QuietLeave:
    """Ends a connection that the client has left. OpenEnv closes it once more, for which Starlette raises."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.websockets import WebSocketDisconnect

        try:
            await self.app(scope, receive, send)
        except WebSocketDisconnect:
            if scope["type"] != "websocket":
                raise


def _observed(text: str, info: dict[str, Any], reward: float | None, done: bool) -> GameObservation:
    return GameObservation(
        text=text,
        action_mask=info["action_mask"].tolist(),
        legal_actions=info["legal_actions"],
        admissible_commands=info["admissible_commands"],
        seat=info["seat"],
        error=info["error"]["message"] if "error" in info else None,
        result=info.get("result"),
        score=info.get("score"),
        reward=reward,
        done=done,
    )
