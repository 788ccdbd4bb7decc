"""One thread for tests that multiply small matrices: more only get in each other's way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    import torch  # here: the process that hands out tests runs none, and need not wait for it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
