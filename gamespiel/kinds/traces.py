"""Code tracing: its environments, baselines and groups of results."""

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
from gamespiel.kinds.base import (
    PART,
    Address,
    EnvKeys,
    Kind,
    MakeEnvs,
    ShowProgress,
    Thinking,
    answers_of,
    server_arguments,
)
from task_gym.errors import check_choice

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep
    from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from trace_gym.backends import Trace

NAME = "code_trace"
"""Name of the task in results."""

REPLY_ENVIRONMENT, LINES_ENVIRONMENT = "CodeTrace-v0", "CodeTraceLines-v0"

REPLIES: Mapping[str, Callable[[Trace], str]] = {
    "oracle": lambda trace: trace.truth,
    "empty": lambda trace: "",
    "echo": lambda trace: echo(trace.code),
}
"""Baselines of CodeTrace-v0 by name: a trace to its reply."""

CHOICES = ("random", "first")
"""Baselines of CodeTraceChoice-v0."""

Level = Annotated[int, Field(ge=1, le=10), WHOLE]


@dataclass(frozen=True, config=PART)
class TraceKeys(EnvKeys):
    """The keys of code tracing."""

    source: str = key("builtin", "traces: builtin, hub, or a JSONL or Parquet file of programs")
    level: Level | None = key(None, "traces: builtin programs of this level alone")
    family: str | None = key(None, "traces: builtin programs of this family alone")
    injector: Literal["safe", "affine"] = key("safe", "traces: who puts in the debug prints")
    scoring: Literal["affine", "exact", "lines"] = key("affine", "traces: the score that is paid")
    by_line: bool = key(False, "traces, with decode text: one line of output per turn")


class Traces(Kind[TraceKeys]):
    """Programs whose output the agent predicts.

    A policy plays the environment with a choice of outputs, a Discrete action as in games. Baselines that
    answer with text, and policies without a mask, play ``REPLY_ENVIRONMENT``. There a seed is another task:
    the program is shown as it is, and not as one of its mutants.
    """

    env_type = "trace"
    unit = "traces"
    served_as = "trace"
    environment = "CodeTraceChoice-v0"
    agents = f"{', '.join(REPLIES)} (replies), or {', '.join(CHOICES)} (choices); or openai:MODEL@URL"
    agent_pattern = "|".join((*REPLIES, *CHOICES, "openai:.+"))
    preset = "tiny-trace"
    reply_environment = REPLY_ENVIRONMENT
    max_new_tokens = 1024
    keys = TraceKeys
    narrowing = ("source", "level", "family")

    def check(self, env: TraceKeys) -> None:
        if env.by_line and env.decode != "text":
            raise ConfigError("env.by_line = true needs env.decode: text, where the output is written")

    def arguments(self, env: TraceKeys) -> dict[str, Any]:
        # Answers by name are the outputs themselves, which need no numbered list in the prompt.
        return trace_arguments(env) | {"illegal": env.illegal, "listed": env.answer == "id"}

    def stage_tasks(
        self, env: TraceKeys, ids: list[Any] | None, level: int | None, family: str | None
    ) -> Any:
        from trace_gym.task import TaskSet

        if ids is None and level is None and family is None:
            return None
        for name, asked in (("level", level), ("family", family)):
            own = getattr(env, name)
            if None not in (asked, own) and asked != own:
                raise InvalidValueError(
                    f"curriculum.stages: {name} = {asked!r} was given, which env.{name} = {own!r} excludes; "
                    f"leave env.{name} out"
                )
        one = env.task_id if ids is None else None
        among = None if one is not None else ids or list(env.task_ids) or None
        return TaskSet(one, among, env.source, level or env.level, family or env.family).ids

    def scored(self, name: str) -> str | int:
        if not name.isdecimal():
            check_choice("curriculum.success_scores", name, (NAME,), InvalidValueError)
        return super().scored(name)

    def completed(self, env: TraceKeys) -> TraceKeys:
        """Returns the section; on a server a policy writes, because a server does not show false outputs."""
        return env if env.env_mode == "local" else dataclasses.replace(env, decode="text")

    def settled(self, env: TraceKeys) -> TraceKeys:
        """Returns the section with a data set's commit in its source: "hub@COMMIT".

        Raises:
            SourceError: there is no program source of that name.
        """
        from trace_gym.programs.sources import open_source

        return dataclasses.replace(env, source=open_source(env.source).name)

    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        return [NAME]

    def where(self, env: TraceKeys, tasks: Sequence[str], agent: str | None) -> str:
        return REPLY_ENVIRONMENT if agent in REPLIES else self.environment

    def file_label(self, env: TraceKeys, tasks: Sequence[str]) -> str:
        return "trace"

    def seeds(self, envs: TextEnvs, count: int, seed: int) -> list[int]:
        return trace_seeds(seed, count)

    def play_agent(
        self, name: str, env: TraceKeys, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        from gamespiel.agents.runs.evaluation import play_seeds

        if env.env_mode != "local":
            raise InvalidValueError(
                f"--agent {name} needs what a server does not show: it needs env.env_mode: local"
            )
        seeds = trace_seeds(seed, count)
        if name in REPLIES:
            whole = dataclasses.replace(env, by_line=False, think=False)
            with shown(count) as on_step:
                return reply_episodes(whole, name, seeds, on_step)
        with shown(count) as on_step:
            return play_seeds(make_envs(count), choice_agent(name, seed, count), seeds, on_step)

    def addresses(self, env: TraceKeys, count: int, seed: int) -> list[Address]:
        made = gym.make(self.reply_environment, disable_env_checker=True, **trace_arguments(_local(env)))
        try:
            resets = ((drawn, made.reset(seed=drawn)[1]) for drawn in trace_seeds(seed, count))
            return [Address(info["task_id"], drawn) for drawn, info in resets]
        finally:
            made.close()

    def play_endpoint(
        self, chat: Chat, env: TraceKeys, address: Address, timeout: float | None
    ) -> dict[str, Any]:
        from gamespiel.endpoints.traces import TIMEOUT, ask_trace
        from trace_gym.envs.text import CodeTraceEnv

        made, limit = CodeTraceEnv(**trace_arguments(_local(env))), TIMEOUT if timeout is None else timeout
        assert address.task_id is not None
        return ask_trace(chat, made, address.task_id, address.seed, limit)

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        named = {name: extra.get(name) for name in ("level", "family")}
        return [f"{name} {value}" for name, value in named.items() if value is not None]

    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        return by_level_and_family(episodes)

    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        from gamespiel.report.tables import scored_table

        return scored_table(title, rows)

    def make_reply_env(self, env: TraceKeys) -> gym.Env[Any, Any]:
        made = gym.make(_reply_environment(env), disable_env_checker=True, **trace_arguments(env))
        return Thinking(made) if env.think else made

    def reply_where(self, env: TraceKeys, tasks: Sequence[str]) -> str:
        return _reply_environment(env)

    def reply_table(
        self, title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
    ) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        from gamespiel.report.tables import cut_note, scored_table

        tables = [scored_table(f"{title}, {how}", rows) for how, rows in replies.items()]
        return Group(*tables, Text(cut_note(replies)))


def _local(env: TraceKeys) -> TraceKeys:
    return dataclasses.replace(env, env_mode="local")


def _reply_environment(env: TraceKeys) -> str:
    return LINES_ENVIRONMENT if env.by_line else REPLY_ENVIRONMENT


def trace_arguments(env: TraceKeys) -> dict[str, Any]:
    """Returns the section as arguments of any tracing environment; without task ids, all are drawn."""
    return {
        "task_id": env.task_id,
        "task_ids": list(env.task_ids) or None,
        "source": env.source,
        "level": env.level,
        "family": env.family,
        "injector": env.injector,
        "scoring": env.scoring,
        **server_arguments(env),
    }


def trace_seeds(seed: int, count: int) -> list[int]:
    """Returns the episode seeds of an evaluation on traces: the same tasks for every agent."""
    from gamespiel.agents.sampling.noise import Purpose, episode_seeds

    return episode_seeds(seed, 0, count, Purpose.EVALUATION_TASKS)


def echo(code: str) -> str:
    """Returns a program's text literals, one per line, in the order of the program."""
    from trace_gym.syntax import parse

    found: list[ast.Constant] = []

    def read(node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node)
        for child in ast.iter_child_nodes(node):
            read(child)

    read(parse(code))
    # Parts of an f-string share its position in some Python versions; they keep the tree's order.
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return "\n".join(str(node.value) for node in found)


def reply_episodes(
    config: TraceKeys, agent: str, seeds: Sequence[int], on_step: OnStep = lambda over, turns: None
) -> list[Episode]:
    """Plays one episode of CodeTrace-v0 per seed with one of ``REPLIES``; calls ``on_step`` after each.

    A turn has no decision: nobody sampled its tokens.
    """
    from gamespiel.agents.rollout import Episode, Turn

    env = KIND.make_reply_env(config)
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


def by_level_and_family(episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
    """Returns episodes by level and by family, if there is more than one, and all of them."""
    groups: dict[str, list[Episode]] = {}
    for name in ("level", "family"):
        values = {episode.info[name] for episode in episodes} - {None}
        if len(values) > 1:
            for value in sorted(values):
                groups[f"{name} {value}"] = [e for e in episodes if e.info[name] == value]
    return {**groups, "all": list(episodes)}


KIND = Traces()
