"""The numbers of a policy on the device: against plain transformers on the CPU, and against itself there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu import models
from benchmarks.gpu.timing import CUDA, DEVICE, Row, relative_distance
from gamespiel.agents.models.loading import ModelSettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.config.sections import EnvConfig


def numerics(options: argparse.Namespace, end_by: float) -> Row:
    """Returns how far log-probabilities and gradients are from the reference, in each type."""
    config = models.make_config(options, *((2, 64, 16) if options.small else (4, 512, 64)))
    row: Row = {}
    for dtype in ("float32", "bfloat16"):
        policy = models.make_learner(options, config=config, dtype=dtype).policy
        models.randomise(policy)
        learner = models.make_learner(options, config=config, device="cpu", dtype="float32")
        learner.policy.model.load_state_dict(policy.model.state_dict())  # which makes them float32
        learner.play_step(learner.env, lambda dones, learned: True)
        row[dtype] = compare(policy, learner.policy, models.first_decisions(learner))
    return row


def compare(policy: LLMPolicy, reference: LLMPolicy, decisions: Sequence[Decision]) -> Row:
    """Returns the differences of a policy from the reference's model, which reads text after text."""
    expected = read_plainly(reference, decisions)
    weights = torch.randn(len(expected), generator=torch.Generator().manual_seed(0))
    (expected * weights).sum().backward()
    log_probs = policy.scorer.score(decisions, mass=True).log_probs
    (log_probs * weights.to(DEVICE)).sum().backward()
    gaps = (log_probs.detach().cpu() - expected.detach()).abs()
    gradient = models.take_gradient(policy)
    return {
        "decisions": len(decisions),
        "log_prob_difference_max": float(gaps.max()),
        "log_prob_difference_mean": float(gaps.mean()),
        "gradient_relative": relative_distance(gradient, models.take_gradient(reference)),
        "gradient_not_finite": int((~gradient.isfinite()).sum()),
    }


def read_plainly(policy: LLMPolicy, decisions: Sequence[Decision]) -> Tensor:
    """Returns the log-probability of each branch that was taken, by transformers' own forward."""
    policy.engine.transformer.set_attn_implementation("eager")  # type: ignore[attr-defined]
    log_probs = []
    for decision in decisions:
        trie: Any = decision.constraint
        path = trie.paths[trie.action_of(decision.tokens)]
        more = trie.nodes[path[-1].node].prefix if path else ()
        ids = torch.tensor([[*decision.prompt, *more]])
        logits = policy.model(input_ids=ids, logits_to_keep=len(more) + 1).logits[0].float()
        for branch in path:
            node = trie.nodes[branch.node]
            row = logits[len(node.prefix)]  # the first that is kept is of the prompt's last token
            log_probs.append(row[list(node.children)].log_softmax(-1)[branch.child])
    return torch.stack(log_probs)


# -- CPU and GPU -------------------------------------------------------------------------------------------

RATES = {"init_kl_coef": 0.0, "adaptive_kl": False, "critic_lr_multiplier": 1.0}
TINY_RATES = RATES | {
    "learning_rate": 4e-3, "num_minibatches": 3, "minibatch_unit": "prompt", "ppo_epochs": 4, "vf_coef": 5.0,
    "tokens_per_backward": 10**6,
}  # fmt: skip
SMOLLM2_RATES = RATES | {
    "learning_rate": 1e-3, "num_minibatches": 4, "ppo_epochs": 2, "vf_coef": 1.0, "ent_coef": 0.3,
    "tokens_per_backward": 16_384,
}  # fmt: skip


def tiny(options: argparse.Namespace, end_by: float) -> Row:
    """Compares steps of the embedded model on Leduc poker."""
    model = ModelSettings("tiny", reading="shared")
    return compare_devices(model, "leduc_poker", 256 if CUDA else 8, 3 if CUDA else 2, TINY_RATES)


def smollm2(options: argparse.Namespace, end_by: float) -> Row:
    """Compares steps of SmolLM2 on Kuhn poker, as its preset has it but with fewer episodes."""
    name, episodes = options.smollm2 or "HuggingFaceTB/SmolLM2-135M-Instruct", 64 if CUDA else 4
    saved = {dtype: ModelSettings(name, dtype=dtype) for dtype in ("float32", "bfloat16")}
    return {dtype: compare_devices(saved[dtype], "kuhn_poker", episodes, 2, SMOLLM2_RATES) for dtype in saved}


def compare_devices(model: ModelSettings, game: str, episodes: int, steps: int, rates: dict[str, Any]) -> Row:
    """Returns how many decisions of each step are the same on both devices, or twice on the CPU."""
    env = EnvConfig(game=game, opponent="random", rules=False)
    decisions, seconds, weights = [], [], []
    for device in ("cpu", DEVICE):
        algorithm = models.make_algorithm(model, env, episodes, device, num_train_steps=steps, **rates)
        played = []
        for _ in range(steps):
            seconds.append(models.make_step(algorithm)["seconds"])
            played.append(list(algorithm.rollout_buffer.decisions))
        decisions.append(played)
        weights.append(torch.cat([p.detach().flatten().cpu() for p in algorithm.policy.adapter_parameters()]))
    return {
        "seconds": {"first": seconds[:steps], "second": seconds[steps:]},
        "steps": [_compare_step(first, second) for first, second in zip(*decisions, strict=True)],
        "weights_relative": relative_distance(weights[1], weights[0]),
    }


def _compare_step(first: list[Decision], second: list[Decision]) -> Row:
    # A decision that differs may make its episode longer or shorter.
    pairs = zip(first, second, strict=False)
    same = [(a, b) for a, b in pairs if (a.prompt, a.tokens) == (b.prompt, b.tokens)]
    gaps = [float(abs(a.log_probs - b.log_probs).max()) for a, b in same if len(a.log_probs)]
    counts = {"decisions": [len(first), len(second)], "same": len(same)}
    return counts | {"log_prob_difference_max": max(gaps, default=None)}
