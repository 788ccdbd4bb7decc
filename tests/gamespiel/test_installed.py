"""Without the extra "train": one sentence with the pip command. ``make package`` tries it for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import reload
from pathlib import Path

import pytest

import gamespiel
from gamespiel.agents import required
from gamespiel.agents.installed import check_trainer
from gamespiel.cli import main
from task_gym import picture
from task_gym.errors import MissingPackageError

ROOT = Path(__file__).parents[2]
GAME = ["--env.game", "hex"]


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed


@pytest.mark.parametrize(
    ("what", "argv"),
    [
        ("train", ["train"]),
        ("train", ["train", "--plan", "24"]),
        ("eval", ["eval", "--model.model_name", "tiny", *GAME]),
    ],
)
def test_a_command_says_what_to_install(
    what: str, argv: list[str], no_torch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    sentence = f"gamespiel: {what}: the package torch is not installed; pip install 'gamespiel[train]'\n"
    assert capsys.readouterr() == ("", sentence)


HIDDEN = """
import sys
for name in ("matplotlib", "peft", "sb3_contrib", "stable_baselines3", "torch", "transformers"):
    sys.modules[name] = None  # as if it were not installed
from gamespiel.cli import main
sys.exit(main(["eval", "--num_episodes", "2", "--output", "results.json", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(
    "line",
    [
        "--agent random --env.game kuhn_poker --exact",
        "--agent first --env.game hex --env.answer name --save_games games.jsonl",
        "--agent mcts:2 --env.game tic_tac_toe",
        "--agent echo --preset tiny-trace",
    ],
)
def test_agents_are_evaluated_without_the_trainer(line: str, tmp_path: Path) -> None:
    """In a process of its own, because this one has imported PyTorch."""
    command = [sys.executable, "-c", HIDDEN, *line.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["agent"] == line.split()[1]
    if "--exact" in line:  # half (bet) of (1 + 0) / 2, less half (pass) of (0 + (1 + 0) / 2) / 2
        assert results["exact"]["policy"]["values"] == pytest.approx([0.125, -0.125])


@pytest.mark.parametrize("name", ["load_policy", "make_env"])
def test_a_function_says_what_to_install(name: str, no_torch: None) -> None:
    with pytest.raises(ImportError, match=rf"gamespiel\.{name}: the package torch is not .*\[train\]'$"):
        getattr(gamespiel, name)


def test_what_modules_begin_with_says_what_to_install(no_torch: None) -> None:
    with pytest.raises(MissingPackageError, match=r"^gamespiel\.agents: the package torch is not installed"):
        reload(required)


def test_all_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_trainer("train")  # the tests have all of it
    for name in ("peft", "torch", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=r"^train: the packages torch, peft and matplotlib are not"):
        check_trainer("train")


@pytest.mark.parametrize(("module", "package"), [("PIL", "pillow"), ("matplotlib", "matplotlib")])
def test_a_picture_says_what_to_install(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    picture._drawn.cache_clear()
    picture._font.cache_clear()
    message = rf"^render_mode 'rgb_array': the package {package} is not installed; .*\[render\]'$"
    with pytest.raises(MissingPackageError, match=message):
        picture.picture("a")
