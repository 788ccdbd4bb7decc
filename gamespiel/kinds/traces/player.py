"""The player of code tracing: environments with a choice of outputs or with replies, and their seeds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.base import EpisodeAddress, MakeEnvs, Player, ShowProgress, Thinking
from gamespiel.kinds.traces.baselines import REPLIES, choice_agent, play_replies
from gamespiel.kinds.traces.declaration import NAME
from gamespiel.kinds.traces.keys import REPLY_ENVIRONMENT, TraceKeys, reply_environment, trace_arguments

if TYPE_CHECKING:
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Episode
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.endpoints.chat import Chat


class TracePlayer(Player[TraceKeys]):
    """Plays one program per episode."""

    def text_variables(self) -> tuple[str, ...]:
        from trace_gym.envs.upstream_prompt import VARIABLE

        return (VARIABLE,)

    def make_reply_env(self, env: TraceKeys) -> gym.Env[Any, Any]:
        gym_env = gym.make(reply_environment(env), disable_env_checker=True, **trace_arguments(env))
        return Thinking(gym_env) if env.think else gym_env

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
        if name in REPLIES:
            whole = dataclasses.replace(env, by_line=False, think=False)
            with show_progress(count) as on_step:
                return play_replies(self.make_reply_env(whole), name, seeds, on_step)
        with show_progress(count) as on_step:
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
