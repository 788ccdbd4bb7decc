"""Valid configurations that this version cannot run raise a named error; none runs in another way."""

from pathlib import Path

import pytest

from gamespiel.config import (
    Config,
    NotBuiltError,
    from_dict,
    load,
    missing,
    presets,
    require_built,
    resolve,
)
from gamespiel.config.built import MISSING, note
from gamespiel.config.schema import DOTTED, node_of

FILES = Path(__file__).parents[1] / "data" / "configs"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"use_vllm": True, "vllm_base_url": "http://h/v1"}, "run.use_vllm = True"),
    ],
)
def test_each_missing_engine(data: dict[str, object], message: str) -> None:
    with pytest.raises(NotBuiltError, match=message):
        require_built(from_dict(data))


def test_what_is_built_passes() -> None:
    config = load(FILES / "games.json")
    assert require_built(config) is config
    assert require_built(resolve("tiny")).model.model_name == "tiny"
    require_built(Config())
    require_built(from_dict({"env_type": "trace"}))
    require_built(load(FILES / "curriculum.json"))
    require_built(from_dict({"env_type": "trace", "env_mode": "docker"}))


def test_the_table_names_real_keys() -> None:
    assert {key for row in MISSING for key in (row.key, *row.also)} <= set(DOTTED)


def test_help_texts_follow_the_table() -> None:
    """No key that works is marked."""
    marked = {key: note(key) for key in DOTTED if note(key)}
    assert not any(key.startswith("curriculum.") for key in marked)
    assert "env.env_mode" not in marked
    assert marked["run.vllm_base_url"] == " (not built yet: run.use_vllm)"
    assert "ppo.learning_rate" not in marked
    for key, text in marked.items():
        section, name = key.split(".")
        assert node_of(section, [name])["description"].endswith(text)


def test_no_preset_needs_a_missing_engine() -> None:
    assert {name: missing(resolve(name)) for name in presets()} == {name: {} for name in presets()}
