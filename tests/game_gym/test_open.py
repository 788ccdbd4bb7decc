"""Open seats: the caller moves for everyone."""

from __future__ import annotations

import pytest

from game_gym.backends import LocalBackend
from game_gym.prompts import render
from game_gym.spec import GameSpec, Variant
from game_gym.task import Task, TaskSet
from tests.game_gym.play import DECLARED, make, pick


@pytest.mark.parametrize("game", DECLARED)
def test_each_turn_is_the_turn_of_the_seat_to_move(game: str) -> None:
    env = make(game=game, opponent="open", rules=False)
    variant = TaskSet(game=game).variants[0]
    seats = set()
    for seed in range(20):
        text, info = env.reset(seed=seed)
        over, turn = False, 0
        while not over:
            seats.add(info["seat"])
            assert info["seat"] == env.state.current_player()
            assert text == render(variant, env.state, info["seat"], rules=False)
            mover = info["seat"]
            text, reward, over, _, info = env.step(pick(info["legal_actions"], turn, seed))
            turn += 1
        assert info["seat"] == mover and reward == info["scores"][mover]
        assert sum(info["scores"]) == 1  # zero-sum for two: what one has the other has not
        assert info["turn"] == turn
    assert seats == {0, 1}


def test_chance_is_that_of_the_same_address() -> None:
    # The deal comes only from the seed: open or against a bot, seat 0 holds the same card.
    for seed in range(0, 20, 2):  # seat 0 under openenv
        assert (
            make(game="leduc_poker", opponent="open").reset(seed=seed)[0]
            == (make(game="leduc_poker").reset(seed=seed)[0])
        )


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
