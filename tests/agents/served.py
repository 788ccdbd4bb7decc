"""Policies that sample from stand-ins of vLLM servers, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.sampling.vllm.checks import Needs
from gamespiel.agents.sampling.vllm.connect import connect, list_targets
from gamespiel.agents.sampling.vllm.replicas import Patience
from gamespiel.agents.sampling.vllm.sampler import VllmSampler
from tests.agents.fake_vllm import FakeVllm
from tests.agents.toys import Echo, Stairs, make_ppo, masks_of

MakeServer = Callable[..., FakeVllm]
Plug = Callable[..., VllmSampler]

PATIENCE = Patience(tries=2, first=0.01, poll=0.02, most=6, seconds=20.0)
LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (7,), (0, 1, 2, 12, 15, 120, 123)]
TEXTS = ["x", "seat 0", "y", "z"]


@pytest.fixture
def make_server() -> Iterator[MakeServer]:
    made: list[FakeVllm] = []

    def make(**settings: Any) -> FakeVllm:
        made.append(FakeVllm(**settings))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@contextmanager
def plugging(prompt: str, **fixed: Any) -> Iterator[Plug]:
    """Yields a function that makes a policy sample from servers, which are compared with it on a prompt."""
    made: list[VllmSampler] = []

    def plug(policy: LLMPolicy, *servers: Any, **settings: Any) -> VllmSampler:
        writes = policy.decode == "text"
        needs = Needs(
            policy.temperature if writes else None, policy.max_new_tokens, list_targets(policy.model)
        )
        policy.sampler = connect(
            [server.url for server in servers], policy.engine, policy.adapters, policy.lora_settings,
            policy.prompts([prompt])[0], needs, **fixed | settings,
        )  # fmt: skip
        made.append(policy.sampler)
        return policy.sampler

    yield plug
    for sampler in made:
        sampler.close()


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    with plugging("probe", folder=tmp_path, patience=PATIENCE) as plug:
        yield plug


def noises(rows: int) -> list[Address]:
    return [Address(3, Purpose.ACTIONS, 0, 0, episode) for episode in range(rows)]


def decide(policy: LLMPolicy, **more: Any) -> list[Any]:
    return policy.decide(TEXTS, masks_of(LEGAL), **({"noise": noises(len(TEXTS))} | more))


def choosing(**more: Any) -> LLMPPO:
    """Answers of one to three digits, among which 1 begins 12, and 12 begins 123."""
    return make_ppo(Stairs, batch_size=4, adapters=0.05, ppo_epochs=2, **more)


def writing(**more: Any) -> LLMPPO:
    return make_ppo(lambda: Echo(3), batch_size=4, adapters=0.02, max_new_tokens=4, temperature=0.8, **more)


def playing_itself(**more: Any) -> LLMPPO:
    """The learner's seat against members of a pool, each of which has to be published."""
    kuhn: Callable[[], Any] = lambda: gym.make("GameSpiel-v0", game="kuhn_poker", opponent="open")  # noqa: E731
    itself = SelfPlaySettings(learn="one", pool_every=1, pool_size=2)
    return make_ppo(kuhn, batch_size=4, adapters=0.05, self_play=itself, average_decay=0.5, **more)


def answers_of(model: LLMPPO) -> list[Any]:
    return [(decision.prompt, decision.tokens) for decision in model.rollout_buffer.decisions]
