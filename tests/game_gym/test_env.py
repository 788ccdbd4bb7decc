"""GameSpiel-v0: what every turn shows and what every episode pays."""

from __future__ import annotations

import io
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.game_gym.play import DECLARED, LEDUC, episode, make, pick

ALWAYS = {
    "action_mask",
    "legal_actions",
    "admissible_commands",
    "task_id",
    "seed",
    "game",
    "seat",
    "opponent",
    "turn",
}
AT_THE_END = {"score", "scores", "success", "returns", "result", "history"}


@pytest.mark.parametrize("game", DECLARED)
@pytest.mark.parametrize("seeding", ["openenv", "evaluate"])
@pytest.mark.parametrize("opponent", ["random", "first", "mcts:4x1", "open"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 201), choices=st.randoms(use_true_random=False))
def test_masks_are_the_states_legal_actions(
    game: str, seeding: str, opponent: str, seed: int, choices: Any
) -> None:
    env = make(game=game, seeding=seeding, opponent=opponent)
    text, info = env.reset(seed=seed)
    over = False
    while not over:
        legal = env.state.legal_actions(info["seat"])
        assert legal and legal == info["legal_actions"]
        assert np.flatnonzero(info["action_mask"]).tolist() == legal
        assert info["action_mask"].dtype == np.int8
        assert np.flatnonzero(env.action_masks()).tolist() == legal
        assert env.action_masks().dtype == np.bool_
        assert env.state.current_player() == info["seat"]
        assert text in env.observation_space
        assert set(info) - ALWAYS <= {"upstream_reward"}
        text, reward, terminated, truncated, info = env.step(choices.choice(legal))
        over = terminated or truncated
        assert type(terminated) is type(truncated) is bool
        assert type(reward) is float
        assert reward == 0 or over
    assert set(info) == ALWAYS | AT_THE_END | {"upstream_reward"}
    assert not info["action_mask"].any() and not env.action_masks().any()
    assert info["legal_actions"] == info["admissible_commands"] == []
    assert env.state.is_terminal() and info["history"] == env.state.history()
    assert info["returns"] == env.state.returns() == [-value for value in info["returns"][::-1]]
    assert reward == info["score"] == info["scores"][info["seat"]] == info["upstream_reward"]
    assert info["success"] is (info["score"] > 0.5)


def test_spaces() -> None:
    env = make(task_id=LEDUC)
    assert env.action_space == gym.spaces.Discrete(3)
    assert make(game="tic_tac_toe").action_space == gym.spaces.Discrete(9)
    assert env.observation_space.min_length == 0


def test_address_in_the_info() -> None:
    env = make(task_id=LEDUC + 3, opponent="first")
    _, info = env.reset(seed=np.int64(11))
    names = ("task_id", "seed", "game", "opponent", "turn", "seat")
    # Seat 11 modulo 2.
    assert [info[name] for name in names] == [LEDUC + 3, 11, "leduc_poker", "first", 0, 1]
    _, info = make(game="kuhn_poker").reset(seed=0)
    assert info["task_id"] is None


def test_reset_without_a_seed_draws_one_and_reports_it() -> None:
    env = make(task_ids=[(LEDUC, LEDUC + 99)])
    env.reset(seed=5)
    drawn = []
    for _ in range(20):
        text, info = env.reset()
        drawn.append((info["task_id"], info["seed"]))
        assert 0 <= info["seed"] < 2**32 - 200
        # The address is all there is to an episode.
        again, same = make(task_id=info["task_id"]).reset(seed=info["seed"])
        assert (again, same["seed"]) == (text, info["seed"])
    assert len(set(drawn)) == 20 and len({task for task, _ in drawn}) > 5
    env.reset(seed=5)
    assert [(i["task_id"], i["seed"]) for _, i in (env.reset() for _ in range(20))] == drawn


def test_upstream_reward_may_be_the_reward() -> None:
    for reward in ("score", "upstream"):
        env = make(task_id=LEDUC, reward=reward)
        for step in episode(env, 8)[1:]:
            assert step[1] == step[-1]["upstream_reward"]  # leduc pays at the end only, the score
    env.reset(seed=1)
    assert env.step(2 if 2 not in env.action_masks().nonzero()[0] else 9)[1] == -0.01


@pytest.mark.parametrize("game", DECLARED)
def test_what_is_returned_is_the_callers(game: str) -> None:
    # Scribbling on an info changes nothing of the episode.
    calm, wild = make(game=game), make(game=game)
    _, info = wild.reset(seed=4)
    expected, over, turn = episode(calm, 4), False, 0
    while not over:
        action = pick(info["legal_actions"], turn, 4)
        info["action_mask"][:] = 1
        info["legal_actions"].clear()
        info["admissible_commands"].append("cheat")
        text, _, over, _, info = wild.step(action)
        assert text == expected[turn + 1][0]
        turn += 1


def test_a_terminal_that_cannot_show_suits_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii", write_through=True))
    env = make(game="leduc_poker", render_mode="human")
    text, _ = env.reset(seed=0)
    env.step(99)
    assert shown.getvalue().decode().startswith(text.replace("♠", r"\u2660").replace("♥", r"\u2665"))


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(game="kuhn_poker", render_mode="ansi")
    assert env.render() == ""
    text, info = env.reset(seed=2)
    assert env.render() == text
    env = make(game="kuhn_poker", render_mode="human")
    text, info = env.reset(seed=2)
    assert capsys.readouterr().out == text + "\n"
    text, *_ = env.step(info["legal_actions"][0])
    assert capsys.readouterr().out == text + "\n"
    env.reset(seed=2)
    capsys.readouterr()
    text, *_ = env.step(7)
    assert capsys.readouterr().out == f"action: 7 was given, legal: 0, 1\n{text}\n"
