"""docs/trace.md is current, and its numbers and names are those of the code."""

from __future__ import annotations

from docs import generate_trace
from docs.generate_trace import PAGE, fenced
from trace_gym.admission.admit import MOST_LINES, MOST_OUTPUT
from trace_gym.inject import MOST, STYLES
from trace_gym.mutants.choices import LEAST, OPTIONS
from trace_gym.programs.builtin import CELLS, NAMES, split
from trace_gym.programs.hub import DATASET
from trace_gym.score import SCORINGS

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert generate_trace.page() == TEXT, "write it anew with: python -m docs.generate_trace"


def test_numbers_and_names_in_words() -> None:
    # "mod 16", "seven", "three", "six"
    assert (len(NAMES), CELLS, OPTIONS, LEAST, MOST) == (16, 160, 8, 4, 6)
    assert f"at most {MOST_OUTPUT} bytes" in TEXT and f"at most {MOST_LINES:,} lines" in TEXT
    assert DATASET in TEXT
    assert all(f"**{name}**" in TEXT for name in SCORINGS)
    assert all(f'injector="{style}"' in TEXT for style in STYLES)
    for task_id in (0, 37, 159, 10**11 - 1):
        assert split(task_id) == (NAMES[task_id % 16], 1 + task_id % 160 // 16)


def test_a_fence_is_longer_than_any_in_it() -> None:
    assert fenced("text", "a\n```\n") == "````text\na\n```\n````"
