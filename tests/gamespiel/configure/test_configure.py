"""``gamespiel configure``: a run by flags, one by answers, what it refuses, and the file that it writes."""

from __future__ import annotations

import io
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel import usage
from gamespiel.agents.models.memory_plan import GIB
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, load, resolve, resolve_layers
from gamespiel.config.yaml_text import read_yaml
from gamespiel.configure import pace, wizard
from gamespiel.configure.answers import (
    Answers,
    ModelAnswer,
    TaskAnswer,
    list_presets,
    read_card,
    read_hours,
    read_model,
    read_opponents,
    read_tasks,
)
from gamespiel.configure.pace import Sample, count_distinct, find_pace, hour_settings, play_sample, step_flops
from gamespiel.configure.settings import Draft, draft_of
from gamespiel.configure.wizard import configure
from tests.gamespiel.runs import shown as read_console
from tests.gamespiel.terminal.conftest import WIDTH, console, typed

__all__ = ["console"]

Capsys = pytest.CaptureFixture[str]
NAMES = ("model", "card", "games", "opponents", "hours", "output")
ALL = ("tiny", "cpu", "kuhn_poker", "random", "none")


@pytest.fixture(autouse=True)
def empty_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wizard, "find_card", lambda: "cpu")


def read_printed(console: Console, unwrapped: str = "gamespiel train --config") -> str:
    """Returns what was printed; only a command that is to be copied may be wider than the terminal."""
    text = read_console(console)
    assert all(len(line) <= WIDTH for line in text.splitlines() if unwrapped not in line)
    return text


def flags(*texts: str | None) -> dict[str, str | None]:
    return dict(zip(NAMES, texts, strict=True))


def options(*texts: str | None) -> list[str]:
    return [part for name, text in flags(*texts).items() if text is not None for part in (f"--{name}", text)]


def test_flags_alone_write_the_file(capsys: Capsys) -> None:
    assert main(["configure", *options("tiny", "cpu", "leduc_poker", "random", "1", "mine.yaml")]) == 0
    text = Path("mine.yaml").read_text()
    assert read_yaml(text) == {
        "preset": "tiny",
        "ppo": {"num_train_steps": 1920},  # 90% of 3600 s at 54 / 32 s per step
        "env": {"game": "leduc_poker"},
        "run": {"device": "cpu", "checkpoint_minutes": 30.0},
    }
    given = [("ppo.num_train_steps", "1920"), ("env.game", "leduc_poker"), ("run.device", "cpu")]
    assert load("mine.yaml") == resolve("tiny", overrides=[*given, ("run.checkpoint_minutes", "30")])
    out = capsys.readouterr().out
    assert f"written: mine.yaml. Train with\n  {usage.command('train')} --config mine.yaml\n" in out
    assert "\npeak " in out and "timeout" not in out  # the time was measured
    assert "measured, 32 steps took 54 s" in " ".join(text.replace("#", " ").split())


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
    defaults = ("tiny", "cpu", "leduc_poker", "random", "none", "mine.yaml")
    assert prompts == [f"{name} [{default}]: " for name, default in zip(NAMES, defaults, strict=True)]
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
        (["--games", "blackjack", "--opponents", "self"], "blackjack has one seat"),
        (["--games", "traces", "--opponents", "mcts"], "--opponents: 'mcts' was given, and traces have none"),
        (["--ouput", "x.yaml"], "did you mean '--output'?"),
        (["--ppo.gamma", "1"], "unknown option '--ppo.gamma'"),
    ],
)
def test_wrong_flags_are_refused(given: list[str], message: str, capsys: Capsys) -> None:
    assert main(["configure", "--yes", *given]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_a_file_is_replaced_only_by_force(capsys: Capsys) -> None:
    Path("mine.yaml").write_text("gamma: 0.5\n")
    Path("folder.yaml").mkdir()
    for name, message in (
        ("mine.yaml", "--output: 'mine.yaml' was given, which exists; --force replaces it"),
        ("folder.yaml", "is a folder"),
        ("new.json", "ends in .yaml or .yml"),
        ("no/new.yaml", "is no folder"),
    ):
        assert main(["configure", *options(*ALL, name)]) == 2
        assert message in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == "gamma: 0.5\n"
    for arguments in (options(*ALL, "new.yml"), [*options(*ALL, "mine.yaml"), "--force"]):
        assert main(["configure", *arguments]) == 0
    assert load("mine.yaml").env.game == load("new.yml").env.game == "kuhn_poker"


def test_without_a_terminal_missing_answers_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["configure", *options(None, "cpu", None, "random", None, "mine.yaml")]) == 2
    assert "give --model, --games, --hours, or --yes" in capsys.readouterr().err
    assert main(["configure", *options("tiny", "cpu", "traces", None, "none", None)]) == 2
    assert "give --output, or --yes" in capsys.readouterr().err  # traces need no opponents
    assert not list(Path().iterdir())
    assert main(["configure", "--yes"]) == 0
    defaults = {"preset": "tiny", "env": {"game": "leduc_poker"}, "run": {"device": "cpu"}}
    assert read_yaml(Path("mine.yaml").read_text()) == defaults


def test_the_end_of_input_writes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
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


# -- answers as text: what they mean, and which are refused ------------------------------------------------


def test_models(tmp_path: Path) -> None:
    assert read_model("tiny") == ModelAnswer(
        "tiny", ("tiny", "tiny-gae", "tiny-search", "tiny-selfplay", "tiny-trace")
    )
    assert read_model("SmolLM2-135m") == ModelAnswer("HuggingFaceTB/SmolLM2-135M-Instruct", ("smollm2-135m",))
    own = ("qwen3-4b", "qwen3-4b-12gb", "qwen3-4b-16gb", "qwen3-4b-80gb")
    assert read_model("qwen3-4b") == read_model("qwen/Qwen3-4B") == ModelAnswer("Qwen/Qwen3-4B", own)
    assert read_model("qwen3-4b-12gb") == ModelAnswer("Qwen/Qwen3-4B", ("qwen3-4b-12gb",))
    assert read_model("llama-3.2-1b") == ModelAnswer("meta-llama/Llama-3.2-1B-Instruct")
    assert read_model("someone/a-model") == ModelAnswer("someone/a-model")
    assert read_model(str(tmp_path)) == ModelAnswer(str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert read_model(str(tmp_path / "m.gguf")).presets == ()
    assert {"affine-pool", "tiny-curriculum"}.isdisjoint(list_presets())  # they choose tasks and opponents


def test_cards() -> None:
    cards = {"12gb": 12.0, "80GB": 80.0, "24 GiB": 24.0, "22.1": 22.1, "7.5g": 7.5, "CPU": None}
    assert {text: read_card(text) for text in cards} == cards
    for text in ("0", "-3", "many", "nan", "inf", "12 MB", "", "9" * 400):
        with pytest.raises(InvalidValueError, match=r"--card: .* was given, allowed: '12gb', .*'cpu'"):
            read_card(text)


def test_tasks() -> None:
    assert read_tasks("traces") == TaskAnswer(traces=True)
    assert read_tasks("hex, clobber,hex") == TaskAnswer(games=("hex", "clobber"))
    assert read_tasks("2048") == TaskAnswer(games=("2048",))
    assert read_tasks("0-99 200_000_000") == TaskAnswer(ranges=((0, 99), (200_000_000, 200_000_000)))
    assert read_tasks("hex,5..7") == TaskAnswer(games=("hex",), ranges=((5, 7),))
    assert read_tasks("kuhn_poker") == TaskAnswer(games=("kuhn_poker",))
    for text, message in (
        ("leduc", r"--games: 'leduc' was given, .*did you mean 'leduc_poker'"),
        ("99-0", r"'99-0' was given, .*FIRST <= LAST"),
        ("traces,hex", "a run has traces or games"),
        ("kuhn_poker,hex", "'kuhn_poker' was given with other tasks"),
        (",", "nothing was given"),
        (str(2**62), "task id"),
        ("_", "'_' was given"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            read_tasks(text)


def test_opponents() -> None:
    assert read_opponents("random, mcts:20x1,mcts") == ("random", "mcts:20x1", "mcts")
    assert read_opponents("self") == ("self",)
    for text, message in (
        ("mtcs", "--opponents: 'mtcs' was given, .*did you mean 'mcts'"),
        ("slef", "did you mean 'self'"),
        ("open", "--opponents: 'open' was given, allowed: 'first'"),
        ("random,self", "'self' plays no stage"),
        ("random,random", "'random' was given twice"),
        ("mcts:", "nothing after the colon"),
        (" ", "nothing was given"),
    ):
        with pytest.raises(ValueError, match=message):
            read_opponents(text)


def test_hours() -> None:
    assert (read_hours("8"), read_hours("0.5"), read_hours("None")) == (8.0, 0.5, None)
    for text in ("0", "-1", "inf", "nan"):
        with pytest.raises(InvalidValueError, match=rf"--hours: '{text}' was given, allowed: a number"):
            read_hours(text)


# -- the configuration: preset, memory, tasks, opponents and steps -----------------------------------------


def answers(
    model: str, card: str, games: str = "leduc_poker", opponents: str = "random", hours: float | None = None
) -> Answers:
    names = () if games == "traces" else read_opponents(opponents)
    path = Path("mine.yaml")
    return Answers(read_model(model), read_card(card), read_tasks(games), names, hours, path)


def data(*given: str, **more: Any) -> dict[str, Any]:
    return draft_of(answers(*given, **more)).data()


def test_the_preset_that_fills_the_card() -> None:
    """The presets of qwen3-4b take 7.83, 12.81, 12.81 and 58.68 GiB, and 90% of a card may be taken."""
    for model, card, preset in (
        ("qwen3-4b", "8.8", "qwen3-4b-12gb"),
        ("qwen3-4b", "16gb", "qwen3-4b"),
        ("qwen3-4b", "80gb", "qwen3-4b-80gb"),
        ("qwen3-4b-16gb", "80gb", "qwen3-4b-16gb"),
    ):
        assert data(model, card) == {"preset": preset, "env": {"game": "leduc_poker"}}


def test_a_small_card_takes_4_bits_and_smaller_budgets() -> None:
    draft = draft_of(answers("qwen3-4b", "8"))
    assert draft.preset == "qwen3-4b-12gb"  # it has 4 bits, and takes 7.83 of the 7.2 GiB that are free
    assert draft.data()["ppo"] == {"tokens_per_backward": 4096, "tokens_per_forward": 8192}
    assert draft.plan().peak < 0.9 * 8 * GIB


def test_a_model_without_a_preset_starts_from_the_defaults() -> None:
    assert data("qwen2.5-1.5b", "80gb") == {
        "model": {"model_name": "Qwen/Qwen2.5-1.5B-Instruct"},
        "env": {"game": "leduc_poker"},
    }
    # 4.80 GiB with these budgets (docs/models.md); 4 bits are not needed.
    assert data("qwen2.5-1.5b", "6") == {
        "model": {"model_name": "Qwen/Qwen2.5-1.5B-Instruct", "gradient_checkpointing": True},
        "ppo": {"tokens_per_forward": 8192},  # 4096 with gradients is the default
        "env": {"game": "leduc_poker"},
    }


def test_a_model_of_unknown_size_is_not_planned() -> None:
    draft = draft_of(answers("someone/a-model", "24gb", hours=3))
    assert draft.data()["model"] == {"model_name": "someone/a-model", "gradient_checkpointing": True}
    settings, found = hour_settings(draft, answers("someone/a-model", "24gb", hours=3))
    assert found is not None and found.seconds is None
    assert settings[0][:2] == ("ppo.num_train_steps", 10_000)  # the default
    assert "not planned for 3 h" in settings[0].reason


def test_tasks_of_answers() -> None:
    tiny = {"preset": "tiny-gae", "run": {"device": "cpu", "exact_every": None}}  # no tree holds these
    assert data("tiny", "cpu", "hex,clobber") == tiny | {"env": {"allowed_game_indices": [6, 7]}}
    assert data("tiny", "cpu", "0-99") == tiny | {"env": {"task_ids": [[0, 99]]}}
    assert data("tiny", "cpu", "5") == tiny | {"env": {"task_id": 5}}
    mixed = [[600_000_000, 699_999_999], 7]
    assert data("tiny", "cpu", "7,hex") == tiny | {"env": {"task_ids": mixed}}


def test_traces() -> None:
    assert data("tiny", "cpu", "traces") == {"preset": "tiny-trace", "run": {"device": "cpu"}}
    config = draft_of(answers("smollm2-135m", "cpu", "traces")).config()
    assert (config.env.env_type, config.env.answer, config.ppo.batch_size) == ("trace", "name", 32)
    assert data("qwen3-4b", "12gb", "traces")["env"] == {"env_type": "trace", "answer": "name"}


def test_opponents_of_answers() -> None:
    assert data("tiny", "cpu", opponents="self") == {
        "preset": "tiny-selfplay",
        "env": {"game": "leduc_poker"},
        "run": {"device": "cpu"},
    }
    config = draft_of(answers("tiny", "cpu", opponents="random,mcts:20x1")).config()
    stages = [(stage.name, stage.opponent) for stage in config.curriculum.stages]
    assert stages == [("random", "random"), ("mcts:20x1", "mcts:20x1")]
    assert config.env.opponent == "random"
    assert data("qwen3-4b", "24gb", opponents="mcts")["env"]["opponent"] == "mcts"


def test_measured_hours() -> None:
    half = answers("smollm2-135m", "cpu", "kuhn_poker", hours=0.5)
    settings, found = hour_settings(draft_of(half), half)
    assert found is not None and found.is_measured
    assert [setting[:2] for setting in settings] == [("ppo.num_train_steps", 121)]  # 1620 / (240 / 18)
    assert hour_settings(draft_of(answers("tiny", "cpu")), answers("tiny", "cpu")) == ([], None)


def test_assumed_hours_say_what_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """250 characters are 100 tokens; 16 games of 2 turns have 3,200.

    The layers of Qwen3-4B have 36 × 100,925,440 = 3,633,315,840 parameters, the adapters of rank 16
    33,030,144, and the value head 2,561 more.
    """
    monkeypatch.setattr(pace, "play_sample", lambda config: Sample(2.0, 250.0))
    asked = answers("qwen3-4b", "24gb", hours=8)
    found = find_pace(draft_of(asked), asked)
    layers, adapters = 3_633_315_840, 33_030_144 + 2_561
    flops = 3200 * (2 * (layers + adapters) * 7 + (2 * layers + 4 * adapters) * 4)
    assert found.seconds == pytest.approx(flops / 15e12, rel=1e-6)
    assert not found.is_measured
    assert found.episode_seconds == pytest.approx(200 * 2 * (layers + adapters) / 15e12, rel=1e-6)
    assert "15 TFLOP/s" in found.source and "2.0 turns per game" in found.source
    few, _ = hour_settings(draft_of(asked), answers("qwen3-4b", "24gb", hours=0.05))
    assert few[0].value == 9 and few[0].reason.endswith("steps warm up")  # 162 / 17.3 s
    config = resolve("qwen3-4b")
    assert step_flops(config, 10, 1, 5) == 5 * (2 * 11 * 7 + 24 * 4)  # 4 epochs: 7 forwards, 4 backwards
    slow = draft_of(answers("qwen3-4b", "24gb", opponents="mcts:20"))
    assert "The time of mcts:20 is not in it" in find_pace(slow, asked).source


def test_the_embedded_model_in_other_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,024 games of 10 turns at 50 decisions per second: 204.8 s, and 15 such steps in 90% of an hour.

    An episode takes 0.2 s. In 360 s there are 1,800: 450 per seat, before and after.
    """
    monkeypatch.setattr(pace, "play_sample", lambda config: Sample(10.0, 250.0))
    asked = answers("tiny", "cpu", "hex", hours=1)
    settings, found = hour_settings(draft_of(asked), asked)
    assert found is not None and found.seconds == pytest.approx(204.8)
    assert [setting[:2] for setting in settings] == [
        ("ppo.num_train_steps", 15),
        ("run.checkpoint_minutes", 30.0),
        ("run.eval_games", 450),
    ]


def test_a_sample_of_games() -> None:
    """In tic_tac_toe a seat has 3 to 5 turns, and the same ones each time."""
    config = Draft(None, draft_of(answers("tiny", "cpu", "tic_tac_toe")).settings).config()
    sample = play_sample(config)
    assert 3 <= sample.turns <= 5 and sample == play_sample(config)
    assert count_distinct(["abc", "abd", "abc", "x"]) == 3 + 0 + 1 + 1
