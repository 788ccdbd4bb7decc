"""Tests that a change selects, in a repository of a few files."""

from __future__ import annotations

import pytest

from scripts.select_tests import ROOMS, find_importers, main, select_tests

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


def test_a_room_selects_its_tests_and_those_that_import_it() -> None:
    room = {file for file in SOURCES if "agents/" in file}
    assert select_tests(room, SOURCES) == {"tests/agents/test_policy.py"}


def test_an_unknown_room_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--room", "trace"])
    said = capsys.readouterr().err
    assert "'trace'" in said and all(room in said for room in ROOMS)
