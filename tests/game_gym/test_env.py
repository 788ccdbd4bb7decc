"""GameSpiel-v0: what every turn shows and what every episode pays."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

import pytest

from task_gym.errors import OptionError
from tests.game_gym.play import DECLARED, LEDUC, episode, make, pick


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
    wild = make(game=game)
    _, info = wild.reset(seed=4)
    for turn, (known, *_, expected) in enumerate(episode(make(game=game), 4)[1:]):
        action = pick(info["legal_actions"], turn, 4)
        info["action_mask"][:] = 1
        info["legal_actions"].clear()
        info["admissible_commands"].append("cheat")
        text, *_, info = wild.step(action)
        assert (text, info["admissible_commands"]) == (known, expected["admissible_commands"])


def test_a_terminal_that_cannot_show_suits_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii", write_through=True))
    env = make(game="leduc_poker", render_mode="human")
    text, _ = env.reset(seed=0)
    env.step(99)
    assert shown.getvalue().decode().startswith(text.replace("♠", r"\u2660").replace("♥", r"\u2665"))


def test_a_person_reads_why_an_action_is_illegal(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(game="kuhn_poker", render_mode="human")
    _, info = env.reset(seed=2)
    capsys.readouterr()
    text, *_ = env.step(info["legal_actions"][0])
    assert capsys.readouterr().out == f"{text}\n"
    env.reset(seed=2)
    capsys.readouterr()
    text, *_ = env.step(7)
    assert capsys.readouterr().out == f"action: 7 was given, legal: 0, 1\n{text}\n"


# -- illegal actions cost, change nothing, and the third in a row gives the game up --------------------------


def test_an_illegal_action_costs_and_changes_nothing_and_the_third_in_a_row_forfeits() -> None:
    env = make(task_id=LEDUC)
    text, before = env.reset(seed=8)  # seat 0, where folding is illegal at first
    assert before["legal_actions"] == [1, 2]
    history = env.state.history()
    for _ in range(2):
        again, *paid, info = env.step(0)
        assert again == text and paid == [info["upstream_reward"], False, False] == [-0.01, False, False]
        assert info["error"] == {"type": "invalid_action", "message": "action: 0 was given, legal: 1, 2"}
        assert env.state.history() == history and info["turn"] == 0
        assert info["action_mask"].tolist() == before["action_mask"].tolist()
    text, *paid, info = env.step(0)
    assert paid == [-0.01, True, False]
    # The least return of leduc for two is 1 + 2 * 2 + 2 * 4 = 13 chips lost.
    assert (info["returns"], info["scores"]) == ([-13, 13], [0, 1])
    assert (info["score"], info["success"], info["result"]) == (0, False, "loss")
    assert info["history"] == env.state.history()
    assert not info["action_mask"].any()
    assert text.startswith("Game over: leduc_poker")


def test_a_legal_action_between_starts_the_count_over() -> None:
    env = make(game="tic_tac_toe")
    _, info = env.reset(seed=0)
    total = 0.0
    terminated = False
    while not terminated:
        for _ in range(2):
            _, reward, terminated, _, info = env.step(99)
            assert not terminated
            total += reward
        _, reward, terminated, _, info = env.step(info["legal_actions"][0])
        assert "error" not in info
        total += reward
    # An episode's return is its score, less 0.01 for each illegal action.
    assert total == pytest.approx(info["score"] - 0.02 * info["turn"])


# -- a cut: truncated, score 0, and only if the game could have gone on --------------------------------------


def test_a_cut_game() -> None:
    env = make(game="tic_tac_toe", max_turns=2)
    text, info = env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (terminated, truncated) == (False, False)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["score"], info["success"], info["result"], info["turn"]) == (0.0, False, "cut", 2)
    assert info["returns"] == [0, 0]
    assert not env.state.is_terminal()
    # A learner bootstraps from this position: text, mask and legal actions are its own.
    assert "Your choice" in text
    assert info["legal_actions"] == env.state.legal_actions()
    assert info["action_mask"].sum() == len(info["legal_actions"])


def test_a_game_that_ends_at_the_limit_is_not_cut() -> None:
    for seed in range(30):
        whole = episode(make(game="kuhn_poker"), seed)
        limited = episode(make(game="kuhn_poker", max_turns=2), seed)
        assert limited == whole  # kuhn asks nobody more than twice


# -- the reset option "seat": one deal from every seat -------------------------------------------------------


@pytest.mark.parametrize("seeding", ["openenv", "evaluate"])
def test_a_deal_is_the_same_from_both_seats(seeding: str) -> None:
    """And a copy plays from the same seat."""
    env, dealt = make(game="leduc_poker", seeding=seeding, opponent="first"), set()
    for seat in (0, 1):
        info = env.reset(seed=5, options={"seat": seat})[1]
        assert info["seat"] == seat
        dealt.add(tuple(env.state.history()[:2]))
        copy = pickle.loads(pickle.dumps(env))
        assert copy.seat == seat and copy.state.history() == env.state.history()
    assert len(dealt) == 1  # the private cards


@pytest.mark.parametrize(
    ("seat", "arguments", "message"),
    [
        (2, {}, "'seat': 2 was given for 'kuhn_poker', allowed: 0 … 1"),
        (-1, {}, "'seat': -1 was given, allowed: whole numbers from 0"),
        (True, {}, "'seat': True was given"),
        (0, {"opponent": "open"}, "leaves every seat to the caller"),
    ],
)
def test_other_seats_are_refused(seat: Any, arguments: dict[str, Any], message: str) -> None:
    env = make(game="kuhn_poker", **arguments)
    with pytest.raises(OptionError, match=message):
        env.reset(seed=1, options={"seat": seat})
