"""Runs with ``env.decode: text``: what plays, what contradicts itself, training, resuming and evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel.cli import main
from gamespiel.config import Config, ConfigError, from_dict, notices
from gamespiel.environments import make_envs, make_one_env
from gamespiel.episodes import measure_agent
from gamespiel.evaluation import evaluate
from gamespiel.kinds.base import THINK
from gamespiel.options import EvalOptions
from tests.gamespiel.runs import quiet, rows_of, small, train_quietly

KUHN = {"game": "kuhn_poker", "decode": "text"}
TRACE = {"env_type": "trace", "level": 1, "decode": "text"}


def env_of(**env: Any) -> Any:
    return make_one_env(from_dict({"env": env}).env)


# -- environments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (KUHN, "GameSpielText-v0"),
        (TRACE, "CodeTrace-v0"),
        (TRACE | {"by_line": True}, "CodeTraceLines-v0"),
        ({"game": "kuhn_poker"}, "GameSpiel-v0"),
    ],
)
def test_the_env_section_decides_which_environment_plays(env: dict[str, Any], name: str) -> None:
    assert env_of(**env).spec.id == name


@pytest.mark.parametrize("env", [KUHN, KUHN | {"answer": "name"}, TRACE, TRACE | {"by_line": True}])
def test_thinking_asks_for_it_before_the_question(env: dict[str, Any]) -> None:
    plain, thinking = env_of(**env), env_of(**env, think=True)
    (before, _), (asked, _) = plain.reset(seed=4), thinking.reset(seed=4)
    *state, question = before.split("\n")
    assert asked.split("\n") == [*state, THINK, question]
    if env.get("answer") == "name":
        assert asked.names == before.names


def test_the_answer_comes_after_the_thoughts() -> None:
    """Upstream's rule would read the 1 of the thoughts, a bet; the answer is 0, a pass."""
    thinking = env_of(**KUHN, think=True)
    thinking.reset(seed=4)
    _, _, _, _, info = thinking.step("<think>1 or 0? I take 1.</think> 0")
    assert "error" not in info and thinking.unwrapped.state.history_str().split(", ")[2] == "0"


@pytest.mark.parametrize("reply", ["x" * 2**21, "", "\ufffd\x00", "1" * 2**20])
def test_any_reply_can_be_given(reply: str) -> None:
    """Longer than the space's own limit, empty, without text, or one number of a million digits."""
    env = make_envs(from_dict({"env": KUHN}).env, 1)
    env.reset_one(0, 4)
    _, reward, over, _, info = env.step_one(0, reply)
    assert reward == -0.01 and not over and "error" in info


# -- configuration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"think": True}, r"env\.think = true needs env\.decode: text"),
        ({"env_type": "trace", "by_line": True}, r"env\.by_line = true needs env\.decode: text"),
        (KUHN | {"illegal": "raise"}, r"env\.illegal must be penalize or forfeit"),
        ({"decode": "txt"}, r"env\.decode must be one of 'choice', 'text', not 'txt'; did you mean 'text'"),
    ],
)
def test_contradicting_keys_are_refused(env: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict({"env": env})


@pytest.mark.parametrize(
    ("decode", "given", "without_effect"),
    [
        ("choice", {"temperature": 1.0, "max_new_tokens": 9, "kl_estimator": "k3"}, 3),
        ("choice", {"cut_penalty": 0.1}, 1),
        ("text", {"temperature": 1.0, "max_new_tokens": 9, "kl_estimator": "k3", "cut_penalty": 0.1}, 0),
        ("text", {"legal_coef": 0.5, "legal_target": 0.9}, 2),
    ],
)
def test_keys_without_effect_are_said(decode: str, given: dict[str, Any], without_effect: int) -> None:
    found = notices(from_dict({"ppo": given, "env": {"game": "kuhn_poker", "decode": decode}}))
    assert len(found) == without_effect
    assert all(f"ppo.{name} = {value}" in "".join(found) for name, value in given.items() if without_effect)


# -- runs ----------------------------------------------------------------------------------------------------


def config(folder: Path) -> Config:
    overrides = {"ppo__num_train_steps": "1", "ppo__max_new_tokens": "5", "run__eval_games": "0"}
    return small(folder, env__decode="text", **overrides)


def test_a_run_is_evaluated_as_it_was_trained(tmp_path: Path) -> None:
    run = train_quietly(config(tmp_path / "run"))
    (row,) = rows_of(run)
    assert 1 <= row["rollout/reply_tokens"] <= 5 and 0 <= row["rollout/illegal"] <= 1
    main(["eval", "--checkpoint", str(run), "--num_episodes", "2", "--output", str(tmp_path / "e.json")])
    found = json.loads((tmp_path / "e.json").read_text())
    assert (found["decode"], found["max_new_tokens"], found["temperature"]) == ("text", 5, 0.7)
    assert found["replies"]["sampled"]["all"]["tokens_per_reply"] <= 5


def test_unmasked_play_and_exact_values_of_a_writing_run_are_refused(tmp_path: Path) -> None:
    asked = config(tmp_path)
    for option, message in (
        ({"unmasked": True}, r"--unmasked compares replies with choices"),
        ({"exact": True}, r"--exact computes .*env\.decode: text"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluate(EvalOptions(asked, **option), quiet())


@pytest.mark.parametrize(
    ("env", "agent"), [(KUHN, "random"), (TRACE | {"by_line": True}, "oracle"), (TRACE, "first")]
)
def test_baselines_play_as_ever(env: dict[str, Any], agent: str) -> None:
    """Baselines choose, or write a whole output, whatever a policy would do."""
    choosing = {key: value for key, value in env.items() if key not in ("decode", "by_line")}
    asked, plain = (from_dict({"env": keys}) for keys in (env, choosing))
    assert measure_agent(asked, agent, 2, quiet()) == measure_agent(plain, agent, 2, quiet())
