"""A finished run, made once; one thread, so that runs in other processes add numbers up in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.gamespiel.runs import small, train_quietly


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of the small configuration; not to be changed."""
    return train_quietly(small(tmp_path_factory.mktemp("finished") / "run"))
