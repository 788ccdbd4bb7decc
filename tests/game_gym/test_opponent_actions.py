"""Opponents' actions are checked: an illegal one raises, or gives the game up."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from game_gym.opponents.simple import UniformOpponent
from task_gym import opponents
from task_gym.errors import EpisodeError, OpponentActionError
from task_gym.opponents import register_opponent
from tests.game_gym.play import LEDUC, Fixed, make

pytestmark = pytest.mark.usefixtures("registries")


class Echo(Fixed):
    """Plays what ``answer`` makes of the legal actions."""

    def act(self, view: Any) -> Any:
        return self.answer(view.legal_actions())


def answering(answer: Any, rule: str = "raise", kind: type[Fixed] = Fixed) -> str:
    """The name of a new opponent that gives this answer."""
    factory = type("Answering", (kind,), {"answer": staticmethod(answer) if callable(answer) else answer})
    name = f"answering{len(opponents.REGISTRY)}"
    register_opponent(name, factory, takes_argument=True, illegal=rule)
    return name


# -- raise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (np.int64(99), "action 99 was given, legal: 1, 2, 3, 4, 5, 6, 7, 8"),
        (0, "action 0 "),  # the caller's own cell
        (10**30, f"action {10**30} "),
        (None, "action None, .* whole number, was given, legal: 1"),
        (1.0, "action 1.0, .* whole number"),
        ("long" * 999, "action '.{79}, .* whole number"),
    ],
)
def test_illegal_actions_raise(answer: Any, told: str) -> None:
    env = make(game="tic_tac_toe", opponent=answering(answer))
    _, info = env.reset(seed=0)
    assert "opponent_illegal" not in info
    with pytest.raises(OpponentActionError, match=f"in 'tic_tac_toe', seat 1: {told}"):
        env.step(0)


def test_whole_numbers_of_any_type_are_played() -> None:
    for answer in (4, np.int64(4), np.uint8(4), np.array(4)):
        env = make(game="tic_tac_toe", opponent=answering(answer))
        env.reset(seed=0)
        assert env.step(0)[-1]["legal_actions"] == [1, 2, 3, 5, 6, 7, 8]
        assert env.state.history() == [0, 4]


def test_the_list_that_an_opponent_gets_is_its_own() -> None:
    def add(legal: list[int]) -> int:
        legal.append(99)
        return 99

    env = make(game="tic_tac_toe", opponent=answering(add, kind=Echo))
    env.reset(seed=0)
    with pytest.raises(OpponentActionError, match=r"99 was given, legal: 1, 2, 3, 4, 5, 6, 7, 8$"):
        env.step(0)


@pytest.mark.parametrize("game", ["tic_tac_toe", "goofspiel"])
def test_the_game_is_not_the_opponents_to_move(game: str) -> None:
    """A search that forgets to clone the state would move for the caller too."""

    class Forgetful(Fixed):
        def act(self, view: Any) -> Any:
            child = view.state
            if child.is_simultaneous_node():
                child.apply_actions([child.legal_actions(seat)[0] for seat in (0, 1)])
            else:
                child.apply_action(child.legal_actions()[0])
            return 1

    env = make(game=game, opponent=answering(None, kind=Forgetful))
    env.reset(seed=0)
    with pytest.raises(OpponentActionError, match=r"seat 1: it made moves in view\.state.*clone"):
        env.step(0)
    with pytest.raises(EpisodeError):
        env.step(0)


# -- after an error ------------------------------------------------------------------------------------------


def fail(legal: list[int]) -> int:
    raise ZeroDivisionError("mine")


@pytest.mark.parametrize("task", [{"task_id": LEDUC}, {"game": "goofspiel", "params": {"num_cards": 4}}])
@pytest.mark.parametrize(
    ("answer", "error"), [(lambda _: 99, OpponentActionError), (fail, ZeroDivisionError)]
)
def test_an_error_out_of_step_ends_the_episode(task: dict[str, Any], answer: Any, error: type) -> None:
    env = make(**task, opponent=answering(answer, kind=Echo))
    _, info = env.reset(seed=8)  # the caller moves first
    with pytest.raises(error):
        env.step(info["legal_actions"][0])
    outside(env)
    # The next episode begins as in a new environment, and so it does in a copy.
    fresh = make(**task, opponent="first").reset(seed=8)
    for one in (pickle.loads(pickle.dumps(env)), env):
        assert one.reset(seed=8, options={"opponent": "first"})[0] == fresh[0]
        assert one.step(info["legal_actions"][0])[-1]["turn"] == 1


def test_an_error_out_of_reset_begins_no_episode() -> None:
    env = make(task_id=LEDUC, opponent=answering(fail, kind=Echo))
    env.reset(seed=8)
    with pytest.raises(ZeroDivisionError):
        env.reset(seed=5)  # the opponent moves first
    outside(env)
    outside(pickle.loads(pickle.dumps(env)))
    assert env.reset(seed=8)[1]["legal_actions"] == [1, 2]


def outside(env: Any) -> None:
    """Check that the environment is outside an episode."""
    assert not env.action_masks().any() and env.seat is None
    with pytest.raises(EpisodeError, match="outside an episode"):
        env.step(1)


# -- forfeit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "params", "answer", "seed", "actions", "returns", "scores"),
    [
        # The least return of kuhn_poker is -2, so the caller has +2: its greatest return, and score 1.
        ("kuhn_poker", {}, 7, 0, [0], [2, -2], [1, 0]),
        # The least return of leduc for two is 1 + 2 * 2 + 2 * 4 = 13 chips lost: before the first turn here.
        ("leduc_poker", {}, 0, 5, [], [-13, 13], [0, 1]),
        # Returns lie in [-2, 4]. Seat 1 has -2, and 1 each is left to the others: score (1 + 2) / 6.
        ("kuhn_poker", {"players": 3}, 7, 0, [1], [1, -2, 1], [0.5, 0, 0.5]),
        # The first of the two opponents gives the game up; the other is not asked.
        ("goofspiel", {"num_cards": 6, "players": 3}, None, 0, [0], [0.5, -1, 0.5], [0.75, 0, 0.75]),
    ],
)
def test_a_forfeit_is_the_least_return(
    game: str, params: Any, answer: Any, seed: int, actions: list[int], returns: Any, scores: Any
) -> None:
    env = make(game=game, params=params, opponent=answering(answer, "forfeit"))
    text, info = env.reset(seed=seed)
    for action in actions:
        assert info["opponent_illegal"] == 0 and "result" not in info
        text, *paid, info = env.step(action)
        assert paid == [scores[0], True, False]
    seat, result = info["seat"], "win" if len(returns) == 2 else "draw"
    assert (info["returns"], info["scores"], info["opponent_illegal"]) == (returns, scores, 1)
    assert (seat, info["score"], info["upstream_reward"]) == (seed % 2, scores[seat], scores[seat])
    assert (info["result"], info["success"]) == (result, scores[seat] > 0.5)
    assert info["history"] == env.state.history()
    assert info["legal_actions"] == [] and not info["action_mask"].any()
    assert text.startswith(f"Game over: {game}\nYou were Player {seat}.")
    assert text.endswith(f"\nYour score: {scores[seat]:.3f}\nResult: {result}")
    if actions:
        with pytest.raises(EpisodeError):
            env.step(0)
    else:  # as with any game that is over at its reset
        assert env.step(1)[1:3] == (1.0, True)
        assert env.reset(seed=8)[1]["opponent_illegal"] == 0


@pytest.mark.parametrize(("game", "players"), [("bargaining", 2), ("hearts", 4)])
def test_a_forfeit_is_last_where_nobody_has_more_than_the_least_return(game: str, players: int) -> None:
    """These games are not zero-sum. All returns so far are 0, which is the least return as well."""
    env = make(game=game, opponent=answering(-5, "forfeit"))
    _, info = env.reset(seed=0)
    while "result" not in info:
        info = env.step(info["legal_actions"][0])[-1]
    assert info["returns"] == [0] * players
    assert sorted(info["scores"]) == [0] + [1] * (players - 1)
    assert (info["score"], info["result"]) == (1, "win" if players == 2 else "draw")


def test_illegal_actions_of_the_caller_are_not_the_opponents() -> None:
    env = make(game="tic_tac_toe", opponent=answering(None, "forfeit"))
    env.reset(seed=0)
    info = [env.step(99) for _ in range(3)][-1][-1]
    assert (info["result"], info["opponent_illegal"]) == ("loss", 0)


def test_who_plays_decides_whether_there_is_a_count() -> None:
    register_opponent("deep", UniformOpponent, illegal="forfeit", stand_in=lambda game, argument: "random")
    register_opponent("alone", UniformOpponent, illegal="forfeit")
    assert "opponent_illegal" not in make(game="kuhn_poker", opponent="deep").reset(seed=0)[1]
    # Alone at the table, nobody plays; the key is there, as in every other game of the same environment.
    assert make(game="2048", opponent="alone").reset(seed=0)[1]["opponent_illegal"] == 0
    env = make(task_id=LEDUC, opponent="random")
    assert env.reset(seed=0, options={"opponent": "alone"})[1]["opponent_illegal"] == 0
    for name in ("random", "first", "mcts:4", "open"):
        assert "opponent_illegal" not in env.reset(seed=0, options={"opponent": name})[1]
