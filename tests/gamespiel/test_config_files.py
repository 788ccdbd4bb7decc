"""Existing configuration files load unchanged; presets, layers, saved files and their errors; round trips."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamespiel.config import (
    Config,
    ConfigError,
    Stage,
    from_dict,
    load,
    presets,
    resolve,
    resolve_layers,
    save,
    saved_config,
    to_dict,
)
from gamespiel.config.layers import layer_from_overrides
from gamespiel.config.schema import SECTION_OF
from gamespiel.config.yaml_text import read_yaml, write_yaml
from gamespiel.kinds import KINDS

FILES = Path(__file__).parents[1] / "data" / "configs"


@pytest.mark.parametrize("path", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_files_mean_what_they_say_and_leave_the_rest_as_it_is(path: Path) -> None:
    """Their sections, or keys without one, and of a stage its own keys."""
    plain, expected = to_dict(load(path)), to_dict(Config())
    for name, value in json.loads(path.read_text()).items():
        section = SECTION_OF.get(name)
        expected[section or name] |= {name: value} if section else value
    if path.stem == "trace_served":
        expected["env"]["decode"] = "text"  # a server's programs have no outputs to choose from
    empty = {field.name: None for field in dataclasses.fields(Stage)} | {"task_ids": []}
    expected["curriculum"]["stages"] = [empty | stage for stage in expected["curriculum"]["stages"]]
    assert plain == expected


def test_a_later_choice_of_game_replaces_the_earlier_one() -> None:
    """``tiny`` names a game; a later task id, or indices, must replace it."""
    config = resolve("tiny", overrides=[("env.task_id", "5")])
    assert (config.env.task_id, config.env.game, config.env.rules) == (5, None, False)
    config = resolve("tiny", [FILES / "games.json"])
    assert (config.env.allowed_game_indices, config.env.game) == ((0, 1, 2, 6, 7), None)
    config = resolve(overrides=[("env.game", "hex"), ("env.params", "{board_size: 5}")])
    assert resolve(base=config, overrides=[("env.game", "chess")]).env.params == {}
    assert resolve(base=config, overrides=[("env.params", "{board_size: 7}")]).env.game == "hex"


FULL = {
    "env": {"game": "1e5", "params": {"no": 1, "1:30": True, "~": "null"}, "opponent": {"a b": 0.1, "=": 2}},
    "ppo": {"learning_rate": 1e-300, "gamma": 5e-324, "adaptive_kl": True, "batch_size": 10**6},
    "model": {"model_name": "010"},
    "lora": {"target_modules": []},
    "run": {"output_dir": "- ü"},
    "curriculum": {
        "stages": [{"name": "0x1", "task_id_range": [0, 5], "opponent": "yes"}, {"name": "b", "threshold": 0}]
    },
}
"""Values that a careless writer of YAML or JSON would turn into others."""


def test_configurations_survive_saving(tmp_path: Path) -> None:
    assert {"qwen2.5-3b", "qwen3-4b", "smollm2-135m", "tiny", "tiny-trace"} <= set(presets())
    assert list(presets()) == sorted(presets())
    for config in (*map(resolve, presets()), from_dict(FULL)):
        for saved in ("config.yaml", "config.json"):
            assert load(save(config, tmp_path / saved)) == config
        assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
        assert resolve(base=config) == config


def test_a_file_names_the_preset_from_which_it_starts(tmp_path: Path) -> None:
    """The file's own keys win over the preset's, and the rest is the preset's; options win over both."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: tiny\nppo:\n  gamma: 0.5\nseed: 3\n")
    expected = resolve("tiny", overrides=[("ppo.gamma", "0.5"), ("run.seed", "3")])
    assert load(mine) == expected and expected.ppo.learning_rate == 4e-3
    assert resolve("tiny", [mine]) == expected
    assert from_dict({"preset": "tiny", "gamma": 0.5, "seed": 3}) == expected
    assert resolve(files=[mine], overrides=[("ppo.gamma", "0.7")]).ppo.gamma == 0.7
    # It is below all files, and the only one.
    first, other = tmp_path / "a.json", tmp_path / "c.json"
    first.write_text('{"lam": 0.6, "game": "kuhn_poker", "learning_rate": 0.1}')
    other.write_text('{"preset": "qwen3-4b"}')
    config, layers, _ = resolve_layers(files=[first, mine])
    assert (config.ppo.gamma, config.ppo.lam, config.ppo.learning_rate) == (0.5, 0.6, 0.1)
    assert (config.env.game, config.env.task_id) == ("kuhn_poker", None)
    assert layers == f"preset tiny, {first}, {mine}"
    with pytest.raises(ConfigError, match=r"from one preset: .*mine.yaml names 'tiny', and .*'qwen3-4b'"):
        resolve(files=[mine, other])
    with pytest.raises(ConfigError, match=r"from one preset: --preset names 'qwen3-4b', and .*'tiny'"):
        resolve("qwen3-4b", [mine])


def test_saved_config_is_found_from_a_checkpoint(tmp_path: Path) -> None:
    config = from_dict({"seed": 7})
    save(config, tmp_path / "config.yaml")
    checkpoint = tmp_path / "checkpoints" / "step-5"
    checkpoint.mkdir(parents=True)
    assert saved_config(checkpoint) == saved_config(tmp_path) == config
    with pytest.raises(ConfigError, match="no such run or checkpoint folder"):
        saved_config(tmp_path / "absent")
    (tmp_path / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"it holds no config\.yaml"):
        saved_config(checkpoint)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json: not valid JSON: Expecting property name"),
        ("a.json", '{"gamma": 0.9, "gamma": 0.8}', "key 'gamma' is given twice"),
        ("a.yaml", "gamma: 0.9\ngamma: 0.8", "key 'gamma' is given twice"),
        ("a.yaml", "gamma: [", "a.yaml: not valid YAML"),
        ("a.toml", "", "must end in .json, .yaml or .yml"),
        ("a.json", '{"pppo": {}}', "unknown section or key in .*a.json: 'pppo'; did you mean 'ppo'"),
        ("a.json", '{"ppo": {"gamma": 0.5}, "gamma": 0.5}', "ppo.gamma is given twice"),
        ("a.json", '{"gamma": NaN}', "ppo.gamma must be a number, not nan"),
        ("a.json", f'{{"seed": "{"x" * 10_000}"}}', r"run\.seed must be .*'x+… \(10,002 characters\)$"),
        ("a.yaml", "preset: tinny", r"a.yaml: unknown preset 'tinny'; did you mean 'tiny'\? allowed: "),
        ("a.yaml", "preset: 3", r"a.yaml: preset must be the name of a preset, not 3$"),
        ("a.yaml", "preset: other.yaml", r"'other.yaml'; .*--config other.yaml .*a.yaml$"),
        ("a.yaml", "prest: tiny", r"'prest'; did you mean 'preset'\?"),
    ],
)
def test_bad_files(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as raised:
        load(path)
    assert len(str(raised.value)) < len(str(tmp_path)) + 400


def test_missing_and_empty_files_and_a_byte_order_mark(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"config file '.*' is a folder; allowed: a .json, .yaml or .yml file"
    ):
        load(tmp_path)
    with pytest.raises(ConfigError, match=r"config file 'absent.json' cannot be read: No such file"):
        load("absent.json")
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    assert load(tmp_path / "a.yaml") == Config()
    (tmp_path / "a.json").write_text('{"seed": 3}', encoding="utf-8-sig")
    assert load(tmp_path / "a.json").run.seed == 3


def test_another_kind_of_task_replaces_the_choice_of_tasks(tmp_path: Path) -> None:
    """``tiny`` names a task of leduc poker; as a trace, the same id would be an arbitrary program."""
    traces = resolve("tiny", overrides=[("env.env_type", "trace")])
    assert (traces.env.task_id, traces.env.rules, traces.model) == (None, False, resolve("tiny").model)
    chosen = resolve("tiny", overrides=[("env.env_type", "trace"), ("env.level", "2"), ("env.task_id", "7")])
    assert (chosen.env.task_id, chosen.env.level) == (7, 2)
    games = resolve("tiny-trace", overrides=[("env.env_type", "openspiel"), ("env.game", "hex")])
    assert (games.env.game, games.env.level, games.env.task_ids) == ("hex", None, ())
    # The same kind once more changes nothing, nor do other task ids change the level.
    preset = resolve("tiny-trace")
    assert resolve("tiny-trace", overrides=[("env.env_type", "trace")]) == preset
    held_out = resolve(base=preset, overrides=[("env.task_ids", "[[5000000000, 5999999999]]")])
    assert (held_out.env.task_ids, held_out.env.level) == (((5_000_000_000, 5_999_999_999),), 1)
    # A file of games and one of traces, in the order given.
    config = resolve(files=[FILES / "games.json", FILES / "trace_served.json"])
    assert (config.env.env_type, config.env.allowed_game_indices) == ("trace", ())
    assert load(FILES / "trace_served.json").env.task_ids == ()


def test_trace_keys_become_arguments_of_the_environment() -> None:
    keys = {
        "level": 2, "family": "lists", "injector": "affine", "require": "limits", "scoring": "exact",
        "illegal": "forfeit",
    }  # fmt: skip
    env = from_dict({"env_type": "trace", "task_ids": [7, [9, 11]]} | keys).env
    expected = {"task_id": None, "task_ids": [7, (9, 11)], "source": "builtin"} | keys
    assert KINDS["trace"].arguments(env) == expected | {"listed": True}
    by_name = dataclasses.replace(env, answer="name")
    assert KINDS["trace"].arguments(by_name) == expected | {"listed": False}


# -- round trips ---------------------------------------------------------------------------------------------

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    ["null", "no", "1e5", "1:30", "010", "0x1", ".5", "1_0", "~", "", "true", "2024-01-01", "=", "<<", "- a"]
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    )
)
@settings(max_examples=100, deadline=None)
def test_yaml_round_trip(plain: Any) -> None:
    assert read_yaml(write_yaml(plain)) == plain


def test_text_values() -> None:
    for dotted, text, value in (
        ("ppo.learning_rate", "2e-5", 2e-5),
        ("ppo.gamma", "1", 1.0),
        ("ppo.num_train_steps", "1e4", 10_000),
        ("ppo.adaptive_kl", "false", False),
        ("ppo.lr_schedule", "cosine", "cosine"),
        ("model.model_name", "123", "123"),
        ("env.opponent", "null", "null"),
        ("env.game", "null", None),
        ("env.max_turns", "none", None),
        ("env.max_turns", "7", 7),
        ("env.task_ids", "1,[5,9],3", (1, (5, 9), 3)),
        ("env.task_ids", "1", (1,)),
        ("env.task_ids", "", ()),
        ("lora.target_modules", "q_proj,v_proj", ("q_proj", "v_proj")),
        (
            "env.params",
            "{board_size: 5, swap: true, kind: 'x', komi: 0.5}",
            {"board_size": 5, "swap": True, "kind": "x", "komi": 0.5},
        ),
    ):
        section, key = dotted.split(".")
        parsed = layer_from_overrides([(dotted, text)]).values[section][key]
        assert parsed == value and type(parsed) is type(value), (dotted, text)


def test_yaml_scalars_are_those_of_yaml_1_2() -> None:
    scalars = {"1e-5": 1e-5, "1.": 1.0, "010": 10, "no": "no", "1:30": "1:30", "": None}
    assert {text: read_yaml(text) for text in scalars} == scalars
