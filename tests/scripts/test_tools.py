"""Scripts of the Makefile: tests that a change selects, other interpreters, Qwen's vocabulary."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import fetch_qwen_vocabulary as script
from scripts.check_pythons import install_by_uv, interpreter, others
from scripts.select_tests import find_importers, select_tests

SOURCES = {
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


OWN = f"3.{sys.version_info.minor}"


def test_the_others_are_those_that_the_package_is_for() -> None:
    assert {*others(), OWN} == {"3.11", "3.12", "3.13", "3.14"} and OWN not in others()


def test_both_distributions_are_tried_and_no_others(tmp_path: Path) -> None:
    for name in (
        "gamespiel-0.1.0.tar.gz",
        "gamespiel-0.0.9-py3-none-any.whl",
        "gamespiel-0.1.0-py3-none-any.whl",
    ):
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match=r"gamespiel-0\.0\.9.*were found"):
        install_by_uv(tmp_path, [OWN])


def test_an_interpreter_has_the_version_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what it says, not by its name: a pyenv shim has the name of a version that it may not run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for name in (f"python{OWN}", "python3.1"):
        (tmp_path / name).symlink_to(sys.executable)
    assert interpreter(OWN) == str(tmp_path / f"python{OWN}")
    assert interpreter("3.1") is None and interpreter("3.2") is None


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(script.MEMBER, b"IQ== 0\n")
        archive.writestr("dashscope/__init__.py", "raise SystemExit")
    return path


def test_one_file_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "qwen.tiktoken"
    script.unpack(wheel, place, hashlib.sha256(b"IQ== 0\n").hexdigest())
    assert place.read_bytes() == b"IQ== 0\n" and list(place.parent.iterdir()) == [place]


def test_another_file_is_refused(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"has the SHA-256 .*; allowed: {script.SHA256}"):
        script.unpack(wheel, tmp_path / "qwen.tiktoken")
    assert not (tmp_path / "qwen.tiktoken").exists()


def test_nothing_is_fetched_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_pip(*arguments: object, **keywords: object) -> None:
        raise AssertionError("pip was run")

    monkeypatch.setattr(script.subprocess, "run", run_pip)
    monkeypatch.setattr(script, "PLACE", tmp_path / "qwen.tiktoken")
    (tmp_path / "qwen.tiktoken").touch()
    script.main()
