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
from gamespiel.endpoints.chat import Chat
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.endpoints.games import play_game
from gamespiel.endpoints.logprobs import collect_full_logprobs
from gamespiel.endpoints.traces import ask_trace
from gamespiel.serving.options import ServeOptions
from tests.gamespiel.endpoints.models import ModelStub, chatty, recorded, status
from tests.gamespiel.serving.servers import call, serving
from trace_gym.envs.text import CodeTraceEnv

LEDUC = 200_000_000
RECORDS = [
    record
    for line in (Path(__file__).parents[2] / "data" / "affinetes_trajectories.jsonl").read_text().splitlines()
    if (record := json.loads(line))["protocol"] == "evaluate"
]
LONG = ("othello", "go", "quoridor", "solitaire")
"""Games with so many turns that they take longer than all others together."""


def chat_with(stub: ModelStub) -> Chat:
    return Chat(Endpoint("m", stub.url), sleep=lambda seconds: None)


def play(
    answer: Any, task_id: int = LEDUC, seed: int = 0, opponent: str = "first", **more: Any
) -> tuple[dict[str, Any], ModelStub]:
    """Returns a game's result, and the model that played it."""
    with ModelStub(answer) as stub:
        return play_game(chat_with(stub), decode(task_id), seed, opponent, **more), stub


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(
            record,
            marks=[pytest.mark.families, pytest.mark.sample] if record["game"] in LONG else (),
            id=f"{record['game']}-{record['seed']}",
        )
        for record in RECORDS[::7]
    ],
)
def test_recorded_games_are_played_again(record: dict[str, Any]) -> None:
    opponent = {"mcts": "mcts-python"}.get(record["opponent"], record["opponent"])
    result, _ = play(recorded, record["task_id"], record["seed"], opponent)
    extra = result["extra"]
    assert "error" not in result
    assert result["score"] == pytest.approx(record["score"])
    assert extra["all_returns"] == record["returns"]
    assert extra["llm_player_id"] == record["seat"]
    actions = [move["action"] for move in extra["action_history"] if move["is_llm"]]
    assert actions == [turn[1] for turn in record["turns"]]


def test_the_conversation() -> None:
    replies = chain(["<think>2?</think>none", "77", "Call"], repeat("1"))
    result, stub = play(lambda body: next(replies))
    said = result["extra"]["conversation"]
    # Three tries for the first move: the reasoning is not kept, and 77 is no legal action.
    assert [message["role"] for message in said[:7]] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert said[0]["content"].startswith("You are playing leduc_poker.\n\n# Game Rules\n")
    turn = "\n\nYou are Player 0.\nLegal Actions:\n1 -> Call\n2 -> Raise\n\nYour choice (ID only):"
    assert turn in said[1]["content"]
    assert [said[i]["content"] for i in (2, 4, 6)] == ["none", "77", "Call"]
    assert said[3]["content"].endswith("This was try 1 of 3.")
    assert stub.asked[1]["messages"] == said[:4]
    assert result["extra"]["refused_replies"] == 2
    # Each request counts ten tokens per message and two of the reply.
    asked = sum(10 * len(body["messages"]) for body in stub.asked)
    assert result["extra"]["usage"]["total_tokens"] == asked + 2 * len(stub.asked)


def test_of_a_simultaneous_move_only_the_own_action_is_told() -> None:
    """As upstream's bots are informed: goofspiel's cards of the other player are in no history."""
    result, stub = play(recorded, 0, 1, "random")
    extra, told = result["extra"], result["extra"]["action_history"]
    # Eight cards a player: seat 1 bids for the first seven prizes; OpenSpiel plays the last card for both.
    assert {move["player_id"] for move in told} == {-1, 1} and extra["llm_player_id"] == 1
    assert all(move["is_llm"] == (move["player_id"] == 1) for move in told)
    assert sum(move["is_llm"] for move in told) == len(stub.asked) == 7
    assert "mcts_timing" not in extra


def test_the_observation_is_that_before_the_last_action() -> None:
    extra = play(lambda body: "1")[0]["extra"]
    state = decode(LEDUC).variant.game.new_initial_state()
    for move in extra["action_history"][:-1]:
        state.apply_action(move["action"])
    assert extra["observation"] == state.observation_string(0)
    extra = play(lambda body: "?")[0]["extra"]  # no action of any player, but those of chance
    assert [move["player_id"] for move in extra["action_history"]] == [-1, -1]


def test_searches_are_timed() -> None:
    extra = play(recorded, opponent="mcts-python:4x1")[0]["extra"]
    timing, moved = extra["mcts_timing"], sum(m["player_id"] == 1 for m in extra["action_history"])
    assert timing["num_mcts_bots"] == 1 and timing["total_mcts_calls"] == moved
    assert timing["total_mcts_time"] == timing["avg_mcts_time_per_call"] * timing["total_mcts_calls"] > 0


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ([None, 401], "llm_failure"),  # a key that is refused is so in every game
        ([None, 400], "request_refused"),  # as a conversation is that is beyond the model's context
        ([400], "llm_failure"),  # an endpoint that refuses the first request refuses them all
    ],
)
def test_a_failure_is_an_error_and_keeps_what_was_said(faults: list[int | None], kind: str) -> None:
    with ModelStub(recorded) as stub:
        stub.faults = [None if code is None else status(code) for code in faults]
        result = play_game(chat_with(stub), decode(TABLE.index("hex") * 100_000_000), 0, "first")
    assert f"status {faults[-1]}" in result["error"] and result["error_type"] == kind
    roles = ["system", "user", "assistant", "user"]
    assert [m["role"] for m in result["extra"]["conversation"]] == roles[: 2 * len(faults)]
    # The model's first move and the opponent's, if there was a reply.
    assert len(result["extra"]["action_history"]) == 2 * (len(faults) - 1)


def test_a_game_is_given_up_after_its_time_or_three_replies_without_an_action() -> None:
    result, stub = play(lambda body: "?", opponent="random")
    assert (result["score"], result["success"], "error" in result) == (0.0, False, False)
    assert (result["extra"]["given_up"], result["extra"]["all_returns"], len(stub.asked)) == (True, None, 3)
    result, _ = play(recorded, timeout=0.0)
    assert result["error"] == "the game was not over after 0 s"


# -- both ways -----------------------------------------------------------------------------------------------


def same(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the time that it took."""
    return {key: value for key, value in result.items() if key != "time_taken"}


@pytest.mark.parametrize("game", ["goofspiel", "leduc_poker"])
def test_the_same_address_both_ways(game: str, server: str) -> None:
    task_id, seed = TABLE.index(game) * 100_000_000 + 1, 5
    with ModelStub(chatty) as stub:
        here = play_game(chat_with(stub), decode(task_id), seed, "random")
        status_, there = call(
            server, "evaluate", task_id=task_id, seed=seed, model="m", base_url=stub.url, opponent="random"
        )
    assert status_ == 200 and "error" not in here
    assert same(there) == same(here)
    assert here["extra"]["usage"]["total_tokens"] > 0


def test_log_probabilities_of_a_whole_conversation(server: str) -> None:
    """One request with the conversation in Qwen's template; what is no reply is left out."""
    text = "<|im_start|>system\nS<|im_end|>\n<|im_start|>assistant\n7<|im_end|>\n"
    tokens = ["<|im_start|>system\nS<|im_end|>\n", "<|im_start|>assistant\n", "7", "<|im_end|>\n", "!"]
    starts = [0, 31, 53, 54, 65]
    top = [None, {"a": -0.1}, {"7": -0.2, "8": -1.7}, None, {"!": 0.0}]
    said = {"tokens": tokens, "top_logprobs": top, "text_offset": starts[:3]}
    with ModelStub() as stub:
        stub.completions = {"choices": [{"logprobs": said}]}
        chat = chat_with(stub)
        talk = [{"role": "system", "content": "S"}, {"role": "assistant", "content": "7"}]
        assert collect_full_logprobs(chat, talk) == {
            "full_logprobs": {
                "full": text,
                "token_ids": starts,
                "logprobs": [None, {"a": -0.1}, {"7": -0.2, "8": -1.7}, None, None],
            }
        }
        assert stub.asked == [
            {"model": "m", "prompt": text, "max_tokens": 1, "logprobs": 20, "echo": True, "stream": False}
        ]
        assert collect_full_logprobs(chat, talk[:1]) == {"full_logprobs": None}
        stub.completions = {"choices": []}
        assert collect_full_logprobs(chat, talk) == {"full_logprobs": None}
        stub.completions = None
        failed = collect_full_logprobs(chat, talk)
        assert failed["full_logprobs"] is None and "was answered with status 404" in failed["logprobs_error"]
        stub.completions = {"choices": [{"logprobs": said}]}
        asked = {"task_id": LEDUC, "seed": 0, "model": "m", "base_url": stub.url, "opponent": "random"}
        _, result = call(server, "evaluate", **asked, collect_logprobs=True)
        assert result["extra"]["full_logprobs"]["token_ids"] == starts
        assert "full_logprobs" not in call(server, "evaluate", **asked)[1]["extra"]


# -- traces --------------------------------------------------------------------------------------------------


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub(lambda body: "") as server:
        yield server


def asked(stub: ModelStub) -> dict[str, Any]:
    return ask_trace(chat_with(stub), CodeTraceEnv(), 17, 3)


def test_an_empty_reply_is_none_and_is_not_compared(stub: ModelStub) -> None:
    for reply in ("", " \n\t "):
        stub.answer = lambda body, reply=reply: reply
        result = asked(stub)
        assert result["extra"]["conversation"][1] == {"role": "assistant", "content": None}
        assert (result["score"], result["success"]) == (0.0, False)
        assert result["extra"]["test_result"] == "0/1"
        assert result["extra"]["by_scoring"] is None
        assert "error" not in result and "error_type" not in result


def test_the_conversation_keeps_reasoning_and_fence_as_a_server_does(stub: ModelStub) -> None:
    """The score cuts them out; only the white space around the reply is not kept."""
    pytest.importorskip("uvicorn")
    env = CodeTraceEnv(task_id=17)
    env.reset(seed=0)
    assert env.trace is not None
    reply = f"<think>\n</think>\n```text\n{env.trace.truth}\n```"
    with serving(ServeOptions(env="trace", port=0)) as (url, _):
        for text, score in ((reply, 1.0), ("```\n?\n```", 0.0)):
            stub.answer = lambda body, text=text: f"\n {text}\n\n"
            here = asked(stub)
            status_, there = call(url, "evaluate", task_id=17, seed=3, model="m", base_url=stub.url)
            assert status_ == 200 and same(there) == same(here)
            assert (here["score"], here["success"]) == (score, score == 1.0)
            assert here["extra"]["test_result"] == f"{score:.0f}/1"
            prompt, answer = here["extra"]["conversation"]
            assert stub.asked[-1]["messages"] == [prompt]
            assert answer == {"role": "assistant", "content": text}
