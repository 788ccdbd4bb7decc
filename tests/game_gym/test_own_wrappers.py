"""Tensors and returns in place of what a game shows and pays."""

from __future__ import annotations

import functools
import random
from typing import Any

import gymnasium as gym
import pyspiel
import pytest

from game_gym.games import DECLARED
from game_gym.task import CONFIGS
from game_gym.wrappers import RawReturns, TensorObservation
from task_gym.errors import ArgumentError, GameError
from tests.game_gym.play import episode, make, wrapped
from tests.game_gym.test_conformance import COMMON

# -- TensorObservation: OpenSpiel's tensor in place of the text ----------------------------------------------


tensors = functools.partial(wrapped, TensorObservation)


def test_the_information_state_is_preferred_and_open_games_show_the_position() -> None:
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    assert len(state.information_state_tensor(0)) == 30 and len(state.observation_tensor(0)) == 16
    assert tensors(game="leduc_poker").observation_space.shape == (30,)
    env = TensorObservation(gym.make("GameSpiel-v0", game="tic_tac_toe", opponent="open"), flat=False)
    tensor, _ = env.reset(seed=0)
    assert tensor.shape == env.observation_space.shape == (3, 3, 3)
    # Planes of empty cells, of noughts and of crosses; Player 0 plays crosses.
    assert tensor[0].all() and not tensor[1:].any()
    tensor, *_ = env.step(4)
    assert tensor[0].sum() == 8 and tensor[2, 1, 1] == 1 and not tensor[1].any()
    assert tensors(game="tic_tac_toe", opponent="open").observation_space.shape == (27,)


#: The declared games with an information state tensor.
INFORMED = {
    "leduc_poker", "kuhn_poker", "phantom_ttt", "bridge", "goofspiel", "liars_dice", "hearts", "euchre"
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in COMMON else pytest.mark.families) for name in DECLARED]
)
def test_every_declared_game(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    env = tensors(game=name, params=DECLARED[name].params(0), opponent="open", rules=False)
    kind = "information_state_tensor" if name in INFORMED else "observation_tensor"
    rng = random.Random(0)
    tensor, info = env.reset(seed=0)
    over = "result" in info
    while not over:
        assert tensor in env.observation_space
        assert tensor.tolist() == getattr(env.unwrapped.state, kind)(info["seat"])
        tensor, _, over, _, info = env.step(rng.choice(info["legal_actions"]))
    assert tensor in env.observation_space and not tensor.any()
    assert info["text"].startswith("Game over")
    assert capfd.readouterr() == ("", "")


def test_a_cut_shows_its_position_and_a_forfeit_none() -> None:
    env = tensors(game="tic_tac_toe", max_turns=2)
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    tensor, _, _, truncated, info = env.step(info["legal_actions"][-1])
    assert truncated and tensor.tolist() == env.unwrapped.state.observation_tensor(0)
    env.reset(seed=0)
    for _ in range(3):
        tensor, _, terminated, *_ = env.step(99)
    assert terminated and not tensor.any()


def test_variants_must_have_a_tensor_and_one_shape() -> None:
    hexes = 6 * CONFIGS
    assert tensors(task_ids=[hexes, hexes + 4]).observation_space.shape == (9 * 5 * 5,)  # 5x5 both
    with pytest.raises(ArgumentError, match=r"hex\(.*\(9, 5, 5\), hex\(.*\(9, 7, 7\); allowed: .* the same"):
        tensors(task_ids=[(hexes, hexes + 1)])
    # Oware's variants differ in seeds and not in shape.
    owares = 21 * CONFIGS
    assert tensors(task_ids=[(owares, owares + 2)]).observation_space.shape == (14,)
    with pytest.raises(GameError, match="'morpion_solitaire' was given, for which OpenSpiel has no tensor"):
        tensors(game="morpion_solitaire")


# -- RawReturns: the game's own return at the end ------------------------------------------------------------


raw = functools.partial(wrapped, RawReturns)


@pytest.mark.parametrize(
    "arguments",
    [
        {"game": "leduc_poker"},
        {"game": "kuhn_poker", "opponent": "open"},
        {"game": "2048", "reward": "upstream"},  # pays move by move
        {"game": "hearts", "rules": False},
        {"game": "blackjack"},
    ],
)
def test_an_episodes_return_is_the_games(arguments: dict[str, Any]) -> None:
    for seed in range(1 if arguments["game"] == "2048" else 6):
        record = episode(raw(**arguments), seed)
        *_, info = record[-1]
        rewards = [entry[1] for entry in record[1:]]
        assert rewards == [0.0] * (len(rewards) - 1) + [info["returns"][info["seat"]]]
        assert all(isinstance(reward, float) for reward in rewards)
        # Nothing else differs.
        plain = episode(make(**arguments), seed)
        assert [(*entry[:1], *entry[2:]) for entry in record] == [(*e[:1], *e[2:]) for e in plain]


def test_the_seat_that_moved_last_is_paid() -> None:
    env = raw(game="kuhn_poker", opponent="open", illegal="forfeit")
    env.reset(seed=0)
    assert env.step(0)[1] == 0
    _, reward, *_, info = env.step(9)  # seat 1 gives the game up: 2 chips are the most that can be lost
    assert info["seat"] == 1 and reward == pytest.approx(-2.01)


def test_a_cut_pays_nothing() -> None:
    record = episode(raw(game="2048", max_turns=9, reward="upstream"), 0)
    *_, info = record[-1]
    assert info["result"] == "cut" and info["returns"][0] > 0
    assert [entry[1] for entry in record[1:]] == [0.0] * 9
