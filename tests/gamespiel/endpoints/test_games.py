"""Whole games with a model: recorded games are played again, and a server's ``evaluate`` plays the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from game_gym.games import TABLE
from game_gym.task import decode
from gamespiel.endpoints.chat import Chat, Endpoint
from gamespiel.endpoints.games import play_game
from gamespiel.endpoints.traces import ask_trace
from tests.gamespiel.endpoints.models import Body, Fault, ModelStub, chatty, recorded, status
from tests.gamespiel.serving.servers import call, served
from trace_gym.envs.text import CodeTraceEnv

LEDUC = 200_000_000
RECORDS = [
    record
    for line in (Path(__file__).parents[2] / "data" / "affinetes_trajectories.jsonl").read_text().splitlines()
    if (record := json.loads(line))["protocol"] == "evaluate"
]


def chat_with(stub: ModelStub) -> Chat:
    return Chat(Endpoint("m", stub.url), sleep=lambda seconds: None)


@pytest.mark.parametrize("record", RECORDS[::7], ids=lambda record: f"{record['game']}-{record['seed']}")
def test_recorded_games_are_played_again(record: dict[str, Any]) -> None:
    opponent = {"mcts": "mcts-python"}.get(record["opponent"], record["opponent"])
    with ModelStub(recorded) as stub:
        result = play_game(chat_with(stub), decode(record["task_id"]), record["seed"], opponent)
    extra = result["extra"]
    assert "error" not in result
    assert result["score"] == pytest.approx(record["score"])
    assert extra["all_returns"] == record["returns"]
    assert extra["llm_player_id"] == record["seat"]
    own = [move["action"] for move in extra["action_history"] if move["is_llm"]]
    assert own == [turn[1] for turn in record["turns"]]


def test_the_conversation() -> None:
    replies = chain(["<think>2?</think>none", "77", "Call"], repeat("1"))
    with ModelStub(lambda body: next(replies)) as stub:
        result = play_game(chat_with(stub), decode(LEDUC), 0, "first")
    said = result["extra"]["conversation"]
    # Three tries for the first move: the reasoning is not kept, and 77 is no legal action.
    assert [message["role"] for message in said[:7]] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert said[0]["content"].startswith("You are playing leduc_poker.\n\n# Game Rules\n")
    assert (
        "\n\nYou are Player 0.\nLegal Actions:\n1 -> Call\n2 -> Raise\n\nYour choice (ID only):"
        in (said[1]["content"])
    )
    assert [said[i]["content"] for i in (2, 4, 6)] == ["none", "77", "Call"]
    assert said[3]["content"].endswith("This was try 1 of 3.")
    assert stub.asked[1]["messages"] == said[:4]
    assert result["extra"]["refused_replies"] == 2
    # Each request counts ten tokens per message and two of the reply.
    asked = sum(10 * len(body["messages"]) for body in stub.asked)
    assert result["extra"]["usage"]["total_tokens"] == asked + 2 * len(stub.asked)


def test_three_replies_without_an_action_give_the_game_up() -> None:
    with ModelStub(lambda body: "?") as stub:
        result = play_game(chat_with(stub), decode(LEDUC), 0, "random")
    assert (result["score"], result["success"], "error" in result) == (0.0, False, False)
    assert (result["extra"]["given_up"], result["extra"]["all_returns"], len(stub.asked)) == (True, None, 3)


def test_what_fails_is_an_error_and_keeps_what_was_said() -> None:
    with ModelStub(recorded) as stub:
        stub.faults = [None, status(401)]
        result = play_game(chat_with(stub), decode(TABLE.index("hex") * 100_000_000), 0, "first")
    assert "status 401" in result["error"]
    assert [m["role"] for m in result["extra"]["conversation"]] == ["system", "user", "assistant", "user"]
    assert len(result["extra"]["action_history"]) == 2  # the model's first move and the opponent's
    assert result["error_type"] == "llm_failure"  # a key that is refused is so in every game
    with ModelStub(recorded) as stub:
        result = play_game(chat_with(stub), decode(LEDUC), 0, "first", timeout=0.0)
    assert result["error"] == "the game was not over after 0 s"


@pytest.mark.parametrize(
    ("faults", "kind"),
    [([None, status(400)], "request_refused"), ([status(400)], "llm_failure")],
)
def test_a_conversation_that_is_refused_ends_its_own_game_alone(
    faults: list[Fault | None], kind: str
) -> None:
    """As one beyond the model's context is. But who refuses the first request refuses them all."""
    with ModelStub(recorded) as stub:
        stub.faults = faults
        result = play_game(chat_with(stub), decode(TABLE.index("hex") * 100_000_000), 0, "first")
    assert "status 400" in result["error"]
    assert result["error_type"] == kind


def test_reasoning_is_neither_kept_nor_read() -> None:
    """A transcript by hand: the replies as they came, and the messages that the next request has of them."""
    replies = [
        "<thinking>1 is safe.</thinking>\nI fold.",  # 1 is legal, but in the reasoning
        "<THINK>or 2?</THINK>\n\n\n\n<think>2",  # never closed: nothing is left
        "2 it was </think>\n1\n\n\n\nCall",
    ]
    kept = ["I fold.", "", "1\n\nCall"]
    with ModelStub(lambda body: replies.pop(0)) as stub:
        stub.faults = [None] * 3 + [status(401)]
        result = play_game(chat_with(stub), decode(LEDUC), 0, "first")
    said = [m["content"] for m in stub.asked[3]["messages"] if m["role"] == "assistant"]
    assert said == kept
    assert [m["content"] for m in result["extra"]["conversation"] if m["role"] == "assistant"] == kept
    assert [move["action"] for move in result["extra"]["action_history"] if move["is_llm"]] == [1]
    assert result["extra"]["refused_replies"] == 2


# -- both ways -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def games() -> Iterator[str]:
    pytest.importorskip("uvicorn")
    with served() as url:
        yield url


def same(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the time that it took."""
    return {key: value for key, value in result.items() if key != "time_taken"}


SAMPLE = ("goofspiel", "leduc_poker", "hearts", "blackjack", "oware", "2048")
PATIENCE = 100


def soon_tired(body: Body) -> str:
    """Replies of all kinds, and none of sense in a long conversation: each request has all of it."""
    return chatty(body) if len(body["messages"]) < PATIENCE else "no idea"


@pytest.mark.parametrize("game", SAMPLE)
def test_the_same_address_both_ways(game: str, games: str) -> None:
    """A game is played to its end, or given up if it takes very long, as 2048 does."""
    task_id, seed = TABLE.index(game) * 100_000_000 + 1, 5
    with ModelStub(soon_tired) as stub:
        here = play_game(chat_with(stub), decode(task_id), seed, "random")
        status_, there = call(
            games, "evaluate", task_id=task_id, seed=seed, model="m", base_url=stub.url, opponent="random"
        )
    assert status_ == 200 and "error" not in here
    assert here["extra"]["given_up"] == (len(stub.asked[-1]["messages"]) > PATIENCE)
    assert same(there) == same(here)
    assert here["extra"]["usage"]["total_tokens"] > 0


def test_refusals_of_evaluate(games: str) -> None:
    def refused(**arguments: Any) -> str:
        status_, body = call(games, "evaluate", **{"task_id": LEDUC, "model": "m", **arguments})
        assert status_ == 400
        return str(body["error"])

    assert "endpoint: model 'm' at 'file:///etc/passwd' was given" in refused(base_url="file:///etc/passwd")
    assert "did you mean 'opponent'" in refused(base_url="http://h/v1", oponent="random")
    assert "collect_logprobs: True was given" in refused(base_url="http://h/v1", collect_logprobs=True)
    assert "temperature: -1 was given" in refused(base_url="http://h/v1", temperature=-1)
    assert "endpoint: model 'm' at 'http://[' was given" in refused(base_url="http://[")
    assert "api_key: no text was given" in refused(base_url="http://h/v1", api_key=5)
    assert "the key for http://h/v1 has a space" in refused(base_url="http://h/v1", api_key="k3y\n")
    assert "opponent: 'openai:m@http://h'" in refused(base_url="http://h/v1", opponent="openai:m@http://h")


def test_a_trace_both_ways() -> None:
    pytest.importorskip("uvicorn")
    with ModelStub(lambda body: "```\nnothing\n```") as stub, served("--env", "trace") as url:
        here = ask_trace(chat_with(stub), CodeTraceEnv(), 17, 3)
        status_, there = call(url, "evaluate", task_id=17, seed=3, model="m", base_url=stub.url)
        stub.answer = lambda body: str(truth)
        env = CodeTraceEnv(task_id=17)
        env.reset(seed=0)
        assert env.trace is not None
        truth = env.trace.truth
        _, right = call(url, "evaluate", task_id=17, seed=3, model="m", base_url=stub.url)
    assert status_ == 200 and same(there) == same(here)
    assert (here["score"], here["extra"]["test_result"]) == (0.0, "0/1")
    assert (right["score"], right["success"], right["extra"]["test_result"]) == (1.0, True, "1/1")
