"""The player of games: environments against opponents, seeds balanced over seats, baselines, endpoints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.base import (
    Deal,
    EpisodeAddress,
    MakeEnvs,
    Player,
    ShowProgress,
    Thinking,
    format_opponent,
)
from gamespiel.kinds.games.keys import GameKeys, check_illegal, seat_name
from task_gym.opponents import SELF
from task_gym.replies import strip_reasoning
from task_gym.rewards import find_reward
from task_gym.wrappers import Conversation, NamedActions, NamedText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from game_gym.tree import GameTree
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.endpoints.chat import Chat
    from gamespiel.exact_comparison import ExactGame

SEATS = 2
"""Seats of nearly all games: the environments that an evaluation makes for each episode per seat."""


class GamePlayer(Player[GameKeys]):
    """Plays games against the configured opponent, or with a baseline in the agent's seat."""

    def text_variables(self) -> tuple[str, ...]:
        from game_gym.upstream_texts import BOT_VARIABLE, VARIABLE

        return VARIABLE, BOT_VARIABLE

    def wrap_env(self, env: GameKeys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        if not isinstance(env.opponent, str):
            from game_gym.wrappers import MixedOpponents

            gym_env = MixedOpponents(gym_env, {seat_name(name): w for name, w in env.opponent.items()})
        return _wrap_reward(env.reward, gym_env)

    def make_reply_env(self, env: GameKeys) -> gym.Env[Any, Any]:
        check_illegal(env)
        # Upstream's rule for openenv would take the first number of the reasoning.
        last = (env.think or env.answer == "name") and not (env.conversation and env.seeding == "evaluate")
        arguments = self.declaration.arguments(env) | {"parse": "last" if last else "upstream"}
        assert self.declaration.replies is not None
        gym_env: gym.Env[Any, Any] = gym.make(
            self.declaration.replies.environment, disable_env_checker=True, **arguments
        )
        gym_env = self.wrap_env(env, gym_env)
        gym_env = Thinking(gym_env) if env.think else gym_env
        return NamedReplies(gym_env) if env.answer == "name" else gym_env

    def wrap_conversation(self, env: GameKeys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        from game_gym.wrappers import EvaluateConversation, UpstreamLayout

        if not env.conversation:
            return gym_env
        if env.seeding == "evaluate":
            return EvaluateConversation(gym_env)
        return Conversation(UpstreamLayout(gym_env) if env.rules else gym_env)

    def task_names(self, env: gym.Env[Any, Any]) -> list[str]:
        local: Any = env.unwrapped
        return sorted({variant.spec.name for variant in local.variants})

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

    def env_count(self, count: int) -> int:
        return SEATS * count

    def seeds(self, envs: TextEnvs, count: int, seed: int, taken: Taken | None = None) -> list[int]:
        from gamespiel.agents.runs.evaluation import draw_balanced_seeds

        # A seat does not depend on the opponent. "first" is the cheapest; upstream's servers have "random".
        local: Any = envs.envs[0].unwrapped
        cheap = {"opponent": "first" if local.is_local else "random"}
        return draw_balanced_seeds(envs.envs[0], count, seed, cheap, taken)

    def play_agent(
        self,
        name: str,
        env: GameKeys,
        count: int,
        seed: int,
        make_envs: MakeEnvs,
        show_progress: ShowProgress,
    ) -> list[Episode]:
        from gamespiel.agents.runs.evaluation import play_seeds
        from gamespiel.agents.sampling.noise import Purpose, episode_seeds
        from gamespiel.kinds.games.baselines import baseline_agent

        if env.env_mode != "local":
            raise InvalidValueError(
                f"--agent {name} reads the state of a game, which a server does not show: it needs "
                "env.env_mode: local"
            )
        envs = make_envs(self.env_count(count))
        seeds = self.seeds(envs, count, seed)
        noise = episode_seeds(seed, 0, len(seeds), Purpose.BASELINE)
        agent = baseline_agent(name, envs, noise)
        with show_progress(len(seeds)) as on_step:
            return play_seeds(envs, agent, seeds, on_step)

    def draw_deals(self, env: GameKeys, count: int, seed: int) -> list[Deal]:
        from gamespiel.kinds.games.deals import draw_deals

        self.declaration.check_playable(env, "evaluation")
        if env.env_mode != "local":
            raise InvalidValueError(
                "--compare plays a deal from every seat, and a server chooses the seat: env.env_mode must be "
                f"'local', not {env.env_mode!r}"
            )
        gym_env = gym.make(
            self.declaration.environment, disable_env_checker=True, **self.declaration.arguments(env)
        )
        return draw_deals(gym_env, self.task_names(gym_env), count, seed)

    def make_baseline(self, name: str, envs: TextEnvs, seeds: Sequence[int]) -> Decide:
        from gamespiel.kinds.games.baselines import baseline_agent

        return baseline_agent(name, envs, seeds)

    def choose_deal(self, env: GameKeys, deal: Deal) -> GameKeys:
        task_id = deal.address.task_id
        if task_id is None:  # the one game that is named
            return env
        return dataclasses.replace(
            env, task_id=task_id, task_ids=(), game=None, params={}, allowed_game_indices=()
        )

    def game_tree(self, env: GameKeys) -> GameTree:
        from gamespiel.kinds.games.solvable import game_tree

        return game_tree(env)

    def addresses(self, env: GameKeys, count: int, seed: int) -> list[EpisodeAddress]:
        from game_gym.task import Task
        from gamespiel.agents.runs.evaluation import draw_balanced_seeds

        self.declaration.check_playable(env, "evaluation")
        _require_one_opponent(env)
        if env.max_turns is not None:
            raise InvalidValueError(
                "env.max_turns cuts games, and evaluate plays them to the end: leave it out"
            )
        plain = dataclasses.replace(env, env_mode="local", seeding="evaluate")
        arguments = self.declaration.arguments(plain)
        gym_env = gym.make(self.declaration.environment, disable_env_checker=True, **arguments)
        local: Any = gym_env.unwrapped
        cheap = {"opponent": "first"}
        addresses: list[EpisodeAddress] = []
        for drawn in draw_balanced_seeds(gym_env, count, seed, cheap):
            info = gym_env.reset(seed=drawn, options=cheap)[1]
            task_id = info["task_id"]
            addresses.append(EpisodeAddress(task_id, info["seed"], Task(task_id, local.variant)))
        if len({address.seed for address in addresses}) < len(addresses):
            raise InvalidValueError(
                f"env.seeds {env.seeds!r} has one episode of each task, and {len(addresses)} draws gave some "
                "task twice; allowed: more task ids, or fewer --num_episodes"
            )
        return addresses

    def play_endpoint(
        self, chat: Chat, env: GameKeys, address: EpisodeAddress, timeout: float | None
    ) -> dict[str, Any]:
        from gamespiel.endpoints.games import TIMEOUT, play_game

        limit = TIMEOUT if timeout is None else timeout
        return play_game(
            chat,
            address.task,
            address.seed,
            _require_one_opponent(env),
            limit,
            address.seat,
            list_actions=env.list_actions,
        )

    def explain_unsolved(self, env: GameKeys) -> str:
        from gamespiel.kinds.games.solvable import explain_unsolved

        return explain_unsolved(env)

    def exact_game(self, env: GameKeys) -> ExactGame:
        from gamespiel.kinds.games.solvable import exact_game

        return exact_game(env)


def _require_one_opponent(env: GameKeys) -> str:
    """Returns the opponent's name.

    Raises:
        InvalidValueError: it is a mixture, or the policy itself.
    """
    if not isinstance(env.opponent, str) or env.opponent == SELF:
        raise InvalidValueError(
            f"an agent behind an endpoint plays one opponent, not {format_opponent(env.opponent)!r}: name "
            "one with --opponent"
        )
    return env.opponent


def _wrap_reward(name: str, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Returns an environment in the wrapper of a registered reward, if it is one.

    Raises:
        InvalidValueError: what was registered returns no environment.
    """
    wrap = find_reward(name)
    if wrap is None:
        return env
    outer: gym.Env[Any, Any] = wrap(env)
    if getattr(outer, "unwrapped", None) is not env.unwrapped:
        raise InvalidValueError(
            f"env.reward {name!r} returned {outer!r}, needed: the environment that it was given, in a wrapper"
        )
    return outer


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
        """Gives the environment the number of the action that the reply is the name of, else the reply.

        Where the legal actions are not listed, its own rule reads names, and no numbers.
        """
        game: Any = self.unwrapped
        if not game.list_actions:
            return super().step(action)
        named = self._actions.get(strip_reasoning(action))
        return super().step(action if named is None else str(named))
