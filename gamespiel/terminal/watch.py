"""``gamespiel watch``: a trained policy plays, move by move."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from gamespiel.agents.models import NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.noise import DrawnNoise
from gamespiel.assembly import connect_sampler, load_policy
from gamespiel.config import EnvConfig, InvalidValueError, RunConfig, saved_config
from gamespiel.environments.making import make_one_env
from gamespiel.kinds import kind_of
from gamespiel.report.console import make_console
from gamespiel.terminal.screen import box_of, menu, position, rule


def watch(
    config: EnvConfig,
    checkpoint: Path,
    *,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    delay: float = 0.0,
    run: RunConfig | None = None,
    console: Console | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> list[dict[str, Any]]:
    """Plays episodes with a run's policy and prints every turn; returns the last info of each.

    Args:
        config: The section ``env`` to play: the run's own, with changes.
        checkpoint: A run's folder, or one of its checkpoints.
        episodes: Number of episodes; they have the seeds ``seed``, ``seed + 1``, ...
        seed: The first seed, of the environment and of the policy's draws.
        greedy: Whether the most probable action or token is taken.
        delay: Seconds between turns.
        run: The section ``run`` whose ``use_vllm`` says where the policy samples; None for in this process.
        console: The console to print on.
        sleep: Waits.

    Raises:
        TaskGymError: the run cannot be loaded or does not fit.
    """
    console = console or make_console()
    if episodes < 1:
        raise InvalidValueError(f"--episodes must be at least 1, not {episodes}")
    if not 0 <= delay < math.inf:
        raise InvalidValueError(f"--delay must be at least 0 seconds, not {delay}")
    if kind_of(config).plays_itself(config):
        console.print("opponent 'self': the policy plays every seat", markup=False)
    env = make_one_env(config)
    policy = load_policy(checkpoint, env)
    if run is not None and run.use_vllm:
        connect_sampler(dataclasses.replace(saved_config(checkpoint), env=config, run=run), policy)
        policy.sampler.publish(NEWEST, policy.adapters.learning)
    seeds = range(seed, seed + episodes)
    infos = [_play_episode(env, policy, one, greedy, lambda: sleep(delay), console) for one in seeds]
    results = [info["result"] for info in infos]
    if episodes > 1:
        counts = ", ".join(f"{results.count(name)} {name}" for name in dict.fromkeys(results))
        console.print(f"{episodes} episodes: {counts}")
    env.close()
    return infos


def _play_episode(
    env: Any, policy: LLMPolicy, seed: int, greedy: bool, wait: Callable[[], None], console: Console
) -> dict[str, Any]:
    """Plays one episode; returns the last info."""
    observation, info = env.reset(seed=seed)
    console.print(Text(f"{info['game']} against {info['opponent']}, seed {seed}", style="bold"))
    rng, turn = np.random.default_rng(seed), 0
    while "result" not in info:
        turn += 1
        console.print(rule(f"turn {turn}, Player {info['seat']}"))
        if hasattr(env.unwrapped, "variant"):
            console.print(box_of(position(env, observation, info)))
        else:  # a program, as it is
            console.print(Text(observation), soft_wrap=True)
        mask = np.asarray(info["action_mask"], dtype=bool)[None] if policy.answers.masked else None
        noise = None if greedy else DrawnNoise.for_batch(rng.random, 1)
        (decision,) = policy.decide([observation], mask, noise)
        action = _show_decision(policy, observation, info, decision, console)
        wait()
        observation, _, _, _, info = env.step(action)
        if "error" in info:
            console.print(Text(f"illegal: {info['error']['message']}", style="bold"))
    console.print(rule("end"))
    console.print(box_of(observation))
    return dict(info)


def _show_decision(
    policy: LLMPolicy, observation: str, info: dict[str, Any], decision: Decision, console: Console
) -> int | str:
    """Prints a decision with the policy's probabilities and value; returns the action or the reply."""
    action = policy.answer_of(decision).action
    if policy.answers.masked:
        (odds,) = policy.distribution([observation], [info["legal_actions"]])
        console.print(menu(info, odds.tolist(), chosen=int(action)))
    else:
        console.print(Text(f"reply: {action}", style="bold"))
    (value,) = policy.values_of([decision])
    console.print(Text(f"expects a score of {value:.3f}", style="dim"))
    return action
