"""Code tracing: its baselines, environments with a choice of outputs or with replies, and their seeds."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gymnasium as gym
import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import WHOLE, key
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.keys import PART, EnvKeys, Ranges, server_arguments
from gamespiel.kinds.kind import Baselines, EpisodeAddress, Kind, MakeEnvs, Replies, ShowProgress, answers_of
from gamespiel.kinds.wrappers import Thinking
from task_gym.errors import check_choice

if TYPE_CHECKING:
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from trace_gym.backends import Trace

NAME = "code_trace"
"""Name of the task in results."""

REPLIES: Mapping[str, Callable[[Trace], str]] = {
    "oracle": lambda trace: trace.truth,
    "empty": lambda trace: "",
    "echo": lambda trace: echo_texts(trace.code),
}
"""Baselines of CodeTrace-v0 by name: a trace to its reply."""

CHOICES = ("random", "first")
"""Baselines of CodeTraceChoice-v0."""

REPLY_ENVIRONMENT, LINES_ENVIRONMENT = "CodeTrace-v0", "CodeTraceLines-v0"

Level = Annotated[int, Field(ge=1, le=10), WHOLE]


@dataclass(frozen=True, config=PART)
class TraceKeys(EnvKeys):
    """The keys of code tracing."""

    source: str = key("builtin", "traces: builtin, hub, or a JSONL or Parquet file of programs")
    level: Level | None = key(None, "traces: builtin programs of this level alone")
    family: str | None = key(None, "traces: builtin programs of this family alone")
    injector: Literal["safe", "affine"] = key("safe", "traces: who puts in the debug prints")
    require: Literal["namespaces", "limits"] = key(
        "namespaces",
        "traces: what programs of data sets need; limits: run them without protection, at your risk",
    )
    scoring: Literal["affine", "exact", "lines"] = key("affine", "traces: the score that is paid")
    by_line: bool = key(False, "traces, with decode text: one line of output per turn")


class TraceKind(Kind[TraceKeys]):
    """Programs whose output the agent predicts, one per episode.

    A policy plays the environment with a choice of outputs, a Discrete action as in games. Baselines that
    answer with text, and policies without a mask, play ``REPLY_ENVIRONMENT``. There a seed is another task:
    the program is shown as it is, and not as one of its mutants.
    """

    env_type = "trace"
    unit = "traces"
    environment = "CodeTraceChoice-v0"
    replies = Replies(REPLY_ENVIRONMENT, max_new_tokens=1024)
    baselines = Baselines(
        f"{', '.join(REPLIES)} (replies), or {', '.join(CHOICES)} (choices); or openai:MODEL@URL",
        "|".join((*REPLIES, *CHOICES, "openai:.+")),
    )
    preset = "tiny-trace"
    served_as = "trace"
    keys = TraceKeys
    narrowing = ("source", "level", "family")

    def check_keys(self, env: TraceKeys) -> None:
        if env.by_line and env.decode != "text":
            raise ConfigError("env.by_line = true needs env.decode: text, where the output is written")

    def complete_keys(self, env: TraceKeys) -> TraceKeys:
        """Returns the section; on a server a policy writes, because a server does not show false outputs."""
        return env if env.env_mode == "local" else dataclasses.replace(env, decode="text")

    def arguments(self, env: TraceKeys) -> dict[str, Any]:
        # Answers by name are the outputs themselves, which need no numbered list in the prompt.
        return trace_arguments(env) | {"illegal": env.illegal, "listed": env.answer == "id"}

    def task_ranges(self, env: TraceKeys) -> Ranges:
        from trace_gym.programs.base import TASKS

        return super().task_ranges(env) or [(0, TASKS - 1)]

    def pin_tasks(self, env: TraceKeys) -> TraceKeys:
        """Returns the section with a data set's commit in its source: "hub@COMMIT".

        Raises:
            SourceError: there is no program source of that name.
        """
        from trace_gym.programs.sources import open_source

        return dataclasses.replace(env, source=open_source(env.source).name)

    def stage_tasks(
        self, env: TraceKeys, ids: list[Any] | None, level: int | None, family: str | None
    ) -> Any:
        from trace_gym.task import TaskSet

        if ids is None and level is None and family is None:
            return None
        for name, asked in (("level", level), ("family", family)):
            value = getattr(env, name)
            if None not in (asked, value) and asked != value:
                raise InvalidValueError(
                    f"curriculum.stages: {name} = {asked!r} was given, which env.{name} = {value!r} "
                    f"excludes; leave env.{name} out"
                )
        one = env.task_id if ids is None else None
        among = None if one is not None else ids or list(env.task_ids) or None
        return TaskSet(one, among, env.source, level or env.level, family or env.family).ids

    def read_task(self, name: str) -> str | int:
        if not name.isdecimal():
            check_choice("curriculum.success_scores", name, (NAME,), InvalidValueError)
        return super().read_task(name)

    def make_reply_env(self, env: TraceKeys) -> gym.Env[Any, Any]:
        gym_env = gym.make(reply_environment(env), disable_env_checker=True, **trace_arguments(env))
        return Thinking(gym_env) if env.think else gym_env

    def text_variables(self) -> tuple[str, ...]:
        from trace_gym.envs.prompts import VARIABLE

        return (VARIABLE,)

    def task_names(self, env: gym.Env[Any, Any]) -> list[str]:
        return [NAME]

    def seeds(self, envs: TextEnvs, count: int, seed: int, taken: Taken | None = None) -> list[int]:
        return trace_seeds(seed, count, taken)

    def play_agent(
        self,
        name: str,
        env: TraceKeys,
        count: int,
        seed: int,
        make_envs: MakeEnvs,
        show_progress: ShowProgress,
    ) -> list[Episode]:
        from gamespiel.agents.runs.evaluation import play_seeds

        if env.env_mode != "local":
            raise InvalidValueError(
                f"--agent {name} needs what a server does not show: it needs env.env_mode: local"
            )
        seeds = trace_seeds(seed, count)
        with show_progress(count) as on_step:
            if name in REPLIES:
                whole = dataclasses.replace(env, by_line=False, think=False)
                return play_replies(self.make_reply_env(whole), name, seeds, on_step)
            return play_seeds(make_envs(count), choice_agent(name, seed, count), seeds, on_step)

    def addresses(self, env: TraceKeys, count: int, seed: int) -> list[EpisodeAddress]:
        gym_env = gym.make(REPLY_ENVIRONMENT, disable_env_checker=True, **trace_arguments(_local_keys(env)))
        try:
            resets = ((drawn, gym_env.reset(seed=drawn)[1]) for drawn in trace_seeds(seed, count))
            return [EpisodeAddress(info["task_id"], drawn) for drawn, info in resets]
        finally:
            gym_env.close()

    def play_endpoint(
        self, chat: Chat, env: TraceKeys, address: EpisodeAddress, timeout: float | None
    ) -> dict[str, Any]:
        from gamespiel.endpoints.traces import TIMEOUT, ask_trace
        from trace_gym.envs.text import CodeTraceEnv

        gym_env = CodeTraceEnv(**trace_arguments(_local_keys(env)))
        assert address.task_id is not None
        limit = TIMEOUT if timeout is None else timeout
        return ask_trace(chat, gym_env, address.task_id, address.seed, limit)

    def describe_tasks(
        self, env: TraceKeys, tasks: Sequence[str], agent: str | None = None, *, replies: bool = False
    ) -> str:
        if replies:
            return reply_environment(env)
        return REPLY_ENVIRONMENT if agent in REPLIES else self.environment

    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns episodes by level and by family, if there is more than one, and all of them."""
        groups: dict[str, list[Episode]] = {}
        for name in ("level", "family"):
            values = {episode.info[name] for episode in episodes} - {None}
            if len(values) > 1:
                for value in sorted(values):
                    groups[f"{name} {value}"] = [e for e in episodes if e.info[name] == value]
        return {**groups, "all": list(episodes)}

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        named = {name: extra.get(name) for name in ("level", "family")}
        return [f"{name} {value}" for name, value in named.items() if value is not None]


def trace_arguments(env: TraceKeys) -> dict[str, Any]:
    """Returns the section as arguments of any tracing environment; without task ids, all are drawn."""
    return {
        "task_id": env.task_id,
        "task_ids": list(env.task_ids) or None,
        "source": env.source,
        "level": env.level,
        "family": env.family,
        "injector": env.injector,
        "require": env.require,
        "scoring": env.scoring,
        **server_arguments(env),
    }


def reply_environment(env: TraceKeys) -> str:
    """Returns the id of the environment that takes replies as the section asks for them."""
    return LINES_ENVIRONMENT if env.by_line else REPLY_ENVIRONMENT


def _local_keys(env: TraceKeys) -> TraceKeys:
    return dataclasses.replace(env, env_mode="local")


def trace_seeds(seed: int, count: int, taken: Taken | None = None) -> list[int]:
    """Returns the episode seeds of an evaluation on traces: the same tasks for every agent.

    Args:
        seed: Seed of the draws.
        count: Number of seeds.
        taken: See ``Taken``.
    """
    from gamespiel.agents.sampling.noise import Purpose, episode_seeds

    drawn = count
    while True:  # the first draws are the same, however many there are
        candidates = episode_seeds(seed, 0, drawn, Purpose.EVALUATION_TASKS)
        out = taken(candidates) if taken else ()
        free = [one for one in candidates if one not in out]
        if len(free) >= count:
            return free[:count]
        drawn += count


def echo_texts(code: str) -> str:
    """Returns a program's text literals, one per line, in the order of the program."""
    from trace_gym.syntax import parse

    literals: list[ast.Constant] = []

    def collect_texts(node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            literals.append(node)
        for child in ast.iter_child_nodes(node):
            collect_texts(child)

    collect_texts(parse(code))
    # Parts of an f-string share its position in some Python versions; they keep the tree's order.
    literals.sort(key=lambda node: (node.lineno, node.col_offset))
    return "\n".join(str(node.value) for node in literals)


def play_replies(
    env: gym.Env[Any, Any],
    agent: str,
    seeds: Sequence[int],
    on_step: OnStep = lambda over, turns: None,
) -> list[Episode]:
    """Plays one episode of CodeTrace-v0 per seed with one of ``REPLIES``, and closes the environment.

    A turn has no decision: nobody sampled its tokens.

    Args:
        env: The environment.
        agent: The baseline's name.
        seeds: The episodes' seeds.
        on_step: Is called after each episode.
    """
    from gamespiel.agents.rollout import Episode, Turn

    local: Any = env.unwrapped
    answer, episodes, no_mask = REPLIES[agent], [], np.zeros(0, dtype=np.bool_)
    try:
        for index, seed in enumerate(seeds):
            shown, _ = env.reset(seed=seed)
            reply = answer(local.trace)
            final, reward, _, _, info = env.step(reply)
            turn = Turn(shown, no_mask, reply, reward=float(reward))
            episodes.append(Episode(index, seed, info, [turn], final))
            on_step(True, 1)
    finally:
        env.close()
    return episodes


def choice_agent(name: str, seed: int, episodes: int) -> Decide:
    """Returns an agent of CodeTraceChoice-v0: ``random`` picks any of the options, ``first`` the first."""

    from gamespiel.agents.sampling.noise import Address, Purpose

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        options = masks.sum(axis=1)
        if name == "random":
            uniforms = Address(seed, Purpose.BASELINE, 0, turn, 0).uniforms(0, indices)
            rank = (uniforms * options).astype(np.int64)
        else:
            rank = np.zeros(len(indices), dtype=np.int64)
        # The legal action that has ``rank`` legal actions before it.
        return answers_of(np.argmax(masks.cumsum(axis=1) > rank[:, None], axis=1))

    return decide
