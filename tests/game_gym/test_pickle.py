"""A copy made in mid-game goes on as the original would."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import pytest

from game_gym.env import GameSpielEnv
from task_gym import opponents
from task_gym.errors import PickleError
from task_gym.opponents import register_opponent
from tests.game_gym.play import DECLARED, LEDUC, make, pick, plain


def finish(env: Any, legal: list[int], turn: int = 0) -> list[Any]:
    record, over = [], False
    while not over:
        text, reward, terminated, truncated, info = env.step(pick(legal, turn, 3))
        record.append((text, reward, terminated, truncated, plain(info)))
        legal, turn, over = info["legal_actions"], turn + 1, terminated or truncated
    return record


@pytest.mark.parametrize("game", DECLARED)
@pytest.mark.parametrize("opponent", ["random", "first", "open", "mcts:20x1", "mcts-python:8x1"])
@pytest.mark.parametrize("clone", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_a_copy_continues_identically(game: str, opponent: str, clone: Any) -> None:
    env = make(game=game, opponent=opponent, seeding="evaluate", max_turns=4)
    for seed in range(6):
        _, info = env.reset(seed=seed)
        env.step(99)  # a strike is carried too
        _, _, over, _, info = env.step(info["legal_actions"][-1])
        twin = clone(env)
        assert twin.state.history() == env.state.history()
        if not over:
            assert twin.step(99)[-1]["error"] == env.step(99)[-1]["error"]
            twin = clone(twin)
            assert finish(twin, info["legal_actions"]) == finish(env, info["legal_actions"])
        # Later episodes too: the generator is carried.
        assert twin.reset()[1]["seed"] == env.reset()[1]["seed"]


def test_before_the_first_reset_and_through_wrappers() -> None:
    env = gym.make("GameSpiel-v0", task_ids=[(LEDUC, LEDUC + 9)], rules=False)
    assert pickle.loads(pickle.dumps(env)).reset(seed=3)[0] == env.reset(seed=3)[0]
    twin = pickle.loads(pickle.dumps(env))
    assert twin.spec == env.spec
    assert twin.reset()[0] == env.reset()[0]


def test_a_copy_is_made_of_what_was_given_and_not_of_what_became_of_it() -> None:
    """A sweep may change one mapping from environment to environment."""
    params = {"players": 2}
    env = GameSpielEnv(game="kuhn_poker", params=params)
    params["players"] = 3
    env.reset(seed=3)
    assert copy.deepcopy(env).seats == 2


def test_text_environments_too() -> None:
    env: Any = gym.make("GameSpielText-v0", task_id=LEDUC, parse="last").unwrapped
    env.reset(seed=8)
    env.step("I fold")
    twin = pickle.loads(pickle.dumps(env))
    assert [twin.step("or call: 1")[0], twin.step("no")[0]] == [env.step("or call: 1")[0], env.step("no")[0]]


def test_nothing_is_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(game="tic_tac_toe", render_mode="human")
    env.reset(seed=0)
    capsys.readouterr()
    twin = pickle.loads(pickle.dumps(env))
    assert capsys.readouterr().out == ""
    assert twin.render_mode == "human"


class Moody:
    """Plays by a count that outlives the episode: not what an address may depend on."""

    calls = 0

    def __init__(self, seating: Any) -> None: ...

    def restart(self, seed: int) -> None: ...

    def act(self, view: Any) -> int:
        Moody.calls += 1
        legal = view.legal_actions()
        return legal[Moody.calls % len(legal)]


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))


def test_an_opponent_may_say_why_it_cannot_be_carried(moody: None) -> None:
    register_opponent("moody", Moody, why_not_replayable="it answers from elsewhere")
    env = make(game="tic_tac_toe", opponent="moody")
    pickle.dumps(env)  # nothing is being played yet
    env.reset(seed=0)
    with pytest.raises(PickleError, match="'moody' cannot be carried in mid-game: it answers from elsewhere"):
        pickle.dumps(env)
    for _ in range(3):
        env.step(99)
    assert pickle.loads(pickle.dumps(env)).reset(seed=0)  # it is over, so nothing has to be replayed


def test_a_replay_that_went_another_way_is_noticed(moody: None) -> None:
    register_opponent("moody", Moody)
    env = make(game="tic_tac_toe", opponent="moody")
    env.reset(seed=1)
    carried = pickle.dumps(env)
    Moody.calls += 1
    with pytest.raises(PickleError, match="played other moves when the episode was replayed"):
        pickle.loads(carried)
