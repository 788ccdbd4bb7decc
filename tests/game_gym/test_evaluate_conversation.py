"""EvaluateConversation, and conversations in exact evaluation."""

from __future__ import annotations

import random
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  # registers the environments
from game_gym import exact
from game_gym.games import TABLE
from game_gym.task import decode
from game_gym.wrappers import EvaluateConversation, UpstreamLayout
from gamespiel.endpoints.completion import Usage
from gamespiel.endpoints.games import play_game
from task_gym.errors import ArgumentError
from task_gym.wrappers import Conversation, ConversationText


class Model:
    """A model behind an endpoint: an id of the list that it was shown, or, one time in six, nothing legal."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.given, self.listed = rng, list[str](), [""]

    def request_reply(self, messages: Any, seed: int, deadline: float) -> tuple[str, Usage]:
        self.listed = re.findall(r"^(\d+) -> ", messages[-1]["content"], re.MULTILINE) or self.listed
        legal = f"<think>{self.rng.randrange(9)}?</think>\n{self.rng.choice(self.listed)}"
        wrong = self.rng.choice(["no idea", "", "<think>9</think>", "99999"])
        self.given.append(wrong if self.rng.random() < 1 / 6 else legal)
        return self.given[-1], Usage()


@pytest.mark.parametrize("index", range(len(TABLE)))
def test_it_is_the_conversation_that_evaluate_has(index: int) -> None:
    """The same replies to both, illegal ones and three in a row among them, until the game is over."""
    task_id, rng = index * 100_000_000 + 3, random.Random(index)
    for seed in range(3):
        model: Any = Model(rng)
        told = play_game(model, decode(task_id), seed, "random")["extra"]["conversation"]
        env = EvaluateConversation(
            gym.make("GameSpielText-v0", task_id=task_id, seeding="evaluate", opponent="random")
        )
        text, info = env.reset(seed=seed)
        for reply in model.given:
            assert "result" not in info
            text, *_, info = env.step(reply)
        assert "result" in info
        # Up to the last answer: nobody answers a refusal after it, or the closing text.
        answered = 2 * len(model.given) + 1 if model.given else 0
        assert list(text.messages[:answered]) == told[:answered] and len(told) - answered in (0, 1)


def texts(variant: Any, conversation: str, rules: bool = True) -> dict[Any, ConversationText]:
    states = exact.information_states(variant, rules, conversation=conversation)
    return {(state.seat, state.key): state.text for state in states}  # type: ignore[misc]


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("protocol", ["openenv", "evaluate"])
def test_exact_evaluation_asks_in_the_conversations_of_the_environment(game: str, protocol: str) -> None:
    made = gym.make("GameSpiel-v0", game=game, seeding=protocol, opponent="random")
    env: Any = EvaluateConversation(made) if protocol == "evaluate" else Conversation(UpstreamLayout(made))
    known, rng = texts(exact.find_variant(game=game), protocol), random.Random(0)
    for seed in range(40):
        text, info = env.reset(seed=seed)
        while "result" not in info:
            key = info["seat"], env.unwrapped.state.information_state_string(info["seat"])
            assert known[key] == text and known[key].messages == text.messages
            text, *_, info = env.step(rng.choice(info["legal_actions"]))


def test_exact_values_are_those_of_prompts_on_their_own() -> None:
    """A policy that reads its last message alone; one that counts its own answers differs."""
    variant = exact.find_variant(game="leduc_poker")
    plain, talked = (exact.evaluate(variant, exact.uniform, conversation=each) for each in (None, "openenv"))
    assert plain == talked

    def first_raises(texts: Any, legal: Any) -> list[Any]:
        first = [len(text.messages) == 1 for text in texts]
        return [np.eye(len(own))[-1 if begun else 0] for own, begun in zip(legal, first, strict=True)]

    result = exact.evaluate(variant, first_raises, conversation="openenv")
    assert result.values != plain.values and result.information_states == plain.information_states


@pytest.mark.parametrize("arguments", [{"seeding": "openenv"}, {"seeding": "openenv", "rules": False}])
def test_another_protocol_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="seeding='openenv' was given, allowed: seeding=\"evaluate\""):
        EvaluateConversation(gym.make("GameSpiel-v0", game="kuhn_poker", **arguments))
