"""The trainer in one file computes what the library computes, and learns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.learning.terms import Played, Scored, critic_error, entropy_bonus, policy_gradient
from tests.agents.toys import make_policy

SCRIPT = Path(__file__).parents[2] / "examples" / "ppo_from_scratch.py"


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return pytest.importorskip("ppo_from_scratch")


def match_weights(mine: Any, library: Any) -> dict[str, tuple[Any, Any]]:
    """Gives both policies the same adapters, none of which is 0; returns pairs of parameters by name."""
    name: Callable[[str], str] = lambda text: re.sub(r"(lora_[AB])\.\w+", r"\1", text)  # noqa: E731
    theirs = {name(key): weight for key, weight in library.model.named_parameters() if weight.requires_grad}
    ours = {name(key): weight for key, weight in mine.model.named_parameters() if weight.requires_grad}
    assert set(ours) == set(theirs) and len(ours) == 2 * 7 * 2  # A and B of seven modules in two layers
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, weight in theirs.items():
            weight.copy_(0.05 * torch.randn(weight.shape, generator=generator))
            ours[key].copy_(weight)
    return {key: (ours[key], theirs[key]) for key in ours}


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.parametrize(("game", "bonus"), [("leduc_poker", 0.03), ("tic_tac_toe", 0.03), ("othello", 0.0)])
def test_a_step_has_the_librarys_probabilities_and_gradients(scratch: Any, game: str, bonus: float) -> None:
    """``othello`` has numbers of two digits that share one: there the library estimates entropies."""
    mine = scratch.Policy(str(scratch.TINY))
    env = gym.make("GameSpiel-v0", game=game, rules=False)
    library = make_policy(env.action_space.n, lora={"r": 16})
    pairs = match_weights(mine, library)
    texts, masks, turns = [], [], []
    text, info = env.reset(seed=0)
    generator = np.random.default_rng(0)
    while len(turns) < 12:
        legal = tuple(np.flatnonzero(info["action_mask"]).tolist())
        place = int(generator.integers(len(legal)))
        texts.append(text)
        masks.append(np.asarray(info["action_mask"], dtype=bool))
        turns.append({
            "question": (text, legal), "place": place, "log_prob": float(np.log(1 / len(legal))),
            "advantage": float(generator.normal()), "return": float(generator.random()),
        })  # fmt: skip
        text, _, over, _, info = env.step(legal[place])
        if over:
            text, info = env.reset(seed=len(turns))
    actions = [turn["question"][1][turn["place"]] for turn in turns]
    values, log_probs, entropy = library.evaluate_actions(texts, np.array(actions), np.stack(masks))
    ones = torch.ones(len(turns))
    old, advantages, returns = (
        torch.tensor([turn[name] for turn in turns]) for name in ("log_prob", "advantage", "return")
    )
    scored = Scored(log_probs, entropy, values[:, 0])
    played = Played(old, old, advantages, returns, ones, ones)
    numbers = Coefficients(cliprange=0.2, vf_coef=5.0, ent_coef=bonus)
    parts = [term(scored, played, numbers) for term in (policy_gradient, critic_error, entropy_bonus)]
    sum(part.loss for part in parts).backward()

    log_table, _ = scratch.ask(mine, [turn["question"] for turn in turns])
    chosen = log_table[range(len(turns)), [turn["place"] for turn in turns]]
    assert chosen.tolist() == pytest.approx(log_probs.tolist(), abs=1e-5)
    scratch.ppo_loss(mine, turns, entropy_coef=bonus).backward()
    for ours, theirs in pairs.values():
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)
    assert max(float(ours.grad.abs().max()) for ours, _ in pairs.values()) > 1e-2


@pytest.mark.launch
def test_it_learns(tmp_path: Path) -> None:
    """Untrained the policy has about 0 (README), and Kuhn poker is small."""
    command = [sys.executable, SCRIPT, "--game", "kuhn_poker", "--steps", "8", "--games", "256"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    share = re.search(r"^(\S+)% of best response after [\d,]+ decisions", done.stdout, re.MULTILINE)
    assert share and float(share[1]) > 60
