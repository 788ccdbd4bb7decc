"""Games and traces in one section: choices of the other kind are refused, keys without effect are noticed."""

import dataclasses
from pathlib import Path

import pytest

from gamespiel.config import (
    ConfigError,
    EnvConfig,
    InvalidValueError,
    evaluation_notices,
    from_dict,
    load,
    notices,
    resolve,
)
from gamespiel.config.schema import KEYS
from gamespiel.environments import make_envs
from gamespiel.kinds import DECLARATIONS
from gamespiel.kinds.base import EnvKeys
from gamespiel.kinds.traces.declaration import DECLARATION
from gamespiel.kinds.traces.keys import trace_arguments
from task_gym.errors import ArgumentError
from tests.gamespiel.test_config_files import FILES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"game": "hex"},
            "env.game = 'hex' chooses games, and env.env_type is 'trace': leave it out, or set",
        ),
        ({"game": "hex", "params": {"board_size": 5}}, "env.game = 'hex' chooses games"),
        ({"allowed_game_indices": [0]}, r"env.allowed_game_indices = \(0,\) chooses games"),
    ],
)
def test_keys_that_choose_games_are_refused_for_traces(data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict({"env_type": "trace", **data})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"level": 3}, "env.level = 3 chooses traces, and env.env_type is 'openspiel'"),
        ({"family": "recursion"}, "env.family = 'recursion' chooses traces"),
        ({"source": "hub"}, "env.source = 'hub' chooses traces, .* or set env.env_type to 'trace'"),
    ],
)
def test_keys_that_choose_traces_are_refused_for_games(data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"level": 0}, "env.level must be at least 1 and at most 10, not 0"),
        ({"level": 11}, "env.level must be .* not 11"),
        ({"injector": "save"}, "did you mean 'safe'"),
        ({"scoring": "line"}, "did you mean 'lines'"),
        ({"task_id": 1, "task_ids": [2]}, "only one key may choose the traces"),
    ],
)
def test_values_out_of_range(data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict({"env_type": "trace", **data})


def test_what_has_no_effect_is_said() -> None:
    assert evaluation_notices(from_dict({"env_type": "trace"})) == []
    traces = from_dict({"env_type": "trace", "opponent": "mcts", "rules": False, "illegal": "raise"})
    assert evaluation_notices(traces) == notices(traces)
    assert notices(traces) == [
        "env.opponent = 'mcts' has no effect on traces.",
        "env.rules = False has no effect on traces.",
    ]
    games = from_dict({"scoring": "lines", "opponent": "mcts"})
    assert notices(games) == ["env.scoring = 'lines' has no effect on games."]


def test_every_key_is_of_one_kind_or_of_all() -> None:
    """No key is defined twice, and a kind chooses its tasks by keys of its own."""
    defined = [name for keys in EnvConfig.__mro__[1:] for name in vars(keys).get("__annotations__", ())]
    assert sorted(defined) == sorted(KEYS["env"])
    of_all = {field.name for field in dataclasses.fields(EnvKeys)}
    for declaration in DECLARATIONS.values():
        own = {field.name for field in dataclasses.fields(declaration.keys)} - of_all
        assert len(declaration.choice) == len(set(declaration.choice)) and set(declaration.choice) <= own


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
    env = from_dict(
        {
            "env_type": "trace", "task_ids": [7, [9, 11]], "level": 2, "family": "lists",
            "injector": "affine", "require": "limits", "scoring": "exact",
            "illegal": "forfeit",
        }
    ).env  # fmt: skip
    shared = {
        "task_id": None, "task_ids": [7, (9, 11)], "source": "builtin", "level": 2, "family": "lists",
        "injector": "affine", "require": "limits", "scoring": "exact",
    }  # fmt: skip
    assert trace_arguments(env) == shared
    assert DECLARATION.arguments(env) == shared | {"illegal": "forfeit", "listed": True}
    by_name = dataclasses.replace(env, answer="name")
    assert DECLARATION.arguments(by_name) == shared | {"illegal": "forfeit", "listed": False}
    everything = from_dict({"env_type": "trace"}).env
    assert DECLARATION.arguments(everything)["task_ids"] is None


def test_the_environment_is_that_of_the_kind() -> None:
    for name, environment in (("tiny", "GameSpiel-v0"), ("tiny-trace", "CodeTraceChoice-v0")):
        envs = make_envs(resolve(name).env, 2)
        assert [env.spec.id for env in envs.envs if env.spec is not None] == [environment] * 2
    with pytest.raises(ArgumentError, match=r"'recursoin' was given, .*did you mean 'recursion'"):
        make_envs(from_dict({"env_type": "trace", "family": "recursoin"}).env, 1)
    with pytest.raises(InvalidValueError, match="chooses no game"):
        make_envs(from_dict({}).env, 1)
