"""Models of random weights in a known shape, their learners, and how long a step and its passes take."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.timing import DEVICE, Row, clock, median_ms, profile_kernels
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.loading import TINY, ModelSettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config.sections import EnvConfig
from gamespiel.environments.making import make_one_env

LEDUC = EnvConfig(game="leduc_poker", opponent="random", rules=True)
FIVE = EnvConfig(allowed_game_indices=(0, 1, 2, 6, 7), opponent="random")
"""The environment of the presets of 3 to 4 billion parameters."""

STEPS = 10_000
LOGGED = (
    "time/collect_seconds", "time/update_seconds", "rollout/tokens_per_decision", "train/tokens_per_decision",
    "train/sampler_gap", "train/skipped_updates", "train/actor_grad_norm",
)  # fmt: skip


def make_config(options: argparse.Namespace, layers: int, hidden: int, head: int) -> dict[str, Any]:
    """Returns the configuration of a smaller Qwen3 with the tokenizer's vocabulary."""
    return {
        "model_type": "qwen3", "vocab_size": 151_936 if options.tokenizer else 1536, "hidden_size": hidden,
        "intermediate_size": 3 * hidden, "num_hidden_layers": layers, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": head, "tie_word_embeddings": True,
    }  # fmt: skip


@contextmanager
def write_model(config: Mapping[str, Any], tokenizer: str | Path = TINY) -> Iterator[str]:
    """Yields a folder with a configuration and the tokenizer of another folder, without weights."""
    with tempfile.TemporaryDirectory() as folder:
        for path in Path(tokenizer).iterdir():
            if path.name.startswith(("tokenizer", "chat_template")):
                (Path(folder) / path.name).write_bytes(path.read_bytes())
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        yield folder


def make_algorithm(
    model: ModelSettings, env: EnvConfig, episodes: int, device: str = DEVICE, **changes: Any
) -> LLMPPO:
    return LLMPPO(
        LLMPolicy,
        TextVecEnv([lambda: make_one_env(env)] * episodes),
        hyperparameters=Hyperparameters(batch_size=episodes, **changes),
        policy_kwargs={"model": model},
        device=device,
    )


def make_learner(
    options: argparse.Namespace,
    env: EnvConfig = LEDUC,
    device: str = DEVICE,
    config: Mapping[str, Any] | None = None,
    tokens_per_forward: int = 32_768,
    **model: Any,
) -> LLMPPO:
    """Returns a learner with random weights, of the options' architecture if there is no configuration."""
    if config is None:
        config = make_config(options, 2, 64, 16) if options.small else KNOWN[options.architecture]
    ppo = {"num_train_steps": STEPS, "ent_coef": 0.1, "tokens_per_backward": 8192}
    with write_model(config, options.tokenizer or TINY) as folder:
        model = {"dtype": "bfloat16", "reading": "shared"} | model
        settings = ModelSettings(folder, random_weights=True, **model)
        episodes = 2 if options.small else 8
        return make_algorithm(settings, env, episodes, device, tokens_per_forward=tokens_per_forward, **ppo)


def share_learner(options: argparse.Namespace) -> LLMPPO:
    """Returns the learner of the stage bf16, or a new one after its first step."""
    if options.learner is None:
        options.learner = make_learner(options)
        make_step(options.learner)
    return options.learner  # type: ignore[no-any-return]


def randomise(policy: LLMPolicy) -> None:
    """Makes B of the adapters other than 0: else the adapters would change nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.adapter_parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator).mul_(0.02).to(parameter.device))


def take_gradient(policy: LLMPolicy) -> Tensor:
    """Returns the gradient of the adapters as one vector, and clears it."""
    gradient = torch.cat([p.grad.flatten() for p in policy.adapter_parameters() if p.grad is not None])
    policy.optimizer.zero_grad(set_to_none=True)
    return gradient


# -- steps and passes --------------------------------------------------------------------------------------


def make_step(algorithm: LLMPPO) -> Row:
    """Makes one training step; returns its times and counts."""
    algorithm.total_steps = algorithm.step + 1
    cpu = time.process_time()
    seconds, _ = clock(lambda: algorithm.learn(log_interval=10**9))  # nothing is dumped: the logger keeps it
    row: Row = {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}
    row |= {name: algorithm.logger.name_to_value.get(name) for name in LOGGED}
    row["decisions"] = len(algorithm.rollout_buffer)
    print("   ", row, flush=True)
    return row


def make_steps(algorithm: LLMPPO, count: int, end_by: float) -> Row:
    """Makes steps while there is time, at least one; returns their times, and a preset's hours."""
    steps: list[Row] = []
    while len(steps) < count and (not steps or time.perf_counter() < end_by):
        steps.append(make_step(algorithm))
    row: Row = {name: [step[name] for step in steps] for name in ("seconds", "cpu_seconds", "decisions")}
    row["seconds_median"] = statistics.median(row["seconds"])
    row[f"hours_for_{STEPS}_steps"] = round(statistics.mean(row["seconds"]) * STEPS / 3600, 2)
    return row


def make_pass(algorithm: LLMPPO, gradients: bool) -> Tensor:
    """Scores decisions as an update does, with a backward if it is wanted; returns log-probabilities."""
    policy = algorithm.policy
    policy.optimizer.zero_grad(set_to_none=True)
    with torch.set_grad_enabled(gradients):
        scores = policy.scorer.score(first_decisions(algorithm), mass=True)
        loss = scores.log_probs.sum() + scores.values.sum() + scores.log_mass.sum()
    if gradients:
        loss.backward()
    return scores.log_probs.detach()


def first_decisions(algorithm: LLMPPO) -> Sequence[Decision]:
    """Returns the decisions of a pass: so many are in a forward of an update."""
    return algorithm.rollout_buffer.decisions[:16]


def time_passes(algorithm: LLMPPO) -> Row:
    """Returns times and kernels of a forward, and of a forward with its backward."""
    before = algorithm.policy.engine.tokens_read
    make_pass(algorithm, False)
    row: Row = {"tokens_read": algorithm.policy.engine.tokens_read - before}
    for name, gradients in {"forward": False, "forward_backward": True}.items():
        call = partial(make_pass, algorithm, gradients)
        row[name] = {"ms": median_ms(call)} | profile_kernels(call)
    return row
