"""``gamespiel merge``: a run's adapters merged into the 16-bit base model, and checked on real prompts."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from safetensors import SafetensorError
from transformers import GenerationConfig

from gamespiel.agents.models.loading import load_tokenizer
from gamespiel.agents.models.weights import describe_model, share_weights
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.config import Config, InvalidValueError, saved_config
from gamespiel.environments.making import evaluation_config, make_one_env
from gamespiel.report.text import print_plain
from task_gym.errors import BackendError

Type = Literal["bfloat16", "float16", "float32"]

PROMPTS = 16
"""Real prompts on which the merged model is compared."""

TOLERANCES: dict[Any, float] = {"float32": 0.001, "float16": 0.05, "bfloat16": 0.25}
"""The most that a likely token's log-probability may change, in nats, by type: 16 bits round the weights."""

LIKELY = 0.01
"""Tokens of at least this probability are compared."""


def merge_run(source: Path, output: Path, dtype: Type, tolerance: float | None, console: Console) -> None:
    """Writes the merged model of a checkpoint, with its tokenizer, to a new folder.

    The base is loaded in 16 bits, also if the run was in 4 or 8: adapters cannot be merged into those.

    Args:
        source: The checkpoint.
        output: The folder.
        dtype: The type of the merged weights: "bfloat16", "float16" or "float32".
        tolerance: The most by which a likely token's log-probability may differ from the unmerged model's, in
            nats; None for that of ``TOLERANCES``.
        console: The console to print on.

    Raises:
        InvalidValueError: the tolerance is out of range.
        CheckpointError: the checkpoint is not whole.
        BackendError: the merged model differs by more than the tolerance, and nothing is written.
    """
    tolerance = TOLERANCES[dtype] if tolerance is None else tolerance
    if not 0 < tolerance < float("inf"):
        raise InvalidValueError(f"--tolerance: {tolerance} was given, allowed: a number above 0")
    config = plain_config(saved_config(source), dtype)
    print_plain(console, f"loading {describe_model(config.model.model_name)}")
    env = make_one_env(config.env)
    policy = make_policy(config, env)
    checkpoint.load_policy(policy, source)
    prompts = [policy.codec.encode_prompt(text) for text in collect_texts(env, PROMPTS)]
    merged, change, learned = merge_policy(policy, prompts)
    if not change <= tolerance:  # also if it is no number
        raise BackendError(
            f"the merged model differs: a log-probability changes by {change:.4g} nats, which is more than "
            f"--tolerance {tolerance:g}; nothing was written; --dtype float32 rounds less"
        )
    merged.generation_config = make_generation_config(policy, config)
    facts = {
        "base": config.model.model_name, "checkpoint": source.name, "dtype": dtype, "prompts": len(prompts),
        "greatest_change": change, "learned": learned,
    }  # fmt: skip
    try:
        merged.save_pretrained(str(output), safe_serialization=True)
        load_tokenizer(policy.model_settings).save_pretrained(str(output))
        (output / "merged.json").write_text(json.dumps(facts, indent=1) + "\n")
        share_weights(output, like=output / "merged.json")
    except (OSError, SafetensorError) as error:  # such as a full disk
        shutil.rmtree(output, ignore_errors=True)
        raise BackendError(
            f"--output: {str(output)!r} cannot be written: {error}; nothing was kept"
        ) from error
    print_plain(
        console,
        f"written to {output}; on {len(prompts)} real prompts the log-probability of no likely token "
        f"changed by more than {change:.2g} nats, where training had changed it by {learned:.2g}",
    )
    if change > learned / 2 > 0:
        print_plain(console, f"{dtype} rounds away much of what was learned: --dtype float32 keeps it")


def merge_policy(policy: LLMPolicy, prompts: Sequence[Sequence[int]]) -> tuple[Any, float, float]:
    """Merges a policy's adapters into its base.

    Returns:
        The merged model, the greatest change of a likely token's log-probability by merging, and that by
        training, in nats.
    """
    before = [read_log_probabilities(policy, policy.model, prompt) for prompt in prompts]
    with policy.model.disable_adapter():
        base = [read_log_probabilities(policy, policy.model, prompt) for prompt in prompts]
    merged = policy.model.merge_and_unload()
    after = [read_log_probabilities(policy, merged, prompt) for prompt in prompts]
    change, learned = (max(map(greatest_change, before, others)) for others in (after, base))
    return merged, change, learned


def make_generation_config(policy: LLMPolicy, config: Config) -> GenerationConfig:
    """Returns how servers are to sample a merged model if a request says nothing: as it was trained.

    A base's own file often asks for greedy answers, or for a top-k, and servers read it (`transformers serve`
    samples only if the file says so, whatever the request's temperature).
    """
    writes = config.env.decode == "text"
    return GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=True,
        temperature=config.ppo.temperature if writes else 1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=config.ppo.max_new_tokens if writes else None,
        eos_token_id=sorted(policy.codec.end_tokens(policy.engine.end_tokens)),
        pad_token_id=policy.codec.pad,
    )


def plain_config(config: Config, dtype: Type) -> Config:
    """Returns the configuration with a base model that is not quantised."""
    model = dataclasses.replace(
        config.model,
        use_4bit=False,
        use_8bit=False,
        use_nested_quant=False,
        dtype=dtype,
        gradient_checkpointing=False,
    )
    return dataclasses.replace(evaluation_config(config), model=model)


def collect_texts(env: Any, count: int) -> list[str]:
    """Returns the texts of turns, some first and some later ones, of as many episodes as are needed."""
    texts: list[str] = []
    seed = 0
    while len(texts) < count:
        text, info = env.reset(seed=seed)
        seed += 1
        for _ in range(3):
            if not info.get("legal_actions", [0]) or "result" in info:
                break
            texts.append(text)
            legal = info.get("legal_actions")
            if legal is None:  # an answer as text ends the episode
                break
            text, _, terminated, truncated, info = env.step(legal[seed % len(legal)])
            if terminated or truncated:
                break
    return texts[:count]


@torch.no_grad()
def read_log_probabilities(policy: LLMPolicy, model: Any, prompt: Sequence[int]) -> torch.Tensor:
    """Returns the log-probabilities of the token after a prompt, float32 (vocabulary,)."""
    tokens = torch.tensor([list(prompt)], device=policy.engine.device)
    logits = model(input_ids=tokens).logits[0, -1]
    return torch.log_softmax(logits.float(), dim=-1).cpu()


def greatest_change(before: torch.Tensor, after: torch.Tensor) -> float:
    """Returns the greatest change of a log-probability among tokens that were likely before, in nats."""
    likely = before.exp() >= LIKELY
    return float((after[likely] - before[likely]).abs().max())
