"""Games in PettingZoo: its own tests, the masks, rewards and what seats see."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.games import TABLE
from game_gym.task import encode
from task_gym.errors import ArgumentError, EpisodeError, OpponentError, OptionError
from tests.game_gym.test_conformance import COMMON

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")

from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from game_gym import pettingzoo as games

#: Cycles of PettingZoo's tests. Few: a description of bridge or chess takes a millisecond.
CYCLES = 12

#: Expected warnings of PettingZoo's tests: texts are no arrays, and an agent without a turn has no action.
EXPECTED = ("NumPy array", "should be gymnasium.spaces.box", "all zeros")


def quietly(test: Any, *arguments: Any, **keywords: Any) -> None:
    """Runs a test of PettingZoo; a warning that is not expected is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test(*arguments, **keywords)
    shown = [str(warning.message) for warning in caught]
    assert [text for text in shown if not any(part in text for part in EXPECTED)] == []


SOME = [
    pytest.param(name, marks=() if name in (*COMMON, "liars_dice", "hex") else pytest.mark.families)
    for name in TABLE
]


@pytest.mark.parametrize("name", SOME)
def test_pettingzoos_own_tests(name: str) -> None:
    arguments: dict[str, Any] = {"task_id": encode(name, 1), "rules": False}
    quietly(api_test, games.env(**arguments), num_cycles=CYCLES)
    quietly(parallel_api_test, games.parallel_env(**arguments), num_cycles=CYCLES)
    seed_test(functools.partial(games.env, **arguments), num_cycles=CYCLES)
    parallel_seed_test(functools.partial(games.parallel_env, **arguments), num_cycles=CYCLES)
    arguments |= {"observation": "tensor", "reward": "returns"}
    quietly(api_test, games.env(**arguments), num_cycles=50)
    quietly(parallel_api_test, games.parallel_env(**arguments), num_cycles=50)


@pytest.mark.parametrize("name", SOME)
def test_a_game_is_that_of_the_environment_with_open_seats(name: str) -> None:
    """Same seed and actions: same seats, texts and masks, and the scores of the end."""
    where: dict[str, Any] = {"task_id": encode(name, 0), "max_turns": 30}
    alone, env = gym.make("game_gym:GameSpiel-v0", opponent="open", **where), games.env(**where)
    text, info = alone.reset(seed=5)
    env.reset(seed=5)
    rng = np.random.default_rng(5)
    while "result" not in info:
        agent = env.agent_selection
        seen, reward, over, cut, infos = env.last()
        assert (agent, reward, over, cut) == (f"player_{info['seat']}", 0, False, False)
        assert seen["observation"] == text and np.array_equal(seen["action_mask"], info["action_mask"])
        assert infos["legal_actions"] == info["legal_actions"]
        assert np.array_equal(infos["action_mask"], info["action_mask"])
        action = int(rng.choice(info["legal_actions"]))
        text, _, terminated, truncated, info = alone.step(action)
        env.step(action)
    assert env.rewards == {f"player_{seat}": score for seat, score in enumerate(info["scores"])}
    assert set(env.terminations.values()) == {terminated} and set(env.truncations.values()) == {truncated}
    agent = f"player_{info['seat']}"
    if not truncated:
        assert env.observe(agent)["observation"] == text
    assert env.infos[agent]["result"] == info["result"] and env.infos[agent]["history"] == info["history"]


def test_an_agent_that_ignores_the_mask_gets_errors_and_gives_the_game_up() -> None:
    env = games.env(game="tic_tac_toe")
    env.reset(seed=0)
    env.step(4)
    for strike in (1, 2):
        env.step(4)  # taken
        assert env.agent_selection == "player_1" and env.rewards == {"player_0": 0, "player_1": -0.01}
        assert "4 was given" in env.infos["player_1"]["error"]["message"], strike
    env.step(4)
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.rewards == {"player_0": 1, "player_1": -0.01}
    assert (env.infos["player_0"]["result"], env.infos["player_1"]["result"]) == ("win", "loss")


def test_a_seat_that_waits_sees_its_own_cards_and_no_legal_action() -> None:
    env = games.env(game="kuhn_poker", rules=False)
    env.reset(seed=0)
    cards = []
    for agent in env.agents:
        text = env.observe(agent)["observation"]
        cards += [line for line in text.splitlines() if line.startswith("Your card")]
        assert text.endswith("It is not your turn.") == (agent == "player_1")
        assert env.observe(agent)["action_mask"].any() == (agent == "player_0")
    assert len(set(cards)) == 2  # three different cards in the deck
    shown = games.GameSpielAEC(game="kuhn_poker", rules=False, render_mode="ansi")
    shown.reset(seed=0)
    assert shown.render() == env.observe("player_0")["observation"]


def test_a_seat_sees_its_own_count_of_moves_alone() -> None:
    """How often the other tried to place a mark is hidden in this game."""
    env = games.env(game="phantom_ttt", params={"obstype": "reveal-nothing"}, rules=False)
    env.reset(seed=1)
    for action in (4, 4, 0):  # the second player's first try fails
        env.step(action)
    assert [env.infos[agent]["turn"] for agent in env.agents] == [1, 2]
    assert env.observe("player_0")["observation"].count("Player 1") == 0


def test_all_choose_at_once() -> None:
    env = games.parallel_env(game="goofspiel", params={"num_cards": 8})
    seen, infos = env.reset(seed=3)
    assert all(row["action_mask"].tolist() == [1] * 8 + [0] for row in seen.values())
    seen, *_, infos = env.step({"player_0": 0, "player_1": 7})
    assert seen["player_0"]["action_mask"].tolist() == [0, *[1] * 7, 0]
    assert seen["player_1"]["action_mask"].tolist() == [*[1] * 7, 0, 0]
    # An illegal bid: player_0 chooses again, and player_1 with it.
    _, paid, terminated, _, infos = env.step({"player_0": 0, "player_1": 1})
    assert paid == {"player_0": -0.01, "player_1": 0} and "error" in infos["player_0"]
    assert terminated == {"player_0": False, "player_1": False}
    # An illegal bid of the other: player_0's bid holds, and it waits.
    seen, paid, *_, infos = env.step({"player_0": 1, "player_1": 7})
    assert paid == {"player_0": 0, "player_1": -0.01} and "error" in infos["player_1"]
    assert infos["player_0"]["legal_actions"] == [env.wait] == [8]
    env.step({"player_0": env.wait, "player_1": 1})
    assert env.game.state.history()[-3:-1] == [1, 1]  # and the next prize


def test_who_is_not_to_move_waits() -> None:
    env = games.parallel_env(game="tic_tac_toe")
    seen, infos = env.reset(seed=0)
    assert seen["player_1"]["action_mask"].tolist() == [0] * 9 + [1] and infos["player_1"][
        "legal_actions"
    ] == [9]
    assert seen["player_0"]["action_mask"].tolist() == [1] * 9 + [0]
    _, paid, *_, infos = env.step({"player_0": 4, "player_1": 0})
    assert paid == {"player_0": 0, "player_1": -0.01} and "legal: 9" in infos["player_1"]["error"]["message"]
    assert env.game.state.history() == [4]
    with pytest.raises(ArgumentError, match=r"none was given for player_0"):
        env.step({"player_1": 0})


def test_arguments_and_options() -> None:
    with pytest.raises(ArgumentError, match=r"observation: 'txet' was given.*did you mean 'text'"):
        games.env(game="hex", observation="txet")
    with pytest.raises(ArgumentError, match=r"opponent: 'random' was given, allowed: 'open'"):
        games.env(game="hex", opponent="random")
    with pytest.raises(ArgumentError, match=r"backend: 'affinetes' was given, allowed: 'local'"):
        games.env(game="hex", backend="affinetes", base_url="http://127.0.0.1:1")
    together = games.parallel_env(game="hex")
    with pytest.raises(EpisodeError, match="after reset"):
        together.step({})
    together.reset(seed=0)
    for waiting in (None, 1.5, "x"):
        with pytest.raises(ArgumentError, match="allowed: a whole number"):
            together.step({"player_0": 0, "player_1": waiting})
    assert together.game.state.history() == []
    with pytest.raises(OptionError, match=r"reset option 'task' was given"):
        games.env(game="hex").reset(options={"task": 1})
    with pytest.raises(OpponentError, match=r"'opponent': 'random' was given, allowed: 'open'"):
        games.env(game="hex").reset(options={"opponent": "random"})
    mixed = games.env(task_ids=[encode("hearts", 0), encode("leduc_poker", 0)])
    mixed.reset(seed=1, options={"task_id": encode("leduc_poker", 0)})
    assert mixed.agents == ["player_0", "player_1"] and len(mixed.possible_agents) == 4


def test_skrl_wraps_several_agents_as_they_are() -> None:
    """And ``examples/skrl_ppo.py`` wraps an environment."""
    skrl = pytest.importorskip("skrl.envs.wrappers.torch", reason="skrl is not installed")
    import torch

    env = skrl.wrap_env(
        games.parallel_env(game="kuhn_poker", observation="tensor", mask="info"), verbose=False
    )
    observations, infos = env.reset()
    assert env.possible_agents == ["player_0", "player_1"]
    assert [tuple(seen.shape) for seen in observations.values()] == [(1, 11), (1, 11)]
    masks = {agent: infos[agent]["action_mask"] for agent in env.possible_agents}
    actions = {agent: torch.tensor([[int(mask.argmax())]]) for agent, mask in masks.items()}
    _, rewards, *_ = env.step(actions)
    assert {agent: float(reward) for agent, reward in rewards.items()} == {"player_0": 0.0, "player_1": 0.0}


BOTH_KINDS = pytest.mark.parametrize("make", [games.env, games.parallel_env])


@BOTH_KINDS
def test_spaces_by_agent(make: Any) -> None:
    """skrl's wrapper reads the dictionaries, and calls no method."""
    env = make(game="kuhn_poker")
    observed, acted = env.unwrapped.observation_spaces, env.unwrapped.action_spaces
    assert observed.keys() == acted.keys() == {"player_0", "player_1"}
    for agent in env.possible_agents:
        assert observed[agent] is env.observation_space(agent) and acted[agent] is env.action_space(agent)


@BOTH_KINDS
@pytest.mark.parametrize("observation", ["text", "tensor"])
def test_the_mask_in_the_info_alone(observation: str, make: Any) -> None:
    """AgileRL reads it there, and takes no dictionary as an observation."""
    arguments: Any = {"game": "kuhn_poker", "observation": observation}
    apart, both = make(mask="info", **arguments), make(**arguments)
    starts, agent = [env.reset(seed=3) for env in (apart, both)], "player_0"
    if make is games.env:
        (shown, *_, info), (pair, *_, other) = apart.last(), both.last()
    else:
        (shown, info), (pair, other) = ([part[agent] for part in start] for start in starts)
    assert shown in apart.observation_space(agent) and pair in both.observation_space(agent)
    assert np.array_equal(shown, pair["observation"])
    assert np.array_equal(info["action_mask"], pair["action_mask"])
    assert np.array_equal(info["action_mask"], other["action_mask"])
    with pytest.raises(ArgumentError, match="mask: 'both' was given, allowed: 'observation', 'info'"):
        make(game="kuhn_poker", mask="both")
