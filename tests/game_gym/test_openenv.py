"""Games in OpenEnv: its server and its client, and a mask that arrives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed")

import uvicorn
from openenv.core.generic_client import GenericEnvClient

from game_gym.env import GameSpielEnv
from game_gym.openenv import GameAction, GameSpielClient, app
from task_gym.errors import TaskGymError

LEDUC = {"game": "leduc_poker", "rules": False}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server of Leduc poker on this machine."""
    server = uvicorn.Server(uvicorn.Config(app(**LEDUC), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_it_plays_the_environments_games(url: str) -> None:
    env, rng = GameSpielEnv(**LEDUC), np.random.default_rng(0)
    with GameSpielClient(base_url=url).sync() as client:
        for seed in range(6):
            text, info = env.reset(seed=seed)
            result = client.reset(seed=seed, episode_id=f"game {seed}")
            while True:
                seen = result.observation
                assert seen.text == text and seen.action_mask == info["action_mask"].tolist()
                assert seen.admissible_commands == info["admissible_commands"] and seen.error is None
                if result.done:
                    break
                # The mask is all that the player looks at.
                action = int(rng.choice(np.flatnonzero(seen.action_mask)))
                text, reward, _, _, info = env.step(action)
                result = client.step(GameAction(action=action))
                assert result.reward == reward
            assert seen.result == info["result"] and seen.score == info["score"] == result.reward
            state = client.state()
            assert (state.episode_id, state.seed, state.game) == (f"game {seed}", seed, "leduc_poker")
            assert state.step_count == info["turn"]


def test_without_the_mask_it_fails(url: str) -> None:
    # OpenEnv's client for any server, which knows no types.
    with GenericEnvClient(base_url=url).sync() as client:
        result = client.reset(seed=0)
        assert result.observation["action_mask"] == [0, 1, 1] and result.reward is None
        for strike in (1, 2, 3):
            result = client.step({"action": 0})
            assert result.reward == -0.01 and result.done == (strike == 3)
            assert result.observation["error"].startswith("action: 0 was given, legal: 1, 2")
        assert result.observation["result"] == "loss" and result.observation["score"] == 0


def test_two_connections_are_two_games(url: str) -> None:
    with GameSpielClient(base_url=url).sync() as one, GameSpielClient(base_url=url).sync() as other:
        first = one.reset(seed=0).observation
        other.reset(seed=1)
        other.step(GameAction(action=1))
        assert one.state().step_count == 0 and one.state().seed == 0
        assert one.step(GameAction(action=0)).observation.text == first.text  # illegal: nothing changed


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(TaskGymError, match=r"did you mean 'leduc_poker'"):
        app(game="leduc_pokr")


def test_a_client_that_leaves_is_no_error(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """In the middle of a game too; the server goes on."""
    for _ in range(2):
        with GameSpielClient(base_url=url).sync() as client:
            client.reset(seed=0)
    time.sleep(0.5)
    assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
    with GameSpielClient(base_url=url).sync() as client:
        assert client.reset(seed=0).observation.legal_actions == [1, 2]
