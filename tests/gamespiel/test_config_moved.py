"""Keys that have moved to another section are read where earlier versions had them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gamespiel.cli import main
from gamespiel.config import (
    SAVED_NAME,
    Config,
    ConfigError,
    RunConfig,
    from_dict,
    load,
    resolve,
    saved_config,
    to_dict,
)
from gamespiel.config.schema import DOTTED, MOVED, file_schema

SERVED = Config(run=RunConfig(use_vllm=True, vllm_base_url="http://h/v1"))


def test_the_table_names_earlier_and_present_places() -> None:
    assert set(MOVED.values()) <= set(DOTTED) and not set(MOVED) & set(DOTTED)


@pytest.mark.parametrize(
    "data",
    [
        {"run": {"use_vllm": True, "vllm_base_url": "http://h/v1"}},
        {"env": {"use_vllm": True, "vllm_base_url": "http://h/v1"}},
        {"env": {"use_vllm": True}, "run": {"vllm_base_url": "http://h/v1"}},
        {"use_vllm": True, "env": {"vllm_base_url": "http://h/v1"}},
    ],
)
def test_both_places_mean_the_same_in_files(data: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(data))
    assert load(tmp_path / "mine.json") == SERVED
    assert Draft202012Validator(file_schema()).is_valid(data)


def test_both_places_mean_the_same_in_options() -> None:
    url = ("run.vllm_base_url", "http://h/v1")
    assert resolve(overrides=[("env.use_vllm", "true"), url]) == SERVED
    assert resolve(overrides=[("env.use_vllm", "false"), ("run.use_vllm", "true"), url]) == SERVED
    assert not resolve(overrides=[url, ("run.use_vllm", "true"), ("env.use_vllm", "false")]).run.use_vllm


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"env": {"use_vllm": True}, "run": {"use_vllm": True}},
            "run.use_vllm is given twice, as env.use_vllm and as use_vllm",
        ),
        (
            {"use_vllm": True, "env": {"use_vllm": True}},
            "run.use_vllm is given twice, as use_vllm and as env.use_vllm",
        ),
        ({"env": {"use_vllm": 1}}, "run.use_vllm must be true or false, not 1"),
        ({"env": {"use_vlm": True}}, "unknown key in config: 'env.use_vlm'; did you mean 'run.use_vllm'"),
        ({"ppo": {"use_vllm": True}}, "unknown key in config: 'ppo.use_vllm'; did you mean 'run.use_vllm'"),
    ],
)
def test_mistakes_name_the_present_place(data: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


def test_a_run_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    saved = to_dict(Config())
    for name in ("use_vllm", "vllm_base_url"):
        saved["env"][name] = saved["run"].pop(name)
    (tmp_path / SAVED_NAME).write_text(yaml.safe_dump(saved))
    assert saved_config(tmp_path) == Config()


def test_the_earlier_option_gives_the_named_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--env.use_vllm=true", "--plan", "12"]) == 2
    assert "run.use_vllm needs run.vllm_base_url" in capsys.readouterr().err
