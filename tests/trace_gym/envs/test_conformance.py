"""Every id passes Gymnasium's checker and keeps the contract, over families and levels."""

from __future__ import annotations

import functools
import gc
import pickle
import random
import weakref
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import trace_gym  # noqa: F401 (registers the environments)
from task_gym.errors import EpisodeError
from tests.trace_gym.play import ALWAYS, AT_THE_END, IDS, MASKED, Make, episode, oracle, plain
from trace_gym.programs.builtin import CELLS, NAMES
from trace_gym.sandbox import LEVELS
from trace_gym.score import SCORINGS, squeeze

pytestmark = pytest.mark.usefixtures("backend")

CHOICE, LINES = "CodeTraceChoice-v0", "CodeTraceLines-v0"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", IDS)
def test_the_checker_passes_without_a_warning(name: str, make_env: Make) -> None:
    check_env(make_env(name, task_ids=[(0, 3)]))


def check_contract(env: Any, task_id: int) -> None:
    """Checks one episode answered by the oracle: infos, spaces, rewards, scores."""
    name = env.spec.id
    text, info = env.reset(seed=task_id, options={"task_id": task_id})
    address = {key: info[key] for key in ALWAYS - {"turn", "upstream_reward"}}
    assert (info["task_id"], info["seed"], info["game"], info["seat"]) == (task_id, task_id, "code_trace", 0)
    trace, paid, turns, over = env.trace, 0.0, 0, False
    assert (info["family"], info["level"]) == (NAMES[task_id % 16], 1 + task_id % CELLS // 16)
    assert info["sandbox"] in (LEVELS if name == CHOICE else ("in-process",))
    assert info["row"] is None and info["replaced"] >= 0
    assert trace.truth.strip() and trace.code in text and trace.stdin in text
    while not over:
        assert text in env.observation_space and info["turn"] == turns
        keys = ALWAYS | (MASKED if name == CHOICE else set())
        assert info.keys() == keys | ({"line"} if name == LINES else set())  # after reset and after a step
        if name == CHOICE:
            check_options(env, info)
        action = oracle(env)
        assert env.action_space.contains(action)
        text, reward, over, truncated, info = env.step(action)
        paid, turns = paid + reward, turns + 1
        assert truncated is False and isinstance(over, bool)
    assert info.keys() - {"line"} == keys | AT_THE_END | ({"mutation"} if name == CHOICE else set())
    assert {key: info[key] for key in address} == address  # it stays the same episode
    assert info["by_scoring"] == dict.fromkeys(SCORINGS, 1.0) and info["success"] is True
    assert info["score"] == info["upstream_reward"] == 1.0 == pytest.approx(paid)
    assert info["result"] == "win" and info["returns"] == [1.0] and len(info["history"]) == turns
    assert info["truth"] == trace.truth and trace.truth in text and text in env.observation_space
    if name == CHOICE:
        assert not info["action_mask"].any() and info["legal_actions"] == info["admissible_commands"] == []


def check_options(env: Any, info: dict[str, Any]) -> None:
    """Checks the options: four to eight different outputs of similar length, one of them true."""
    outputs, truth = info["admissible_commands"], env.trace.truth
    count = len(outputs)
    assert 4 <= count <= 8 and info["legal_actions"] == list(range(count))
    assert info["action_mask"].dtype == np.int8 and info["action_mask"].shape == (8,)
    assert info["action_mask"].tolist() == [1] * count + [0] * (8 - count)
    assert env.action_masks().dtype == bool and env.action_masks().tolist() == info["action_mask"].tolist()
    assert outputs.count(truth) == 1
    assert len({squeeze(output) for output in outputs}) == count
    assert all(len(truth) // 2 <= len(output) <= 2 * len(truth) for output in outputs)


@pytest.mark.trains
@pytest.mark.sample
def test_oracle_answers_score_one_in_every_family_and_level(make_env: Make) -> None:
    envs = [make_env(name) for name in IDS if name != CHOICE]  # they share the programs
    for task_id in range(0, CELLS, 3):
        for env in envs:
            check_contract(env, 10**9 // CELLS * CELLS + task_id)


# Each family once; together they cover all levels.
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(0, marks=[pytest.mark.families, pytest.mark.sample]),
        *(pytest.param(part, marks=pytest.mark.families) for part in range(1, 4)),
    ],
)
def test_oracle_choices_score_one_in_every_family(part: int, make_env: Make) -> None:
    env = make_env(CHOICE)
    for family in range(part, 16, 4):
        check_contract(env, CELLS + family + 16 * (family * 7 % 10))


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_scoring_says_what_is_paid(scoring: str, make_env: Make) -> None:
    """A whole answer has the first line alone; the lines are all right."""
    env = make_env(scoring=scoring, task_id=3)
    env.reset(seed=0)
    _, paid, *_, info = env.step(env.trace.truth.split("\n")[0])
    assert paid == info["score"] == info["by_scoring"][scoring]
    assert (0 < paid < 1) == (scoring == "lines")
    env, rewards, over = make_env(LINES, scoring=scoring, task_id=3), [], False
    env.reset(seed=0)
    while not over:
        _, reward, over, *_ = env.step(oracle(env))
        rewards.append(reward)
    *earlier, last = rewards
    share = 1 / len(rewards) if scoring == "lines" else 0.0
    assert earlier == [share] * len(earlier) != [] and last == (share or 1.0)


def clone(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("name", IDS)
def test_a_copy_made_in_mid_episode_continues_identically(name: str, make_env: Make) -> None:
    env = make_env(name, task_ids=[(0, 3)], level=1)
    assert clone(env).reset(seed=1)[0] == env.reset(seed=1)[0]  # and before the first reset
    if name == CHOICE:
        env.step(7 if len(env.reset(seed=1)[1]["legal_actions"]) < 8 else 9)  # a strike is carried too
    elif name == "CodeTraceLines-v0":
        env.step("something")
    twin = clone(env)
    assert twin.spec == env.spec and twin.trace == env.trace
    over = False
    while not over:
        action = oracle(env)
        assert oracle(twin) == action
        *record, info = env.step(action)
        *again, copied = twin.step(action)
        assert again == record and plain(copied) == plain(info)
        over = record[2]
    twin = clone(twin)
    with pytest.raises(EpisodeError, match="after reset and before the end"):
        twin.step(action)
    assert [twin.reset()[0] for _ in range(3)] == [env.reset()[0] for _ in range(3)]
    env.action_space.seed(4)
    twin = clone(env)
    assert [twin.action_space.sample() for _ in range(5)] == [env.action_space.sample() for _ in range(5)]
    twin.close()


@pytest.mark.parametrize("name", IDS)
def test_vector_environments_play_what_the_environments_play(name: str, make_env: Make) -> None:
    make_one = functools.partial(gym.make, f"trace_gym:{name}", task_ids=[(0, 3)])
    alone = [make_env(name, task_ids=[(0, 3)]) for _ in range(2)]
    with closing(gym.vector.SyncVectorEnv([make_one, make_one])) as vector:
        texts, infos = vector.reset(seed=[5, 6])
        shown: list[Any] = [env.reset(seed=seed) for env, seed in zip(alone, (5, 6), strict=True)]
        over = [False, False]
        for _ in range(6):
            assert list(texts) == [text for text, *_ in shown]
            assert infos["task_id"].tolist() == [rest[-1]["task_id"] for rest in shown]
            actions = [oracle(env) if not done else vector.single_action_space.sample()
                       for env, done in zip(alone, over, strict=True)]  # fmt: skip
            texts, rewards, terminated, _, infos = vector.step(
                np.array(actions) if name == CHOICE else tuple(actions)
            )
            shown = [env.reset() if done else env.step(action)
                     for env, action, done in zip(alone, actions, over, strict=True)]  # fmt: skip
            over = [not done and rest[2] for done, rest in zip(over, shown, strict=True)]
            assert terminated.tolist() == over
            assert rewards.tolist() == [rest[1] if len(rest) == 5 else 0.0 for rest in shown]


# -- environments of a process share their backend ---------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
def test_an_episode_depends_on_nothing_but_its_address(name: str, make_env: Make) -> None:
    """Neither on episodes before it nor on other random numbers; ``test_golden`` has other processes."""
    used = make_env(name, task_ids=[(0, 3)])
    for seed in range(4):
        np.random.seed(seed)
        random.seed(seed)
        used.reset(seed=seed)
        used.step(0 if name == CHOICE else "0")
    assert episode(used, 77) == episode(make_env(name, task_ids=[(0, 3)]), 77)


@pytest.mark.launch
@pytest.mark.sample
def test_a_trace_is_made_once_and_closing_the_last_ends_all() -> None:
    first, second = (gym.make(CHOICE, task_ids=[(0, 319)], require="limits") for _ in range(2))
    backend = weakref.ref(first.unwrapped._backend)  # type: ignore[attr-defined]
    options = {"task_id": 3}
    first.reset(seed=0, options=options)
    second.reset(seed=1, options=options)
    assert second.unwrapped.trace is first.unwrapped.trace  # type: ignore[attr-defined]
    first.close()
    assert second.reset(seed=1, options={"task_id": 160})[1]["task_id"] == 160
    second.close()
    del first, second
    gc.collect()
    assert backend() is None
