"""The JSON schema: current, valid, and in agreement with the program."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from gamespiel.agents.models.adapters import LoraSettings
from gamespiel.agents.models.loading import ModelSettings
from gamespiel.cli import main
from gamespiel.config import (
    Config,
    ConfigError,
    EnvConfig,
    Hyperparameters,
    from_dict,
    load,
    presets,
    to_dict,
)
from gamespiel.config.preset_files import preset_path
from gamespiel.config.schema import DOTTED, KEYS, PRESET, SECTION_OF, file_schema, node_of
from gamespiel.config.yaml_text import read_yaml

ROOT = Path(__file__).parents[2]
PACKAGED = ROOT / "configs" / "schema.json"
FILES = [*map(preset_path, presets()), *sorted((ROOT / "tests" / "data" / "configs").iterdir())]
VALIDATOR = Draft202012Validator(file_schema())


def test_the_packaged_schema_is_current_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails: ``gamespiel schema > configs/schema.json``."""
    assert json.loads(PACKAGED.read_text(encoding="utf-8")) == file_schema()
    Draft202012Validator.check_schema(file_schema())
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == PACKAGED.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_validates(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [error.message for error in VALIDATOR.iter_errors(read_yaml(text))] == []
    assert [error.message for error in VALIDATOR.iter_errors(to_dict(load(path)))] == []
    if path.parent == PACKAGED.parent:  # presets name their schema for editors
        assert text.startswith("# yaml-language-server: $schema=schema.json\n")


def test_every_key_has_help_and_its_default() -> None:
    for section, values in to_dict(Config()).items():
        for name, default in values.items():
            node = node_of(section, [name])
            assert node["description"] and node["default"] == default, f"{section}.{name}"
    assert set(file_schema()["properties"]) == {PRESET, *KEYS, *SECTION_OF}
    assert len(DOTTED) == len(SECTION_OF)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"gamma": 0}, "ppo.gamma must be above 0 and at most 1, not 0.0"),
        ({"gamma": "1"}, "ppo.gamma must be a number, not '1'"),
        ({"batch_size": 2.5}, "ppo.batch_size must be an integer, not 2.5"),
        ({"batch_size": True}, "ppo.batch_size must be an integer, not True"),
        ({"rules": 1}, "env.rules must be true or false, not 1"),
        ({"illegal": "forfit"}, "'raise', not 'forfit'; did you mean 'forfeit'"),
        ({"max_turns": 1}, "env.max_turns must be at least 2"),
        ({"task_ids": [3, [5, -1]]}, r"env.task_ids\[1\]\[1\] must be at least 0, not -1"),
        ({"task_ids": [[1]]}, r"env.task_ids\[0\]"),
        ({"game": "hex", "params": {"a": [1]}}, "env.params.a"),
        ({"stages": [{"task_id_range": [0, 1]}]}, r"stages\[0\].name is missing: text"),
        ({"stages": [{"name": "a", "treshold": 0.6}]}, "'treshold'; did you mean 'threshold'"),
        ({"ppo": {"gama": 1}}, "'ppo.gama'; did you mean 'ppo.gamma'"),
        ({"ppo": 3}, "section ppo must be a mapping of its keys, not 3"),
        ({"preset": "tinny"}, "'tinny'; did you mean 'tiny'"),
        ({"run": {"preset": "tiny"}}, "'run.preset'"),
        ([1], r"must be a mapping of sections or keys, not \[1\]"),
    ],
)
def test_what_the_program_refuses_the_schema_refuses(data: Any, message: str) -> None:
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


@pytest.mark.parametrize(
    ("data", "dotted", "value"),
    [
        ({"num_train_steps": 1e4}, "ppo.num_train_steps", 10_000),
        ({"task_ids": [1e9, [0, 1e9]]}, "env.task_ids", (10**9, (0, 10**9))),
        ({"gamma": 1}, "ppo.gamma", 1.0),
        ({"game": None}, "env.game", None),
        ({"preset": "tiny"}, "model.model_name", "tiny"),
    ],
)
def test_what_the_schema_accepts_the_program_accepts(data: Any, dotted: str, value: Any) -> None:
    assert VALIDATOR.is_valid(data)
    section, key = dotted.split(".")
    found = getattr(getattr(from_dict(data), section), key)
    assert repr(found) == repr(value)  # 1e4 becomes an integer


def test_sections_are_checked_however_they_are_made() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Hyperparameters(gamma=5)
    with pytest.raises(ValidationError, match="task_id"):
        dataclasses.replace(EnvConfig(), task_id="5")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().run.seed = 3  # type: ignore[misc]


def test_a_policy_of_its_own_has_the_defaults_of_the_configuration() -> None:
    defaults, lora = dataclasses.asdict(Config().model), dataclasses.asdict(Config().lora)
    assert dataclasses.asdict(ModelSettings()) == defaults
    assert dataclasses.asdict(LoraSettings()) == {
        name: lora[name] for name in ("r", "lora_alpha", "target_modules")
    }
