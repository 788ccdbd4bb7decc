"""Choices of a model behind an endpoint, from the log-probabilities of its tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from game_gym.exact import find_variant
from gamespiel.endpoints.chat import Chat, EndpointError
from gamespiel.endpoints.choices import Choice, ChoiceReader, ProbabilitiesError
from gamespiel.endpoints.completion import read_top_tokens
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.endpoints.games import ChatAgent, recall_conversation
from tests.gamespiel.endpoints.models import END, ModelStub, TokenModel, Tokens, status

SAID = [{"role": "user", "content": "Choose."}]


@contextmanager
def reading(odds: Mapping[Tokens, float], **options: Any) -> Iterator[tuple[ChoiceReader, ModelStub]]:
    with TokenModel(lambda said: odds, **options).serve() as stub:
        chat = Chat(Endpoint("m", stub.url))
        yield ChoiceReader(chat), stub
        chat.close()


def read(odds: Mapping[Tokens, float], texts: list[str], **options: Any) -> tuple[Choice, list[Any]]:
    """Returns the choice, and the requests that it took."""
    with reading(odds, **options) as (reader, stub):
        return reader.read(SAID, texts), stub.asked


def test_one_request_is_enough_where_first_tokens_differ() -> None:
    """30% of the replies are words: 0.5 and 0.2 of the other 70% are 5/7 and 2/7."""
    with reading({("0", END): 0.5, ("1", END): 0.2, ("Well", END): 0.3}) as (reader, stub):
        choice = reader.read(SAID, ["0", "1"])
        assert choice.probabilities == pytest.approx((5 / 7, 2 / 7))
        assert choice.legal_mass == pytest.approx(0.7) and choice.unseen == pytest.approx(0, abs=1e-9)
        assert stub.asked == [
            {
                "model": "m", "messages": SAID, "temperature": 1, "top_p": 1, "max_tokens": 1,
                "stream": False, "logprobs": True, "top_logprobs": 20,
            }
        ]  # fmt: skip
        assert reader.read(SAID, ["0", "1"]) is choice and len(stub.asked) == 1
        assert reader.read(SAID, ["7"]) == Choice((1.0,), 1.0, 0.0) and len(stub.asked) == 1


def test_ids_of_several_tokens_are_followed_to_where_they_part() -> None:
    """12 and 13 begin alike: 0.3, 0.1 and 0.4 of 0.8. After "1", 0.1 of 0.5 goes to 17, which is illegal."""
    odds = {
        ("1", "2", END): 0.3, ("1", "3", END): 0.1, ("1", "7", END): 0.1, ("5", "0", END): 0.4,
        ("x", END): 0.1,
    }  # fmt: skip
    choice, asked = read(odds, ["12", "13", "50"])
    assert choice.probabilities == pytest.approx((3 / 8, 1 / 8, 4 / 8))
    assert choice.legal_mass == pytest.approx(0.8) and choice.unseen == pytest.approx(0, abs=1e-9)
    assert len(asked) == 2, "nothing is asked behind 5, after which 50 alone is left"
    assert asked[1]["messages"] == [*SAID, {"role": "assistant", "content": "1"}]
    assert asked[1]["continue_final_message"] is True and asked[1]["add_generation_prompt"] is False


def test_an_id_that_others_begin_with_needs_the_end_of_the_turn() -> None:
    """The replies 1 and 12 are 0.2 and 0.3, so 2/5 and 3/5 of what is legal; "1!" is not."""
    odds = {("1", END): 0.2, ("1", "2", END): 0.3, ("1", "!", END): 0.1, ("no", END): 0.4}
    choice, asked = read(odds, ["1", "12"])
    assert choice.probabilities == pytest.approx((2 / 5, 3 / 5)) and len(asked) == 2
    assert choice.legal_mass == pytest.approx(0.5)
    unknown = {("1", "<stop>"): 0.2, ("1", "2", "<stop>"): 0.8}
    with pytest.raises(ProbabilitiesError, match="none of the tokens '<stop>' is known to end a turn"):
        read(unknown, ["1", "12"])
    # An endpoint that begins a reply anew has a prompt that is longer than by the one token "1".
    with pytest.raises(ProbabilitiesError, match="it counted 20 tokens after a prompt of 10, not 11"):
        read({("1", "2", END): 0.5, ("1", "3", END): 0.5}, ["12", "13"], continues=False)


def test_ways_to_write_an_id_are_added() -> None:
    """12 is one token in 0.5 and two in 0.1. After 12, only the likelier way to it can be followed."""
    odds = {("12", END): 0.5, ("1", "2", END): 0.1, ("1", "3", END): 0.4}
    choice, _ = read(odds, ["12", "13"])
    assert choice.probabilities == pytest.approx((0.6, 0.4))
    # 0.25 + 0.25 of the replies begin with the token 12, and 0.1 with 1 and 2: these stay unseen.
    odds = {("12", END): 0.25, ("12", "0", END): 0.25, ("1", "2", END): 0.1, ("1", "3", END): 0.4}
    choice, asked = read(odds, ["12", "120", "13"])
    assert choice.probabilities == pytest.approx((0.25 / 0.9, 0.25 / 0.9, 0.4 / 0.9))
    assert choice.unseen == pytest.approx(0.1) and len(asked) == 3


def test_what_is_not_among_the_likeliest_is_bounded() -> None:
    """0 has 0.5, and 26 other tokens share the rest, 1/52 each. The 20 that are listed may leave out 1.

    Then 1 has at most as much as the rarest listed token, 1/52, which is 1/27 of 1/2 + 1/52.
    """
    others = {(f"w{i}", END): 0.5 / 26 for i in range(25)}
    choice, _ = read({("0", END): 0.5, **others, ("1", END): 0.5 / 26}, ["0", "1"])
    assert choice.probabilities == (1.0, 0.0)
    assert choice.unseen == pytest.approx(1 / 27)
    with pytest.raises(ProbabilitiesError, match=r"none of the legal replies '0', '1' .*'<think>': 1\)"):
        read({("<think>", END): 1.0}, ["0", "1"])


def test_the_drawn_token_may_be_rarer_than_what_is_not_listed() -> None:
    """vLLM lists the drawn token first, in the place of the last one: nothing is below 0.01 for certain."""
    rows = [{"token": token, "logprob": math.log(p)} for token, p in (("z", 0.01), ("0", 0.6), ("a", 0.2))]
    content = [{**rows[0], "top_logprobs": rows}]
    body = {"choices": [{"logprobs": {"content": content}}], "usage": {"prompt_tokens": 7}}
    top = read_top_tokens(json.dumps(body).encode())
    assert top.most_unlisted == pytest.approx(0.19) and top.rest == pytest.approx(0.19)
    assert top.usage.prompt_tokens == 7
    rows[1]["logprob"] = math.log(0.3)  # 0.49 is not listed, but no such token is likelier than a
    top = read_top_tokens(json.dumps(body).encode())
    assert top.most_unlisted == pytest.approx(0.2) and top.rest == pytest.approx(0.49)
    for wrong in (math.nan, 0.5, "much", None):
        rows[1]["logprob"] = wrong
        with pytest.raises((ValueError, TypeError)):
            read_top_tokens(json.dumps(body).encode())
    rows[1]["logprob"] = math.log(0.9)
    with pytest.raises(ValueError, match=r"log-probabilities of 1\.1100 in all"):
        read_top_tokens(json.dumps(body).encode())


def test_endpoints_without_log_probabilities_are_named() -> None:
    with reading({("0", END): 1.0}) as (reader, stub):
        stub.faults = [status(400, '{"error": {"message": "logprobs are not supported"}}')]
        with pytest.raises(ProbabilitiesError, match=rf"{stub.url} .*400: logprobs are not supported"):
            reader.read(SAID, ["0", "1"])
        lists, stub.lists = stub.lists, None
        with pytest.raises(ProbabilitiesError, match="it does not list log-probabilities; allowed"):
            reader.read(SAID, ["0", "1"])
        stub.lists = lists
        assert reader.read(SAID, ["0", "1"]).probabilities == (1.0, 0.0)
        stub.faults = [status(400)]  # of an endpoint that has listed some, it is the conversation's fault
        with pytest.raises(EndpointError, match="it refuses the request with status 400") as failure:
            reader.read([*SAID, *SAID], ["0", "1"])
        assert not isinstance(failure.value, ProbabilitiesError)
        assert reader.to_dict() == {
            "source": f"openai:m@{stub.url}", "conversations": 1, "legal_mass_mean": 1.0,
            "legal_mass_min": 1.0, "unseen_max": 0.0,
        }  # fmt: skip
        stub.faults = [None, status(422, '{"error": {"message": "extra fields"}}')]
        with pytest.raises(ProbabilitiesError, match=r"begin with '0', and it does not .*422: extra fields"):
            reader.read([*SAID, *SAID], ["01", "02"])


def test_many_conversations_are_asked_about_together() -> None:
    with reading({("0", END): 0.25, ("1", END): 0.75}) as (reader, stub):
        stub.pause = 0.05
        questions = [([{"role": "user", "content": str(i)}], ["0", "1"]) for i in range(12)]
        done: list[int] = []
        choices = reader.read_all(questions, 3, lambda: done.append(1))
        assert [choice.probabilities for choice in choices] == [pytest.approx((0.25, 0.75))] * 12
        assert 1 < stub.most <= 3 and len(done) == 12
        stub.faults = [None, None, status(401)]
        more = [([{"role": "user", "content": f"again {i}"}], ["0", "1"]) for i in range(12)]
        with pytest.raises(EndpointError, match=rf"endpoint {stub.url}: .* status 401"):
            reader.read_all(more, 3)
        assert len(stub.asked) < 24, "nothing is begun after a failure"


def test_the_conversation_is_the_one_of_the_play() -> None:
    """A model that plays says what the recalled conversation says, in every turn of a game with hands."""
    variant = find_variant(game="leduc_poker")
    plain: list[str] = []
    held = {seat: ChatAgent(variant, lambda said: plain[-1], False) for seat in (0, 1)}
    state, turns = variant.game.new_initial_state(), 0
    while not state.is_terminal():
        legal = state.legal_actions()
        if state.is_chance_node():
            state.apply_action(legal[turns % len(legal)])
            continue
        seat = state.current_player()
        said, replies = recall_conversation(variant, state, seat, list_actions=False)
        action = legal[-1] if turns % 2 else legal[len(legal) // 2]
        plain.append(replies[legal.index(action)])
        agent = held[seat]
        assert agent.move(state, seat, legal, variant.choices(state, seat, legal)[0]) == action
        assert agent.conversation[:-1] == said and agent.refused == 0
        state.apply_action(action)
        turns += 1
    assert turns >= 4
