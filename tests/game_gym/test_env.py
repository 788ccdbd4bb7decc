"""GameSpiel-v0: what every turn shows and what every episode pays."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_gym.backends import LocalBackend
from game_gym.spec import GameSpec, Variant
from game_gym.task import Task
from task_gym.errors import OptionError
from tests.game_gym.play import DECLARED, LEDUC, episode, make, pick
from tests.game_gym.test_conformance import check_end, check_turn


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
    over, texts = False, dict[tuple[Any, ...], str]()
    while not over:
        check_turn(env, text, info, texts)
        assert env.state.current_player() == info["seat"]
        text, reward, terminated, truncated, info = env.step(choices.choice(info["legal_actions"]))
        over = terminated or truncated
        assert type(terminated) is type(truncated) is bool
        assert type(reward) is float
        assert reward == 0 or over
    check_end(env, text, reward, info)
    assert info["returns"] == [-value for value in info["returns"][::-1]]


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
        known = expected[turn + 1]
        assert (text, info["admissible_commands"]) == (known[0], known[-1]["admissible_commands"])
        turn += 1


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


def test_an_illegal_action_costs_and_changes_nothing() -> None:
    env = make(task_id=LEDUC)
    text, before = env.reset(seed=8)  # seat 0, where folding is illegal at first
    assert before["legal_actions"] == [1, 2]
    history = env.state.history()
    again, reward, terminated, truncated, info = env.step(0)
    assert (again, reward, terminated, truncated) == (text, -0.01, False, False)
    assert info["upstream_reward"] == -0.01
    assert info["error"] == {"type": "invalid_action", "message": "action: 0 was given, legal: 1, 2"}
    assert env.state.history() == history
    assert info["action_mask"].tolist() == before["action_mask"].tolist()
    assert info["turn"] == 0
    assert "error" not in env.step(1)[-1]


def test_the_third_in_a_row_forfeits() -> None:
    env = make(task_id=LEDUC)
    env.reset(seed=8)
    assert [env.step(0)[2] for _ in range(2)] == [False, False]
    text, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated) == (-0.01, True, False)
    # The least return of leduc for two is 1 + 2 * 2 + 2 * 4 = 13 chips lost.
    assert info["returns"] == [-13, 13]
    assert info["scores"] == [0, 1]
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


# -- open seats: the caller moves for everyone ---------------------------------------------------------------


def test_chance_is_that_of_the_same_address() -> None:
    # The deal comes only from the seed: open or against a bot, seat 0 holds the same card.
    for seed in range(0, 20, 2):  # seat 0 under openenv
        opened, played = make(game="leduc_poker", opponent="open"), make(game="leduc_poker")
        assert opened.reset(seed=seed)[0] == played.reset(seed=seed)[0]


def test_the_seat_that_errs_forfeits() -> None:
    env = make(game="kuhn_poker", opponent="open", illegal="forfeit")
    env.reset(seed=0)
    env.step(0)
    *_, info = env.step(9)
    assert info["seat"] == 1
    assert info["scores"] == [1, 0] and info["returns"] == [2, -2]


def test_simultaneous_seats_choose_in_turn_and_move_together() -> None:
    spec = GameSpec("goofspiel", lambda _: "", lambda state, seat: "", lambda config: {}, 1, {}, None)
    variant = Variant(spec, {"num_cards": 4, "points_order": "descending"})
    backend = LocalBackend("openenv", rules=False)
    turn = backend.start(Task(None, variant), 0, "open")
    chosen = []
    while turn.ending is None:
        assert turn.seat == len(chosen) % 2
        assert turn.legal == backend.state.legal_actions(turn.seat)
        chosen.append(turn.legal[-1 - turn.seat % len(turn.legal)])
        turn = backend.play(chosen[-1])
    # Seat 0 plays its highest card, seat 1 its second highest, until one each is left, which OpenSpiel plays
    # itself: 3-2, 2-1, 1-0 and 0-3. Seat 0 wins 4, 3 and 2 points, seat 1 wins 1.
    assert chosen == [3, 2, 2, 1, 1, 0]
    assert turn.ending.history == chosen  # what plays itself is no action
    assert turn.ending.result == "loss" and turn.seat == 1
    assert turn.ending.returns == [1, -1]


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


def test_the_opponents_noise_is_that_of_the_seed() -> None:
    """Two seats: upstream's bot has one root, whichever seat it plays."""
    env, made = make(game="kuhn_poker"), []
    for seat in (0, 1):
        env.reset(seed=11, options={"seat": seat})
        while not env.state.is_terminal():
            env.step(0)
        pairs = [(pair.player, pair.action) for pair in env.state.full_history()]
        made.append(next(action for player, action in pairs if player == 1 - seat))
    assert made[0] == made[1]  # its first choice between two actions


@pytest.mark.parametrize(
    ("seat", "arguments", "message"),
    [
        (2, {}, "'seat': 2 was given for 'kuhn_poker', allowed: 0 … 1"),
        (-1, {}, "'seat': -1 was given, allowed: whole numbers from 0"),
        ("0", {}, "'seat': '0' was given"),
        (True, {}, "'seat': True was given"),
        (0, {"opponent": "open"}, "leaves every seat to the caller"),
    ],
)
def test_other_seats_are_refused(seat: Any, arguments: dict[str, Any], message: str) -> None:
    env = make(game="kuhn_poker", **arguments)
    with pytest.raises(OptionError, match=message):
        env.reset(seed=1, options={"seat": seat})
