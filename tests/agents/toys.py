"""Small environments, and policies on the embedded model, for the tests of the learning room."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.noise import DrawnNoise, permutation
from gamespiel.agents.vec_env import TextVecEnv

TEXT = spaces.Text(max_length=400, min_length=0, charset=string.printable)
CLOSING = "Your choice (action ID only):"
"""The last line of the games' prompts."""
IDS = (0, 1, 2, 12, 15, 120, 123)  # 1 begins 12, and 12 begins 123
N_ACTIONS = 124
Begun = tuple[str, dict[str, Any]]
"""The first text of an episode, and its info."""


def asked(legal: Sequence[int]) -> str:
    """Returns a text's end as in the games: at other ends the embedded model prefers some actions."""
    return "\n\nLegal Actions:\n" + "".join(f"  {action} -> {action}\n" for action in legal) + f"\n{CLOSING}"


class Stairs(gym.Env[str, int]):
    """Two to four turns of legal sets drawn from ``IDS``; the lowest legal id in every turn pays 1.

    Args:
        max_turns: Cuts longer episodes.
        fault: Whether the backend fails in the second turn of a seed.
    """

    observation_space = TEXT
    action_space = spaces.Discrete(N_ACTIONS)

    def __init__(
        self, max_turns: int | None = None, fault: Callable[[int], bool] = lambda seed: False
    ) -> None:
        self.max_turns, self.fault = max_turns, fault

    def reset(self, *, seed: int | None = None, options: Any = None) -> Begun:
        super().reset(seed=seed)
        self.seed = int(self.np_random.integers(2**31)) if seed is None else seed
        self.rng = np.random.default_rng(self.seed)
        self.length, self.turn, self.lowest = 2 + int(self.rng.integers(3)), 0, 0
        self.played: list[int] = []
        self._draw()
        return self._text(), self._info()

    def _draw(self) -> None:
        count = int(self.rng.integers(1, len(IDS) + 1))
        self.legal = sorted(self.rng.choice(IDS, size=count, replace=False).tolist())

    def _text(self) -> str:
        return f"seat {self.seed % 2}\nplayed {'.' * self.turn}{self.played[-1:]}{asked(self.legal)}"

    def _info(self) -> dict[str, Any]:
        return {"game": "stairs", "seat": self.seed % 2, "turn": self.turn}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        assert action in self.legal, f"{action} is illegal"
        self.lowest += action == self.legal[0]
        self.played.append(int(action))
        self.turn += 1
        self._draw()
        fault = self.fault(self.seed) and self.turn == 2
        over = self.turn == self.length and not fault
        cut = self.turn == self.max_turns and not over
        info = self._info() | ({"result": "fault"} if fault else {})
        return self._text(), float(over and self.lowest == self.length), over, cut or fault, info

    def action_masks(self) -> np.ndarray[Any, Any]:
        mask = np.zeros(N_ACTIONS, dtype=bool)
        mask[self.legal] = True
        return mask


class Bandit(gym.Env[str, int]):
    """One turn; one of the legal actions 0 and 1 pays 1, and 2 is illegal."""

    observation_space = TEXT
    action_space = spaces.Discrete(3)

    def __init__(self, pays: int = 1) -> None:
        self.pays = pays

    def reset(self, *, seed: int | None = None, options: Any = None) -> Begun:
        super().reset(seed=seed)
        return f"choose{asked((0, 1))}", {"game": "bandit", "seat": 0}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        assert action in (0, 1), f"{action} is illegal"
        return "over", float(action == self.pays), True, False, {"game": "bandit", "seat": 0}

    def action_masks(self) -> np.ndarray[Any, Any]:
        return np.array([True, True, False])


class Signs(Bandit):
    """A bandit whose text has a sign for the action that pays; without reading it an agent earns 1/2."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Begun:
        _, info = super().reset(seed=seed)
        self.pays = int(self.np_random.integers(2))
        return f"sign {'left' if self.pays == 0 else 'right'}{asked((0, 1))}", info


class Echo(gym.Env[str, str]):
    """One turn that shows digits, to be answered by digits; each right one in its place pays its share of 1.

    What comes after them is not read. A reply that depends on nothing earns 1 / len(digits) at most.

    Args:
        length: Number of digits.
        digits: The digits that are drawn.
    """

    observation_space = TEXT
    action_space = spaces.Text(1 << 20, charset=string.printable)

    def __init__(self, length: int = 1, digits: str = "0123456789") -> None:
        self.length, self.digits = length, digits

    def reset(self, *, seed: int | None = None, options: Any = None) -> Begun:
        super().reset(seed=seed)
        drawn = self.np_random.integers(len(self.digits), size=self.length)
        self.answer = "".join(self.digits[i] for i in drawn)
        return f"write {self.answer}\n\n{CLOSING}", {"game": "echo", "seat": 0}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        right = sum(a == b for a, b in zip(action, self.answer, strict=False))
        return "over", right / self.length, True, False, {"game": "echo", "seat": 0}


def make_policy(
    n_actions: int = N_ACTIONS, adapters: float = 0.0, space: Any = None, **kwargs: Any
) -> LLMPolicy:
    """Returns a policy on the embedded model; ``adapters`` is the spread of LoRA B, which is 0 at first."""
    space = space or spaces.Discrete(n_actions)
    policy = LLMPolicy(TEXT, space, lambda _: 1e-3, **{"lora": {"r": 4}} | kwargs)
    randomise(policy, adapters)
    return policy


def randomise(policy: LLMPolicy, spread: float, seed: int = 0) -> None:
    """Moves LoRA B away from 0, which would hide errors of dropout, padding and masks."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)


def masks_of(legal: list[tuple[int, ...]], n_actions: int = N_ACTIONS) -> np.ndarray[Any, Any]:
    """Returns the masks of legal sets, bool (len(legal), n_actions), true = legal."""
    masks = np.zeros((len(legal), n_actions), dtype=bool)
    for row, actions in enumerate(legal):
        masks[row, list(actions)] = True
    return masks


def same_noise(uniform: float, rows: int) -> list[DrawnNoise]:
    """Returns noise that is the same number for every row and depth."""
    return DrawnNoise.for_batch(lambda size: np.full(size, uniform), rows)


class Rows(KVWriter):
    """Keeps the rows that were logged."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None:
        pass


class Quiet(BaseCallback):
    """Stops at the ``rounds``-th call, and never without ``rounds``; keeps the events heard."""

    def __init__(self, rounds: int | None = None) -> None:
        super().__init__()
        self.rounds = rounds
        self.heard: list[str] = []

    def _on_training_start(self) -> None:
        self.heard.append("training start")

    def _on_rollout_start(self) -> None:
        self.heard.append("rollout start")

    def _on_step(self) -> bool:
        self.heard.append("step")
        return self.rounds is None or self.n_calls < self.rounds

    def _on_rollout_end(self) -> None:
        self.heard.append("rollout end")

    def _on_training_end(self) -> None:
        self.heard.append("training end")


def make_ppo(
    make_env: Any = Stairs, envs: int = 4, adapters: float = 0.0, device: str = "cpu", **kwargs: Any
) -> LLMPPO:
    """Returns a learner on the embedded model that visits a turn once, and keeps its log in memory."""
    lora = {"policy_kwargs": {"lora": {"r": 4}}}
    steps = {"learning_rate": 1e-3, "mini_batch_size": 16, "gradient_accumulation_steps": 1, "ppo_epochs": 1}
    model = LLMPPO("LLMPolicy", TextVecEnv([make_env] * envs), device=device, **lora | steps | kwargs)
    randomise(model.policy, adapters)
    model.set_logger(Logger(None, [Rows()]))
    return model


def collect(model: LLMPPO, callback: Quiet | None = None) -> bool:
    """Plays one step's episodes into the model's buffer."""
    callback = callback or Quiet()
    callback.init_callback(model)
    return model.collect_rollouts(model.env, callback)


def rows_of(model: LLMPPO) -> list[dict[str, Any]]:
    """Returns the rows that the model has logged."""
    (writer,) = model.logger.output_formats
    return writer.rows


def trained(model: LLMPPO) -> dict[str, Any]:
    """Returns the metrics of the learner's update."""
    model.train()
    return dict(model.logger.name_to_value)


def gradient_of(model: LLMPPO) -> torch.Tensor:
    """Returns the gradient of adapters and value head that the last update left, (parameters,)."""
    grads = [p.grad for p in model.policy.trainable_parameters() if p.grad is not None]
    return torch.cat([grad.flatten() for grad in grads])


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    """Returns how far one tensor is from another, as a share of the other."""
    return float((a - b).norm() / b.norm())


ONE_STEP = {"mini_batch_size": 64}


def assert_same_step(one: LLMPPO, other: LLMPPO, *more: str) -> None:
    """Makes the one optimizer step of both learners, and compares their gradients and metrics."""
    metrics = [trained(model) for model in (one, other)]
    assert len(one.rollout_buffer) <= 64  # one optimizer step: its gradient stays to be seen
    assert relative(gradient_of(other), gradient_of(one)) < 1e-5
    for name in ("policy_loss", "value_loss", "entropy", "kl_ref", *more):
        assert metrics[1][f"train/{name}"] == pytest.approx(metrics[0][f"train/{name}"], rel=1e-4, abs=1e-7)


def prompts_of(model: LLMPPO) -> list[Any]:
    """Returns the prompts of the buffer's turns."""
    return [decision.prompt for decision in model.rollout_buffer.decisions]


def draw_batches(units: list[list[Any]], step: int, turns: int) -> list[list[Any]]:
    """Returns the optimizer batches of two epochs: whole units, drawn, until there are ``turns`` turns."""
    batches = []
    for epoch in (0, 1):
        batch: list[Any] = []
        for at in permutation(0, step, epoch, len(units)):
            batch = batch + units[at]
            if len(batch) >= turns:
                batches.append(batch)
                batch = []
        batches += [batch] if batch else []
    return batches
