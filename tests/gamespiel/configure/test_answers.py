"""The answers of ``gamespiel configure`` as text: what they mean, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamespiel.config import InvalidValueError
from gamespiel.configure.answers import (
    ModelAnswer,
    TaskAnswer,
    list_presets,
    read_card,
    read_hours,
    read_model,
    read_opponents,
    read_output,
    read_tasks,
)


def test_models(tmp_path: Path) -> None:
    assert read_model("tiny") == ModelAnswer("tiny", ("tiny", "tiny-search", "tiny-selfplay", "tiny-trace"))
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
    with pytest.raises(InvalidValueError, match=r"--model: 'qwen3-4' was given, .*did you mean 'qwen3-4b'"):
        read_model("qwen3-4")


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leduc", r"--games: 'leduc' was given, .*did you mean 'leduc_poker'"),
        ("trace", r"did you mean 'traces'"),
        ("99-0", r"'99-0' was given, .*FIRST <= LAST"),
        ("traces,hex", "a run has traces or games"),
        ("kuhn_poker,hex", "'kuhn_poker' was given with other tasks"),
        (",", "nothing was given"),
        (str(2**62), "task id"),
        ("_", "'_' was given"),
    ],
)
def test_tasks_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read_tasks(text)


def test_opponents() -> None:
    assert read_opponents("random") == ("random",)
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
    for text in ("0", "-1", "inf", "nan", "soon"):
        with pytest.raises(InvalidValueError, match=rf"--hours: '{text}' was given, allowed: a number"):
            read_hours(text)


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.touch()
    assert read_output(str(tmp_path / "new.yml")) == tmp_path / "new.yml"
    assert read_output(str(there), force=True) == there
    (tmp_path / "folder.yaml").mkdir()
    for name, message in (
        ("there.yaml", "exists; --force replaces it"),
        ("folder.yaml", "is a folder"),
        ("new.json", r"ends in \.yaml or \.yml"),
        ("no/new.yaml", "is no folder"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            read_output(str(tmp_path / name))
