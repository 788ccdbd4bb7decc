"""Games: their opponents and baselines, seeds balanced over seats, and results by game, seat and opponent."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.games.keys import (
    GameKeys,
    check_game_keys,
    check_illegal,
    check_not_open,
    find_form,
    require_one_opponent,
    seat_name,
)
from gamespiel.kinds.keys import Opponents, format_opponent, names_of, server_arguments
from gamespiel.kinds.kind import (
    Baselines,
    Deal,
    EpisodeAddress,
    Kind,
    MakeEnvs,
    Replies,
    ShowProgress,
    answers_of,
)
from gamespiel.kinds.wrappers import NamedReplies, Thinking, wrap_game
from gamespiel.tracks import find_track
from task_gym.errors import SizeError, check_choice
from task_gym.opponents import SELF, make_opponent
from task_gym.rewards import find_reward
from task_gym.wrappers import Conversation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from game_gym.spec import Variant
    from game_gym.task import TaskSet
    from game_gym.tree import GameTree
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode, Masks
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from gamespiel.exact_comparison import ExactGame
    from task_gym.opponents import Opponent

MEASURED_AGAINST = "random"
"""The opponent of evaluations after games of the policy against itself alone."""

LONG_CONVERSATION = 4096
"""Tokens of a long conversation without a limit of its own: some twelve turns of othello."""

QUICK = 50_000
"""The most histories of a game that runs solve unasked. Leduc poker has 9,457; liar's dice has 294,883, and
the embedded model alone takes half a minute there."""

PROBES = 64
"""Seeds of deals that are drawn together."""

PATIENCE = 200
"""Draws of ``PROBES`` seeds, none with a new deal of a game that needs some, after which it is given up."""


class GameKind(Kind[GameKeys]):
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
    seats = 2
    served_as = "game"
    keys = GameKeys
    choosing = ("game", "allowed_game_indices")
    belonging = ("params", "allow_files")
    asking = (*Kind.asking, "rules", "list_actions", "conversation", "context_tokens")

    def check_keys(self, env: GameKeys) -> None:
        check_game_keys(env)

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

    def task_set(self, env: GameKeys) -> TaskSet:
        """Returns the tasks that the section may draw."""
        from game_gym.task import TaskSet

        chosen = ("task_id", "task_ids", "game", "params", "allow_files")
        return TaskSet(**{name: value for name, value in self.arguments(env).items() if name in chosen})

    def evaluation_keys(self, env: GameKeys) -> GameKeys:
        if not self.plays_itself(env):
            return env
        mixture = {} if isinstance(env.opponent, str) else env.opponent
        others = {name: weight for name, weight in mixture.items() if name != SELF}
        opponent: Opponents = others if len(others) > 1 else next(iter(others), MEASURED_AGAINST)
        return dataclasses.replace(env, opponent=opponent)

    def check_playable(self, env: GameKeys, who: str) -> None:
        check_not_open(names_of(env.opponent), who)

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

        check_not_open(names, "training")
        tasks = self.task_set(env)
        for name in names:
            check_opponent(name, tasks)

    def read_task(self, name: str) -> str | int:
        from game_gym.games import DECLARED, find_game

        if name in DECLARED:  # "2048" is a game
            return name
        return int(name) if name.isdecimal() else find_game(name).name

    def make_env(self, env: GameKeys) -> gym.Env[Any, Any]:
        return wrap_game(env, super().make_env(env))

    def wrap_conversation(self, env: GameKeys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        from game_gym.wrappers import EvaluateConversation, UpstreamLayout

        if not env.conversation:
            return gym_env
        if env.seeding == "evaluate":
            return EvaluateConversation(gym_env)
        return Conversation(UpstreamLayout(gym_env) if env.rules else gym_env)

    def make_reply_env(self, env: GameKeys) -> gym.Env[Any, Any]:
        check_illegal(env)
        # Upstream's rule for openenv would take the first number of the reasoning.
        last = (env.think or env.answer == "name") and not (env.conversation and env.seeding == "evaluate")
        arguments = self.arguments(env) | {"parse": "last" if last else "upstream"}
        gym_env = wrap_game(env, gym.make(self.replies.environment, disable_env_checker=True, **arguments))
        gym_env = Thinking(gym_env) if env.think else gym_env
        return NamedReplies(gym_env) if env.answer == "name" else gym_env

    def text_variables(self) -> tuple[str, ...]:
        from game_gym.upstream_texts import BOT_VARIABLE, VARIABLE

        return VARIABLE, BOT_VARIABLE

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

        if env.env_mode != "local":
            raise InvalidValueError(
                f"--agent {name} reads the state of a game, which a server does not show: it needs "
                "env.env_mode: local"
            )
        envs = make_envs(self.seats * count)
        seeds = self.seeds(envs, count, seed)
        agent = self.make_baseline(name, envs, episode_seeds(seed, 0, len(seeds), Purpose.BASELINE))
        with show_progress(len(seeds)) as on_step:
            return play_seeds(envs, agent, seeds, on_step)

    def draw_deals(self, env: GameKeys, count: int, seed: int) -> list[Deal]:
        from game_gym.task import Task
        from gamespiel.agents.sampling.noise import Purpose, episode_seeds

        self.check_playable(env, "evaluation")
        if env.env_mode != "local":
            raise InvalidValueError(
                "--compare plays a deal from every seat, and a server chooses the seat: env.env_mode must be "
                f"'local', not {env.env_mode!r}"
            )
        gym_env = super().make_env(env)
        local: Any = gym_env.unwrapped
        cheap = {"opponent": "first"}  # a deal does not depend on the opponent
        deals: dict[str, list[Deal]] = {game: [] for game in self.task_names(gym_env)}
        met: set[tuple[int | None, int]] = set()
        block = idle = 0
        while any(len(drawn) < count for drawn in deals.values()):
            before = len(met)
            for candidate in episode_seeds(seed, block, PROBES, Purpose.EVALUATION_TASKS):
                info = gym_env.reset(seed=candidate, options=cheap)[1]
                drawn, key = deals[info["game"]], (info["task_id"], info["seed"])
                if len(drawn) == count or key in met:
                    continue
                met.add(key)
                address = EpisodeAddress(*key, Task(info["task_id"], local.variant))
                seats = tuple(range(local.variant.players))
                drawn.append(Deal(info["game"], len(drawn), candidate, address, seats))
            block, idle = block + 1, 0 if len(met) > before else idle + 1
            if idle == PATIENCE:
                game, drawn = min(deals.items(), key=lambda item: len(item[1]))
                raise InvalidValueError(
                    f"--compare needs {count} deals of each game, and {len(drawn)} of {game} were found; "
                    "allowed: more task ids of that game, or fewer --num_episodes"
                )
        gym_env.close()
        return [drawn[number] for number in range(count) for drawn in deals.values()]

    def make_baseline(self, name: str, envs: TextEnvs, seeds: Sequence[int]) -> Decide:
        """Returns an opponent by name (``random``, ``mcts:100``, ...) as an agent in local environments.

        It is built anew for each episode's game and seat, and restarted with the episode's seed. ``mcts``
        reads the true state, as the opponent of that name does. No other opponent replaces it: a search is
        refused in games with simultaneous moves.

        Raises:
            OpponentError: no opponent has that name, or it cannot play a game that may be drawn.
        """
        from game_gym.prompts import SeatView

        first: Any = envs.envs[0].unwrapped
        for variant in first.variants:
            make_opponent(name, variant.game, variant.spec, seat=0)
        playing: dict[int, tuple[Opponent, SeatView]] = {}

        def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
            actions = []
            for episode in indices:
                local: Any = envs.envs[episode % envs.num_envs].unwrapped
                if turn == 0:
                    view = SeatView(local.variant, local.seat, rules=True)
                    opponent = make_opponent(name, local.variant.game, local.variant.spec, view.seat)
                    opponent.restart(seeds[episode])
                    playing[episode] = opponent, view
                opponent, view = playing[episode]
                view.state = local.state
                actions.append(opponent.act(view))
            return answers_of(actions)

        return decide

    def choose_deal(self, env: GameKeys, deal: Deal) -> GameKeys:
        task_id = deal.address.task_id
        if task_id is None:  # the one game that is named
            return env
        return dataclasses.replace(
            env, task_id=task_id, task_ids=(), game=None, params={}, allowed_game_indices=()
        )

    def game_tree(self, env: GameKeys) -> GameTree:
        from game_gym.tree import build_tree

        return build_tree(_require_variant(env), most=QUICK, **find_form(env))

    def addresses(self, env: GameKeys, count: int, seed: int) -> list[EpisodeAddress]:
        from game_gym.task import Task
        from gamespiel.agents.runs.evaluation import draw_balanced_seeds

        self.check_playable(env, "evaluation")
        require_one_opponent(env)
        if env.max_turns is not None:
            raise InvalidValueError(
                "env.max_turns cuts games, and evaluate plays them to the end: leave it out"
            )
        gym_env = super().make_env(dataclasses.replace(env, env_mode="local", seeding="evaluate"))
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

        opponent, limit = require_one_opponent(env), TIMEOUT if timeout is None else timeout
        listed = env.list_actions
        return play_game(chat, address.task, address.seed, opponent, limit, address.seat, list_actions=listed)

    def explain_unsolved(self, env: GameKeys, *, asked: bool = False) -> str:
        from game_gym import exact

        if env.decode == "text":
            return "exact values are those of a policy behind its mask, and env.decode: text has none"
        try:
            variant, opponent = _require_variant(env), _require_solved_opponent(env)
            if opponent not in exact.OPPONENTS:
                known = " and ".join(map(repr, exact.OPPONENTS))
                return f"the policy of opponent {opponent!r} is not known exactly, as that of {known} is"
            exact.check_size(variant, None if asked else QUICK, find_form(env)["conversation"])
        except (InvalidValueError, SizeError) as error:
            return str(error)
        return ""

    def exact_game(self, env: GameKeys) -> ExactGame:
        from game_gym.exact import OPPONENTS
        from gamespiel.exact_comparison import ExactGame

        opponent = _require_solved_opponent(env)
        check_choice("opponent", opponent, tuple(OPPONENTS))
        return ExactGame(_require_variant(env), opponent, **find_form(env))

    def describe_tasks(
        self, env: GameKeys, tasks: Sequence[str], agent: str | None = None, *, replies: bool = False
    ) -> str:
        listed = ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} games"
        return f"{listed} against {format_opponent(env.opponent)}"

    def file_label(self, env: GameKeys, tasks: Sequence[str]) -> str:
        played = tasks[0] if len(tasks) == 1 else f"{len(tasks)}-games"
        return f"{played}-{format_opponent(env.opponent)}"

    def run_name(self, env: GameKeys) -> str | None:
        return env.game

    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        from gamespiel.agents.runs.evaluation import group_by

        games = group_by("game", episodes)
        seats = {f"seat {seat}": group for seat, group in group_by("seat", episodes).items()}
        against = {f"against {name}": group for name, group in group_by("opponent", episodes).items()}
        several = {**(games if len(games) > 1 else {}), **(against if len(against) > 1 else {})}
        return {**several, **seats, "all": list(episodes)}

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        return [str(extra.get("game_name")), f"seat {extra.get('llm_player_id')}"]


def _require_solved_opponent(env: GameKeys) -> str:
    if not isinstance(env.opponent, str):
        raise InvalidValueError(
            f"exact evaluation takes one opponent, not {' and '.join(env.opponent)}: name one with --opponent"
        )
    return env.opponent


def _require_variant(env: GameKeys) -> Variant:
    from game_gym.exact import find_variant

    if env.task_id is None and env.game is None:
        raise SizeError("exact evaluation takes one game: give env.task_id or env.game, not a set of them")
    if env.answer != "id" and env.conversation:
        raise InvalidValueError(
            "exact evaluation of conversations asks for numbers of actions: env.answer must be 'id', not "
            f"{env.answer!r}"
        )
    if env.max_turns is not None:
        raise InvalidValueError(
            f"exact evaluation plays every game to its end: env.max_turns must be null, not {env.max_turns}"
        )
    return find_variant(env.task_id, env.game, env.params or None, env.allow_files)
