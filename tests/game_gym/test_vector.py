"""Vectors play what the environments play by themselves."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.backends import Positions, is_small
from game_gym.columns import mark_legal
from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED, TABLE
from game_gym.spec import load_variant
from game_gym.task import CONFIGS, encode
from task_gym import opponents
from task_gym.errors import OpponentActionError
from tests.game_gym.play import Fixed, make

WHOLE: dict[str, Any] = {"task_ids": [(0, len(TABLE) * CONFIGS - 1)], "rules": False, "max_turns": 6}
OUTSIDE = sorted(set(DECLARED) - set(TABLE))

#: Steps after each reset. Games end within them, or are cut, and new ones begin.
STEPS = 9

#: Arguments of the sub-environments, and the options of the resets, one after the other.
PLANS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (WHOLE, [{"task_id": encode(game, index)} for index, game in enumerate(TABLE)]),
    *(({"game": game}, [{}]) for game in OUTSIDE),
]

Make = Callable[[], Any]


def wrapped(**arguments: Any) -> Any:
    """An environment as users have it, in Gymnasium's wrappers."""
    return gym.make("game_gym:GameSpiel-v0", **arguments)


def choose(info: dict[str, Any], choice: int) -> int:
    """A legal action, or any where there is nothing to choose."""
    legal = info["legal_actions"]
    return legal[choice % len(legal)] if legal else 0


def check_info(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert given.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            assert given[key].dtype == value.dtype and np.array_equal(given[key], value), key
        else:
            assert given[key] == value, key


def test_texts_are_not_shared_in_memory() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([lambda: make(game="leduc_poker")])


@pytest.mark.parametrize(("arguments", "resets"), PLANS)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(gym.vector.SyncVectorEnv, id="sync"),
        pytest.param(
            functools.partial(gym.vector.AsyncVectorEnv, shared_memory=False),
            marks=pytest.mark.launch,
            id="async",
        ),
    ],
)
def test_gymnasium(kind: Any, arguments: dict[str, Any], resets: list[dict[str, Any]]) -> None:
    make_one = functools.partial(wrapped, **arguments)
    vector, alone = kind([make_one, make_one]), [gym.wrappers.Autoreset(make_one()) for _ in range(2)]
    infos: list[dict[str, Any]] = []
    over, ends = np.zeros(2, dtype=bool), 0

    def compare(texts: Any, batch: dict[str, Any], own: list[Any]) -> None:
        infos[:] = [info for _, *_, info in own]
        for index, (text, *_, info) in enumerate(own):
            assert texts[index] == text and text in vector.single_observation_space
            told = [key[1:] for key, there in batch.items() if key.startswith("_") and there[index]]
            check_info({key: batch[key][index] for key in told}, info)

    def step(choice: int) -> Any:
        actions = [choose(info, choice) for info in infos]
        texts, rewards, terminated, truncated, batch = vector.step(np.array(actions))
        own = [env.step(action) for env, action in zip(alone, actions, strict=True)]
        compare(texts, batch, own)
        outcomes = list(zip(rewards, terminated, truncated, strict=True))
        assert outcomes == [tuple(outcome) for _, *outcome, _ in own]
        return terminated | truncated

    with contextlib.closing(vector):
        for seed, options in enumerate(resets):
            # Not from an end: the step after the reset would be one more reset (AsyncVectorEnv without shared
            # memory, gymnasium 1.4.0).
            while over.any():
                over = step(0)
                ends += over.sum()
            seeds = [seed, seed + 1001]
            texts, batch = vector.reset(seed=seeds, options=options)
            own = [env.reset(seed=s, options=options) for env, s in zip(alone, seeds, strict=True)]
            compare(texts, batch, own)
            for turn in range(STEPS):
                over = step(7 * turn + seed)
                ends += over.sum()
    assert ends >= 2 * len(resets)


def test_a_game_that_is_over_at_its_reset_is_an_episode_of_one_step() -> None:
    seed = 12  # Player 0's partner goes alone before Player 0's first turn
    vector = gym.vector.SyncVectorEnv([functools.partial(wrapped, game="euchre")] * 2)
    _, infos = vector.reset(seed=[seed, seed])
    assert not infos["action_mask"].any()
    _, rewards, terminated, _, told = vector.step(np.array([0, 5]))
    assert terminated.all() and np.array_equal(rewards, infos["score"]) and (told["turn"] == 0).all()


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


def test_small_games() -> None:
    """Kuhn: 2 actions in 3 moves and 3 cards twice are 72 histories. Tic-tac-toe has few boards."""
    small = [name for name, spec in DECLARED.items() if is_small(load_variant(spec, spec.params(0)))]
    assert small == ["leduc_poker", "kuhn_poker", "tic_tac_toe"]
    spec = replace(DECLARED["tic_tac_toe"], state_key=None)
    assert not is_small(load_variant(spec, {}))  # 9**9 histories are 387 million


def test_every_board_of_tic_tac_toe_is_a_position() -> None:
    """5,478 boards can be reached, the empty one included; from each, the ways on are those of the board."""
    variant, positions = load_variant(DECLARED["tic_tac_toe"], {}), Positions()
    root = positions.find_root(variant)
    waiting = [(root, variant.game.new_initial_state())]
    while waiting:
        position, state = waiting.pop()
        assert position.legal == state.legal_actions()
        assert position.returns == (tuple(state.returns()) if state.is_terminal() else ())
        for action in state.legal_actions():
            known, after = len(positions._keyed), state.clone()
            child = positions.add_child(variant, position, action, after)
            assert child is not None
            if len(positions._keyed) > known:
                waiting.append((child, after))
    assert len(positions._keyed) == 5_477


def test_an_opponent_is_checked_as_ever(registry: None) -> None:
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
        broken.setattr("game_gym.backends.local.render_turn", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            env.reset(seed=0)
    assert play(env, 2, looks=False) == play(alone, 2, looks=False)
