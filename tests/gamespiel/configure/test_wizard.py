"""``gamespiel configure``: a run by flags, one by answers, what it refuses, and the file that it writes."""

from __future__ import annotations

import io
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from gamespiel import usage
from gamespiel.cli import main
from gamespiel.config import load, resolve, resolve_layers
from gamespiel.config.yaml_text import read_yaml
from gamespiel.configure import wizard
from gamespiel.configure.wizard import configure
from tests.gamespiel.terminal.conftest import typed

WIDTH = 60
NAMES = ("model", "card", "games", "opponents", "hours", "output")
ALL = ("tiny", "cpu", "kuhn_poker", "random", "none", "mine.yaml")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wizard, "find_card", lambda: "cpu")
    return tmp_path


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=WIDTH)


def read_printed(console: Console, unwrapped: str = "gamespiel train --config") -> str:
    """Returns what was printed; only a command that is to be copied may be wider than the terminal."""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(len(line) <= WIDTH for line in text.splitlines() if unwrapped not in line)
    return text


def flags(*texts: str | None) -> dict[str, str | None]:
    return dict(zip(NAMES, texts, strict=True))


def options(*texts: str | None) -> list[str]:
    return [part for name, text in flags(*texts).items() if text is not None for part in (f"--{name}", text)]


def test_flags_alone_write_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configure", *options("tiny", "cpu", "leduc_poker", "random", "1", "mine.yaml")]) == 0
    text = Path("mine.yaml").read_text()
    assert read_yaml(text) == {
        "preset": "tiny",
        "ppo": {"num_train_steps": 1672},  # 90% of 3600 s at 155 / 80 s per step
        "env": {"game": "leduc_poker"},
        "run": {"device": "cpu", "checkpoint_minutes": 30.0},
    }
    given = [("ppo.num_train_steps", "1672"), ("env.game", "leduc_poker"), ("run.device", "cpu")]
    assert load("mine.yaml") == resolve("tiny", overrides=[*given, ("run.checkpoint_minutes", "30")])
    out = capsys.readouterr().out
    assert f"written: mine.yaml. Train with\n  {usage.command('train')} --config mine.yaml\n" in out
    assert "\npeak " in out and "timeout" not in out  # the time was measured


def test_every_line_of_the_file_is_a_key_below_its_reason() -> None:
    configure(flags("qwen3-1.7b", "8", "hex,clobber", "random,mcts:20", "8", "mine.yaml"), ask=False)
    lines = Path("mine.yaml").read_text().splitlines()
    assert all(len(line) <= 100 for line in lines if line.lstrip().startswith("#"))
    for above, line in pairwise(lines):
        if line.startswith("  ") and not line.lstrip().startswith("#"):
            assert above.startswith("  # "), line
    assert "# Written by gamespiel configure, from: model qwen3-1.7b, card 8, games" in lines[0]
    data = read_yaml("\n".join(lines))
    assert data["curriculum"]["stages"][1] == {"name": "mcts:20", "opponent": "mcts:20"}
    assert resolve_layers(files=["mine.yaml"]).config.env.allowed_game_indices == (6, 7)


def test_answers_of_a_person(console: Console) -> None:
    prompts: list[str] = []
    lines = ["", "", "hex", "mcts:20x1", "", "there.yaml"]
    path = configure(flags(*[None] * 6), ask=True, console=console, read_line=typed(lines, prompts))
    assert prompts == [
        "model [tiny]: ",
        "card [cpu]: ",
        "games [leduc_poker]: ",
        "opponents [random]: ",
        "hours [none]: ",
        "output [mine.yaml]: ",
    ]
    assert path == Path("there.yaml")
    assert read_yaml(path.read_text())["env"] == {"allowed_game_indices": [6], "opponent": "mcts:20x1"}
    shown = read_printed(console)
    assert "Which model? tiny, smollm2-135m, " in shown and "while updating" in shown
    prompts.clear()
    given = flags("tiny", None, "traces", None, "none", "mine.yaml")
    configure(given, ask=True, console=console, read_line=typed([""], prompts))
    assert prompts == ["card [cpu]: "]  # all others have a flag, and traces have no opponents
    assert load("mine.yaml").env.env_type == "trace"


def test_bad_answers_are_asked_again(console: Console) -> None:
    Path("old.yaml").write_text("gamma: 0.5\n")
    lines = [
        "tyni", "qwen3-4b", "2", "12gb", "leduc", "clobber", "ismcts", "random",
        "soon", "none", "old.yaml", "mine.yaml",
    ]  # fmt: skip
    configure(flags(*[None] * 6), ask=True, console=console, read_line=typed(lines))
    shown = " ".join(read_printed(console).split())
    for message in (
        "'tyni' was given, allowed: tiny,",
        "2 GiB was given, and Qwen/Qwen3-4B takes",
        "did you mean 'leduc_poker'?",
        "'ismcts' was given for 'clobber', where nothing is hidden",
        "'soon' was given, allowed: a number above 0",
        "'old.yaml' was given, which exists; --force replaces it",
    ):
        assert message in shown, message
    assert "--model:" not in shown  # the question names it
    assert load("mine.yaml").model.use_4bit and Path("old.yaml").read_text() == "gamma: 0.5\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--model", "tyni"], "--model: 'tyni' was given"),
        (["--model", "qwen3-4b", "--card", "2"], "Qwen/Qwen3-4B takes"),
        (["--games", "blackjack", "--opponents", "self"], "blackjack has one seat"),
        (["--games", "traces", "--opponents", "mcts"], "--opponents: 'mcts' was given, and traces have none"),
        (["--ouput", "x.yaml"], "did you mean '--output'?"),
        (["--ppo.gamma", "1"], "unknown option '--ppo.gamma'"),
    ],
)
def test_wrong_flags_are_refused(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configure", "--yes", *given]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_a_file_is_never_replaced_silently(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text("gamma: 0.5\n")
    assert main(["configure", *options(*ALL)]) == 2
    assert "--output: 'mine.yaml' was given, which exists; --force replaces it" in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == "gamma: 0.5\n"
    assert main(["configure", *options(*ALL), "--force"]) == 0
    assert load("mine.yaml").env.game == "kuhn_poker"


def test_without_a_terminal_missing_answers_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["configure", *options(None, "cpu", None, "random", None, "mine.yaml")]) == 2
    assert "give --model, --games, --hours, or --yes" in capsys.readouterr().err
    assert main(["configure", *options("tiny", "cpu", "traces", None, "none", None)]) == 2
    assert "give --output, or --yes" in capsys.readouterr().err  # traces need no opponents
    assert not list(Path().iterdir())


def test_yes_takes_the_defaults() -> None:
    assert main(["configure", "--yes"]) == 0
    assert read_yaml(Path("mine.yaml").read_text()) == {
        "preset": "tiny",
        "env": {"game": "leduc_poker"},
        "run": {"device": "cpu"},
    }


def test_ctrl_c_and_the_end_of_input_have_the_status_of_other_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(prompt: str = "") -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", interrupt)
    assert main(["configure"]) == 130
    monkeypatch.setattr("builtins.input", typed(["tiny", "cpu"]))
    assert main(["configure"]) == 2
    assert "the input ended" in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_a_time_that_was_not_measured_comes_with_a_command_that_stops(console: Console) -> None:
    configure(flags("tiny", "cpu", "tic_tac_toe", "random", "0.5", "my run.yaml"), ask=False, console=console)
    shown = read_printed(console)
    own = f"{usage.command('train')} --config 'my run.yaml'"
    assert f"\n  {own}\n" in shown
    assert f"\n  timeout --foreground -s INT 0.5h {own}\n" in shown
    assert "assumed are 50 decisions per second" in " ".join(shown.split())
