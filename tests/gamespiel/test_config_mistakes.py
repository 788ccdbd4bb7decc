"""All mistakes of a configuration are in one message, and a single one is as it would be alone."""

from pathlib import Path

import pytest

from gamespiel.cli import main
from gamespiel.config import (
    Config,
    ConfigError,
    InvalidValueError,
    MistakesError,
    NotBuiltError,
    UnknownKeyError,
    built,
    from_dict,
    load,
    missing,
    presets,
    require_built,
    resolve,
)
from gamespiel.config.built import Missing, describe_missing
from gamespiel.errors import MOST_SHOWN
from tests.gamespiel.test_config_files import FILES


def test_keys_and_values_of_a_file_are_named_together() -> None:
    with pytest.raises(MistakesError) as raised:
        from_dict({"opponnent": "x", "ppo": {"gama": 1, "lam": 2, "batch_size": 0}, "model": 3}, "a.json")
    assert str(raised.value).splitlines() == [
        "5 mistakes:",
        "  unknown section or key in a.json: 'opponnent'; did you mean 'opponent'?",
        "  unknown key in a.json: 'ppo.gama'; did you mean 'ppo.gamma'?",
        "  a.json: section model must be a mapping of its keys, not 3",
        "  a.json: ppo.lam must be at least 0 and at most 1, not 2.0",
        "  a.json: ppo.batch_size must be at least 1, not 0",
    ]
    assert [type(mistake) for mistake in raised.value.mistakes] == [
        UnknownKeyError, UnknownKeyError, InvalidValueError, InvalidValueError, InvalidValueError,
    ]  # fmt: skip


def test_a_union_is_one_mistake_and_each_part_of_a_list_is_its_own() -> None:
    """An opponent is a text or a mixture: of a mixture only the weight is wrong, not that it is no text."""
    stages = [
        {"threshold": 2, "opponent": {"first": 0}},
        {"name": "b", "treshold": 0.5, "task_ids": [1, [5, 4]]},
    ]
    with pytest.raises(MistakesError) as raised:
        from_dict({"stages": stages})
    assert [
        str(mistake).partition("stages")[2].partition(", not")[0] for mistake in raised.value.mistakes
    ] == [
        "[0].name is missing: text",
        "[0].opponent.first must be above 0",
        "[0].threshold must be at least 0 and at most 1",
        "[1].task_ids[1] must be [first, last] with first <= last",
        "[1]: 'treshold'; did you mean 'threshold'?",
    ]


def test_files_options_and_flags_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message of docs/configuration.md, then also the other places where mistakes are made."""
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text('{"ppo": {"gama": 1}, "weight_decay": 0.01}')
    assert main(["train", "--config", "mine.json", "--ppo.batch_size", "many"]) == 2
    message = capsys.readouterr().err
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
    assert f"```text\n{message}```" in page
    assert main(["train", "--preset", "tinny", "--config", "mine.json", "no.json", "--seed", "x"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "gamespiel: 5 mistakes:"
    assert lines[1].startswith("  unknown preset 'tinny'; did you mean 'tiny'?")
    assert lines[4] == "  config file 'no.json' cannot be read: No such file or directory"
    assert lines[5] == "  --run.seed must be an integer, not 'x'"


def test_unknown_flags_are_named_together_and_their_values_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.json").write_text('{"gama": 1}')
    line = ["train", "--lr", "3", "stray", "--pressets=tiny", "--ppo.lam", "x", "--config"]
    assert main([*line, str(tmp_path / "mine.json")]) == 2
    assert [entry.split(";")[0] for entry in capsys.readouterr().err.splitlines()] == [
        "gamespiel: 5 mistakes:",
        "  unknown option '--lr'",
        "  unknown argument 'stray'",
        "  unknown option '--pressets'",
        f"  unknown section or key in {tmp_path / 'mine.json'}: 'gama'",
        "  --ppo.lam must be a number, not 'x'",
    ]


def test_keys_that_contradict_each_other_are_named_together() -> None:
    data = {"use_4bit": True, "use_8bit": True, "env_mode": "url", "use_vllm": True, "think": True}
    with pytest.raises(MistakesError) as raised:
        from_dict(data)
    assert [str(mistake).split(" ")[0] for mistake in raised.value.mistakes] == [
        "model.use_4bit", "env.think", "env.env_mode", "run.use_vllm",
    ]  # fmt: skip


def test_a_long_list_is_cut() -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict({"task_ids": [-1] * 2_000})
    lines = str(raised.value).splitlines()
    assert lines[0] == "2,000 mistakes:" and lines[-1] == f"  and {2_000 - MOST_SHOWN:,} more"
    assert len(lines) == MOST_SHOWN + 2


ROW = Missing("run.use_vllm", bool, "false, so that the model itself samples", ("run.vllm_base_url",))
"""A row as it would be without an engine that exists."""


def test_a_missing_engine_is_named_and_marked_in_help_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "MISSING", (ROW,))
    with pytest.raises(NotBuiltError, match=r"run\.use_vllm = True"):
        require_built(from_dict({"use_vllm": True, "vllm_base_url": "http://h/v1"}))
    assert describe_missing("run.use_vllm").startswith(" (not built yet; works today: false, ")
    assert describe_missing("run.vllm_base_url") == " (not built yet: run.use_vllm)"
    assert describe_missing("ppo.learning_rate") == ""


def test_configurations_of_built_engines_pass() -> None:
    config = resolve("tiny")
    assert require_built(config) is config
    require_built(Config())
    for name in ("curriculum", "games_served", "trace_served"):
        require_built(load(FILES / f"{name}.json"))
    assert {name: missing(resolve(name)) for name in presets()} == {name: {} for name in presets()}
