"""Measures decisions per second of the local sampler and of vLLM: `python -m benchmarks.samplers --url URL`.

A wave of environments asks at once: choices on Leduc poker, a different state in each, and texts of 32 and of
256 tokens, which end nowhere before. Both samplers have the same model and the same random adapters. The
servers are those of `gamespiel vllm-command`; several addresses are replicas. Without `--url` only the local
sampler is measured.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from benchmarks.ending import end, parse
from benchmarks.machine import machine
from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.models.names import NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.sampling.sampler import Sampler
from gamespiel.agents.sampling.vllm.checks import Needs
from gamespiel.agents.sampling.vllm.connect import connect, list_targets
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.config.sections import EnvConfig
from gamespiel.environments import make_one_env

SPREAD = 0.02
"""Standard deviation of the adapters' matrices B, which are 0 in a new policy."""

Wave = tuple[list[str], np.ndarray[Any, Any]]


def draw_states(count: int) -> Wave:
    """Returns texts and masks of so many states of Leduc poker, drawn by random play."""
    env, rng = (
        make_one_env(EnvConfig(game="leduc_poker", opponent="random", rules=True)),
        np.random.default_rng(0),
    )
    texts: list[str] = []
    masks: list[Any] = []
    seed, over = 0, True
    while len(texts) < count:
        if over:
            observation, info = env.reset(seed=seed)
            seed, over = seed + 1, False
        texts.append(observation)
        masks.append(np.asarray(info["action_mask"], dtype=bool))
        action = rng.choice(np.flatnonzero(masks[-1]))
        observation, _, terminated, truncated, info = env.step(int(action))
        over = terminated or truncated
    return texts, np.stack(masks)


def make_policy(settings: ModelSettings, actions: int, device: str) -> LLMPolicy:
    """Returns a policy whose adapters change every layer."""
    env = make_one_env(EnvConfig(game="leduc_poker", opponent="random"))
    policy = LLMPolicy(
        env.observation_space, spaces.Discrete(actions), lambda _: 1e-4, model=settings, device=device
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in policy.adapters.learning.items():
            if "lora_B" in name:
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * SPREAD)
    return policy


def connect_to(urls: Sequence[str], policy: LLMPolicy, limit: float | None) -> Sampler:
    """Returns the sampler on servers, which know the policy's adapters."""
    (prompt,) = policy.prompts(["Which number is the largest: 3, 12, 7 or 25?"])
    needs = Needs(None, 1, list_targets(policy.model))
    sampler = connect(urls, policy.engine, policy.adapters, policy.lora_settings, prompt, needs, limit=limit)
    sampler.publish(NEWEST, policy.adapters.learning)
    return sampler


def measure(policy: LLMPolicy, wave: Wave, tokens: int, repetitions: int) -> float:
    """Returns decisions per second, the median of repetitions; texts have so many tokens, choices 0."""
    texts, masks = wave
    free = FreeText(frozenset(), tokens) if tokens else None
    seconds = []
    for step in range(repetitions + 1):
        # New texts every time: nothing but the rules is in a cache of prefixes.
        own = [f"{text}\n{step}" for text in texts]
        noise = [Address(0, Purpose.ACTIONS, step, 0, episode) for episode in range(len(texts))]
        began = time.perf_counter()
        policy.decide(own, masks, noise, constraint=free)
        seconds.append(time.perf_counter() - began)
    return len(texts) / statistics.median(seconds[1:])  # the first one warms up


def name_model(model: str) -> str:
    """Returns a model's name in the results: of a folder, the last part of its path."""
    return Path(model).name if Path(model).is_dir() else model


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", nargs="+", default=[], help="addresses of servers of the model")
    parser.add_argument("--model_name", default="HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--gap_limit", type=float, help="as run.vllm_gap_limit")
    parser.add_argument("--environments", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 32, 256], help="0: choices")
    parser.add_argument("--repetitions", type=int, default=3)
    given = parse(parser, argv)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    largest = draw_states(max(given.environments))
    policy = make_policy(ModelSettings(given.model_name, dtype=given.dtype), largest[1].shape[1], device)
    samplers: dict[str, Callable[[], Sampler]] = {"local": lambda: policy.sampler}
    if given.url:
        samplers["vllm"] = lambda: connect_to(given.url, policy, given.gap_limit)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, make in samplers.items():
        policy.sampler = make()
        for tokens in given.tokens:
            answer = f"texts_{tokens}" if tokens else "choices"
            for count in given.environments:
                wave = largest[0][:count], largest[1][:count]
                rate = measure(policy, wave, tokens, given.repetitions)
                print(f"{name}, {answer}, {count} environments: {rate:.2f} decisions/s", flush=True)
                found.setdefault(name, {}).setdefault(answer, {})[str(count)] = round(rate, 3)
    results = {
        "benchmark": "samplers", "model": name_model(given.model_name),
        "dtype": str(policy.dtype).removeprefix("torch."), "servers": len(given.url),
        "local_threads": torch.get_num_threads(), "repetitions": given.repetitions,
        "decisions_per_second": found, "machine": machine(),
    }  # fmt: skip
    return end(results, given.out)


if __name__ == "__main__":
    main()
