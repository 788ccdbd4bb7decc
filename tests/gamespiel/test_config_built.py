"""Valid configurations that this version cannot run raise a named error; none runs in another way."""

from pathlib import Path

import pytest

from gamespiel.config import (
    Config,
    NotBuiltError,
    built,
    from_dict,
    load,
    missing,
    presets,
    require_built,
    resolve,
)
from gamespiel.config.built import MISSING, Missing, describe_missing
from gamespiel.config.schema import DOTTED, node_of

FILES = Path(__file__).parents[1] / "data" / "configs"


ROW = Missing("run.use_vllm", bool, "false, so that the model itself samples", ("run.vllm_base_url",))
"""A row as it would be without an engine that exists."""


@pytest.fixture
def a_missing_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "MISSING", (ROW,))


@pytest.mark.usefixtures("a_missing_engine")
def test_each_missing_engine() -> None:
    with pytest.raises(NotBuiltError, match=r"run\.use_vllm = True"):
        require_built(from_dict({"use_vllm": True, "vllm_base_url": "http://h/v1"}))


def test_configurations_of_built_engines_pass() -> None:
    config = load(FILES / "games.json")
    assert require_built(config) is config
    assert require_built(resolve("tiny")).model.model_name == "tiny"
    require_built(Config())
    require_built(from_dict({"env_type": "trace"}))
    require_built(load(FILES / "curriculum.json"))
    require_built(from_dict({"env_type": "trace", "env_mode": "docker"}))
    for name in ("games_served", "trace_served"):
        require_built(load(FILES / f"{name}.json"))


def test_the_table_names_real_keys() -> None:
    assert {key for row in MISSING for key in (row.key, *row.also)} <= set(DOTTED)


def test_help_texts_follow_the_table() -> None:
    """No key that works is marked."""
    marked = {key: describe_missing(key) for key in DOTTED if describe_missing(key)}
    assert marked.keys() == {key for row in MISSING for key in (row.key, *row.also)}
    for key, text in marked.items():
        section, name = key.split(".")
        assert node_of(section, [name])["description"].endswith(text)


@pytest.mark.usefixtures("a_missing_engine")
def test_help_texts_of_a_missing_engine() -> None:
    assert describe_missing("run.use_vllm").startswith(" (not built yet; works today: false, ")
    assert describe_missing("run.vllm_base_url") == " (not built yet: run.use_vllm)"
    assert describe_missing("ppo.learning_rate") == ""


def test_no_preset_needs_a_missing_engine() -> None:
    assert {name: missing(resolve(name)) for name in presets()} == {name: {} for name in presets()}
