"""Games and traces with a model on a real vLLM server, whose address is in ``VLLM_URL``.

vLLM has packages of its own, so it is served from another environment:
``python -m vllm.entrypoints.openai.api_server --model FOLDER --port 8009``, and then
``VLLM_URL=http://127.0.0.1:8009/v1 make test ARGS=tests/gamespiel/endpoints/test_vllm.py``.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from game_gym.games import TABLE
from game_gym.task import decode
from gamespiel.endpoints.chat import Chat, Sampling
from gamespiel.endpoints.choices import ChoiceReader
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.endpoints.games import play_game
from gamespiel.endpoints.traces import ask_trace
from tests.gamespiel.serving.servers import call, served
from trace_gym.envs.text import CodeTraceEnv

URL = os.environ.get("VLLM_URL", "")

pytestmark = [
    pytest.mark.skipif(not URL, reason="no VLLM_URL with the address of a vLLM server"),
    pytest.mark.slow,
]

SETTINGS = {"temperature": 0, "max_tokens": 8}


@pytest.fixture(scope="module")
def model() -> str:
    with urllib.request.urlopen(f"{URL}/models", timeout=20) as response:
        return str(json.load(response)["data"][0]["id"])


@pytest.fixture
def chat(model: str) -> Iterator[Chat]:
    made = Chat(Endpoint(model, URL), Sampling(temperature=0, max_tokens=8))
    yield made
    made.close()


def same(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the time that it took."""
    return {key: value for key, value in result.items() if key != "time_taken"}


@pytest.mark.parametrize("game", ["leduc_poker", "phantom_ttt"])
def test_the_same_game_both_ways(chat: Chat, game: str) -> None:
    pytest.importorskip("uvicorn")
    task_id = TABLE.index(game) * 100_000_000
    here = play_game(chat, decode(task_id), 3, "random")
    with served() as url:
        asked = {"task_id": task_id, "seed": 3, "model": chat.endpoint.model, "base_url": URL}
        status, there = call(url, "evaluate", **asked, opponent="random", **SETTINGS)
    assert status == 200 and "error" not in here
    assert same(there) == same(here)
    usage = here["extra"]["usage"]
    assert usage["prompt_tokens"] > 0 < usage["completion_tokens"]


def test_the_same_trace_both_ways(chat: Chat) -> None:
    pytest.importorskip("uvicorn")
    here = ask_trace(chat, CodeTraceEnv(), 17, 3)
    with served("--env", "trace") as url:
        asked = {"task_id": 17, "seed": 3, "model": chat.endpoint.model, "base_url": URL}
        status, there = call(url, "evaluate", **asked, **SETTINGS)
    assert status == 200 and "error" not in here
    assert same(there) == same(here)


def test_a_vllm_model_plays_as_an_opponent(model: str) -> None:
    env = gym.make("GameSpiel-v0", task_id=200_000_000, opponent=f"openai:{model}@{URL}#max_tokens=8")
    _, info = env.reset(seed=0)
    for _ in range(20):
        _, _, terminated, truncated, info = env.step(info["legal_actions"][0])
        if terminated or truncated:
            break
    assert info["result"] in ("win", "draw", "loss") and info["seat"] == 0


def test_a_choice_of_ids_that_begin_alike(chat: Chat) -> None:
    """The server goes on with a reply that is begun, and the end of the turn is known."""
    said = [{"role": "user", "content": "Choose a number from 1, 12 and 13. Answer with the number only."}]
    apart, alike = (ChoiceReader(chat).read(said, texts) for texts in (["1", "2"], ["1", "12", "13"]))
    for choice in (apart, alike):
        assert sum(choice.probabilities) == pytest.approx(1) and min(choice.probabilities) >= 0
        assert 0 < choice.legal_mass <= 1 and 0 <= choice.unseen < 1
    assert max(alike.probabilities) < 1
