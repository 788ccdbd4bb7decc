"""Policies that sample from stand-ins of vLLM servers, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.sampling.vllm.checks import Needs
from gamespiel.agents.sampling.vllm.connect import connect, list_targets
from gamespiel.agents.sampling.vllm.replicas import Patience
from gamespiel.agents.sampling.vllm.sampler import VllmSampler
from tests.agents.fake_vllm import FakeVllm
from tests.agents.toys import masks_of

PATIENCE = Patience(tries=2, first=0.01, poll=0.02, most=6, seconds=20.0)
LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (7,), (0, 1, 2, 12, 15, 120, 123)]
TEXTS = ["x", "seat 0", "y", "z"]


@pytest.fixture
def make_server() -> Iterator[Callable[..., FakeVllm]]:
    made: list[FakeVllm] = []

    def make(**settings: Any) -> FakeVllm:
        made.append(FakeVllm(**settings))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Callable[..., VllmSampler]]:
    """A function that makes a policy sample from servers."""
    made: list[VllmSampler] = []

    def plug(policy: LLMPolicy, *servers: FakeVllm, **settings: Any) -> VllmSampler:
        writes = policy.decode == "text"
        needs = Needs(
            policy.temperature if writes else None, policy.max_new_tokens, list_targets(policy.model)
        )
        settings = {"patience": PATIENCE, "folder": tmp_path} | settings
        policy.sampler = connect(
            [server.url for server in servers], policy.engine, policy.adapters, policy.lora_settings,
            policy.prompts(["probe"])[0], needs, **settings,
        )  # fmt: skip
        made.append(policy.sampler)
        return policy.sampler

    yield plug
    for sampler in made:
        sampler.close()


def noises(rows: int, step: int = 0) -> list[Address]:
    return [Address(3, Purpose.ACTIONS, step, 0, episode) for episode in range(rows)]


def decide(policy: LLMPolicy, **more: Any) -> list[Any]:
    return policy.decide(TEXTS, masks_of(LEGAL), **({"noise": noises(len(TEXTS))} | more))
