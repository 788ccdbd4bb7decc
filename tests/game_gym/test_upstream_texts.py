"""``OPENSPIEL_AGENTS_PATH``: prompts in the words of classes of upstream's shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from game_gym.conversation import refusal_message, system_message, turn_message
from game_gym.games import TABLE
from game_gym.task import decode
from task_gym.errors import GameError
from tests.game_gym.play import LEDUC, make

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
    state = variant.game.new_initial_state()
    assert system_message(variant)["content"] == "Play leduc_poker. LEDUC POKER RULES:\nSix cards."
    for outcome in (0, 1):
        state.apply_action(outcome)
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


def test_without_the_variable_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(**arguments: Any) -> str:
        return str(make(task_id=LEDUC, **arguments).reset(seed=1)[0])

    theirs = first()
    monkeypatch.delenv("OPENSPIEL_AGENTS_PATH")
    ours = first()
    assert "Six cards." in theirs and "Six cards." not in ours
    # The question is the same.
    assert theirs.partition("Legal Actions:")[2] == ours.partition("Legal Actions:")[2]
