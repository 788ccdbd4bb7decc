"""Games of a batch share positions, and play to the byte as they do alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from game_gym.backends import Positions, is_small
from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED
from game_gym.spec import load_variant
from task_gym import opponents
from task_gym.errors import OpponentActionError

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


def test_an_opponent_is_checked_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))

    class Wrong:
        asks_only_for_actions = True

        def __init__(self, seating: Any) -> None: ...

        def restart(self, seed: int) -> None: ...

        def act(self, view: Any) -> int:
            return len(view.legal_actions()) + 7

    opponents.register_opponent("wrong", Wrong)
    env, _ = pair(1 << 24, game="kuhn_poker", opponent="wrong")
    with pytest.raises(
        OpponentActionError, match="action 9 was given, legal: 0, 1"
    ):  # two legal actions, and 7
        env.reset(seed=1)  # the opponent has the first move


def test_a_text_that_fails_leaves_no_state_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    env, alone = pair(1 << 24, game="kuhn_poker")
    with monkeypatch.context() as broken:
        broken.setattr("game_gym.backends.local.render_turn", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            env.reset(seed=0)
    assert play(env, 2, looks=False) == play(alone, 2, looks=False)
