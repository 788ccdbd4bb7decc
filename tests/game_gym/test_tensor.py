"""TensorObservation: OpenSpiel's tensor in place of the text."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
import pyspiel
import pytest

import game_gym  # noqa: F401  (registers the environments)
from game_gym.games import DECLARED
from game_gym.task import CONFIGS
from game_gym.wrappers import HideLegalActions, TensorObservation
from task_gym.errors import ArgumentError, GameError
from task_gym.wrappers import DictObservation
from tests.game_gym.play import make


def build(flat: bool = True, **arguments: Any) -> TensorObservation:
    return TensorObservation(gym.make("GameSpiel-v0", **arguments), flat=flat)


def test_kuhn_in_full() -> None:
    # Seat (2), own card (3), then for each of three moves pass or bet (2): passed to, with a king.
    env = build(game="kuhn_poker", opponent="first")
    seed = next(s for s in range(1, 50, 2) if "card: K" in env.reset(seed=s)[1]["text"])  # seat 1
    tensor, info = env.reset(seed=seed)
    assert tensor.dtype == np.float32
    assert tensor.tolist() == [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert info["text"].startswith("# Game Rules") and info["legal_actions"] == [0, 1]


def test_the_information_state_is_preferred_and_open_games_show_the_position() -> None:
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    assert len(state.information_state_tensor(0)) == 30 and len(state.observation_tensor(0)) == 16
    assert build(game="leduc_poker").observation_space.shape == (30,)
    env = build(game="tic_tac_toe", flat=False, opponent="open")
    tensor, _ = env.reset(seed=0)
    assert tensor.shape == env.observation_space.shape == (3, 3, 3)
    # Planes of empty cells, of noughts and of crosses; Player 0 plays crosses.
    assert tensor[0].all() and not tensor[1:].any()
    tensor, *_ = env.step(4)
    assert tensor[0].sum() == 8 and tensor[2, 1, 1] == 1 and not tensor[1].any()
    assert build(game="tic_tac_toe", opponent="open").observation_space.shape == (27,)


#: The declared games with an information state tensor.
INFORMED = {
    "leduc_poker", "kuhn_poker", "phantom_ttt", "bridge", "goofspiel", "liars_dice", "hearts", "euchre"
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "config"),
    # Bridge solves every deal, which takes long: one variant of it is enough.
    [
        (name, config)
        for name, spec in DECLARED.items()
        for config in range(spec.variants if name != "bridge" else 1)
    ],
)
@pytest.mark.parametrize("opponent", ["random", "open"])
def test_every_declared_game(
    name: str, config: int, opponent: str, capfd: pytest.CaptureFixture[str]
) -> None:
    env = build(game=name, params=DECLARED[name].params(config), opponent=opponent, rules=False)
    kind = "information_state_tensor" if name in INFORMED else "observation_tensor"
    rng = random.Random(config)
    tensor, info = env.reset(seed=config)
    over = "result" in info
    while not over:
        assert tensor in env.observation_space
        assert tensor.tolist() == getattr(env.unwrapped.state, kind)(info["seat"])
        tensor, _, over, _, info = env.step(rng.choice(info["legal_actions"]))
    assert tensor in env.observation_space and not tensor.any()
    assert info["text"].startswith("Game over")
    assert capfd.readouterr() == ("", "")


def test_a_cut_shows_its_position_and_a_forfeit_none() -> None:
    env = build(game="tic_tac_toe", max_turns=2)
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    tensor, _, _, truncated, info = env.step(info["legal_actions"][-1])
    assert truncated and tensor.tolist() == env.unwrapped.state.observation_tensor(0)
    env.reset(seed=0)
    for _ in range(3):
        tensor, _, terminated, *_ = env.step(99)
    assert terminated and not tensor.any()


def test_an_episode_that_is_over_at_reset() -> None:
    tensor, info = build(game="nim", params={"pile_sizes": "1"}).reset(seed=1)
    assert not tensor.any() and info["result"] == "win"


def test_variants_must_have_one_shape() -> None:
    hexes = 6 * CONFIGS
    assert build(task_ids=[hexes, hexes + 4]).observation_space.shape == (9 * 5 * 5,)  # 5x5 both
    with pytest.raises(ArgumentError, match=r"hex\(.*\(9, 5, 5\), hex\(.*\(9, 7, 7\); allowed: .* the same"):
        build(task_ids=[(hexes, hexes + 1)])
    # Oware's variants differ in seeds and not in shape.
    owares = 21 * CONFIGS
    assert build(task_ids=[(owares, owares + 2)]).observation_space.shape == (14,)


def test_games_without_a_tensor_are_refused() -> None:
    with pytest.raises(GameError, match="'morpion_solitaire' was given, for which OpenSpiel has no tensor"):
        build(game="morpion_solitaire")


def test_other_environments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"TensorObservation: .*Box.*, allowed: text observations"):
        TensorObservation(gym.make("CartPole-v1"))
    with pytest.raises(ArgumentError, match=r"TensorObservation: .*Dict.*, allowed: text observations"):
        TensorObservation(DictObservation(make(game="kuhn_poker")))


def test_replies_as_text_and_text_wrappers_inside() -> None:
    env = TensorObservation(HideLegalActions(gym.make("GameSpielText-v0", game="kuhn_poker")))
    tensor, info = env.reset(seed=0)
    assert tensor.shape == (11,) and "->" not in info["text"]
    assert env.step("1")[0].shape == (11,)
