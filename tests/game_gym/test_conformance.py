"""Every declared game in every variant is played to the end many times, and keeps the contract."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from game_gym.games import DECLARED
from tests.game_gym.play import ALWAYS, AT_THE_END, make

#: A game of cards, one on a board, one of simultaneous moves and one for a single player; `make test` plays
#: the golden transcripts of all the others.
COMMON = ("leduc_poker", "clobber", "goofspiel", "2048")

VARIANTS = [
    pytest.param(name, config, marks=[] if name in COMMON and config == 0 else pytest.mark.families)
    for name, spec in DECLARED.items()
    for config in range(spec.variants)
]


def build(name: str, config: int, **arguments: Any) -> Any:
    return make(game=name, params=DECLARED[name].params(config), **arguments)


@pytest.mark.parametrize(("name", "config"), VARIANTS)
def test_random_games(name: str, config: int, capfd: pytest.CaptureFixture[str]) -> None:
    play_games(build(name, config), 1 if name == "bridge" else 3)
    play_games(build(name, config, opponent="open", rules=False, seeding="evaluate"), 1)
    assert capfd.readouterr() == ("", "")


def play_games(env: Any, games: int) -> None:
    """Random games to the end; every turn is checked."""
    rng = random.Random(games)
    texts: dict[tuple[Any, ...], str] = {}
    for seed in range(games):
        text, info = env.reset(seed=seed)
        assert (info["task_id"], info["seed"], info["turn"]) == (None, seed, 0)
        assert info["game"] == env.variant.spec.name
        over, turns = "result" in info, 0
        reward = info.get("score", 0.0)
        while not over:
            check_turn(env, text, info, texts)
            action = rng.choice(info["legal_actions"])
            text, reward, over, truncated, info = env.step(action)
            turns += 1
            assert truncated is False and isinstance(over, bool)
            assert info["turn"] == turns
            assert over or reward == 0
        check_end(env, text, reward, info)


def check_turn(env: Any, text: str, info: dict[str, Any], texts: dict[tuple[Any, ...], str]) -> None:
    """Text, mask, legal actions and names of a turn, against the live state."""
    state, seat, legal = env.state, info["seat"], info["legal_actions"]
    assert info.keys() == ALWAYS  # after reset and after a step, and nothing that tells more
    assert legal and legal == state.legal_actions(seat) == sorted(set(legal))
    assert info["action_mask"].dtype == np.int8 and info["action_mask"].shape == (env.action_space.n,)
    assert np.flatnonzero(info["action_mask"]).tolist() == legal
    assert np.array_equal(env.action_masks(), info["action_mask"].astype(bool))
    assert env.action_masks().dtype == np.bool_
    assert env.action_space.contains(legal[-1])
    names = [state.action_to_string(seat, action) for action in legal]
    assert info["admissible_commands"] == names
    if env.variant.spec.name in DECLARED:  # upstream reads names without their symbols
        assert all(any(letter.isalnum() for letter in name) for name in names)
    assert text in env.observation_space
    block = "\n".join(f"  {action} -> {name}" for action, name in zip(legal, names, strict=True))
    assert text.endswith(f"\n\nLegal Actions:\n{block}\n\nYour choice (action ID only):")
    assert f"\nYou are Player {seat}.\n\nCurrent State:\n" in text
    # Readable as lines: no stray blanks or control characters.
    assert "\x1b" not in text and "\r" not in text and "\t" not in text
    if env.variant.game.get_type().provides_information_state_string:
        # The legal actions too: euchre's string is the same while a defender decides whether to go alone.
        key = (seat, state.information_state_string(seat), tuple(legal))
        assert texts.setdefault(key, text) == text


def check_end(env: Any, text: str, reward: float, info: dict[str, Any]) -> None:
    assert text in env.observation_space and text.startswith(f"Game over: {info['game']}\n")
    assert info.keys() == ALWAYS | AT_THE_END
    assert not info["action_mask"].any() and not env.action_masks().any()
    assert info["legal_actions"] == info["admissible_commands"] == []
    assert env.state.is_terminal() and info["history"] == env.state.history()
    assert info["returns"] == env.state.returns()
    assert 0 <= info["score"] == reward == info["upstream_reward"] <= 1
    assert info["scores"][info["seat"]] == info["score"]
    assert info["success"] is (info["score"] > 0.5)
    assert info["result"] in ("win", "draw", "loss")
