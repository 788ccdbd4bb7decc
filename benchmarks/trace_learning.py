"""Measures whether seeing the program helps: `python -m benchmarks.trace_learning`.

The preset `tiny-trace` is trained twice from the same seed: once as it is, and once without the program and
its input in any observation, so only the outputs are left. Both policies choose on the same held-out task ids
before and after, at temperature 1 and greedily, with the observations of their training. The baseline is the
best constant choice: the option that is right most often on these ids.

Shares of right choices have 95% Wilson intervals over the held-out ids, not over training seeds. Seconds
include making the programs, which are there already for the second policy. Any key can be set as in
`train.py`, for example `--ppo.num_train_steps 2`.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.ending import end, machine, make_parser, parse
from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.evaluation import play_seeds, policy_agent
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.assembly import make_algorithm
from gamespiel.cli import split_overrides
from gamespiel.config import Config, ConfigError, resolve, to_dict
from gamespiel.environments.making import ENVIRONMENTS_AT_ONCE
from gamespiel.kinds import kind_of
from gamespiel.kinds.traces.kind import trace_seeds
from task_gym.stats import Interval, wilson
from task_gym.wrappers import NamedActions
from trace_gym.envs.prompts import render_choice, render_task

PRESET = "tiny-trace"
HELD_OUT = (5_000_000_000, 5_999_999_999)
MODES = ("sampled", "greedy")


class HiddenProgram(gym.Wrapper[str, Any, str, Any]):
    """A wrapper that replaces the program and its input by empty texts.

    If outputs are not listed, nothing is left of the question, and only the outputs' names differ.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Resets the wrapped environment."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._hidden(info), info

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Steps the wrapped environment. The last observation, after the choice, is shown as it is."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return (text if terminated else self._hidden(info)), reward, terminated, truncated, info

    def _hidden(self, info: dict[str, Any]) -> str:
        choice: Any = self.unwrapped
        return render_choice("", "", info["admissible_commands"]) if choice.listed else render_task("", "")


Make = Callable[[], gym.Env[Any, Any]]
Wrap = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]
ARMS: dict[str, Wrap] = {"shown": lambda env: env, "hidden": HiddenProgram}
"""The wrappers of the two trainings."""


class Curve(BaseCallback):
    """A callback that records and prints the mean reward of each step's episodes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.rewards.append(float(self.logger.name_to_value["rollout/reward"]))
        print(f"{self.name}: step {len(self.rewards)}  reward {self.rewards[-1]:.3f}", flush=True)


def configuration(overrides: Sequence[tuple[str, str]]) -> Config:
    """Returns the preset with overrides.

    Raises:
        ConfigError: the task is not code tracing by choices in this process, or training would use held-out
            task ids.
    """
    config = resolve(PRESET, overrides=overrides)
    env = config.env
    if env.env_type != "trace":
        raise ConfigError(f"this benchmark is of traces: env.env_type must be 'trace', not {env.env_type!r}")
    if env.decode != "choice" or config.run.env_workers:
        raise ConfigError(
            "this benchmark is of choices in one process: env.decode must be 'choice' and run.env_workers 0, "
            f"not {env.decode!r} and {config.run.env_workers}"
        )
    named = env.task_ids if env.task_id is None else (env.task_id,)
    ranges = [item if isinstance(item, tuple) else (item, item) for item in named]
    if not ranges or any(first <= HELD_OUT[1] and HELD_OUT[0] <= last for first, last in ranges):
        raise ConfigError(
            f"training must leave out the task ids {list(HELD_OUT)}, which are held out: "
            f"env.task_ids was {list(named)}"
        )
    return config


def list_makers(env: Any, count: int, wrap: Wrap) -> list[Make]:
    """Returns what makes copies of the section's environment, in a wrapper inside that of named answers."""

    def make() -> gym.Env[Any, Any]:
        wrapped = wrap(kind_of(env).make_env(env))
        return NamedActions(wrapped) if env.answer == "name" else wrapped

    return [make] * min(count, ENVIRONMENTS_AT_ONCE)


def make_held_out(config: Config, traces: int, wrap: Wrap = ARMS["shown"]) -> TextEnvs:
    """Returns the configured environments on the held-out task ids."""
    env = dataclasses.replace(config.env, task_id=None, task_ids=(HELD_OUT,))
    return TextEnvs(list_makers(env, traces, wrap))


def right_options(envs: TextEnvs, seeds: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the right option and the number of options, per episode."""
    pairs = []
    for episode, seed in enumerate(seeds):
        slot = episode % envs.num_envs
        _, info = envs.reset_one(slot, seed)
        local: Any = envs.envs[slot].unwrapped
        options = info["admissible_commands"]
        pairs.append((options.index(local.trace.truth), len(options)))
    return pairs


def best_constant(right: Sequence[int]) -> tuple[int, int]:
    """Returns the option that is right most often (the lowest of equals), and how often."""
    counts = Counter(right)
    option = min(counts, key=lambda one: (-counts[one], one))
    return option, counts[option]


def share(right: int, traces: int) -> dict[str, Any]:
    return {"right": right, "share": [round(value, 4) for value in wilson(right, traces)]}


def learn(name: str, config: Config, seeds: Sequence[int]) -> dict[str, Any]:
    """Trains one arm, and evaluates it on the held-out ids before and after."""
    wrap, curve = ARMS[name], Curve(name)
    model = make_algorithm(config)
    model.set_env(TextVecEnv(list_makers(config.env, config.ppo.batch_size, wrap), config.run.env_threads))
    envs = make_held_out(config, len(seeds), wrap)
    untrained = shares(model.policy, envs, seeds, config.run.seed)
    started = time.perf_counter()
    model.learn(callback=curve)
    result: dict[str, Any] = {
        "decisions": model.num_timesteps,
        "seconds": round(time.perf_counter() - started, 1),
        "rewards": [round(reward, 4) for reward in curve.rewards],
    }
    return result | {"untrained": untrained} | shares(model.policy, envs, seeds, config.run.seed)


def shares(policy: LLMPolicy, envs: TextEnvs, seeds: Sequence[int], seed: int) -> dict[str, Any]:
    """Returns the shares of right choices, by mode."""
    modes = {}
    for mode in MODES:
        decide = policy_agent(policy, seed, greedy=mode == "greedy")
        episodes = play_seeds(envs, decide, seeds)
        # Options differ in what "affine" compares, so only the true output scores 1.
        modes[mode] = share(sum(e.info["by_scoring"]["affine"] == 1.0 for e in episodes), len(seeds))
    return modes


def table(results: dict[str, Any]) -> str:
    """Returns the results as a table: shares of right choices, in percent."""
    constant = results["constant"]
    rows = [("", *MODES)]
    for name, arm in results["arms"].items():
        for when, modes in (("untrained", arm["untrained"]), ("trained", arm)):
            rows.append((f"program {name}, {when}", _percent(modes["sampled"]), _percent(modes["greedy"])))
    rows.append((f"always option {constant['option']}", "", _percent(constant)))
    rows.append(("uniformly random", f"{results['uniform']:.1%}", ""))
    return "\n".join(f"{name:<26}{sampled:>20}{greedy:>20}" for name, sampled, greedy in rows)


def _percent(figures: dict[str, Any]) -> str:
    interval = Interval(*figures["share"])
    return f"{interval.mean:.1%} ({100 * interval.low:.1f}–{100 * interval.high:.1f})"


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    rest, overrides = split_overrides(sys.argv[1:] if argv is None else argv)
    parser = make_parser("trace_learning", __doc__)
    parser.add_argument("--traces", type=int, default=1000, help="held out, to evaluate on [1000]")
    parser.add_argument("--threads", type=int, help="CPU threads (left out: torch decides)")
    arguments = parse(parser, rest)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    config = configuration([("run.device", "cpu"), ("run.seed", "0"), *overrides])

    seeds = trace_seeds(config.run.seed, arguments.traces)
    # Open to the end: the other environments share its programs.
    envs = make_held_out(config, arguments.traces)
    options = right_options(envs, seeds)
    option, right = best_constant([place for place, _ in options])
    results: dict[str, Any] = {
        "benchmark": "trace_learning",
        "machine": machine() | {"threads": torch.get_num_threads(), "torch": torch.__version__},
        "preset": PRESET,
        "settings": {"ppo": asdict(config.ppo), "lora": asdict(config.lora), "env": to_dict(config)["env"]},
        "seed": config.run.seed,
        "held_out": {"task_ids": list(HELD_OUT), "traces": arguments.traces},
        "uniform": round(sum(1 / count for _, count in options) / len(options), 4),
        "constant": {"option": option, **share(right, arguments.traces)},
        "arms": {name: learn(name, config, seeds) for name in ARMS},
    }
    envs.close()
    print(table(results))
    return end(results, arguments.out)


if __name__ == "__main__":
    main()
