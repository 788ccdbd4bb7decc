"""One thread per test, the policy of a module, and property tests that draw the same examples each time."""

from __future__ import annotations

import pytest
from hypothesis import settings

from gamespiel.agents.policy import LLMPolicy
from tests.agents.fake_vllm import make_server, plug
from tests.agents.toys import make_policy
from tests.threads import one_thread

__all__ = ["make_server", "one_thread", "plug"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    """Returns a policy on the embedded model with random adapters."""
    return make_policy(adapters=0.1)
