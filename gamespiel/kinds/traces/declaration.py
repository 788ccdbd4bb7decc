"""The declaration of code tracing: its name, its baselines, and what its keys mean."""

from __future__ import annotations

import dataclasses
from typing import Any

from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.base import Baselines, Declaration, Replies
from gamespiel.kinds.traces.baselines import CHOICES, REPLIES
from gamespiel.kinds.traces.keys import REPLY_ENVIRONMENT, TraceKeys, trace_arguments
from task_gym.errors import check_choice

NAME = "code_trace"
"""Name of the task in results."""


class TraceDeclaration(Declaration[TraceKeys]):
    """Programs whose output the agent predicts.

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

    def task_ranges(self, env: TraceKeys) -> list[tuple[int, int]] | None:
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


DECLARATION = TraceDeclaration()
