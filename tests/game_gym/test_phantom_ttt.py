"""Phantom tic-tac-toe: what is told is what the seat knows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym.games import find_game
from game_gym.games.phantom_ttt import describe
from game_gym.spec import load_variant

SILENT, COUNTED = ("reveal-nothing", "reveal-numturns")


def after(actions: tuple[int, ...], **params: Any) -> Any:
    state = load_variant(find_game("phantom_ttt"), params).game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def test_descriptions_in_full() -> None:
    # x takes the centre; o tries the centre, is shown it and takes a corner.
    state = after((4, 4, 0), obstype=SILENT)
    assert describe(state, 0) == "Your mark: x\nYour view:\n...\n.x.\n...\nYour tries: you (1,1) placed"
    assert describe(state, 1) == (
        "Your mark: o\nYour view:\no..\n.x.\n...\nYour tries: you (1,1) taken, you (0,0) placed"
    )
    state = after((4, 4, 0), obstype=COUNTED)
    assert describe(state, 0) == (
        "Your mark: x\nYour view:\n...\n.x.\n...\nTries: you (1,1) placed, Player 1, Player 1"
    )
    assert describe(after((), obstype=SILENT), 0).endswith("Your tries: none")
    assert describe(after((), obstype=COUNTED), 0).endswith("\nTries: none")


@pytest.mark.parametrize("obstype", [SILENT, COUNTED])
@pytest.mark.parametrize("gameversion", ["classical", "abrupt"])
def test_a_description_is_an_information_state(obstype: str, gameversion: str) -> None:
    rng = random.Random(2)
    texts: dict[tuple[int, str], str] = {}
    histories: dict[tuple[int, str], set[tuple[int, ...]]] = {}
    for _ in range(3000):
        state = after((), obstype=obstype, gameversion=gameversion)
        for _ in range(rng.randint(0, 8)):
            if not state.is_terminal():
                state.apply_action(rng.choice(state.legal_actions()))
        for seat in (0, 1) if not state.is_terminal() else ():
            key = (seat, state.information_state_string(seat))
            assert texts.setdefault(key, describe(state, seat)) == describe(state, seat)
            histories.setdefault(key, set()).add(tuple(state.history()))
    assert len(set(texts.values())) == len(texts)
    assert sum(len(seen) > 1 for seen in histories.values()) > 100  # the hidden part did vary
