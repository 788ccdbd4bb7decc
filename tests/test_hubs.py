"""The environment of hub/openenv/, as OpenEnv's validator, server and clients see it."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import httpx
import numpy as np
import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed")

import uvicorn
from openenv import AutoAction, AutoEnv
from openenv.cli.__main__ import app as command
from openenv.core.generic_client import GenericEnvClient
from typer.testing import CliRunner

from task_gym.errors import TaskGymError
from task_gym.openenv import TaskAction, TaskClient, app

ROOT = Path(__file__).parents[1]
HUB = ROOT / "hub/openenv"

EPISODES: list[dict[str, Any]] = [
    {"task_id": 200000042},
    {"task_id": 0, "opponent": "mcts"},
    {"game": "hex", "params": {"board_size": 3}},
    {"game": "leduc_poker", "opponent": "first"},
    {"id": "GameSpielText-v0", "game": "kuhn_poker"},
    {"id": "CodeTraceChoice-v0", "task_id": 7},
]


def serve(application: Any) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the hub's server on this machine."""
    sys.path.insert(0, str(HUB))
    try:
        from server.app import app as application
    finally:
        sys.path.remove(str(HUB))
    yield from serve(application)


@pytest.fixture(scope="module")
def leduc() -> Iterator[str]:
    """The address of a server with arguments of its own."""
    yield from serve(app("game_gym:GameSpiel-v0", game="leduc_poker", rules=False))


def test_the_validator_accepts_the_folder_and_the_server(url: str) -> None:
    for words in ([str(HUB), "--level", "static"], ["--url", url]):
        done = CliRunner().invoke(command, ["validate", *words, "--json"])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("named", EPISODES, ids=json.dumps)
def test_it_plays_the_environments_episodes(url: str, named: dict[str, Any]) -> None:
    arguments, rng = dict(named), np.random.default_rng(0)
    id = arguments.pop("id", "GameSpiel-v0")
    room = "trace_gym" if "Trace" in id else "game_gym"
    env = gym.make(f"{room}:{id}", **arguments)
    as_text = not isinstance(env.action_space, gym.spaces.Discrete)
    # OpenEnv's own way from an environment's name to its client.
    with AutoEnv.from_env("game_spiel", base_url=url).sync() as client:
        for seed in (0, 1):
            text, info = env.reset(seed=seed)
            result = client.reset(seed=seed, episode_id=f"episode {seed}", **named)
            while True:
                seen = result.observation
                assert seen.text == text and seen.legal_actions == info["legal_actions"]
                assert seen.admissible_commands == info["admissible_commands"] and seen.error is None
                assert seen.action_mask == info["action_mask"].tolist() and seen.seat == info["seat"]
                if result.done:
                    break
                action = int(rng.choice(seen.legal_actions))
                text, reward, _, _, info = env.step(str(action) if as_text else action)
                result = client.step(AutoAction.from_env("game_spiel")(action=str(action)))
                assert result.reward == reward
            assert seen.result == info["result"] and seen.score == info["score"]
            state = client.state()
            assert (state.episode_id, state.seed, state.id) == (f"episode {seed}", seed, id)
            assert (state.task_id, state.game) == (info["task_id"], info["game"])
            assert state.step_count == info["turn"]
    env.close()


def test_a_reply_is_text(url: str) -> None:
    env = gym.make("trace_gym:CodeTrace-v0", task_id=7)
    text, _ = env.reset(seed=0)
    truth = env.unwrapped.trace.truth  # type: ignore[attr-defined]
    with TaskClient(base_url=url).sync() as client:
        seen = client.reset(seed=0, id="CodeTrace-v0", task_id=7).observation
        assert seen.text == text and seen.legal_actions == seen.action_mask == []
        result = client.step(TaskAction(action=truth))
        assert result.done and result.reward == result.observation.score == 1


def test_without_the_mask_it_fails(leduc: str) -> None:
    # OpenEnv's client for any server, which knows no types.
    with GenericEnvClient(base_url=leduc).sync() as client:
        result = client.reset(seed=0)
        assert result.observation["action_mask"] == [0, 1, 1] and result.reward is None
        for strike in (1, 2, 3):
            result = client.step({"action": 0})
            assert result.reward == -0.01 and result.done == (strike == 3)
            assert result.observation["error"].startswith("action: 0 was given, legal: 1, 2")
        assert result.observation["result"] == "loss" and result.observation["score"] == 0


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"task": 3}, "argument: 'task' was given, allowed: .*; did you mean 'task_id'"),
        ({"id": "CodeTraces-v0"}, "id: 'CodeTraces-v0' was given, allowed: .*; did you mean 'CodeTrace-v0'"),
        ({"game": "leduc_pokr"}, "did you mean 'leduc_poker'"),
        ({"opponent": "mcts:9999"}, "opponent: 'mcts:9999' was given, allowed: 'random', 'first', 'mcts'"),
        ({"id": "CodeTrace-v0", "game": "hex"}, "argument: 'game' was given"),
        ({"task_id": -1}, "task id: -1 was given"),
        ({"seed": 2**32}, "seed: 4294967296 was given"),
    ],
)
def test_wrong_arguments_are_named_and_the_connection_stays(url: str, named: Any, message: str) -> None:
    with TaskClient(base_url=url).sync() as client:
        first = client.reset(seed=0).observation
        with pytest.raises(RuntimeError, match=message):
            client.reset(**{"seed": 1, **named})
        with pytest.raises(RuntimeError, match="action: 'raise' was given, allowed: a whole number"):
            client.step(TaskAction(action="raise"))
        assert client.reset(seed=0).observation == first
    answer = httpx.post(f"{url}/reset", json={"seed": 1, **named})
    assert answer.status_code == 422 and re.search(message, answer.json()["detail"])


def test_two_connections_are_two_games(leduc: str, caplog: pytest.LogCaptureFixture) -> None:
    """A client that leaves in the middle of a game is no error; arguments are checked at once."""
    with TaskClient(base_url=leduc).sync() as one, TaskClient(base_url=leduc).sync() as other:
        first = one.reset(seed=0).observation
        other.reset(seed=1)
        other.step(TaskAction(action=1))
        assert one.state().step_count == 0 and one.state().seed == 0
        assert one.step(TaskAction(action=0)).observation.text == first.text  # illegal: nothing changed
    with pytest.raises(TaskGymError, match=r"did you mean 'leduc_poker'"):
        app("game_gym:GameSpiel-v0", game="leduc_pokr")
    for _ in range(2):
        with TaskClient(base_url=leduc).sync() as client:
            client.reset(seed=0)
    time.sleep(0.5)
    assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
    with TaskClient(base_url=leduc).sync() as client:
        assert client.reset(seed=0).observation.legal_actions == [1, 2]
