"""Round trips: files, text on the command line, and YAML in general read what was written."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamespiel.config import from_dict, load, resolve, save, to_dict
from gamespiel.config.layers import layer_from_overrides
from gamespiel.config.yaml_text import read_yaml, write_yaml

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    ["null", "no", "1e5", "1:30", "010", "0x1", ".5", "1_0", "~", "", "true", "2024-01-01", "=", "<<", "- a"]
)
ids = st.integers(0, 3_000_000_000)
pairs = st.tuples(ids, ids).map(lambda pair: tuple(sorted(pair)))
stages = st.lists(
    st.fixed_dictionaries(
        {"task_id_range": pairs.map(list), "opponent": words, "threshold": st.floats(0, 1)}
    ),
    max_size=3,
).map(lambda found: [{"name": f"stage {i}", **stage} for i, stage in enumerate(found)])
games = st.one_of(
    st.fixed_dictionaries({"task_id": ids}),
    st.fixed_dictionaries({"task_ids": st.lists(ids | pairs.map(list), min_size=1, max_size=3)}),
    st.fixed_dictionaries(
        {"game": words, "params": st.dictionaries(words, st.integers() | st.booleans() | words)}
    ),
)
data = st.fixed_dictionaries(
    {
        "env": games,
        "ppo": st.fixed_dictionaries(
            {
                "learning_rate": st.floats(0, 1, exclude_min=True),
                "gamma": st.floats(0, 1, exclude_min=True),
                "adaptive_kl": st.booleans(),
                "batch_size": st.integers(1, 10**6),
            }
        ),
        "model": st.fixed_dictionaries({"model_name": words}),
        "lora": st.fixed_dictionaries({"target_modules": st.lists(words, max_size=3)}),
        "run": st.fixed_dictionaries({"output_dir": st.none() | words}),
        "curriculum": st.fixed_dictionaries({"stages": stages}),
    }
)


@given(data)
@settings(max_examples=30, deadline=None)
def test_files_round_trip(tmp_path_factory: pytest.TempPathFactory, plain: dict[str, Any]) -> None:
    config = from_dict(plain)
    folder = tmp_path_factory.mktemp("configs")
    for name in ("a.yaml", "a.json"):
        assert load(save(config, folder / name)) == config
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
    assert resolve(base=config) == config


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    )
)
@settings(max_examples=100, deadline=None)
def test_yaml_round_trip(plain: Any) -> None:
    assert read_yaml(write_yaml(plain)) == plain


@pytest.mark.parametrize(
    ("dotted", "text", "value"),
    [
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
    ],
)
def test_text_values(dotted: str, text: str, value: object) -> None:
    section, key = dotted.split(".")
    parsed = layer_from_overrides([(dotted, text)]).values[section][key]
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "value"), [("1e-5", 1e-5), ("1.", 1.0), ("010", 10), ("no", "no"), ("1:30", "1:30"), ("", None)]
)
def test_yaml_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert read_yaml(text) == value
