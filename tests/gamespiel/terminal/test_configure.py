"""``gamespiel configure``: a file by flags, one by answers, what is asked again, and what it refuses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel.cli import main
from gamespiel.config.yaml_text import read_yaml
from gamespiel.terminal.configure import QUESTIONS, configure
from tests.gamespiel.terminal.conftest import printed, typed

Capsys = pytest.CaptureFixture[str]
NOTHING = {name: None for name, *_ in QUESTIONS}


@pytest.fixture(autouse=True)
def empty_folder(here: Path) -> None:
    """Works in an empty folder."""


@pytest.mark.parametrize(
    ("flags", "content"),
    [
        ([], {"preset": "tiny", "env": {"game": "leduc_poker", "opponent": "random"}}),
        (["--games", "traces"], {"preset": "tiny-trace", "env": {"env_type": "trace"}}),
        (
            ["--games", "hex", "--opponents", "self"],
            {"preset": "tiny-selfplay", "env": {"game": "hex", "opponent": "self"}},
        ),
        (
            ["--model", "tiny-trace", "--games", "hex"],
            {"preset": "tiny-trace", "env": {"env_type": "openspiel", "game": "hex", "opponent": "random"}},
        ),
        # No tree holds these games, so that the preset with a critic is taken.
        (
            ["--games", "hex, clobber", "--opponents", "random mcts:20", "--steps", "12"],
            {
                "preset": "tiny-gae",
                "env": {"allowed_game_indices": [6, 7], "opponent": "random"},
                "curriculum": {
                    "stages": [
                        {"name": "random", "opponent": "random"},
                        {"name": "mcts:20", "opponent": "mcts:20"},
                    ]
                },
                "ppo": {"num_train_steps": 12},
            },
        ),
        (
            ["--model", "Qwen/Qwen3-8B", "--games", "0-99,200000000"],
            {
                "model": {"model_name": "Qwen/Qwen3-8B"},
                "env": {"task_ids": [[0, 99], 200_000_000], "opponent": "random"},
            },
        ),
    ],
)  # fmt: skip
def test_flags_write_the_file(flags: list[str], content: dict[str, Any], capsys: Capsys) -> None:
    assert main(["configure", "--yes", *flags]) == 0
    assert read_yaml(Path("mine.yaml").read_text()) == content
    assert "train --config mine.yaml --plan\n" in capsys.readouterr().out


def test_bad_answers_are_asked_again(console: Console) -> None:
    Path("old.yaml").write_text("gamma: 0.5\n")
    lines = ["tyni", "", "hexx", "hex", "ismcts", "random", "soon", "", "old.yaml", "new.yaml"]
    prompts: list[str] = []
    assert configure(NOTHING, ask=True, console=console, read_line=typed(lines, prompts)) == Path("new.yaml")
    assert prompts == [f"{name} [{default}]: " for name, default, _ in QUESTIONS for _ in range(2)]
    shown = " ".join(printed(console, "gamespiel train --config new.yaml --plan").split())
    for message in (
        "did you mean 'tiny'?",
        "did you mean 'hex'?",
        "'ismcts' was given for 'hex', where nothing is hidden",
        "'soon' was given, allowed: a number, or preset",
        "'old.yaml' was given, which exists; --force replaces it",
    ):
        assert message in shown, message
    assert Path("old.yaml").read_text() == "gamma: 0.5\n"


def test_a_file_is_replaced_only_by_force(capsys: Capsys) -> None:
    Path("mine.yaml").write_text("gamma: 0.5\n")
    assert main(["configure", "--yes"]) == 2 and "which exists; --force" in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == "gamma: 0.5\n"
    assert main(["configure", "--yes", "--force"]) == 0
    assert read_yaml(Path("mine.yaml").read_text())["preset"] == "tiny"


def test_an_ended_input_writes_nothing(
    console: Console, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(Exception, match="the input ended before all questions were answered"):
        configure(NOTHING, ask=True, console=console, read_line=typed(["tiny"]))
    assert main(["configure", "--games", "hex"]) == 2  # without a terminal
    assert "give --model, --opponents, --steps, --output, or --yes" in capsys.readouterr().err
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--games", "blackjack", "--opponents", "self"], "blackjack has one seat"),
        (["--steps", "5_"], "'5_' was given, allowed: a number"),
        (["--games", "1_-2"], "'1_-2' was given"),
        (["--model", ""], "'' was given"),
        (["--model", "tiny-curriculum"], "'tiny-curriculum' was given"),
        (["--games", "traces", "--opponents", "mcts"], "'mcts' was given, and traces have none"),
        (["--games", "hex,0-99"], "'hex 0-99' was given, allowed: traces, one game, several of"),
        (["--output", "mine.json"], "'mine.json' was given, allowed: a name that ends in .yaml"),
        (["--ouput", "x.yaml"], "did you mean '--output'?"),
    ],
)
def test_wrong_flags_are_refused(flags: list[str], message: str, capsys: Capsys) -> None:
    assert main(["configure", "--yes", *flags]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(Path().iterdir())
