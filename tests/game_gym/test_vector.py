"""Vectors play what the environments play by themselves."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from game_gym.backends import Positions
from game_gym.columns import mark_legal
from game_gym.env import GameSpielEnv
from task_gym import opponents
from task_gym.errors import OpponentActionError
from tests.game_gym.play import Fixed


@pytest.mark.parametrize(("legal", "actions"), [
    ([[0, 2], [], [3]], 4),  # few
    ([list(range(0, 200, 2)), [199], list(range(200))], 200),  # many, which fit into bytes
    ([list(range(300)), [299], []], 300),  # many, which do not
])  # fmt: skip
def test_masks_of_few_and_of_many_actions(legal: list[list[int]], actions: int) -> None:
    mask = mark_legal(legal, actions)
    assert mask.dtype == np.int8 and mask.shape == (3, actions) and mask.flags.writeable
    assert [row.nonzero()[0].tolist() for row in mask] == legal and mask.sum() == sum(map(len, legal))


# -- games of a batch share positions, and play to the byte as they do alone ---------------------------------


SMALL: list[dict[str, Any]] = [
    {"game": "kuhn_poker"},
    {"game": "kuhn_poker", "params": {"players": 3}},
    {"game": "leduc_poker"},
    {"game": "leduc_poker", "opponent": "first", "seeding": "evaluate"},
    {"game": "leduc_poker", "opponent": "open", "max_turns": 3},
    {"game": "leduc_poker", "reward": "upstream", "rules": False},
    {"game": "tic_tac_toe"},
    {"game": "tic_tac_toe", "opponent": "open"},
]


def pair(room: int, **arguments: Any) -> tuple[GameSpielEnv, GameSpielEnv]:
    sharing = GameSpielEnv(**arguments)
    sharing.share_positions(Positions(room))
    return sharing, GameSpielEnv(**arguments)


def play(env: GameSpielEnv, seed: int, looks: bool) -> list[Any]:
    """Everything that an episode shows, with illegal moves, and with a look at the state at times."""
    rng, shown = random.Random(seed), []
    text, info = env.reset(seed=seed)
    over = False
    while not over:
        shown.append((text, info.pop("action_mask").tolist(), info, env.action_masks().tolist()))
        if looks and rng.random() < 0.3:
            shown.append((str(env.state), env.state.history()))
        action = rng.choice([*info["legal_actions"] * 5, 99])
        text, reward, terminated, truncated, info = env.step(action)
        shown.append((reward, terminated, truncated))
        over = terminated or truncated
    return [*shown, (text, info.pop("action_mask").tolist(), info, env.state.history())]


# No room, room for some positions, and room for all.
@pytest.mark.parametrize("room", [0, 20_000, 1 << 24])
@pytest.mark.parametrize("arguments", SMALL, ids=str)
def test_the_games_are_those_of_one_environment(arguments: dict[str, Any], room: int) -> None:
    sharing, alone = pair(room, **arguments)
    for seed in range(60):
        assert play(sharing, seed, looks=seed % 3 == 0) == play(alone, seed, looks=seed % 3 == 0), seed


def test_an_opponent_is_checked_as_ever(registries: None) -> None:
    class Wrong(Fixed):
        asks_only_for_actions = True

        def act(self, view: Any) -> int:
            return len(view.legal_actions()) + 7

    opponents.register_opponent("wrong", Wrong)
    env, _ = pair(1 << 24, game="kuhn_poker", opponent="wrong")
    # Two legal actions, and 7.
    with pytest.raises(OpponentActionError, match="action 9 was given, legal: 0, 1"):
        env.reset(seed=1)  # the opponent has the first move


def test_a_text_that_fails_leaves_no_state_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    env, alone = pair(1 << 24, game="kuhn_poker")
    with monkeypatch.context() as broken:
        broken.setattr("game_gym.backends.local.render_turn", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            env.reset(seed=0)
    assert play(env, 2, looks=False) == play(alone, 2, looks=False)
