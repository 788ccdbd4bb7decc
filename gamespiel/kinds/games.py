"""Games: their environment, baselines, groups of results and exact values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gymnasium as gym
from pydantic import Field
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import WHOLE, Index, Many, key
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.base import (
    PART,
    Address,
    EnvKeys,
    Exact,
    Kind,
    MakeEnvs,
    Name,
    Opponents,
    ShowProgress,
    Thinking,
    answers_of,
    names_of,
    server_arguments,
    shown_opponent,
)
from task_gym.opponents import OPEN, SELF
from task_gym.replies import strip_reasoning
from task_gym.rewards import find_reward
from task_gym.wrappers import NamedActions, NamedText

if TYPE_CHECKING:
    from rich.console import RenderableType

    from game_gym.prompts import SeatView
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode, Masks
    from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from task_gym.opponents import Opponent

SEATS = 2
"""Seats of nearly all games: the environments that an evaluation makes for each episode per seat."""

GameParam = str | int | float | bool


@dataclass(frozen=True, config=PART)
class GameKeys(EnvKeys):
    """The keys of games."""

    game: str | None = key(None, "an OpenSpiel game by name")
    params: dict[Name, GameParam] = key({}, "the game's parameters")
    allowed_game_indices: Many[Index] = key((), "games by index (modulo 22)")
    opponent: Opponents = key(
        "random",
        "random, first, self, openai:MODEL@URL, or mcts, ismcts, mcts-python, also with :SIMS[xROLLOUTS]; or "
        "several with weights, as {random: 0.5, mcts:100: 0.3, self: 0.2}, one drawn per episode",
    )
    seeding: Literal["openenv", "evaluate"] = key("openenv", "the protocol that expands a seed")
    rules: bool = key(True, "put the rules into each prompt")
    reward: str = key(
        "score", "what an episode pays: score, upstream, or one that an imported module registers"
    )
    max_turns: Annotated[int, Field(ge=2), WHOLE] | None = key(None, "cut an episode after this many turns")


MEASURED_AGAINST = "random"
"""The opponent of evaluations after games of the policy against itself alone."""


class Games(Kind[GameKeys]):
    """OpenSpiel games against an opponent."""

    env_type = "openspiel"
    unit = "games"
    served_as = "game"
    environment = "GameSpiel-v0"
    agents = "random, first, or mcts or ismcts, also with :SIMS[xROLLOUTS]; or openai:MODEL@URL"
    agent_pattern = r"random|first|(is)?mcts(:[1-9]\d*(x[1-9]\d*)?)?|openai:.+"
    preset = "tiny"
    has_opponents = True
    reply_environment = "GameSpielText-v0"
    same_tasks = True
    keys = GameKeys
    choosing = ("game", "allowed_game_indices")
    belonging = ("params",)

    def check(self, env: GameKeys) -> None:
        if env.params and env.game is None:
            raise ConfigError("env.params needs env.game: a task id carries its own parameters")
        if env.decode == "text":
            _check_illegal(env)
        if self.plays_itself(env):
            _check_self(env)

    def arguments(self, env: GameKeys) -> dict[str, Any]:
        wrapped = find_reward(env.reward) is not None
        arguments: dict[str, Any] = {
            "opponent": _in_environment(names_of(env.opponent)[0]),
            "seeding": env.seeding,
            "rules": env.rules,
            "reward": "score" if wrapped else env.reward,
            "illegal": env.illegal,
            "max_turns": env.max_turns,
            **server_arguments(env),
        }
        if env.task_id is not None:
            return arguments | {"task_id": env.task_id}
        if env.game is not None:
            return arguments | {"game": env.game, "params": env.params or None}
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

    def check_played(self, env: GameKeys, who: str) -> None:
        _check_not_open(names_of(env.opponent), who)

    def dressed(self, env: GameKeys, made: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        if not isinstance(env.opponent, str):
            from game_gym.wrappers import MixedOpponents

            made = MixedOpponents(made, {_in_environment(name): w for name, w in env.opponent.items()})
        return _rewarded(env.reward, made)

    def stage_tasks(self, env: GameKeys, ids: list[Any] | None, level: int | None, family: str | None) -> Any:
        ids = super().stage_tasks(env, ids, level, family)
        return None if env.allowed_game_indices else ids

    def check_opponents(self, env: GameKeys, names: Sequence[str]) -> None:
        import game_gym.opponents  # noqa: F401  (registers them)
        from game_gym.checks import check_opponent
        from game_gym.task import TaskSet

        _check_not_open(names, "training")
        chosen = ("task_id", "task_ids", "game", "params")
        tasks = TaskSet(**{name: value for name, value in self.arguments(env).items() if name in chosen})
        for name in names:
            check_opponent(name, tasks)

    def scored(self, name: str) -> str | int:
        from game_gym.games import DECLARED, find_game

        if name in DECLARED:  # "2048" is a game
            return name
        return int(name) if name.isdecimal() else find_game(name).name

    def plays_itself(self, env: GameKeys) -> bool:
        return SELF in names_of(env.opponent)

    def check_self_play(self, local: gym.Env[Any, Any], learn: str) -> None:
        games: Any = local.unwrapped
        for variant in games.variants:
            name = f"env.opponent is {SELF!r}, and {variant.spec.name} has"
            if variant.players < 2:
                raise InvalidValueError(f"{name} one seat; allowed: games of at least two")
            if learn == "both" and not variant.zero_sum:
                raise InvalidValueError(
                    f"{name} returns that do not sum to zero; allowed: zero-sum games, or "
                    "self_play.learn: one"
                )

    def measured(self, env: GameKeys) -> GameKeys:
        if not self.plays_itself(env):
            return env
        mixture = {} if isinstance(env.opponent, str) else env.opponent
        others = {name: weight for name, weight in mixture.items() if name != SELF}
        opponent: Opponents = others if len(others) > 1 else next(iter(others), MEASURED_AGAINST)
        return dataclasses.replace(env, opponent=opponent)

    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        local: Any = env.unwrapped
        return sorted({variant.spec.name for variant in local.variants})

    def where(self, env: GameKeys, tasks: Sequence[str], agent: str | None) -> str:
        listed = ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} games"
        return f"{listed} against {shown_opponent(env.opponent)}"

    def file_label(self, env: GameKeys, tasks: Sequence[str]) -> str:
        played = tasks[0] if len(tasks) == 1 else f"{len(tasks)}-games"
        return f"{played}-{shown_opponent(env.opponent)}"

    def run_name(self, env: GameKeys) -> str | None:
        return env.game

    def at_once(self, count: int) -> int:
        return SEATS * count

    def seeds(self, envs: TextEnvs, count: int, seed: int) -> list[int]:
        from gamespiel.agents.runs.seats import balanced_seeds

        # A seat does not depend on the opponent. "first" is the cheapest; upstream's servers have "random".
        local: Any = envs.envs[0].unwrapped
        cheap = {"opponent": "first" if local.is_local else "random"}
        return balanced_seeds(envs.envs[0], count, seed, cheap)

    def play_agent(
        self, name: str, env: GameKeys, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        from gamespiel.agents.runs.evaluation import play_seeds

        if env.env_mode != "local":
            raise InvalidValueError(
                f"--agent {name} reads the state of a game, which a server does not show: it needs "
                "env.env_mode: local"
            )
        envs = make_envs(self.at_once(count))
        seeds = self.seeds(envs, count, seed)
        agent = baseline_agent(name, envs, seed, len(seeds))
        with shown(len(seeds)) as on_step:
            return play_seeds(envs, agent, seeds, on_step)

    def addresses(self, env: GameKeys, count: int, seed: int) -> list[Address]:
        import gymnasium as gym

        from game_gym.task import Task
        from gamespiel.agents.runs.seats import balanced_seeds

        self.check_played(env, "evaluation")
        _one_opponent(env)
        if env.max_turns is not None:
            raise InvalidValueError(
                "env.max_turns cuts games, and evaluate plays them to the end: leave it out"
            )
        plain = dataclasses.replace(env, env_mode="local", seeding="evaluate")
        made = gym.make(self.environment, disable_env_checker=True, **self.arguments(plain))
        local: Any = made.unwrapped
        cheap = {"opponent": "first"}
        addresses: list[Address] = []
        for drawn in balanced_seeds(made, count, seed, cheap):
            task_id = made.reset(seed=drawn, options=cheap)[1]["task_id"]
            addresses.append(Address(task_id, drawn, Task(task_id, local.variant)))
        return addresses

    def play_endpoint(
        self, chat: Chat, env: GameKeys, address: Address, timeout: float | None
    ) -> dict[str, Any]:
        from gamespiel.endpoints.games import TIMEOUT, play_game

        limit = TIMEOUT if timeout is None else timeout
        return play_game(chat, address.task, address.seed, _one_opponent(env), limit)

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        return [str(extra.get("game_name")), f"seat {extra.get('llm_player_id')}"]

    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        from gamespiel.agents.runs.evaluation import by_game, by_opponent, by_seat

        games = by_game(episodes)
        seats = {f"seat {seat}": own for seat, own in by_seat(episodes).items()}
        against = {f"against {name}": own for name, own in by_opponent(episodes).items()}
        several = {**(games if len(games) > 1 else {}), **(against if len(against) > 1 else {})}
        return {**several, **seats, "all": list(episodes)}

    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        from gamespiel.report.tables import SAMPLED_NOTE, sampled_table

        return Group(sampled_table(title, rows), Text(SAMPLED_NOTE))

    def make_reply_env(self, env: GameKeys) -> gym.Env[Any, Any]:
        import gymnasium as gym

        _check_illegal(env)
        # Upstream's rule for openenv would take the first number of the reasoning.
        arguments = self.arguments(env) | {
            "parse": "last" if env.think or env.answer == "name" else "upstream"
        }
        made: gym.Env[Any, Any] = gym.make(self.reply_environment, disable_env_checker=True, **arguments)
        made = self.dressed(env, made)
        made = Thinking(made) if env.think else made
        return NamedReplies(made) if env.answer == "name" else made

    def reply_table(
        self, title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
    ) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        from gamespiel.report.tables import replies_note, replies_table

        return Group(replies_table(title, masked, replies), Text(replies_note(masked, replies)))

    def prompt_tokens(self, env: GameKeys) -> int:
        return 512 if env.rules else 128

    def why_not_quick(self, env: GameKeys) -> str:
        from gamespiel import exact

        if env.decode == "text":
            return "exact values are those of a policy behind its mask, and env.decode: text has none"
        return exact.why_not_quick(env)

    def exact(self) -> Exact:
        from gamespiel import exact

        return exact


def _check_not_open(names: Sequence[str], who: str) -> None:
    if OPEN in names:
        raise InvalidValueError(
            f"{who} needs an opponent to play against; {OPEN!r} leaves every seat to the caller"
        )


def _one_opponent(env: GameKeys) -> str:
    """Returns the opponent's name.

    Raises:
        InvalidValueError: it is a mixture, or the policy itself.
    """
    if not isinstance(env.opponent, str) or env.opponent == SELF:
        raise InvalidValueError(
            f"an agent behind an endpoint plays one opponent, not {shown_opponent(env.opponent)!r}: name one "
            "with --opponent"
        )
    return env.opponent


def _rewarded(name: str, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Returns an environment in the wrapper of a registered reward, if it is one.

    Raises:
        InvalidValueError: what was registered returns no environment.
    """
    wrap = find_reward(name)
    if wrap is None:
        return env
    made: gym.Env[Any, Any] = wrap(env)
    if getattr(made, "unwrapped", None) is not env.unwrapped:
        raise InvalidValueError(
            f"env.reward {name!r} returned {made!r}, needed: the environment that it was given, in a wrapper"
        )
    return made


def _in_environment(name: str) -> str:
    """Returns an opponent's name as environments know it: seats of the policy itself are open there."""
    return OPEN if name == SELF else name


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


def _check_illegal(env: GameKeys) -> None:
    if env.illegal == "raise":
        raise InvalidValueError(
            "env.illegal must be penalize or forfeit if nothing masks the model, not 'raise': the first "
            "illegal reply would be an error"
        )


class NamedReplies(NamedActions, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for an action's name, and reads a reply that is one as that action.

    Any other reply is left to the environment's own rule. That rule looks for numbers first: on its own it
    would read the name "x(1,1)" in tic_tac_toe as action 1.
    """

    def show(self, observation: str, info: dict[str, Any]) -> tuple[NamedText, dict[str, Any]]:
        """Returns the text with its names, which the next reply may be."""
        text, info = super().show(observation, info)
        names = (name.strip() for name in text.names)
        self._actions = dict(zip(names, info["legal_actions"], strict=True))
        return text, info

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Gives the environment the number of the action that the reply is the name of, else the reply."""
        named = self._actions.get(strip_reasoning(action))
        return super().step(action if named is None else str(named))


def baseline_agent(name: str, env: TextEnvs, seed: int, episodes: int) -> Decide:
    """Returns an opponent by name (``random``, ``mcts:100``, ...) as an agent in local environments.

    It is built anew for each episode's game and seat, and seeded by (seed, episode). ``mcts`` reads the true
    state, as the opponent of that name does. No other opponent replaces it: a search is refused in games
    with simultaneous moves.

    Raises:
        OpponentError: no opponent has that name, or it cannot play a game that may be drawn.
    """
    from game_gym.prompts import SeatView
    from gamespiel.agents.sampling.noise import Purpose, episode_seeds
    from task_gym.opponents import make_opponent

    first: Any = env.envs[0].unwrapped
    for variant in first.variants:
        make_opponent(name, variant.game, variant.spec, seat=0)
    seeds = episode_seeds(seed, 0, episodes, Purpose.BASELINE)
    playing: dict[int, tuple[Opponent, SeatView]] = {}

    def begin(episode: int, local: Any) -> tuple[Opponent, SeatView]:
        view = SeatView(local.variant, local.seat, rules=True)
        opponent = make_opponent(name, local.variant.game, local.variant.spec, view.seat)
        opponent.restart(seeds[episode])
        return opponent, view

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        actions = []
        for episode in indices:
            local: Any = env.envs[episode % env.num_envs].unwrapped
            if turn == 0:
                playing[episode] = begin(episode, local)
            opponent, view = playing[episode]
            view.state = local.state
            actions.append(opponent.act(view))
        return answers_of(actions)

    return decide


KIND = Games()
