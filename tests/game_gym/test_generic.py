"""Games without a declaration of their own."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyspiel
import pytest
from gymnasium.utils.env_checker import check_env

from game_gym.games import DECLARED, find_game
from game_gym.games.generic import describe
from game_gym.spec import load_variant
from game_gym.task import TaskSet
from task_gym.errors import EpisodeError, GameError
from tests.game_gym.play import make
from tests.game_gym.test_conformance import play_games

# Open and hidden, chance, simultaneous moves, pay by move, one to four seats, with and without strings.
SOME = [
    ("breakthrough", {"rows": 6, "columns": 6}),
    ("pig", {"players": 3}),
    ("catch", {}),
    ("first_sealed_auction", {}),
    ("hanabi", {"players": 2}),
    ("matrix_rps", {}),
    ("oshi_zumo", {"coins": 10}),
    ("matching_pennies_3p", {}),
    ("universal_poker", {}),
    ("misere", {"game": {"name": "tic_tac_toe"}}),
    ("turn_based_simultaneous_game", {"game": {"name": "goofspiel", "num_cards": 4}}),
]


@pytest.mark.parametrize(("name", "params"), SOME)
def test_it_is_played_as_any_other(
    name: str, params: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    env = make(game=name, params=params)
    play_games(env, 2)
    play_games(make(game=name, params=params, opponent="open", rules=False), 1)
    assert capfd.readouterr() == ("", "")
    assert pickle.loads(pickle.dumps(env)).reset(seed=3)[0] == env.reset(seed=3)[0]


def test_the_checker_passes() -> None:
    for name in ("breakthrough", "matrix_rps", "pig"):
        check_env(make(game=name))


@pytest.mark.parametrize("name", [name for name in pyspiel.registered_names() if name not in DECLARED])
def test_every_game_is_played_or_refused_by_name(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        env = make(game=name, rules=False)
    except GameError as error:
        assert name in str(error)
    else:
        rng, over, turns = random.Random(0), False, 0
        text, info = env.reset(seed=0)
        while not over and turns < 300:
            assert info["legal_actions"] and text in env.observation_space
            text, _, over, _, info = env.step(rng.choice(info["legal_actions"]))
            turns += 1
    assert capfd.readouterr() == ("", "")


def test_descriptions_hold_what_the_seat_knows() -> None:
    def start(name: str) -> Any:
        return load_variant(find_game(name), {}).game.new_initial_state()

    # Everything is open: the position, and the information state where there is one.
    state = start("connect_four")
    state.apply_action(3)
    assert describe(state, 1) == f"{state.observation_string(1).strip()}\n{state.information_state_string(1)}"
    state = start("breakthrough")
    assert describe(state, 0) == state.observation_string(0).strip()
    # Something is hidden: the information state, which recalls everything.
    state = start("dark_hex")
    assert describe(state, 0) == state.information_state_string(0).strip("\n")
    # Or, without one, the observation.
    state = start("hanabi")
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    assert describe(state, 0) == state.observation_string(0).strip("\n")


def test_what_is_hidden_is_not_told() -> None:
    game = load_variant(find_game("universal_poker"), {}).game
    texts = set()
    for other in (1, 5, 12, 23):
        state = game.new_initial_state()
        state.apply_action(0)
        state.apply_action(other)
        texts.add(describe(state, 0))
    assert len(texts) == 1


def test_rules_say_what_openspiel_states() -> None:
    rules = load_variant(find_game("pig"), {"players": 3}).rules
    assert rules.startswith("Pig, which OpenSpiel calls pig, with ")
    assert "players = 3" in rules and "3 players, numbered from 0. One player moves at a time." in rules
    assert "Chance plays a part. Everything is open." in rules
    rules = load_variant(find_game("matrix_rps"), {}).rules
    assert "All players choose at once, and move together. Nothing is left to chance." in rules
    assert "The returns of all players add up to 0." in rules
    assert rules.endswith("Your return is between -1 and 1; more is better.")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("mfg_crowd_modelling", {}, "'mfg_crowd_modelling' was given, a mean-field game"),
        ("tarok", {}, "'tarok' was given, which draws its own chance"),
        ("crossword", {}, "'crossword' was given, which does not number its actions"),
        ("misere", {}, "misere parameters: {} was given, .* Missing parameter game"),
        ("mnk", {"m": 0}, "mnk parameters: {'m': 0} was given, which leave no actions"),
        ("pig", {"horizon": "3"}, "pig parameter 'horizon': '3' was given, allowed: .* int"),
        ("pig", {"horizon": True}, "True was given, allowed: a value of type int"),
        ("pig", {"players": 99}, "'players': 99 was given, allowed: 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ("breakthrough", {"rows": 0}, "{'rows': 0} was given, which OpenSpiel refuses"),
    ],
)
def test_what_cannot_be_played_is_a_named_error(
    name: str, params: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(GameError, match=message):
        TaskSet(game=name, params=params)
    assert capfd.readouterr() == ("", "")


def test_a_game_that_is_over_before_the_first_turn() -> None:
    # One stone: Player 0 takes it and loses, since who takes the last one loses (misère).
    env = make(game="nim", params={"pile_sizes": "1"}, render_mode="ansi")
    text, info = env.reset(seed=0)
    assert info["legal_actions"] and "result" not in info
    for seed in (1, 3):
        text, info = env.reset(seed=seed)
        assert (info["seat"], info["turn"], info["legal_actions"]) == (1, 0, [])
        assert not info["action_mask"].any() and not env.action_masks().any()
        assert (info["score"], info["result"], info["returns"]) == (1, "win", [-1, 1])
        assert info["upstream_reward"] == 1 and info["success"] and len(info["history"]) == 1
        assert text.startswith("Game over: nim\nYou were Player 1.\n")
        twin = pickle.loads(pickle.dumps(env))
        assert twin.render() == env.render() and twin.state.history() == info["history"]
        # One step, whatever its action, says it again: to vector environments a reset is never an end.
        for other in (env, twin, pickle.loads(pickle.dumps(twin))):
            assert other.step(99)[:4] == (text, 1, True, False)
            with pytest.raises(EpisodeError, match="before the end"):
                pickle.loads(pickle.dumps(other)).step(0)
    assert env.reset(seed=2)[1]["legal_actions"]
