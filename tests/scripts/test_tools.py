"""Scripts of the Makefile: tests that a change selects, and Qwen's vocabulary."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from scripts import fetch_qwen_vocabulary as script
from scripts.select_tests import find_importers, select_room, select_tests

SOURCES = {
    "task_gym/errors.py": "",
    "task_gym/ids.py": "",
    "trace_gym/__init__.py": "",
    "trace_gym/score.py": "from task_gym.ids import split",
    "agents/__init__.py": "",
    "agents/policy.py": "from .tokens import Trie",
    "agents/tokens/__init__.py": "",
    "gamespiel/__init__.py": "",
    "gamespiel/kinds.py": "def declare():\n    import trace_gym.score\n",
    "gamespiel/training.py": "from gamespiel import kinds\nfrom gamespiel.agents import policy",
    "tests/trace_gym/test_score.py": "from trace_gym import score",
    "tests/agents/toys.py": "import gamespiel.agents.policy",
    "tests/agents/test_policy.py": "from tests.agents.toys import Stairs",
    "tests/gamespiel/test_kinds.py": "from gamespiel.kinds import declare",
    "tests/gamespiel/test_errors.py": "import task_gym.errors",
    "tests/gamespiel/test_training.py": "# reads configs/tiny.yaml\nimport gamespiel.training",
}


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        # test_kinds imports a module that imports it, in a function; test_training is one further away.
        ("trace_gym/score.py", ["tests/gamespiel/test_kinds.py", "tests/trace_gym/test_score.py"]),
        ("task_gym/ids.py", ["tests/trace_gym/test_score.py"]),
        # By a relative import; the policy's test reaches it through a helper.
        ("agents/tokens/__init__.py", ["tests/agents/test_policy.py"]),
        ("tests/agents/toys.py", ["tests/agents/test_policy.py"]),
        ("tests/gamespiel/test_kinds.py", ["tests/gamespiel/test_kinds.py"]),
        ("configs/tiny.yaml", ["tests/gamespiel/test_training.py"]),
        ("docs/unknown.md", []),
    ],
)
def test_a_change_selects_the_tests_of_what_imports_it(changed: str, selected: list[str]) -> None:
    assert sorted(select_tests(find_importers({changed}, SOURCES), SOURCES)) == selected


def test_a_room_selects_its_tests_and_those_that_import_more_than_errors_and_constants() -> None:
    names = {"test_kinds", "test_training", "test_errors"}
    assert select_room("gamespiel", SOURCES) == {f"tests/gamespiel/{name}.py" for name in names}
    reads_ids = {"tests/agents/test_ids.py": "import task_gym.ids"}
    others = {"tests/agents/test_limits.py": "from task_gym.ids import MOST"}
    assert select_room("task_gym", SOURCES | reads_ids | others) == {*reads_ids}


def test_one_file_is_unpacked_and_another_is_refused(tmp_path: Path) -> None:
    path, place = tmp_path / "some-1.0-py3-none-any.whl", tmp_path / "cache" / "qwen.tiktoken"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(script.MEMBER, b"IQ== 0\n")
        archive.writestr("dashscope/__init__.py", "raise SystemExit")
    with pytest.raises(ValueError, match=rf"has the SHA-256 .*; allowed: {script.SHA256}"):
        script.unpack(path, place)
    assert not place.exists()
    script.unpack(path, place, hashlib.sha256(b"IQ== 0\n").hexdigest())
    assert place.read_bytes() == b"IQ== 0\n" and list(place.parent.iterdir()) == [place]
