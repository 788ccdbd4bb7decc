"""Declarations: what is described is what the game is."""

from __future__ import annotations

import random
from typing import Any

import pyspiel
import pytest

from game_gym import games
from game_gym.games import DECLARED, find_game
from game_gym.prompts import render
from game_gym.spec import load_variant
from task_gym.errors import GameError

VARIANTS = [
    (name, {key: value})
    for name, spec in DECLARED.items()
    for key, values in (spec.allowed or {"": (None,)}).items()
    for value in values
    if key
] + [("tic_tac_toe", {})]


def states(game: Any, plays: int) -> Any:
    """The player states of random games."""
    rng = random.Random(0)
    for _ in range(plays):
        state = game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                yield state
            state.apply_action(rng.choice(state.legal_actions()))


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_description_depends_on_the_information_state_alone_and_carries_it(name: str, params: Any) -> None:
    variant = load_variant(find_game(name), params)
    seen: dict[str, str] = {}
    for state in states(variant.game, 400):
        seat = state.current_player()
        text = render(variant, state, seat, rules=False)
        # In tic_tac_toe, where all is open, the board is the state and the order of moves is not.
        key = (
            state.observation_string(seat) if name == "tic_tac_toe" else state.information_state_string(seat)
        )
        assert seen.setdefault(f"{seat} {key}", text) == text
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("name", ["leduc_poker", "kuhn_poker"])
def test_observation_does_not_change_with_what_is_hidden(name: str) -> None:
    variant = load_variant(find_game(name), {"players": 2})
    rng, changed = random.Random(1), 0
    for state in states(variant.game, 200):
        seat = state.current_player()
        other = state.resample_from_infostate(seat, rng.random)
        changed += other.history() != state.history()
        assert render(variant, other, seat) == render(variant, state, seat)
    assert changed > 50  # the resampling did deal other cards


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_names_are_kept_only_where_they_are_fixed(name: str, params: Any) -> None:
    variant = load_variant(find_game(name), params)
    for state in states(variant.game, 100):
        seat, legal = state.current_player(), state.legal_actions()
        names, block = variant.choices(state, seat, legal)
        assert names == [state.action_to_string(seat, action) for action in legal]
        assert block.split("\n") == [f"  {a} -> {n}" for a, n in zip(legal, names, strict=True)]
        names.append("scribble")  # the caller's list is the caller's
        assert variant.choices(state, seat, legal)[0] == names[:-1]


@pytest.mark.parametrize("name", DECLARED)
def test_declarations_are_whole(name: str) -> None:
    spec = DECLARED[name]
    assert spec.name == name
    params = {key: values[0] for key, values in spec.allowed.items()}
    rules = spec.rules(load_variant(spec, params).params)
    assert 200 < len(rules) < 2000
    assert rules == rules.strip()
    assert spec.variants >= 1
    assert all(spec.params(c) == spec.params(c + spec.variants) for c in range(2 * spec.variants))
    # A game that rolls its own dice could not be replayed from an address.
    kind = load_variant(spec, params).game.get_type()
    assert kind.chance_mode != pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    # Every config's parameters are ones that game= could name too.
    assert all(load_variant(spec, spec.params(c)).spec is spec for c in range(spec.variants))


def test_a_variant_is_loaded_once() -> None:
    spec = find_game("kuhn_poker")
    assert load_variant(spec, {"players": 3}) is load_variant(spec, {"players": 3})
    assert load_variant(spec, {"players": 3}) is not load_variant(spec, {"players": 2})


def test_find_game_knows_openspiels_names() -> None:
    for name in ("chess", "breakthrough"):
        assert name in pyspiel.registered_names()
        with pytest.raises(GameError, match="no declaration yet"):
            find_game(name)
    with pytest.raises(GameError, match="did you mean 'kuhn_poker'"):
        find_game("kun_poker")
    assert games.find_game("kuhn_poker") is DECLARED["kuhn_poker"]
