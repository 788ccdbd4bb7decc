"""UpstreamLayout: the rules in the first turn of an episode only."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers the environments)
from game_gym.wrappers import HideLegalActions, ShuffledActions, UpstreamLayout
from task_gym.errors import ArgumentError, LayoutError
from task_gym.wrappers import TokenObservation
from tests.game_gym.play import episode, make
from tests.game_gym.test_upstream import SESSION

HEAD = "# Game Rules\n"


def build(**arguments: Any) -> UpstreamLayout:
    return UpstreamLayout(gym.make("GameSpiel-v0", **arguments))


@pytest.mark.parametrize("game", ["leduc_poker", "tic_tac_toe", "backgammon", "2048"])
def test_the_first_turn_is_told_with_the_rules_and_the_others_without(game: str) -> None:
    later = 0
    for seed in range(4):
        told = episode(build(game=game), seed)
        assert told[:1] == episode(make(game=game), seed)[:1]
        assert told[1:] == episode(make(game=game, rules=False), seed)[1:]
        assert told[0][0].startswith(HEAD)
        later += len(told[1:-1])
    assert later


def test_recorded_responses_are_laid_out_the_same() -> None:
    """All but rules, state and closing text, which are told in our own words."""
    compared = 0
    for call in SESSION:
        theirs = call["response"]["observation"]
        if call["call"] == "reset":
            env = build(task_id=call["task_id"], opponent=call["opponent"])
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


def test_after_an_illegal_action_the_rules_are_known() -> None:
    env = build(game="tic_tac_toe")
    text, _ = env.reset(seed=0)
    assert text.startswith(HEAD)
    again, *_ = env.step(99)
    assert text.endswith(f"# Current Game State\n{again}")


def test_every_episode_begins_with_the_rules() -> None:
    env = build(task_ids=[(0, 4), (200_000_000, 200_000_009)])
    for _ in range(6):
        text, info = env.reset()
        assert text.startswith(HEAD) and f"\nGame: {info['game']}\n" in text
        assert HEAD not in env.step(info["legal_actions"][0])[0]


def test_each_open_seat_is_told_once() -> None:
    told = episode(build(game="leduc_poker", params={"players": 3}, opponent="open"), 1)
    seen: set[int] = set()
    for text, *_, info in told[:-1]:
        assert text.startswith(HEAD) == (info["seat"] not in seen)
        seen.add(info["seat"])
    assert seen == {0, 1, 2} and HEAD not in told[-1][0]


def test_ends_are_told_as_they_are() -> None:
    env = build(game="nim", params={"pile_sizes": "1"})
    assert env.reset(seed=1)[0].startswith("Game over: nim")  # over at reset
    # A cut keeps the text of its position, without the rules by now.
    told = episode(build(game="tic_tac_toe", max_turns=2), 0)
    assert told[-1][0].startswith("Game: tic_tac_toe\n") and told[-1][-1]["result"] == "cut"


def test_ansi_shows_what_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    env = build(game="tic_tac_toe", render_mode="ansi")
    assert env.reset(seed=0)[0] == env.render()
    assert env.step(99)[0] == env.render() != env.unwrapped.render()
    env = build(game="tic_tac_toe", render_mode="human")
    env.reset(seed=0)
    assert capsys.readouterr().out.startswith(HEAD)


def test_an_environment_without_rules_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"UpstreamLayout: .*rules=False was given, allowed: rules=True"):
        build(game="leduc_poker", rules=False)
    with pytest.raises(ArgumentError, match=r"UpstreamLayout: .* was given, allowed: text observations"):
        UpstreamLayout(TokenObservation(make(game="leduc_poker"), lambda text: [], 9, 9, 9))


def test_a_text_that_was_changed_at_the_beginning_is_refused() -> None:
    env = gym.make("GameSpiel-v0", game="leduc_poker")
    changed = gym.wrappers.TransformObservation(env, lambda text: "Hello. " + text, env.observation_space)
    with pytest.raises(LayoutError, match=r"begins 'Hello. # Game Rules.* the rules of leduc_poker"):
        UpstreamLayout(changed).reset(seed=0)


def test_a_text_that_was_changed_at_the_end_is_not() -> None:
    env = UpstreamLayout(HideLegalActions(ShuffledActions(gym.make("GameSpiel-v0", game="leduc_poker"))))
    text, info = env.reset(seed=0)
    assert text.startswith(HEAD)
    assert "Legal Actions" not in text.partition("# Current Game State")[2]
    assert env.step(info["legal_actions"][0])[0].startswith("Game: leduc_poker")
