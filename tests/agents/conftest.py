"""One thread per test, and property tests that draw the same examples each time: machines are shared."""

from __future__ import annotations

from hypothesis import settings

from tests.threads import one_thread

__all__ = ["one_thread"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
