"""Addresses and arguments: what they mean, and a named error for all outside what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_gym.env import GameSpielEnv
from game_gym.exact import find_variant
from game_gym.games import find_game
from game_gym.protocols import PROTOCOLS, own_seed
from game_gym.spec import load_variant
from game_gym.task import CONFIGS, TASK_LIMIT, decode, encode, split
from task_gym.errors import (
    ArgumentError,
    GameError,
    OptionError,
    SeedError,
    TaskIdError,
)
from tests.game_gym.play import LEDUC, make

REMOTE = {"backend": "affinetes", "base_url": "http://x"}
SEEDS = r"seeds: 'affine' was given with game 'hex', allowed: with task"
DOCKER = {"backend": "affinetes", "mode": "docker"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task_id": LEDUC, "task_ids": [1]}, ArgumentError, "exactly one of task_id, task_ids and game"),
        ({"task_ids": 5}, TaskIdError, "task_ids: 5 was given"),
        ({"game": 2048}, GameError, "2048 was given, .*did you mean '2048'"),
        ({"game": "hex(players=2)"}, GameError, "'hex', with parameters as params="),
        ({"game": "hex", "params": [("size", 5)]}, ArgumentError, "a mapping of names"),
        ({"params": {"players": 2}}, ArgumentError, "params: .* allowed: with game only"),
        ({"task_ids": []}, TaskIdError, r"task_ids: \[\] was given, allowed: a non-empty list"),
        ({"task_ids": [(LEDUC + 1, LEDUC)]}, TaskIdError, "first <= last"),
        ({"task_ids": [(LEDUC,)]}, TaskIdError, r"allowed: \(first, last\)"),
        ({"task_ids": [(0, TASK_LIMIT - 1)] * 2}, TaskIdError, "ids in all"),
        ({"game": "kuhn_poker", "params": {"player": 3}}, GameError, "did you mean 'players'"),
        ({"game": "kuhn_poker", "params": {"players": 5}}, GameError, "5 was given, allowed: 2, 3, 4"),
        ({"game": "tic_tac_toe", "params": {"x": 1}}, GameError, "'x' was given, allowed: nothing"),
        ({"backend": "locl"}, ArgumentError, "did you mean 'local'"),
        ({"base_url": "http://x"}, ArgumentError, "with backend 'local', allowed: .* 'affinetes'"),
        ({"env_vars": {"KEY": "s3cret"}}, ArgumentError, "a value was given with backend 'local'"),
        ({"backend": "affinetes"}, ArgumentError, "base_url: None was given"),
        ({**REMOTE, "base_url": "localhost:8000"}, ArgumentError, "as 'http://127.0.0.1:8000'"),
        ({**REMOTE, "timeout": 0}, ArgumentError, "timeout: 0 was given"),
        ({**REMOTE, "mode": "urls"}, ArgumentError, "did you mean 'url'"),
        ({**DOCKER, "base_url": "http://h"}, ArgumentError, "base_url: .* 'docker', allowed: .* 'url' only"),
        ({**DOCKER, "mem_limit": "2 G"}, ArgumentError, "mem_limit: '2 G' was given, allowed: .* '2g'"),
        ({**DOCKER, "cpu_limit": 0}, ArgumentError, "cpu_limit: 0 was given"),
        ({**DOCKER, "host": "box"}, ArgumentError, "host: 'box' was given"),
        ({**DOCKER, "env_vars": {"A": 1}}, ArgumentError, "names to texts"),
        ({"bakend": "local"}, ArgumentError, "'bakend' was given, allowed: .*did you mean 'backend'"),
        ({"game": "hex", "seeds": "affine"}, ArgumentError, SEEDS),
        ({"rules": "yes"}, ArgumentError, "rules: 'yes' was given, allowed: True, False"),
        ({"seeding": "openev"}, ArgumentError, "did you mean 'openenv'"),
        ({"seeds": "affin"}, ArgumentError, "seeds: 'affin' was given, .* did you mean 'affine'"),
        ({"reward": "scores"}, ArgumentError, "did you mean 'score'"),
        ({"illegal": "raises"}, ArgumentError, "did you mean 'raise'"),
        ({"max_turns": 1}, ArgumentError, "max_turns: 1 was given, allowed: None or a whole"),
    ],
)
def test_constructor(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    where = {} if {"task_ids", "game"} & arguments.keys() else {"task_id": LEDUC}
    with pytest.raises(error, match=message):
        GameSpielEnv(**where | arguments)


@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
def test_without_a_task_the_game_is_leduc_poker(name: str) -> None:
    env, named = gym.make(name), gym.make(name, game="leduc_poker")
    assert env.reset(seed=3)[0] == named.reset(seed=3)[0]
    with pytest.raises(ArgumentError, match="nothing was given, allowed: exactly one"):
        gym.make(name, params={"players": 2})
    with pytest.raises(ArgumentError, match=r"parse: 'lst' was given, .*did you mean 'last'"):
        gym.make("GameSpielText-v0", task_id=LEDUC, parse="lst")


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "3", True])
def test_seeds(seed: object) -> None:
    env = make(task_id=LEDUC)
    with pytest.raises(SeedError, match="allowed: whole numbers 0 … 4294967295"):
        env.reset(seed=seed)
    env.reset(seed=2**32 - 201)


@pytest.mark.parametrize(
    ("seeding", "opponent", "last"),
    [
        # NumPy's seeds end at 2**32 - 1. Chance has seed + 100, and the bots need less.
        ("openenv", "random", 2**32 - 101),
        # An even seed plays seat 0. The bot of seat 1 has root seed + 3, and draws from root + 2, or searches
        # with root + 4. One of seat 0, against an odd seed, has root seed + 2.
        ("evaluate", "random", 2**32 - 6),
        ("evaluate", "random", 2**32 - 5),
        ("evaluate", "mcts-python:2x1", 2**32 - 8),
        ("evaluate", "mcts-python:2x1", 2**32 - 7),
    ],
)
def test_seeds_reach_as_far_as_upstreams(seeding: str, opponent: str, last: int) -> None:
    env = make(task_id=LEDUC, seeding=seeding, opponent=opponent)
    assert env.reset(seed=last)[1]["seed"] == last
    with pytest.raises(SeedError, match=f"seed: {last + 2} was given, .*; allowed here: 0 … {last}"):
        env.reset(seed=last + 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": LEDUC}, "'task' was given, allowed: .* list_actions; did you mean 'task_id'"),
        ({"task_id": LEDUC + 10}, "200000010 was given, allowed: 200000000 … 200000009, 200000050"),
        ({"task_id": None}, "None was given"),
        ({"opponent": "fist"}, "reset option 'opponent': .*did you mean 'first'"),
        ({"opponent": "mcts:x"}, "reset option 'opponent': .*mcts:SIMS"),
        ([("task_id", LEDUC)], "allowed: None or a mapping with task_id, opponent"),
    ],
)
def test_options(options: Any, message: str) -> None:
    env = make(task_ids=[(LEDUC, LEDUC + 9), LEDUC + 50])
    with pytest.raises(OptionError, match=message):
        env.reset(options=options)
    with pytest.raises(OptionError, match="200000000 was given, allowed: the one game named"):
        make(game="leduc_poker").reset(options={"task_id": LEDUC})


def test_numpys_whole_numbers_are_whole_numbers() -> None:
    env = make(game="hex", params={"board_size": np.int64(5)}, max_turns=np.int64(2))
    env.reset(seed=np.uint32(1))
    *_, info = env.step(np.array(3))
    assert info["turn"] == 1
    assert env.step(np.int16(info["legal_actions"][0]))[-1]["result"] == "cut"


# -- task ids and sets of them -------------------------------------------------------------------------------


@given(st.integers(0, TASK_LIMIT - 1))
def test_every_id_is_split_and_ids_a_table_apart_are_one_game(task_id: int) -> None:
    game, config = split(task_id)
    again = encode(game, config)
    assert again % CONFIGS == task_id % CONFIGS
    assert (task_id - again) % (22 * CONFIGS) == 0


@pytest.mark.parametrize("task_id", [-1, 2**62, 1.0, "200000000", True, None, [LEDUC]])
def test_what_is_no_task_id(task_id: object) -> None:
    with pytest.raises(TaskIdError, match="allowed: whole numbers 0"):
        decode(task_id)  # type: ignore[arg-type]


def test_encode_names_its_errors() -> None:
    with pytest.raises(GameError, match="'kuhn_poker' was given, which is not in the task-id table"):
        encode("kuhn_poker", 0)
    with pytest.raises(TaskIdError, match="config id: 100000000 was given, allowed: 0 … 99999999"):
        encode("hex", CONFIGS)


# -- seeds="affine": a task's own seed, as affinetes' competition drew it ------------------------------------


POOL = [(0, 499_999_999), (600_000_000, 799_999_999)]


def test_seeds_by_hand() -> None:
    """``printf game:0 | sha256sum`` begins 0b475dd10efa76f5, of which the last four bytes count."""
    assert own_seed(0) == 0x0EFA76F5
    assert own_seed(200_000_000) == 0x5E31CDBF  # e5b2d8de5e31cdbf
    assert own_seed(799_999_999) == 0xACC8974C  # 1dd26795acc8974c


def test_a_task_is_the_same_game_whatever_the_seed() -> None:
    env = make(task_ids=POOL, seeds="affine", seeding="evaluate")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        task_id = info["task_id"]
        assert any(first <= task_id <= last for first, last in POOL)
        assert info["seed"] == own_seed(task_id)
        assert info["seat"] == own_seed(task_id) % 2


# -- seeds to seats and streams, as upstream's two protocols do it -------------------------------------------


OPENENV, EVALUATE = PROTOCOLS["openenv"], PROTOCOLS["evaluate"]


def test_seats_and_streams_of_protocols() -> None:
    assert [OPENENV.seat(seed, 4) for seed in range(6)] == [0, 1, 2, 3, 0, 1]
    assert [EVALUATE.seat(seed, 4) for seed in range(6)] == [0, 1, 0, 1, 0, 1]
    assert [protocol.seat(3, 1) for protocol in PROTOCOLS.values()] == [0, 0]
    assert (OPENENV.chance(7), EVALUATE.chance(7)) == (107, 7)
    # A uniform bot draws from root + 2: seed + 2 whichever seat of two, seed + 2 + p of more.
    assert [OPENENV.bot(7, seat, 2) + 2 for seat in (0, 1)] == [9, 9]
    assert [OPENENV.bot(7, seat, 4) + 2 for seat in range(4)] == [9, 10, 11, 12]
    # evaluate's base is seed + 2 + p, and uniform base + 2, rollouts base + 3, search base + 4.
    assert [EVALUATE.bot(7, seat, 2) + 2 for seat in (0, 1)] == [11, 12]


# -- parameters that name a file: OpenSpiel opens it only where files are allowed ----------------------------


TREE = """EFG 2 R "one" { "A" "B" }
p "" 1 1 "" { "l" "r" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
"""


def test_a_file_is_opened_only_where_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "one.efg"
    path.write_text(TREE)
    arguments: dict[str, Any] = {"game": "efg_game", "params": {"filename": str(path)}}
    with pytest.raises(GameError, match=r"efg_game parameter 'filename': .*allowed: with allow_files=True"):
        gym.make("GameSpiel-v0", **arguments)
    with pytest.raises(GameError, match=r"env\.allow_files: true"):
        find_variant(**arguments)
    with pytest.raises(ArgumentError, match="allow_files: 1 was given"):
        gym.make("GameSpiel-v0", **arguments, allow_files=1)
    env = gym.make("GameSpiel-v0", **arguments, allow_files=True, opponent="first")
    assert env.reset(seed=0)[1]["admissible_commands"] == ["l", "r"]
    assert find_variant(**arguments, allow_files=True).players == 2


SECRET = "/etc/passwd"


@pytest.mark.parametrize(
    ("game", "params"),
    [
        ("misere", {"game": {"name": "efg_game", "filename": SECRET}}),
        ("misere", {"game": {"name": "misere", "game": {"name": "nfg_game", "filename": SECRET}}}),
        ("start_at", {"game": {"name": "misere", "game": f"efg_game(filename={SECRET})"}}),
        ("universal_poker", {"betting": f"efg_game( filename = {SECRET})"}),
    ],
)
def test_no_way_leads_to_a_file(game: str, params: dict[str, Any]) -> None:
    with pytest.raises(GameError) as refused:
        load_variant(find_game(game), params)
    assert "a file that OpenSpiel would open" in str(refused.value)


def test_every_parameter_of_a_game_that_is_a_file_is_known() -> None:
    """Those of the installed OpenSpiel, read by eye; a new one that is missed has another name."""
    import pyspiel

    words = ("file", "path", "root", "dir", "folder")
    pairs = {
        (kind.short_name, name)
        for kind in pyspiel.registered_games()
        for name in kind.parameter_specification
        if any(word in name.lower() for word in words)
    }
    for game, name in pairs:
        with pytest.raises(GameError, match="would open"):
            load_variant(find_game(game), {name: SECRET})
    efg, nfg, trails = ("efg_game", "filename"), ("nfg_game", "filename"), ("colored_trails", "boards_file")
    assert {efg, nfg, trails, ("bargaining", "instances_file")} <= pairs
