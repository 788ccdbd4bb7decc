"""Local and served play of the same address agree step for step."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from game_gym.games import TABLE
from tests.game_gym.play import LEDUC, episode, make
from tests.gamespiel.serving.servers import served, serving

pytest.importorskip("affinetes")
pytest.importorskip("uvicorn")

from gamespiel.serving.options import ServeOptions

SAMPLE = ("goofspiel", "leduc_poker", "hearts", "phantom_ttt")
"""Hidden cards, simultaneous moves, four seats, and a game that upstream plays wrong."""


@pytest.fixture(scope="module")
def games() -> Iterator[str]:
    with serving(ServeOptions(port=0)) as (url, _):
        yield url


@pytest.fixture(scope="module")
def traces() -> Iterator[str]:
    with serving(ServeOptions(env="trace", port=0)) as (url, _):
        yield url


def shown(record: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A record without what only a local backend knows."""
    local = {"history"}
    if record[-1][-1].get("result") == "cut":
        local |= {"scores", "returns"}
    return [
        (*rest, {key: value for key, value in info.items() if key not in local}) for *rest, info in record
    ]


def compare(games: str, **arguments: Any) -> None:
    seed = arguments.pop("seed")
    here = make(**arguments)
    there = make(backend="affinetes", mode="url", base_url=games, **arguments)
    assert shown(episode(there, seed)) == shown(episode(here, seed))


@pytest.mark.parametrize("game", SAMPLE)
def test_a_served_sample_of_games_equals_the_local_one(game: str, games: str) -> None:
    compare(games, task_id=TABLE.index(game) * 100_000_000 + 1, seed=7, max_turns=12)


@pytest.mark.families
@pytest.mark.parametrize("index", range(22), ids=TABLE)
def test_every_game(index: int, games: str) -> None:
    compare(games, task_id=index * 100_000_000 + 4, seed=4, max_turns=200)


def test_a_search_and_upstreams_rewards(games: str) -> None:
    compare(games, task_id=LEDUC, seed=2, opponent="mcts:20x2", reward="upstream", rules=False)


def test_illegal_actions_are_counted_here(games: str) -> None:
    env = make(task_id=LEDUC, backend="affinetes", base_url=games)
    local = make(task_id=LEDUC)
    for played in (env, local):
        played.reset(seed=1)
        played.step(99)
        played.step(99)
    there, here = env.step(99), local.step(99)
    assert there[:4] == here[:4]
    for key in ("score", "scores", "returns", "result"):
        assert there[4][key] == here[4][key]


def test_a_copy_plays_the_episode_again(games: str) -> None:
    env = make(task_id=600_000_000, backend="affinetes", base_url=games)
    env.reset(seed=5)
    env.step(12)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.render_mode is None and copy.action_masks().tolist() == env.action_masks().tolist()
    assert copy.step(0)[0] == env.step(0)[0]


@pytest.mark.launch
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes_of_a_vector_environment_have_connections_of_their_own(context: str) -> None:
    own = {"shared_memory": False, "context": context}  # Text has no shape
    with served() as url:
        arguments = {"task_id": LEDUC, "backend": "affinetes", "base_url": url}
        make(**arguments).reset(seed=0)  # this process is connected before it forks
        envs = gym.make_vec(
            "GameSpiel-v0", num_envs=2, vectorization_mode="async", vector_kwargs=own, **arguments
        )
        texts, _ = envs.reset(seed=[0, 1])
        envs.close()
    assert list(texts) == [make(task_id=LEDUC).reset(seed=seed)[0] for seed in (0, 1)]


@pytest.mark.parametrize("scoring", ["affine", "lines"])
def test_traces(scoring: str, traces: str) -> None:
    here: Any = gym.make("CodeTrace-v0", scoring=scoring).unwrapped
    there: Any = gym.make("CodeTrace-v0", scoring=scoring, backend="affinetes", base_url=traces).unwrapped
    for task_id in (40, 41):
        text, info = here.reset(seed=1, options={"task_id": task_id})
        told, said = there.reset(seed=1, options={"task_id": task_id})
        assert told == text
        assert {**said, "source": info["source"]} == info
        truth = here.trace.truth
        for reply in (truth, truth[: len(truth) // 2]):
            ours, theirs = here.step(reply), there.step(reply)
            assert theirs[:4] == ours[:4]
            assert {**theirs[4], "source": ours[4]["source"]} == ours[4]
            here.reset(seed=1, options={"task_id": task_id})
            there.reset(seed=1, options={"task_id": task_id})
