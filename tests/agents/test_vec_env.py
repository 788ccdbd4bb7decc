"""The environments of a step, as Stable-Baselines3 expects a vector, and the starts of its episodes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib.common.maskable.utils import EXPECTED_METHOD_NAME, get_action_masks, is_masking_supported

from gamespiel.agents.rollout import ACTION_MASKS
from gamespiel.agents.starts import Starts
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.samplers import Failures, Stages, Start, Uniform
from task_gym.samplers.base import State
from tests.agents.toys import N_ACTIONS, TEXT, Bandit, Stairs


def first_legal(env: TextVecEnv) -> np.ndarray:
    return get_action_masks(env).argmax(-1)


def test_observations_are_an_array_of_texts_and_options_reach_the_environment_once() -> None:
    env = TextVecEnv([Stairs, Stairs, Stairs])
    env.seed(5)
    texts = env.reset()
    assert texts.shape == (3,) and texts.dtype == object
    assert texts.tolist() == [Stairs().reset(seed=seed)[0] for seed in (5, 6, 7)]  # SB3: seed + index
    assert env.observation_space == TEXT and env.num_envs == 3
    assert is_masking_supported(env) and get_action_masks(env).shape == (3, N_ACTIONS)
    assert ACTION_MASKS == EXPECTED_METHOD_NAME

    class Told(Bandit):
        def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
            _, info = super().reset(seed=seed)
            return f"told {options}", info

    env = TextVecEnv([Told, Told])
    assert env.reset_one(0, seed=1, options={"task_id": 4})[0] == "told {'task_id': 4}"
    env.set_options([{"task_id": 5}, {}])
    assert env.reset().tolist() == ["told {'task_id': 5}", "told None"]
    assert env.reset().tolist() == ["told None", "told None"]


def test_a_done_step() -> None:
    """infos[i] is the old episode's, reset_infos[i] and the observation are the new one's.

    What was returned stays as it was, whatever a caller does with it.
    """
    env = TextVecEnv([Stairs, Stairs])
    env.seed(0)
    before = env.reset()
    copy = before.copy()
    lengths = [env.envs[i].length for i in range(2)]
    assert lengths[0] != lengths[1]  # one ends while the other goes on
    first = int(np.argmin(lengths))
    for _ in range(min(lengths)):
        texts, rewards, dones, infos = env.step(first_legal(env))
        turn, infos[1 - first]["turn"] = infos[1 - first]["turn"], "changed by the caller"
    assert before.tolist() == copy.tolist() and turn == min(lengths)
    assert dones[first] and not dones[1 - first]
    assert infos[first]["turn"] == min(lengths) and env.reset_infos[first]["turn"] == 0
    assert f"played {'.' * min(lengths)}" in infos[first]["terminal_observation"]
    assert "played []" in texts[first]
    assert "terminal_observation" not in infos[1 - first]
    assert rewards.dtype == np.float32 and rewards.tolist() == [float(first == 0), float(first == 1)]
    assert infos[first]["TimeLimit.truncated"] is False
    cut = TextVecEnv([lambda: Stairs(max_turns=1)])
    cut.reset()
    _, _, dones, infos = cut.step(first_legal(cut))
    assert dones[0] and infos[0]["TimeLimit.truncated"] is True


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one environment, got none"):
        TextVecEnv([])
    one = Bandit()
    with pytest.raises(ValueError, match="an environment of its own"):
        TextVecEnv([lambda: one, lambda: one])
    with pytest.raises(ValueError, match="takes Text observations, got Box"):
        TextVecEnv([lambda: gym.make("CartPole-v1")])
    with pytest.raises(ValueError, match=r"differ in actions: Discrete\(3\) and Discrete\(124\)"):
        TextVecEnv([Bandit, Stairs])


def test_an_episode_that_is_over_at_once_is_passed_over_or_shown() -> None:
    class Sometimes(Stairs):
        """Every third episode has turns; the others are over at their reset."""

        begun = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            self.begun += 1
            over = self.begun % 3 != 0
            return ("over", {**info, "result": "win", "score": 1.0}) if over else (text, info)

    class Down(Stairs):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            return text, {**info, "result": "fault", "score": None, "fault": "it is gone"}

    env = TextVecEnv([Sometimes])
    assert env.reset_one(0, seed=5)[0] == "over"
    # The second is over, the third is not.
    assert env.reset()[0] != "over" and "result" not in env.reset_infos[0]
    assert env.envs[0].begun == 3  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"1000 episodes in a row .* result 'fault' \(it is gone\): exp"):
        TextVecEnv([Down]).reset()


# -- the starts of a step's episodes -------------------------------------------------------------------------


class Asked:
    """A sampler that replays, or seeds, the addresses that it is given, and keeps what it hears."""

    def __init__(self, starts: dict[tuple[int, int], Start]) -> None:
        self.starts, self.asked, self.heard = starts, [], []  # type: ignore[var-annotated]

    def draw(self, address: Any = None) -> Start:
        self.asked.append(address)
        return self.starts.get(address, Start())

    def record(self, outcomes: Any) -> list[State]:
        self.heard += list(outcomes)
        return []

    def stats(self) -> State:
        shares = {"easy": 0.25, "hard": 0.75}
        return {"heard": len(self.heard), "names": ["a list is not shown"], "label": "x", "shares": shares}

    def state_dict(self) -> State:
        return {"heard": len(self.heard)}

    def load_state_dict(self, state: State) -> None:
        self.heard = [None] * state["heard"]


def info(score: float | None, **more: Any) -> dict[str, Any]:
    ended = {"task_id": 7, "seed": 1, "opponent": "first", "game": "toy", "score": score}
    result = "fault" if score is None else "win" if score > 0.5 else "loss"
    return {**ended, "success": (score or 0) > 0.5, "result": result, **more}


def test_failures_are_asked_first_and_the_rest_is_the_curriculums() -> None:
    """The first of step 4's three episodes is a replay; the second has no seed of its own.

    Each of both samplers may be missing.
    """
    replay = Start(7, "first", 11, replayed=True)
    failures, stages = Asked({(4, 0): replay}), Asked({(4, 2): Start(8, "mcts", 12)})
    drawn = Starts(stages, failures).draw(4, [100, 101, 102])
    assert drawn == [replay, Start(seed=101), Start(8, "mcts", 12)]
    assert failures.asked == [(4, 0), (4, 1), (4, 2)] and stages.asked == [(4, 1), (4, 2)]
    assert [start.options for start in drawn] == [
        {"task_id": 7, "opponent": "first"}, {}, {"task_id": 8, "opponent": "mcts"},
    ]  # fmt: skip
    assert Starts(None, Failures()).draw(0, [5, 6]) == [Start(seed=5), Start(seed=6)]
    (start,) = Starts(Stages([{"name": "only", "opponent": "first"}])).draw(0, [5])
    assert start.opponent == "first" and start.seed not in (None, 5)


def test_outcomes_are_told_in_the_order_of_episodes_with_what_was_played() -> None:
    failures, stages = Asked({}), Asked({})
    starts = Starts(stages, failures)
    episode_starts = [Start(None, "mcts", 1), Start(7, "first", 3, replayed=True)]
    starts.record(episode_starts, [info(1.0, seed=1, opponent="random"), info(0.0, seed=3)])
    assert failures.heard == stages.heard
    # Who really played is in the info: "random" stands in for "mcts" in games of simultaneous moves.
    assert [outcome.start for outcome in stages.heard] == [Start(7, "random", 1), episode_starts[1]]
    assert [outcome.success for outcome in stages.heard] == [True, False]
    assert starts.metrics() == {
        "curriculum/heard": 2, "curriculum/label": "x", "replay/heard": 2, "replay/label": "x",
        "curriculum/shares/easy": 0.25, "curriculum/shares/hard": 0.75,
        "replay/shares/easy": 0.25, "replay/shares/hard": 0.75, "replay/share": 0.5,
    }  # fmt: skip


def test_groups_have_a_success_rate_per_step() -> None:
    """Two of "a", of which one is a success, a fault of "b", and a replay, which is of no group."""
    starts = Starts(Uniform([{"name": "a"}, {"name": "b"}]))
    drawn = [Start(note=(0,)), Start(note=(0,)), Start(note=(1,)), Start(note=(0,), replayed=True)]
    starts.record(drawn, [info(1.0), info(0.5), info(None), info(1.0)])
    rates = {name: value for name, value in starts.metrics().items() if "success" in name}
    assert rates == {"curriculum/success/a": 0.5}
    starts.record(drawn[2:3], [info(1.0)])  # the step before is forgotten
    assert "curriculum/success/a" not in starts.metrics()
    starts = Starts(Stages([{"name": "only"}]), Failures())
    before = starts.state_dict()
    starts.record(starts.draw(0, [1, 2]), [info(None), info(None)])
    assert starts.state_dict() == before  # a fault counts nowhere
    replayed = Start(7, "first", 3, replayed=True)
    starts.record([replayed, *starts.draw(0, [2])], [info(None), info(0.0, seed=2)])
    assert starts.metrics()["replay/share"] == 0.0
    starts = Starts(Stages([{"name": "a"}]))
    with pytest.raises(KeyError, match=r"curriculum"):
        starts.load_state_dict({})
    with pytest.raises(ArgumentError, match=r"no score and result"):
        starts.record([Start(seed=1)], [{"game": "toy"}])
