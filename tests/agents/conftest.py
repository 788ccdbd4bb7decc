"""One thread per test, and property tests that draw the same examples each time: machines are shared."""

from __future__ import annotations

from hypothesis import settings

from tests.agents.served import make_server, plug
from tests.threads import one_thread

__all__ = ["make_server", "one_thread", "plug"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
