"""A finished run, made once; one thread, so that runs in other processes add numbers in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gamespiel.runs import small, train_quietly
from tests.threads import one_thread

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of the small configuration. Tests must not change it."""
    return train_quietly(small(tmp_path_factory.mktemp("finished") / "run"))
