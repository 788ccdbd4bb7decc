"""Prompts and conversations, and replies as text: the layout that replies and parsers rest on."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import game_gym  # noqa: F401  # registers the environments
from game_gym import exact
from game_gym.backends import GameTurn
from game_gym.conversation import refusal_message, system_message, turn_message
from game_gym.games import TABLE
from game_gym.prompts import NOTATION, hide_choices, render
from game_gym.spec import choice_lines
from game_gym.task import decode
from game_gym.tree import build_tree
from game_gym.wrappers import EvaluateConversation, UpstreamLayout
from gamespiel.endpoints.completion import Usage
from gamespiel.endpoints.games import play_game
from gamespiel.measure.board.benchmark import DealSet
from gamespiel.measure.board.episodes import (
    make_baseline,
    play_by_replies,
    play_match,
    play_meeting,
    sit_opposite,
)
from gamespiel.measure.board.replays import replay_match, replay_meeting
from gamespiel.measure.play import Match
from task_gym.errors import ArgumentError, EpisodeError, GameError, IllegalActionError
from task_gym.wrappers import Conversation, ConversationText
from tests.game_gym.play import LEDUC, make, reach
from tests.game_gym.test_conformance import COMMON


@settings(max_examples=30)
@given(st.text(), st.dictionaries(st.integers(0, 99), st.text(), min_size=1))
def test_the_list_is_found_whatever_state_and_names_hold(state: str, named: dict[int, str]) -> None:
    legal, names = list(named), list(named.values())
    block = f"\n\nLegal Actions:\n{choice_lines(legal, names)}\n\nYour choice (action ID only):"
    # Also where the state itself ends like a list.
    for before in (state, state + block):
        told = hide_choices(before + block, exact.find_variant(game="kuhn_poker"), legal, names)
        assert told.rpartition(f"\n\n{NOTATION}")[0] == before


# -- GameSpielText-v0: replies in, the same game out ---------------------------------------------------------


def text_env(**arguments: Any) -> Any:
    return gym.make("GameSpielText-v0", **{"task_id": LEDUC, **arguments}).unwrapped


@pytest.mark.parametrize(
    ("arguments", "reply", "turn"),
    [
        # Seat 0 may call (1) or raise (2).
        ({}, "0 is illegal, so 1", 0),  # reset/step: the first number, which is illegal
        ({"seeding": "evaluate"}, "0 is illegal, so 1", 1),
        ({}, "call", 0),
        ({"parse": "last"}, "not 2 but 1, as 0 is illegal", 1),
        ({"parse": "last", "seeding": "evaluate"}, "call? I RAISE", 1),
    ],
)
def test_replies_are_read_by_the_rule_in_use(arguments: dict[str, Any], reply: str, turn: int) -> None:
    env = text_env(**arguments)
    env.reset(seed=8)
    _, reward, _, _, info = env.step(reply)
    assert info["turn"] == turn
    if not turn:
        assert reward == info["upstream_reward"] == -0.01
        assert info["error"]["message"] == f"reply: {reply!r} names no legal action, legal: 1, 2"


def test_what_is_no_reply() -> None:
    env = text_env(illegal="raise")
    with pytest.raises(EpisodeError, match="outside an episode"):
        env.step("1")
    env.reset(seed=8)
    with pytest.raises(ArgumentError, match="action: 1 was given, allowed: a reply as text"):
        env.step(1)
    with pytest.raises(IllegalActionError, match="reply: 'fold' names no legal action, legal: 1, 2"):
        env.step("fold")


# -- OPENSPIEL_AGENTS_PATH: prompts in the words of classes of upstream's shape ------------------------------


BASE = """
class BaseGameAgent:
    def format_state(self, state, player_id):
        return state.observation_string(player_id)

    def generate_system_prompt(self):
        return f"Play {self.game_name}. {self.get_rules()}"

    def generate_user_prompt(self, state, player_id, legal_actions):
        return f"{self.format_state(state, player_id)} {legal_actions}"
"""
LEDUC_AGENT = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from base_agent import BaseGameAgent

class LeducPokerAgent(BaseGameAgent):
    @property
    def game_name(self):
        return "leduc_poker"

    def get_rules(self):
        return "LEDUC POKER RULES:\\nSix cards."
"""
HEX_AGENT = """
class HexAgent:
    game_name = "hex"

    def get_rules(self):
        return "HEX RULES"

    def format_state(self, state, player_id):
        if state.move_number() > 1:
            raise IndexError("no such cell")
        return f"seat {player_id}:\\n{state}"
"""
LLM_BOT = """
import no_such_module_anywhere

class LLMBot:
    def step(self, state):
        for attempt in range(self._max_parsing_retries + 1):
            try:
                return self.ask()
            except Exception as e:
                error_msg = f"{type(e).__name__}: {str(e)}"
            error_msg = (
                f"Wrong. "
                f"Just the '5'. "
                f"Try {attempt + 1} of {self._max_parsing_retries + 1}."
            )
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agents = tmp_path / "agents"
    agents.mkdir()
    (tmp_path / "base_agent.py").write_text(BASE)
    (agents / "leduc_poker_agent.py").write_text(LEDUC_AGENT)
    (agents / "hex.py").write_text(HEX_AGENT)
    (agents / "go.py").write_text("import no_such_module_anywhere\n")
    (agents / "__init__.py").write_text("raise RuntimeError('is not imported')\n")
    monkeypatch.setenv("OPENSPIEL_AGENTS_PATH", str(agents))
    return agents


def test_prompts_are_in_upstreams_frame_and_words(folder: Path) -> None:
    env = make(task_id=TABLE.index("hex") * 100_000_000)
    text, info = env.reset(seed=0)
    board = str(decode(TABLE.index("hex") * 100_000_000).variant.game.new_initial_state())
    head = "# Game Rules\nHEX RULES\n\n# Current Game State\nGame: hex\nYou are Player 0.\n\nCurrent State:\n"
    assert text.startswith(f"{head}seat 0:\n{board}\n\nLegal Actions:\n  0 -> ")
    assert text.endswith("\n\nYour choice (action ID only):")
    assert info["admissible_commands"][0] == "a1"
    # The frame is that of upstream's recorded response to the same game, whose rules are cut out as "…".
    session = json.loads((Path(__file__).parents[1] / "data" / "affinetes_session.json").read_text())
    seen = [entry["response"]["observation"] for entry in session]
    theirs = next(text for text in seen if text.startswith("# Game Rules") and "Game: hex" in text)
    assert theirs.partition("Current State:\n")[0] == head.partition("Current State:\n")[0].replace(
        "HEX RULES\n\n", "…\n"
    )


def test_conversations_are_the_classes_own(folder: Path) -> None:
    variant = decode(LEDUC).variant
    assert system_message(variant)["content"] == "Play leduc_poker. LEDUC POKER RULES:\nSix cards."
    state = reach(variant, (0, 1))
    shown = turn_message(variant, state, 0, [1, 2], ["Call", "Raise"])["content"]
    assert shown == f"{state.observation_string(0)} [1, 2]"
    # A class that writes no messages gets the frame.
    variant = decode(TABLE.index("hex") * 100_000_000).variant
    assert "# Game Rules\nHEX RULES\n" in system_message(variant)["content"]


def test_errors_name_the_game(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GameError, match=r"no class for .go., allowed there: hex, leduc.*go.py: Module"):
        decode(TABLE.index("go") * 100_000_000)
    (folder / "2048.py").write_text(
        "class A:\n    game_name = '2048'\n    format_state = None\n    def get_rules(self): return 7\n"
    )
    other = folder.parent / "other"
    folder.rename(other)
    monkeypatch.setenv("OPENSPIEL_AGENTS_PATH", str(other))
    with pytest.raises(GameError, match=r"A.get_rules of '2048' returned 7, allowed: a text"):
        decode(TABLE.index("2048") * 100_000_000)
    monkeypatch.setenv("OPENSPIEL_AGENTS_PATH", str(folder))
    with pytest.raises(GameError, match=r"allowed: a folder of upstream's classes"):
        decode(LEDUC)


def test_a_class_that_fails_at_a_state_spoils_that_episode_only(folder: Path) -> None:
    """As upstream's of blackjack does at a ten."""
    env = make(task_id=TABLE.index("hex") * 100_000_000)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["result"], info["score"], info["legal_actions"]) == ("fault", None, [])
    assert info["fault"].endswith("HexAgent.format_state of 'hex' raised IndexError: no such cell")
    assert "result" not in env.reset(seed=1)[1]


def test_a_board_asks_for_texts_only_if_the_agent_reads_them(folder: Path) -> None:
    """A model meets the class that fails at its second turn; a baseline reads no text, and plays on."""
    task_id = TABLE.index("hex") * 100_000_000
    match = Match("hex", 0, task_id, 3, 0, "first", 0, (3, None), decode(task_id))
    row = play_by_replies(match, lambda messages: "0", list_actions=True)
    assert (row["result"], row["score"], row["replies"]) == ("fault", None, ["0"])
    assert row["error"].endswith("HexAgent.format_state of 'hex' raised IndexError: no such cell")

    masked = row | {"chances": [0.5]}  # a model behind its mask reads, too
    chosen = replay_match(match, masked, None, search=True)
    assert (chosen.result, chosen.history) == ("fault", row["history"])

    def read_first(state: Any, turn: GameTurn) -> int:
        render(match.game.variant, state, turn.seat)
        return turn.legal[0]

    pair = [{"kind": "checkpoint", "agent": "policy"}, {"kind": "baseline", "agent": "first"}]
    sides = [read_first, make_baseline("first", sit_opposite(match), DealSet())]
    met = play_meeting(match, sides, [])
    assert (met["result"], met["history"]) == ("fault", [0, 1])
    assert replay_meeting(match, met, pair, DealSet(), list_actions=True, search=True) == met

    def take_first(state: Any, turn: GameTurn) -> int:
        assert (turn.text, turn.names, turn.legal) == ("", [], state.legal_actions(0))
        return turn.legal[0]

    ending = play_match(match, take_first)
    # Both take the least free cell. In five columns the even ones, seat 0's, join each row to the next, and
    # cell 20 is the first of the last row.
    assert (ending.result, ending.fault, ending.history) == ("win", "", list(range(21)))


def test_refusals_are_read_from_the_file_beside_the_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = decode(LEDUC).variant
    assert "names no legal action" in refusal_message(variant, 1)["content"]
    bot = tmp_path / "llm_bot.py"
    bot.write_text(LLM_BOT)
    later = folder.rename(tmp_path / "agents_again")  # what was read of a folder is kept
    monkeypatch.setenv("OPENSPIEL_AGENTS_PATH", str(later))
    variant = decode(LEDUC).variant
    assert refusal_message(variant, 2)["content"] == "Wrong. Just the '5'. Try 2 of 3."
    monkeypatch.setenv("OPENSPIEL_LLM_BOT_PATH", str(bot.rename(tmp_path / "bot.py")))
    assert refusal_message(variant, 3)["content"] == "Wrong. Just the '5'. Try 3 of 3."
    empty = tmp_path / "empty.py"
    empty.write_text("error_msg = f'{attempt}'\n")
    monkeypatch.setenv("OPENSPIEL_LLM_BOT_PATH", str(empty))
    with pytest.raises(
        GameError, match=r"OPENSPIEL_LLM_BOT_PATH: '.*empty.py' was given, .* has none, and 1 oth"
    ):
        refusal_message(variant, 1)


# -- EvaluateConversation, and conversations in exact evaluation ---------------------------------------------


class Model:
    """A model behind an endpoint: an id of the list that it was shown, or, one time in six, nothing legal."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.replies, self.listed = rng, list[str](), [""]

    def request_reply(self, messages: Any, seed: int, deadline: float) -> tuple[str, Usage]:
        self.listed = re.findall(r"^(\d+) -> ", messages[-1]["content"], re.MULTILINE) or self.listed
        legal = f"<think>{self.rng.randrange(9)}?</think>\n{self.rng.choice(self.listed)}"
        wrong = self.rng.choice(["no idea", "", "<think>9</think>", "99999"])
        self.replies.append(wrong if self.rng.random() < 1 / 6 else legal)
        return self.replies[-1], Usage()


MORE = [pytest.mark.families, pytest.mark.sample]


@pytest.mark.parametrize(
    "index", [pytest.param(index, marks=[] if name in COMMON else MORE) for index, name in enumerate(TABLE)]
)
def test_it_is_the_conversation_that_evaluate_has(index: int) -> None:
    """The same replies to both, illegal ones and three in a row among them, until the game is over."""
    task_id, rng = index * 100_000_000 + 3, random.Random(index)
    # Deals of bridge take from hundredths of a second to seconds.
    for seed in (7,) if TABLE[index] == "bridge" else range(3):
        model: Any = Model(rng)
        told = play_game(model, decode(task_id), seed, "random")["extra"]["conversation"]
        env = EvaluateConversation(
            gym.make("GameSpielText-v0", task_id=task_id, seeding="evaluate", opponent="random")
        )
        text, info = env.reset(seed=seed)
        for reply in model.replies:
            assert "result" not in info
            text, *_, info = env.step(reply)
        assert "result" in info
        # Up to the last answer: nobody answers a refusal after it, or the closing text.
        answered = 2 * len(model.replies) + 1 if model.replies else 0
        assert list(text.messages[:answered]) == told[:answered] and len(told) - answered in (0, 1)


def texts(variant: Any, conversation: str, rules: bool = True) -> dict[Any, ConversationText]:
    states = build_tree(variant, rules, conversation=conversation).states
    return {(state.seat, state.key): state.text for state in states}  # type: ignore[misc]


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("protocol", ["openenv", "evaluate"])
def test_exact_evaluation_asks_in_the_conversations_of_the_environment(game: str, protocol: str) -> None:
    base = gym.make("GameSpiel-v0", game=game, seeding=protocol, opponent="random")
    env: Any = EvaluateConversation(base) if protocol == "evaluate" else Conversation(UpstreamLayout(base))
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
        return [np.eye(len(actions))[-1 if begun else 0] for actions, begun in zip(legal, first, strict=True)]

    result = exact.evaluate(variant, first_raises, conversation="openenv")
    assert result.values != plain.values and result.information_states == plain.information_states
