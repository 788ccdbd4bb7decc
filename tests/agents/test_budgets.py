"""Memory: the token budgets of forwards, and freed memory, which goes back to the system."""

from __future__ import annotations

import gc
import logging
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gamespiel.agents import engines
from gamespiel.agents.engines import ENGINES, Budgets
from gamespiel.agents.engines.budgets import CLEAN_STEPS, MOST_CLEAN_STEPS
from gamespiel.agents.models import memory
from gamespiel.agents.models.memory import MemoryLimitError
from gamespiel.agents.policy import LLMPolicy
from tests.agents.cards import card
from tests.agents.toys import make_policy

LONG = tuple(range(10, 20))
PROMPTS = [(*LONG, 1), (*LONG, 2), (*LONG, 3), (*LONG, 4)]
"""44 tokens; their tree has 14."""


def end_steps(budgets: Budgets, count: int) -> None:
    for _ in range(count):
        budgets.end_step()


def run_out(budgets: Budgets, times: int = 1) -> None:
    """Lets memory run out in forwards of 1,000 tokens in turns of 10."""
    work = Mock(side_effect=[*[torch.OutOfMemoryError("CUDA")] * times, None])
    budgets.retry(work, [(1,) * 10] * 100, lambda texts: 10 * len(texts))


def test_a_budget_falls_to_one_turn_and_no_further_and_is_never_nothing() -> None:
    """Half of 3,000 is less than the longest turn. That turn alone is tried before the error."""
    for name in ("tokens_per_forward", "tokens_per_backward"):
        with pytest.raises(ValueError, match=rf"{name} must be at least 1, got 0"):
            Budgets(**{name: 0})
    budgets, tried = Budgets(3000), list[int]()

    def work() -> None:
        tried.append(budgets.tokens_per_forward)
        raise torch.OutOfMemoryError("CUDA")

    with pytest.raises(MemoryLimitError, match=r"one turn of 2000; .*gradient_checkpointing"):
        budgets.retry(work, [(1,) * 2000], lambda texts: 3500)
    assert tried == [3000, 2000]


@pytest.mark.parametrize(("reading", "tokens"), [("shared", 14), ("padded", 44)])
def test_the_first_fall_splits_the_forward(policy: LLMPolicy, reading: str, tokens: int) -> None:
    """The budget is far above what there is to read, and half of that is tried: at least a prompt's 11."""
    engine = ENGINES[reading](policy.model, Budgets(10_000))
    tried: list[list[int]] = []

    def work() -> None:
        tried.append([len(chunk) for chunk in engine.chunks(PROMPTS)])
        if len(tried) == 1:
            raise torch.OutOfMemoryError("CUDA")

    engine.budgets.retry(work, PROMPTS, engine.count)
    assert engine.budgets.tokens_per_forward == max(tokens // 2, 11)
    assert tried == [[4], [1] * 4 if reading == "shared" else [2, 2]]


@pytest.mark.parametrize("reading", ENGINES)
@settings(max_examples=40)
@given(texts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6).map(tuple), min_size=1, max_size=6))
def test_a_count_is_the_least_budget_of_one_forward(
    policy: LLMPolicy, reading: str, texts: list[tuple[int, ...]]
) -> None:
    engine = ENGINES[reading](policy.model)
    tokens = engine.count(texts)
    assert len(list(engine.chunks(texts, tokens))) == 1
    # One text is never split, and copies of it are one text on a tree.
    if tokens > max(map(len, texts)):
        assert len(list(engine.chunks(texts, tokens - 1))) > 1


def test_a_budget_rises_to_what_was_given(caplog: pytest.LogCaptureFixture) -> None:
    budgets = Budgets(700, 400)
    run_out(budgets, 2)  # 350, then 175
    seen = []
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            end_steps(budgets, CLEAN_STEPS - 1)
            seen.append(budgets.tokens_per_forward)
            end_steps(budgets, 1)
    assert [*seen, budgets.tokens_per_forward] == [175, 350, 700, 700, 700]
    assert budgets.tokens_per_backward == 400
    # A rise that was too much is tried less and less often, up to a limit. 200 is a shortage within the wait.
    budgets, wait = Budgets(800, 400), CLEAN_STEPS
    run_out(budgets)
    end_steps(budgets, CLEAN_STEPS - 1)
    run_out(budgets)
    for _ in range(9):
        end_steps(budgets, wait - 1)
        assert budgets.tokens_per_forward == 200
        end_steps(budgets, 1)
        assert budgets.tokens_per_forward == 400
        run_out(budgets)
        wait = min(2 * wait, MOST_CLEAN_STEPS)
    assert wait == MOST_CLEAN_STEPS
    assert [record.getMessage() for record in caplog.records if "rises" in record.getMessage()] == [
        "16 steps had enough memory: ppo.tokens_per_forward rises from 175 to 350",
        "16 steps had enough memory: ppo.tokens_per_forward rises from 350 to 700",
    ]


def test_a_budget_that_fell_goes_on_unless_another_is_given() -> None:
    """The state has the halving and the steps since; a run that is given 500 begins with 500."""
    fell = Budgets(1000, 400)
    run_out(fell)
    end_steps(fell, CLEAN_STEPS)
    run_out(fell)
    end_steps(fell, 5)
    assert fell.forward_is_lowered and not Budgets(1000, 400).forward_is_lowered
    same, other = Budgets(1000, 400), Budgets(500, 400)
    for budgets in (same, other):
        budgets.load_state_dict(fell.state_dict())
    assert (same.tokens_per_forward, same.tokens_per_backward) == (500, 400)
    assert (other.tokens_per_forward, other.tokens_per_backward) == (500, 400)
    assert not other.forward_is_lowered
    end_steps(same, 2 * CLEAN_STEPS - 6)
    assert same.tokens_per_forward == 500
    end_steps(same, 1)
    assert same.tokens_per_forward == 1000


# -- freed memory --------------------------------------------------------------------------------------------


ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked")
PAGE = 4096


def resident() -> int:
    """Returns the bytes of memory that this process has."""
    return PAGE * int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


@pytest.mark.memory
@ON_GLIBC
def test_freed_blocks_between_others_go_back_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 MB in blocks of 100 kB, of which every hundredth is kept: glibc cannot give back from the end."""
    now = time.monotonic() + 1000
    for later, goes_back in ((0, True), (59.9, False), (60, True), (100, False), (120, True)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        blocks = [np.ones(100_000, dtype=np.int8) for _ in range(4000)]
        survivors = blocks[99::100]
        full = resident()
        del blocks
        memory.give_back()
        assert len(survivors) == 40 and (full - resident() > 300_000_000) == goes_back


FAULTS = """
import resource
import numpy as np
from gamespiel.agents.models import memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(40_000_000, dtype=np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
given_back = faults()
memory.keep_freed()
np.ones(40_000_000, dtype=np.int8)
print(given_back, faults())
"""


@pytest.mark.memory
@ON_GLIBC
def test_kept_blocks_are_used_again() -> None:
    """20 times 40 MB, above the 32 MiB that glibc may keep by itself; a fault is of a page, or of 2 MiB."""
    process = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True)
    given_back, faults = map(int, process.stdout.split())
    assert given_back >= 20 * 40_000_000 // (1 << 21) and faults < given_back / 10


def test_small_models_on_the_cpu_keep_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model has fewer parameters than 10⁹, and more than 1."""
    for small, device, keeps in ((10**9, "cpu", True), (1, "cpu", False), (10**9, "cuda", False)):
        calls: list[int] = []
        monkeypatch.setattr(memory, "keep_freed", lambda calls=calls: calls.append(1))
        monkeypatch.setattr(engines, "SMALL", small)
        with card():
            make_policy(device=device)
        assert bool(calls) == keeps


@pytest.mark.memory
@pytest.mark.sample
@pytest.mark.parametrize("is_frozen", [False, True])
def test_objects_that_are_set_aside(is_frozen: bool) -> None:
    """Collections skip the objects from before the context, and find new ones. A caller's own stay aside."""
    gc.unfreeze()
    try:
        if is_frozen:
            gc.freeze()
        before, lists = gc.get_freeze_count(), [[] for _ in range(1000)]
        with memory.setting_aside():
            assert gc.get_freeze_count() >= before + len(lists)
            ring: list[Any] = []
            ring.append(ring)
            del ring
            assert gc.collect() >= 1
        assert (gc.get_freeze_count() > 0) is is_frozen
    finally:
        gc.freeze()  # as the tests' own configuration does
