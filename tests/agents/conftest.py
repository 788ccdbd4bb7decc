"""One thread per test, and the policy of a module."""

from __future__ import annotations

import pytest

from gamespiel.agents.policy import LLMPolicy
from tests.agents.fake_vllm import make_server, plug
from tests.agents.toys import make_policy
from tests.threads import one_thread

__all__ = ["make_server", "one_thread", "plug"]


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    """Returns a policy on the embedded model with random adapters."""
    return make_policy(adapters=0.1)
