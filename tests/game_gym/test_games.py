"""Declarations: what is described is what the game is."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym import games
from game_gym.games import DECLARED, find_game
from game_gym.prompts import render
from game_gym.spec import load_variant
from task_gym.errors import GameError
from tests.game_gym.play import DECLARED as SMALL

# Small enough that random play meets the same information state often.
VARIANTS = [
    (name, {key: value})
    for name in SMALL
    for key, values in DECLARED[name].allowed.items()
    for value in values
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
    params = spec.params(0)
    rules = spec.rules(load_variant(spec, params).params)
    assert 200 < len(rules) < 6000
    assert rules == rules.strip()
    assert spec.variants >= 1
    assert all(spec.params(c) == spec.params(c + spec.variants) for c in range(2 * spec.variants))
    # Every config's parameters are ones that game= could name too.
    assert all(load_variant(spec, spec.params(c)).spec is spec for c in range(spec.variants))


def test_a_game_is_found_and_loaded_once() -> None:
    assert find_game("breakthrough") is find_game("breakthrough")
    spec = find_game("kuhn_poker")
    assert spec is DECLARED["kuhn_poker"]
    assert load_variant(spec, {"players": 3}) is load_variant(spec, {"players": 3})
    with pytest.raises(GameError, match="'kuhn_poker'"):
        find_game("kun_poker")


# Upstream's table: how often parameters repeat, parameters of config id 1, simulations and rollouts.
UPSTREAM: dict[str, tuple[int, dict[str, Any], tuple[int, int] | None]] = {
    "goofspiel": (5, {"players": 2, "num_cards": 10, "points_order": "random"}, None),
    "liars_dice": (1, {"players": 2, "numdice": 5}, (3000, 200)),
    "leduc_poker": (1, {"players": 2}, (3000, 200)),
    "gin_rummy": (9, {"hand_size": 7, "knock_card": 9}, (500, 10)),
    "othello": (1, {}, (1000, 20)),
    "backgammon": (1, {}, (600, 15)),
    "hex": (4, {"board_size": 7}, (1000, 50)),
    "clobber": (3, {"rows": 6, "columns": 6}, (1500, 100)),
    "hearts": (8, {"pass_cards": True, "jd_bonus": False, "avoid_all_tricks_bonus": False}, (500, 50)),
    "euchre": (4, {"allow_lone_defender": True, "stick_the_dealer": False}, (1000, 100)),
    "dots_and_boxes": (3, {"num_rows": 4, "num_cols": 4}, (1200, 100)),
    "go": (2, {"board_size": 7, "komi": 7.5}, (300, 30)),
    "chess": (1, {}, (200, 20)),
    "checkers": (1, {}, (500, 50)),
    "quoridor": (4, {"board_size": 7, "wall_count": 10}, (800, 80)),
    "blackjack": (1, {}, None),
    "phantom_ttt": (2, {"obstype": "reveal-numturns"}, (3000, 150)),
    "2048": (1, {}, None),
    "solitaire": (1, {}, None),
    "bridge": (3, {"dealer_vul": True, "non_dealer_vul": False}, (200, 30)),  # our choice
    "amazons": (3, {"board_size": 8}, (200, 20)),
    "oware": (3, {"num_seeds_per_house": 3}, (300, 30)),
}


@pytest.mark.parametrize("name", games.TABLE)
def test_variants_and_budgets_are_upstreams(name: str) -> None:
    spec = DECLARED[name]
    period, params, budget = UPSTREAM[name]
    found = spec.budget and (spec.budget.simulations, spec.budget.rollouts)
    assert (spec.variants, spec.params(1), found) == (period, params, budget)
    assert len({tuple(spec.params(config).items()) for config in range(period)}) == period
