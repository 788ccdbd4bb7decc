"""The declaration of games: their name, their opponents, and what their keys mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.base import Baselines, Declaration, Opponents, Replies, names_of, server_arguments
from gamespiel.kinds.games.keys import GameKeys, check_illegal, seat_name
from gamespiel.tracks import find_track
from task_gym.opponents import OPEN, SELF
from task_gym.rewards import find_reward

MEASURED_AGAINST = "random"
"""The opponent of evaluations after games of the policy against itself alone."""

LONG_CONVERSATION = 4096
"""Tokens of a long conversation without a limit of its own: some twelve turns of othello."""


class GameDeclaration(Declaration[GameKeys]):
    """OpenSpiel games against an opponent."""

    env_type = "openspiel"
    unit = "games"
    environment = "GameSpiel-v0"
    replies = Replies("GameSpielText-v0", same_tasks=True)
    baselines = Baselines(
        "random, first, or mcts or ismcts, also with :SIMS[xROLLOUTS]; or openai:MODEL@URL",
        r"random|first|(is)?mcts(:[1-9]\d*(x[1-9]\d*)?)?|openai:.+",
    )
    preset = "tiny"
    has_opponents = True
    served_as = "game"
    keys = GameKeys
    choosing = ("game", "allowed_game_indices")
    belonging = ("params", "allow_files")
    asking = (*Declaration.asking, "rules", "list_actions", "conversation", "context_tokens")

    def check_keys(self, env: GameKeys) -> None:
        if env.params and env.game is None:
            raise ConfigError("env.params needs env.game: a task id carries its own parameters")
        if env.seeds == "affine" and env.game is not None:
            raise ConfigError("env.seeds: affine needs task ids, from which the seeds follow, not env.game")
        if env.decode == "text":
            check_illegal(env)
        if self.plays_itself(env):
            _check_self(env)
        if not env.list_actions and env.answer != "name":
            raise ConfigError(
                "env.list_actions: false shows no ids, so that prompts ask for names: env.answer must be "
                f"'name', not {env.answer!r}"
            )
        if env.conversation and env.seeding == "evaluate":
            _check_evaluate(env)
        if env.context_tokens is not None and not env.conversation:
            raise ConfigError("env.context_tokens cuts conversations: it needs env.conversation: true")

    def arguments(self, env: GameKeys) -> dict[str, Any]:
        wrapped = find_reward(env.reward) is not None
        arguments: dict[str, Any] = {
            "opponent": seat_name(names_of(env.opponent)[0]),
            "seeding": env.seeding,
            "seeds": env.seeds,
            "rules": env.rules,
            "list_actions": env.list_actions,
            "reward": "score" if wrapped else env.reward,
            "illegal": env.illegal,
            "max_turns": env.max_turns,
            **server_arguments(env),
        }
        if env.task_id is not None:
            return arguments | {"task_id": env.task_id}
        if env.game is not None:
            files = {"allow_files": True} if env.allow_files else {}
            return arguments | {"game": env.game, "params": env.params or None, **files}
        if env.allowed_game_indices:
            from game_gym.task import CONFIGS

            ranges = [(i * CONFIGS, (i + 1) * CONFIGS - 1) for i in env.allowed_game_indices]
            return arguments | {"task_ids": ranges}
        if env.task_ids:
            return arguments | {"task_ids": list(env.task_ids)}
        if env.env_mode != "local":  # as upstream's containers, which draw one of all tasks
            from game_gym.games import TABLE
            from game_gym.task import CONFIGS

            return arguments | {"task_ids": [(0, len(TABLE) * CONFIGS - 1)]}
        raise InvalidValueError(
            "the env section chooses no game: give one of task_id, task_ids, game and allowed_game_indices, "
            "or start from a preset with --preset"
        )

    def evaluation_keys(self, env: GameKeys) -> GameKeys:
        if not self.plays_itself(env):
            return env
        mixture = {} if isinstance(env.opponent, str) else env.opponent
        others = {name: weight for name, weight in mixture.items() if name != SELF}
        opponent: Opponents = others if len(others) > 1 else next(iter(others), MEASURED_AGAINST)
        return dataclasses.replace(env, opponent=opponent)

    def check_playable(self, env: GameKeys, who: str) -> None:
        _check_not_open(names_of(env.opponent), who)

    def plays_itself(self, env: GameKeys) -> bool:
        return SELF in names_of(env.opponent)

    def track(self, env: GameKeys, *, writes: bool) -> str | None:
        return find_track(writes=writes, list_actions=env.list_actions)

    def prompt_tokens(self, env: GameKeys) -> int:
        if env.conversation:
            return LONG_CONVERSATION if env.context_tokens is None else env.context_tokens
        return 512 if env.rules else 128

    def uses_conversations(self, env: GameKeys) -> bool:
        return env.conversation

    def context_tokens(self, env: GameKeys) -> int | None:
        return env.context_tokens

    def stage_tasks(self, env: GameKeys, ids: list[Any] | None, level: int | None, family: str | None) -> Any:
        ids = super().stage_tasks(env, ids, level, family)
        return None if env.allowed_game_indices else ids

    def check_opponents(self, env: GameKeys, names: Sequence[str]) -> None:
        import game_gym.opponents  # noqa: F401  (registers them)
        from game_gym.options import check_opponent
        from game_gym.task import TaskSet

        _check_not_open(names, "training")
        chosen = ("task_id", "task_ids", "game", "params", "allow_files")
        tasks = TaskSet(**{name: value for name, value in self.arguments(env).items() if name in chosen})
        for name in names:
            check_opponent(name, tasks)

    def read_task(self, name: str) -> str | int:
        from game_gym.games import DECLARED, find_game

        if name in DECLARED:  # "2048" is a game
            return name
        return int(name) if name.isdecimal() else find_game(name).name


def _check_evaluate(env: GameKeys) -> None:
    """Raises ``InvalidValueError`` unless games can be shown as upstream's ``evaluate`` shows them."""
    means = "with env.conversation and env.seeding: evaluate prompts are those of upstream's evaluate"
    if env.env_mode != "local":
        raise InvalidValueError(
            f"{means}, which a server does not send turn by turn: env.env_mode must be 'local', not "
            f"{env.env_mode!r}"
        )
    if env.answer != "id" and env.list_actions:
        raise InvalidValueError(f"{means}, which ask for an id: env.answer must be 'id', not {env.answer!r}")


DECLARATION = GameDeclaration()


def _check_not_open(names: Sequence[str], who: str) -> None:
    if OPEN in names:
        raise InvalidValueError(
            f"{who} needs an opponent to play against; {OPEN!r} leaves every seat to the caller"
        )


def _check_self(env: GameKeys) -> None:
    if env.env_mode != "local":
        raise InvalidValueError(
            "with env.opponent: self the policy plays every seat, and a server leaves one to it: "
            f"env.env_mode must be 'local', not {env.env_mode!r}"
        )
    if env.max_turns is not None:
        raise InvalidValueError(
            f"with env.opponent: self every game is played to its end: env.max_turns must be null, not "
            f"{env.max_turns}"
        )
    if env.reward != "score":
        raise InvalidValueError(
            f"with env.opponent: self each seat is paid its score: env.reward must be 'score', not "
            f"{env.reward!r}"
        )
