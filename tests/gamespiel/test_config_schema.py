"""The JSON schema: current, valid, and in agreement with the program."""

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from gamespiel.agents.models.adapters import LoraSettings
from gamespiel.agents.models.loading import ModelSettings
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
from gamespiel.config.schema import DOTTED, KEYS, PRESET, SECTION_OF, SECTIONS, file_schema, node_of
from gamespiel.config.yaml_text import read_yaml

ROOT = Path(__file__).parents[2]
PACKAGED = ROOT / "configs" / "schema.json"
FILES = [*map(preset_path, presets()), *sorted((ROOT / "tests" / "data" / "configs").iterdir())]
VALIDATOR = Draft202012Validator(file_schema())


def test_the_packaged_schema_is_current() -> None:
    """If this fails: ``gamespiel schema > configs/schema.json``."""
    assert json.loads(PACKAGED.read_text(encoding="utf-8")) == file_schema()
    Draft202012Validator.check_schema(file_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_validates(path: Path) -> None:
    data = read_yaml(path.read_text(encoding="utf-8"))
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []
    assert [error.message for error in VALIDATOR.iter_errors(to_dict(load(path)))] == []


@pytest.mark.parametrize("name", presets())
def test_presets_name_their_schema_for_editors(name: str) -> None:
    first = preset_path(name).read_text(encoding="utf-8").splitlines()[0]
    prefix, _, schema = first.partition("=")
    assert prefix == "# yaml-language-server: $schema"
    assert preset_path(name).parent / schema == PACKAGED


def test_every_key_has_help_and_its_default() -> None:
    for section, values in to_dict(Config()).items():
        for name, default in values.items():
            node = node_of(section, [name])
            assert node["description"] and node["default"] == default, f"{section}.{name}"
    assert set(file_schema()["properties"]) == {PRESET, *KEYS, *SECTION_OF}
    assert len(DOTTED) == len(SECTION_OF)


@pytest.mark.parametrize(
    "data",
    [
        {"gamma": 0},
        {"gamma": 1.01},
        {"gamma": "1"},
        {"batch_size": 2.5},
        {"batch_size": True},
        {"rules": 1},
        {"illegal": "forfit"},
        {"level": 11},
        {"max_turns": 1},
        {"task_ids": [3, [5, -1]]},
        {"task_ids": [[1, 2, 3]]},
        {"task_ids": [[1]]},
        {"game": "hex", "params": {"a": [1]}},
        {"stages": [{"task_id_range": [0, 1]}]},
        {"stages": [{"name": "a", "task_id_range": [0, 1], "treshold": 0.6}]},
        {"ppo": {"gama": 1}},
        {"ppo": 3},
        {"pppo": {}},
        {"preset": "tinny"},
        {"preset": 3},
        {"preset": None},
        {"run": {"preset": "tiny"}},
        [1],
    ],
)
def test_what_the_program_refuses_the_schema_refuses(data: Any) -> None:
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(ConfigError):
        from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"num_train_steps": 1e4},
        {"task_ids": [1e9, [0, 1e9]]},
        {"gamma": 1},
        {"game": None},
        {"preset": "tiny"},
    ],
)
def test_what_the_schema_accepts_the_program_accepts(data: Any) -> None:
    assert VALIDATOR.is_valid(data)
    from_dict(data)


def test_sections_are_checked_however_they_are_made() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Hyperparameters(gamma=5)
    with pytest.raises(ValidationError, match="gama"):
        Hyperparameters(**{"gama": 0.5})
    with pytest.raises(ValidationError, match="task_id"):
        dataclasses.replace(EnvConfig(), task_id="5")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().run.seed = 3  # type: ignore[misc]


def test_sections_are_plain_dataclasses() -> None:
    assert EnvConfig().params is not EnvConfig().params
    assert pickle.loads(pickle.dumps(Config())) == Config()
    assert {section: cls() for section, cls in SECTIONS.items()} == {
        section: getattr(Config(), section) for section in SECTIONS
    }


def test_a_policy_of_its_own_has_the_defaults_of_the_configuration() -> None:
    defaults, lora = dataclasses.asdict(Config().model), dataclasses.asdict(Config().lora)
    assert dataclasses.asdict(ModelSettings()) == defaults
    assert dataclasses.asdict(LoraSettings()) == {
        name: lora[name] for name in ("r", "lora_alpha", "target_modules")
    }
