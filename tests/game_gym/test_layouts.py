"""Prompts without the list of legal actions, and without the rules after the first turn."""

from __future__ import annotations

import functools
import pickle
import re

import gymnasium as gym
import numpy as np
import pytest

from game_gym.conversation import refusal_message, system_message, turn_message
from game_gym.games import DECLARED
from game_gym.prompts import render
from game_gym.text_env import read_unlisted
from game_gym.tree import build_tree
from game_gym.wrappers import UpstreamLayout
from task_gym.errors import ArgumentError, LayoutError, OptionError
from task_gym.picture import picture
from task_gym.wrappers import NamedActions, NamedText
from tests.game_gym.play import episode, load, make, reach, wrapped
from tests.game_gym.test_golden import SESSION

ANSWER = "\n\nYour choice (action ID only):"
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


def test_every_declared_game_says_how_its_actions_are_written() -> None:
    assert NAMES.keys() == DECLARED.keys()
    for game, pattern in NAMES.items():
        seed = 7 if game == "bridge" else 1  # deals of bridge take from hundredths of a second to seconds
        assert DECLARED[game].notation.endswith("."), game
        for text, *_, info in episode(make(game=game, list_actions=False), seed, longest=40):
            if not info["legal_actions"]:
                continue
            assert "->" not in text and "Legal Actions" not in text
            assert f"How to write an action: {DECLARED[game].notation}\n" in text
            names = info["admissible_commands"]
            assert [name for name in names if not re.fullmatch(pattern, name)] == [], game
            pairs = zip(info["legal_actions"], names, strict=True)
            numbered = [name.startswith(f"{action} - ") for action, name in pairs if name != "Pass"]
            assert all(numbered) if DECLARED[game].numbered_names else not any(numbered)


def test_one_episode_may_differ_by_its_reset_option() -> None:
    env = make(game="kuhn_poker")
    shown, _ = env.reset(seed=4)
    text, info = env.reset(seed=4, options={"list_actions": False})
    assert text == shown.partition("\n\nLegal")[0] + KUHN_QUESTION and not env.list_actions
    assert info["legal_actions"] == [0, 1] and info["action_mask"].tolist() == [1, 1]
    assert pickle.loads(pickle.dumps(env)).turn.text == text
    assert env.reset(seed=4)[0] == shown and env.list_actions
    with pytest.raises(OptionError, match="'list_actions': 1 "):
        env.reset(options={"list_actions": 1})
    with pytest.raises(ArgumentError, match="list_actions"):
        make(game="kuhn_poker", list_actions="no")


def test_pure_functions_render_the_same() -> None:
    for game in ("kuhn_poker", "leduc_poker"):
        env = make(game=game, list_actions=False, rules=False)
        text, info = env.reset(seed=5)
        assert text == render(env.variant, env.state, info["seat"], rules=False, list_actions=False)
        states = build_tree(env.variant, rules=False, list_actions=False, named=True).states
        (match,) = [state for state in states if state.text == text]
        assert isinstance(match.text, NamedText) and list(match.text.names) == info["admissible_commands"]
        assert text == NamedActions(env).reset(seed=5)[0]


def test_replies_name_actions_as_they_are_described() -> None:
    env = gym.make("GameSpielText-v0", game="tic_tac_toe", list_actions=False)
    env.reset(seed=0)
    _, reward, *_, info = env.step("4")  # an id, which nobody was shown
    assert reward == -0.01 and info["error"]["message"].startswith("reply: '4' ")
    _, reward, *_, info = env.step("I mark the middle: **x(1,1)**")
    assert reward == 0 and info["turn"] == 1
    # Names of numbered games need no number.
    legal, names = [137, 863, 142], ["137 - 8/3 6/4", "863 - 8/3 6/4", "142 - 13/8 6/4"]
    assert read_unlisted("13/8 6/4", legal, names) == 142
    assert read_unlisted("142 - 13/8 6/4", legal, names) == 142
    assert read_unlisted("8/3 6/4", legal, names) == 137  # both are the same move
    assert read_unlisted("142", legal, names) is None


def test_conversations_of_evaluate_without_the_list() -> None:
    variant = load("kuhn_poker", players=2)
    system = system_message(variant, list_actions=False)["content"]
    assert system.endswith(
        "# Output Format\nHow to write an action: Pass or Bet.\n"
        "Answer with one legal action, written in this way, and nothing else."
    )
    state = reach(variant, (0, 1))
    said = turn_message(variant, state, 0, [0, 1], ["Pass", "Bet"], list_actions=False)["content"]
    assert said.endswith("You are Player 0.\n\nYour choice:") and "Pass" not in said
    assert "Pass or Bet. Answer with" in refusal_message(variant, 1, list_actions=False)["content"]


@pytest.mark.parametrize("game", ["leduc_poker", "tic_tac_toe", "chess", "goofspiel", "matrix_rps"])
@pytest.mark.parametrize("opponent", ["random", "open"])
def test_the_list_is_left_out_and_nothing_else(game: str, opponent: str) -> None:
    """In its place the text says how an action is written."""
    where = {"game": game, "opponent": opponent, "max_turns": 30}
    listed, unlisted = (episode(env, 3) for env in (make(**where), make(**where, list_actions=False)))
    assert [entry[1:] for entry in unlisted] == [entry[1:] for entry in listed]
    for (whole, *_, info), (told, *_) in zip(listed, unlisted, strict=True):
        if info["legal_actions"]:
            pairs = zip(info["legal_actions"], info["admissible_commands"], strict=True)
            listing = "\n".join(["\n\nLegal Actions:", *(f"  {action} -> {name}" for action, name in pairs)])
            assert told.partition("\n\nHow to write")[0] + listing + ANSWER == whole
        else:
            assert told == whole


# -- UpstreamLayout: the rules in the first turn of an episode only ------------------------------------------


HEAD = "# Game Rules\n"


tell_once = functools.partial(wrapped, UpstreamLayout)


def test_wrappers_that_rewrite_the_text_go_outside() -> None:
    env = gym.make("GameSpiel-v0", game="leduc_poker")
    changed = gym.wrappers.TransformObservation(env, lambda text: "Hello. " + text, env.observation_space)
    with pytest.raises(LayoutError, match=r"begins 'Hello. # Game Rules.* the rules of leduc_poker"):
        UpstreamLayout(changed).reset(seed=0)


@pytest.mark.parametrize("game", ["leduc_poker", "tic_tac_toe", "backgammon", "2048"])
def test_the_first_turn_is_told_with_the_rules_and_the_others_without(game: str) -> None:
    later, env = 0, tell_once(game=game)
    for seed in range(4):
        told = episode(env, seed)
        assert told[:1] == episode(make(game=game), seed)[:1]
        assert told[1:] == episode(make(game=game, rules=False), seed)[1:]
        assert told[0][0].startswith(HEAD)
        later += len(told[1:-1])
    assert later


def test_recorded_responses_are_laid_out_the_same() -> None:
    """All but rules, state and closing text, which are in our own words."""
    compared = 0
    for call in SESSION:
        theirs = call["response"]["observation"]
        if call["call"] == "reset":
            env = tell_once(task_id=call["task_id"], opponent=call["opponent"])
            ours, _ = env.reset(seed=call["seed"])
            assert theirs.startswith(HEAD) and ours.startswith(HEAD)
            theirs, ours = (
                text.partition("\n# Current Game State\n")[2] if "# Game" in text else text
                for text in (theirs, ours)
            )
        elif call["action"].isdigit() and not call["response"]["done"]:
            ours, *_ = env.step(int(call["action"]))
        else:
            continue
        head, state, tail = ours.partition("\nCurrent State:\n")
        assert theirs.partition("\nCurrent State:\n")[:2] == (head, state)
        # Ends with the same actions under the same names, and the same question.
        assert theirs.partition("\n\nLegal Actions:\n")[2] == tail.partition("\n\nLegal Actions:\n")[2] != ""
        compared += 1
    assert compared == 8  # three resets and five moves that did not end a game


def test_each_open_seat_is_told_once() -> None:
    told = episode(tell_once(game="leduc_poker", params={"players": 3}, opponent="open"), 1)
    seen: set[int] = set()
    for text, *_, info in told[:-1]:
        assert text.startswith(HEAD) == (info["seat"] not in seen)
        seen.add(info["seat"])
    assert seen == {0, 1, 2} and HEAD not in told[-1][0]


def test_what_is_told_is_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    env = tell_once(game="tic_tac_toe", render_mode="ansi")
    assert env.reset(seed=0)[0] == env.render()
    assert env.step(99)[0] == env.render() != env.unwrapped.render()
    env = tell_once(game="tic_tac_toe", render_mode="human")
    env.reset(seed=0)
    assert capsys.readouterr().out.startswith(HEAD)
    env = tell_once(game="tic_tac_toe", render_mode="rgb_array")
    text, _ = env.reset(seed=0)
    assert np.array_equal(env.render(), picture(text))
