"""The server answers as upstream's does: addresses, order of arguments, errors, time limits."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gamespiel.serving.games import GameActor
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.traces import TraceActor
from task_gym.remote.protocol import Failure, read_reply
from tests.game_gym.play import LEDUC
from tests.gamespiel.endpoints.models import ModelStub
from tests.gamespiel.serving.servers import ask, call, serving

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from gamespiel.serving import app, games


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(ServeOptions(port=0)) as (url, _):
        yield url


async def post(path: str, body: Any) -> tuple[int, Any]:
    """Status and body of a request to a server in this process."""
    transport = httpx.ASGITransport(app.make_app(ServeOptions(), ""))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as client:
        response = await client.post(path, json=body)
        return response.status_code, response.json()


def test_methods_have_addresses_of_their_own(server: str) -> None:
    asked = {"task_id": LEDUC, "seed": 3, "opponent": "random"}
    status, begun = ask(f"{server}/reset", asked)
    turn = begun["result"]
    assert (status, begun["status"], begun["error"]) == (200, "success", None)
    assert turn["observation"] == call(server, "reset", **asked)[1]["observation"]
    step = {"args": ["1"], "kwargs": {"episode_id": turn["episode_id"]}}
    assert ask(f"{server}/step", step)[1]["result"]["info"]["step_count"] >= 1
    drawn = ask(f"{server}/reset", {"opponent": "random"})[1]["result"]["info"]
    assert drawn["task_id"] >= 0 and drawn["seed"] >= 0
    assert ask(f"{server}/state", b" ")[1]["result"]["info"]["error"]["type"] == "no_episode_id"
    assert ask(f"{server}/step", b"{")[0] == 400
    status, body = ask(f"{server}/rest", asked)
    assert status == 404 and "method: 'rest' was given, allowed: reset, step" in body["error"]


def test_arguments_come_in_upstreams_order() -> None:
    """As ``env.py`` of upstream's images declares them; ours beyond them come last."""
    games, traces = GameActor(ServeOptions()), TraceActor(ServeOptions(env="trace"))
    listed = [list(inspect.signature(method).parameters) for method in (games.reset, traces.reset)]
    assert listed == [["task_id", "seed", "opponent", "seeding"], ["task_id", "seed"]]
    assert list(inspect.signature(games.step).parameters) == ["action", "episode_id"]
    asked = ["model", "base_url", "timeout", "temperature", "api_key"]
    assert list(inspect.signature(games.evaluate).parameters) == [
        "task_id", "seed", *asked, "opponent", "collect_logprobs", "max_tokens", "seeding",
    ]  # fmt: skip
    assert list(inspect.signature(traces.evaluate).parameters) == [*asked, "seed", "task_id", "max_tokens"]
    signature = inspect.signature(games.evaluate).parameters
    assert [signature[name].default for name in ("model", "base_url", "temperature", "api_key")] == [
        "deepseek-ai/DeepSeek-V3", "https://llm.chutes.ai/v1", None, None,
    ]  # fmt: skip
    assert games.reset(task_id=0, seed=0)["info"]["opponent_type"] == "mcts"


@pytest.mark.parametrize("env", ["openspiel", "trace"])
def test_an_unknown_episode_is_an_episode_that_is_over(env: str) -> None:
    """Status 200, so that affinetes' client returns it."""
    actor: Any = GameActor(ServeOptions()) if env == "openspiel" else TraceActor(ServeOptions(env="trace"))
    for asked, kind in (("no", "episode_not_found"), (None, "no_episode_id"), ("", "no_episode_id")):
        for response in (actor.step("1", asked), actor.state(asked)):
            assert (response["reward"], response["done"], response["truncated"]) == (0.0, True, True)
            assert response["episode_id"] == (asked or None)
            assert response["info"]["error"]["type"] == kind
            assert response["info"]["error"]["retryable"] is True
            assert (response["info"]["task_id"], response["info"]["step_count"]) == (None, 0)
            with pytest.raises(Failure) as failed:
                read_reply(response)
            assert failed.value.kind == "unknown"
        stopped = actor.stop(asked)
        assert (stopped["status"], stopped["stopped"]) == ("ok", False) and stopped["message"]


def test_the_state_has_no_rules_and_no_reward() -> None:
    actor = GameActor(ServeOptions())
    begun = actor.reset(LEDUC, 1, "random")
    name = begun["episode_id"]
    assert begun["observation"].startswith("# Game Rules\n")
    again = actor.state(name)
    assert again["observation"] == begun["observation"].partition("# Current Game State\n")[2]
    reply = "no idea " * 1000
    refused = actor.step(reply, name)
    assert refused["reward"] == -0.01 and f'"{reply}"' in refused["observation"]  # echoed whole
    assert actor.state(name) == again
    turn = begun
    while not turn["done"]:
        turn = actor.step(str(turn["info"]["legal_actions"][0]), name)
    over = actor.state(name)
    assert (over["observation"], over["reward"], over["done"]) == (turn["observation"], 0.0, True)
    assert "error" not in over["info"]
    late = actor.step("0", name)
    assert (late["observation"], late["reward"], late["done"], late["truncated"]) == (
        turn["observation"], 0.0, True, False,
    )  # fmt: skip
    assert late["info"]["error"]["type"] == "episode_done" and late["info"]["score"] == turn["info"]["score"]
    assert actor.stop(name) == {"status": "ok", "stopped": True, "episode_id": name}


def test_an_answered_trace_says_its_score_again() -> None:
    actor = TraceActor(ServeOptions(env="trace"))
    asked = actor.reset(7, 0)
    name, info = asked["episode_id"], asked["info"]
    assert (info["step_count"], info["score"], info["dataset_index"]) == (0, 0.0, None)
    assert actor.state(name) == asked
    truth = actor.step("?", name)["info"]["truth"]
    right = actor.reset(7, 0)["episode_id"]
    assert actor.step(truth, right)["reward"] == 1.0
    again = actor.step("?", right)
    assert (again["reward"], again["done"], again["info"]["error"]["type"]) == (1.0, True, "episode_done")
    assert (again["info"]["score"], again["info"]["step_count"]) == (1.0, 1)
    assert actor.state(right)["reward"] == 0.0 and "error" not in actor.state(right)["info"]


def test_a_call_is_given_up_ten_seconds_after_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint never answers. The game is given up before the call, and so it has a result."""
    with ModelStub(pause=60.0) as stub:
        asked = {"task_id": LEDUC, "seed": 0, "model": "m", "base_url": stub.url, "opponent": "random"}
        kwargs = {**asked, "timeout": 1.0}
        status, body = asyncio.run(post("/call", {"method": "evaluate", "kwargs": kwargs}))
        assert (status, body["status"]) == (200, "success")
        assert body["result"]["error"] == "the game was not over after 0.9 s"  # max(1 - 20, 0.9)
        monkeypatch.setattr(games, "HASTE", -30.0)  # now the game has 31 s, and the call 1.3 s
        monkeypatch.setattr(app, "LATER", 0.3)
        status, body = asyncio.run(post("/call", {"method": "evaluate", "kwargs": kwargs}))
        assert (status, body["status"], body["error"]) == (200, "failed", None)
        assert "longer than its timeout of 1 s and 0.3 s more" in body["result"]["error"]
