"""Training steps of a large model: their speed, their memory, and what happens when memory runs out."""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from typing import Any

import torch

from benchmarks.gpu import models, timing
from benchmarks.gpu.models import make_learner, make_step, make_steps, share_learner, time_passes
from benchmarks.gpu.timing import CUDA, Row, attempt, clock, read_memory, release, to_gib
from gamespiel.agents.models.memory_plan import plan
from gamespiel.agents.ppo import LLMPPO
from gamespiel.config import resolve
from gamespiel.training.planning import load_of


def bf16(options: argparse.Namespace, end_by: float) -> Row:
    """Returns times and memory of the preset for 80 GB, and keeps its learner for other stages."""
    row, options.learner = train(options, end_by, "qwen3-4b-80gb", tokens_per_forward=32_768)
    return row


def nf4(options: argparse.Namespace, end_by: float) -> Row:
    """Returns times and memory of the preset for 12 GB."""
    model = {"use_4bit": True, "use_nested_quant": True, "gradient_checkpointing": True}
    return train(options, end_by, "qwen3-4b-12gb", tokens_per_forward=16_384, **model)[0]


def train(options: argparse.Namespace, end_by: float, preset: str, **settings: Any) -> tuple[Row, LLMPPO]:
    options.learner = None
    release()
    seconds, algorithm = clock(partial(make_learner, options, **settings))
    row: Row = {"preset": preset, "load_seconds": round(seconds, 2), "loaded": read_memory()}
    release()
    row["first_step"] = make_step(algorithm)
    row["steps"] = make_steps(algorithm, 8 if CUDA else 1, end_by - 25)
    row["memory"] = read_memory()
    row["passes"] = time_passes(algorithm)
    row["step_kernels"] = timing.profile_kernels(partial(make_step, algorithm))
    tokens = 8192 if CUDA else 512
    row["full_budget"] = attempt(partial(fill_budget, algorithm, tokens))
    row["plan"] = attempt(partial(plan_memory, preset, algorithm, tokens))
    return row, algorithm


def five(options: argparse.Namespace, end_by: float) -> Row:
    """Returns times and memory of the presets' five games."""
    options.learner = None
    release()
    algorithm = make_learner(options, models.FIVE)
    row = {"first_step": make_step(algorithm), "steps": make_steps(algorithm, 1, end_by)}
    return row | {"memory": read_memory()}


# -- memory ------------------------------------------------------------------------------------------------


def fill_budget(algorithm: LLMPPO, tokens: int) -> Row:
    """Returns times and memory of a forward of so many tokens, and of its backward."""
    policy = algorithm.policy
    rows = torch.randint(5, 1000, (tokens // 128, 128), generator=torch.Generator().manual_seed(0)).tolist()
    prompts = [(*rows[0], *row) for row in rows[1:]]

    def work() -> None:
        hidden = policy.engine.read(prompts, range(len(prompts)), [255] * len(prompts))
        policy.engine.logits(hidden[:32]).log_softmax(-1)[:, 0].sum().backward()
        policy.optimizer.zero_grad(set_to_none=True)

    release()
    return {"tokens": tokens, "seconds": [clock(work)[0] for _ in range(2)], **read_memory()}


def plan_memory(preset: str, algorithm: LLMPPO, tokens: int) -> Row:
    """Returns the peak that `train --plan` calculates for a preset at a budget, to compare it."""
    config = resolve(preset)
    load = load_of(dataclasses.replace(config, run=dataclasses.replace(config.run, device="auto")))
    longest = max(len(decision.prompt) for decision in algorithm.rollout_buffer.decisions)
    budgets = {"tokens_per_backward": tokens, "tokens_per_forward": tokens}
    memory = plan(dataclasses.replace(load, prompt_tokens=longest, **budgets))
    parts = ("peak", "context", "weights", "activations")
    return {f"{part}_gib": to_gib(getattr(memory, part)) for part in parts}


def oom(options: argparse.Namespace, end_by: float) -> Row:
    """Returns the budgets before and after a step with too little memory. Without a GPU nothing limits it."""
    algorithm = share_learner(options)
    budgets = algorithm.policy.budgets
    row: Row = {"before": dict(budgets.state_dict())}
    release()
    baseline = read_memory().get("allocated_gib", 0.0)
    make_step(algorithm)
    needed = row["needed_gib"] = read_memory().get("peak_allocated_gib", 0.0) - baseline
    release()
    try:
        if CUDA:
            left = torch.cuda.memory_reserved() / 2**30 + 0.45 * needed
            torch.cuda.set_per_process_memory_fraction(min(1.0, left / to_gib(torch.cuda.mem_get_info()[1])))
        row |= {"step": make_step(algorithm), "after": dict(budgets.state_dict())}
    finally:
        if CUDA:
            torch.cuda.set_per_process_memory_fraction(1.0)
        budgets.give(*(budget["given"] for budget in row["before"].values()))
    return row | {"next_step": make_step(algorithm)}
