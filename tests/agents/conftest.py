"""The policy of a module, and servers that stand for vLLM's.

What they need is imported as they are: the process that hands out tests runs none, and need not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gamespiel.agents.policy import LLMPolicy
    from tests.agents.fake_vllm import MakeServer, Plug


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    """Returns a policy on the embedded model with random adapters."""
    from tests.agents.toys import make_policy

    return make_policy(adapters=0.1)


@pytest.fixture
def make_server() -> Iterator[MakeServer]:
    from tests.agents.fake_vllm import serving

    with serving() as make:
        yield make


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    from tests.agents.fake_vllm import PATIENCE, plugging

    with plugging("probe", folder=tmp_path, patience=PATIENCE) as plug:
        yield plug
