"""Prompts without the list of legal actions: what they say in its place, and which replies count."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import gymnasium as gym
import pytest

from game_gym import exact
from game_gym.conversation import refusal_message, system_message, turn_message
from game_gym.games import DECLARED, find_game
from game_gym.prompts import render
from game_gym.spec import load_variant
from game_gym.text_env import read_unlisted
from game_gym.wrappers import UpstreamLayout
from task_gym.errors import ArgumentError, OptionError
from task_gym.wrappers import NamedActions, NamedText
from tests.game_gym.play import episode, make

KUHN_QUESTION = "\n\nHow to write an action: Pass or Bet.\n\nYour choice (action name only):"

CARD = "[2-9TJQKA][shdc]"
CELL = "[a-t][0-9]{1,2}"
PART = r"(\d+|Bar)(/(\d+|Off)\*?)+(\(\d\))?"
NAMES = {
    "leduc_poker": "Fold|Call|Raise",
    "kuhn_poker": "Pass|Bet",
    "tic_tac_toe": r"[xo]\([0-2],[0-2]\)",
    "blackjack": "Hit|Stand",
    "phantom_ttt": r"[xo]\([0-2],[0-2]\)",
    "2048": "Up|Down|Left|Right",
    "solitaire": "([2-9TJQKA]?[♠♥♦♣]|🂿) ← [2-9TJQKA][♠♥♦♣]|kEnd",
    "bridge": "[1-7]([♠♥♦♣]|NT)|Pass|Dbl|RDbl",
    "amazons": r"[XO] (From|To|Shoot:) \(\d+, \d+\)",
    "oware": "[a-fA-F]",
    "goofspiel": r"\[P[01]\]Bid: \d+",
    "liars_dice": "[1-9]-[1-6]|Liar",
    "gin_rummy": f"Player: [01] Action: (Draw upcard|Draw stock|Pass|Knock|({CARD})+)",
    "othello": f"{CELL}|pass",
    "backgammon": rf"\d+ - {PART}( ({PART}|Pass))?|(\d+ - )?Pass",
    "hex": "[a-k][0-9]{1,2}",
    "clobber": f"{CELL}{CELL}",
    "hearts": "[2-9TJQKA][SHDC]",
    "euchre": "[SHDC][9TJQKA]|Pass|Clubs|Diamonds|Hearts|Spades|Alone|Partner",
    "dots_and_boxes": r"P[12]\([hv],\d,\d\)",
    "go": f"[BW] ({CELL}|PASS)",
    "chess": r"([KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](=[QRBN])?|O-O(-O)?)[+#]?",
    "checkers": f"{CELL}{CELL}",
    "quoridor": "[a-i][1-9][hv]?",
}
"""Patterns of the names that each game's notation describes."""


def play(env: Any, seed: int, turns: int = 40) -> list[tuple[str, dict[str, Any]]]:
    text, info = env.reset(seed=seed)
    found, chosen = [(text, info)], random.Random(seed)
    while "result" not in info and len(found) < turns:
        text, *_, info = env.step(chosen.choice(info["legal_actions"]))
        found.append((text, info))
    return found


def test_every_declared_game_says_how_its_actions_are_written() -> None:
    assert NAMES.keys() == DECLARED.keys()
    for game, pattern in NAMES.items():
        assert DECLARED[game].notation.endswith("."), game
        for seed in (0, 1):
            for text, info in play(make(game=game, list_actions=False), seed):
                if not info["legal_actions"]:
                    continue
                assert "->" not in text and "Legal Actions" not in text
                assert f"How to write an action: {DECLARED[game].notation}\n" in text
                names = info["admissible_commands"]
                assert [name for name in names if not re.fullmatch(pattern, name)] == [], game
                pairs = zip(info["legal_actions"], names, strict=True)
                numbered = [name.startswith(f"{action} - ") for action, name in pairs if name != "Pass"]
                assert all(numbered) if DECLARED[game].numbered_names else not any(numbered)


@pytest.mark.parametrize(
    ("game", "opponent"),
    [("kuhn_poker", "random"), ("tic_tac_toe", "open"), ("chess", "random"), ("matrix_rps", "open")],
)
def test_only_the_end_of_the_text_differs(game: str, opponent: str) -> None:
    listed = episode(make(game=game, opponent=opponent, max_turns=12), 3)
    unlisted = episode(make(game=game, opponent=opponent, max_turns=12, list_actions=False), 3)
    assert [entry[1:] for entry in listed] == [entry[1:] for entry in unlisted]
    for (whole, *_), (text, *_, info) in zip(listed, unlisted, strict=True):
        if info["legal_actions"]:
            assert text.partition("\n\nHow to write")[0] == whole.partition("\n\nLegal Actions:")[0]
        else:
            assert text == whole


def test_one_episode_may_differ_by_its_reset_option() -> None:
    env = make(game="kuhn_poker")
    shown, _ = env.reset(seed=4)
    text, info = env.reset(seed=4, options={"list_actions": False})
    assert text == shown.partition("\n\nLegal")[0] + KUHN_QUESTION and not env.list_actions
    assert info["legal_actions"] == [0, 1] and info["action_mask"].tolist() == [1, 1]
    assert env.reset(seed=4)[0] == shown and env.list_actions
    with pytest.raises(OptionError, match="'list_actions': 1 "):
        env.reset(options={"list_actions": 1})
    with pytest.raises(ArgumentError, match="list_actions"):
        make(game="kuhn_poker", list_actions="no")


def test_a_copy_shows_the_same() -> None:
    env = make(game="leduc_poker")
    text, info = env.reset(seed=2, options={"list_actions": False})
    text = env.step(info["legal_actions"][0])[0]
    assert pickle.loads(pickle.dumps(env)).turn.text == text


def test_a_batch_shows_the_same() -> None:
    pytest.importorskip("gymnasium", minversion="1.1")  # older ones have no modes of resetting
    from game_gym.vector import GameSpielVectorEnv

    batch = GameSpielVectorEnv(3, game="kuhn_poker", list_actions=False)
    texts, _ = batch.reset(seed=7)
    single = make(game="kuhn_poker", list_actions=False)
    assert list(texts) == [single.reset(seed=seed)[0] for seed in (7, 8, 9)]
    # Shared positions keep the listed text for those who list.
    assert "Legal Actions" in batch.games[0].reset(seed=7, options={"list_actions": True})[0]


def test_pure_functions_render_the_same() -> None:
    for game in ("kuhn_poker", "leduc_poker"):
        env = make(game=game, list_actions=False, rules=False)
        text, info = env.reset(seed=5)
        assert text == render(env.variant, env.state, info["seat"], rules=False, list_actions=False)
        states = exact.information_states(env.variant, rules=False, list_actions=False, named=True)
        (own,) = [state for state in states if state.text == text]
        assert isinstance(own.text, NamedText) and list(own.text.names) == info["admissible_commands"]
        assert text == NamedActions(env).reset(seed=5)[0]


def test_the_rules_are_told_once() -> None:
    env = UpstreamLayout(gym.make("GameSpiel-v0", game="leduc_poker", list_actions=False))
    text, info = env.reset(seed=0)
    assert "# Game Rules" in text and "Legal Actions" not in text
    text, *_, info = env.step(info["legal_actions"][-1])
    assert "# Game Rules" not in text and ("result" in info or "How to write" in text)


def test_a_wrong_reply_is_told_no_legal_action() -> None:
    env = gym.make("GameSpielText-v0", game="tic_tac_toe", list_actions=False)
    env.reset(seed=0)
    _, reward, *_, info = env.step("4")  # an id, which nobody was shown
    assert reward == -0.01 and info["error"]["message"].startswith("reply: '4' ")
    _, reward, *_, info = env.step("I mark the middle: **x(1,1)**")
    assert reward == 0 and info["turn"] == 1


def test_names_of_numbered_games_need_no_number() -> None:
    legal, names = [137, 863, 142], ["137 - 8/3 6/4", "863 - 8/3 6/4", "142 - 13/8 6/4"]
    assert read_unlisted("13/8 6/4", legal, names) == 142
    assert read_unlisted("142 - 13/8 6/4", legal, names) == 142
    assert read_unlisted("8/3 6/4", legal, names) == 137  # both are the same move
    assert read_unlisted("142", legal, names) is None


def test_conversations_of_evaluate_without_the_list() -> None:
    variant = load_variant(find_game("kuhn_poker"), {"players": 2})
    system = system_message(variant, list_actions=False)["content"]
    assert system.endswith(
        "# Output Format\nHow to write an action: Pass or Bet.\n"
        "Answer with one legal action, written in this way, and nothing else."
    )
    state = variant.game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    said = turn_message(variant, state, 0, [0, 1], ["Pass", "Bet"], list_actions=False)["content"]
    assert said.endswith("You are Player 0.\n\nYour choice:") and "Pass" not in said
    assert "Pass or Bet. Answer with" in refusal_message(variant, 1, list_actions=False)["content"]
