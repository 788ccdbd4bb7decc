"""Code tracing as a kind of task, in ``gamespiel eval`` and ``gamespiel train``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gamespiel  # noqa: F401 (registers the environments)
from gamespiel.config import Config, InvalidValueError, resolve, saved_config
from gamespiel.kinds import KINDS
from gamespiel.kinds.traces.kind import choice_agent, echo_texts, play_replies, trace_seeds
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from task_gym.errors import TaskGymError
from tests.consoles import quiet
from tests.gamespiel.runs import evaluate_to_file, train_quietly
from tests.trace_gym.programs.test_sources import COMMIT, Rows
from trace_gym.programs import hub, sources

EVERYTHING = [("env.env_type", "trace")]
LEVEL_1 = [*EVERYTHING, ("env.level", "1"), ("env.task_ids", "[[0, 1599]]")]


def config(overrides: list[tuple[str, str]]) -> Config:
    return resolve(overrides=[("run.device", "cpu"), *overrides])


def run(folder: Path, overrides: list[tuple[str, str]], **options: Any) -> tuple[dict[str, Any], str]:
    return evaluate_to_file(folder, config(overrides), width=120, **options)


# -- replies -----------------------------------------------------------------------------------------------


@pytest.mark.launch
@pytest.mark.sample
def test_the_oracle_is_right_in_every_group_and_every_score(tmp_path: Path) -> None:
    results, printed = run(tmp_path, EVERYTHING, agent="oracle", num_episodes=12)
    sampled = results["sampled"]
    for row in sampled.values():
        right = {name: interval[0] for name, interval in row["by_scoring"].items()}
        assert right == {"affine": 1.0, "exact": 1.0, "lines": 1.0}
        assert row["score"][0] == row["success"][0] == 1.0
        # Wilson's interval of n out of n begins at n / (n + z²), z = 1.96.
        low = row["episodes"] / (row["episodes"] + 1.959964**2)
        assert row["by_scoring"]["lines"] == pytest.approx([1.0, low, 1.0], abs=1e-6)
    levels = [name for name in sampled if name.startswith("level ")]
    families = [name for name in sampled if name.startswith("family ")]
    assert list(sampled) == [*levels, *families, "all"]
    assert levels == sorted(levels, key=lambda name: int(name.split()[1])) and len(levels) > 1
    for names in (levels, families, ["all"]):
        assert sum(sampled[name]["episodes"] for name in names) == 12
    assert printed.startswith("playing 12 traces\n")
    assert "oracle on CodeTrace-v0, percent and 95% Wilson" in printed
    assert all(name in printed for name in ("affine", "exact", "lines", *levels, *families))
    assert run(tmp_path, EVERYTHING, agent="oracle", num_episodes=12) == (results, printed)


def test_echo_reads_off_the_literals_as_they_stand() -> None:
    code = (
        '"""About."""\n'
        "def f(a, b='x'):\n"
        "    return f'{a} and {b!r}'\n"
        "print({'k': 'v', 1: b'no'}, 'a\\n' 'b', 3)\n"
        "print('last')\n"
    )
    assert echo_texts(code) == "About.\nx\n and \nk\nv\na\nb\nlast"
    assert echo_texts("print(1)") == ""


@pytest.mark.launch
@pytest.mark.sample
def test_echo_is_right_where_the_literals_are_the_output(tmp_path: Path) -> None:
    rows = [
        {"program": "print('one')\nprint('two')\n", "inputs": None},  # both right
        {"program": "print('one')\nprint(len('two'))\n", "inputs": None},  # the first of two lines
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row, expected in ((0, 1.0), (1, 0.0)):
        overrides = [*EVERYTHING, ("env.source", str(file)), ("env.task_id", str(row))]
        sampled = run(tmp_path, overrides, agent="echo", num_episodes=1)[0]["sampled"]
        assert list(sampled) == ["all"]  # such programs have neither level nor family
        assert sampled["all"]["by_scoring"]["exact"][0] == expected
        assert sampled["all"]["by_scoring"]["lines"][0] == (1.0 if expected else 0.5)


# -- choices -----------------------------------------------------------------------------------------------


def test_random_is_uniform_over_what_may_be_chosen() -> None:
    """3000 choices of three: a third each, within four standard errors, 4 · √(3000 · 2/9) = 103."""
    mask = np.array([False, True, True, False, True])
    masks, episodes = np.tile(mask, (3000, 1)), list(range(3000))
    answers = choice_agent("random", 0, 3000)([""] * 3000, masks, episodes, 0)
    actions = [answer.action for answer in answers]
    counts = np.bincount(actions, minlength=5)
    assert counts[~mask].sum() == 0 and np.all(np.abs(counts[mask] - 1000) < 103)
    # An episode's choice does not depend on the batch.
    (alone,) = choice_agent("random", 0, 3000)([""], masks[:1], [7], 0)
    assert alone.action == actions[7]
    first = choice_agent("first", 0, 3000)([""] * 3000, masks, episodes, 0)
    assert {answer.action for answer in first} == {1}


@pytest.mark.launch
@pytest.mark.sample
def test_first_picks_the_first_output(tmp_path: Path) -> None:
    results, printed = run(tmp_path, LEVEL_1, agent="first", num_episodes=3)
    env = gym.make("CodeTraceChoice-v0", level=1, task_ids=[(0, 1599)])
    local: Any = env.unwrapped
    right, asked = [], []
    for seed in trace_seeds(0, 3):
        _, info = env.reset(seed=seed)
        right.append(info["admissible_commands"][0] == local.trace.truth)
        asked.append(info["task_id"])
    row = results["sampled"]["all"]
    assert row["by_scoring"]["affine"][0] == row["by_scoring"]["exact"][0] == pytest.approx(sum(right) / 3)
    assert (row["episodes"], row["length"], row["illegal_rate"]) == (3, 1.0, 0.0)
    assert "first on CodeTraceChoice-v0" in printed
    # Replies and choices have the same tasks.
    replied = play_replies(KINDS["trace"].make_reply_env(config(LEVEL_1).env), "empty", trace_seeds(0, 3))
    assert [episode.info["task_id"] for episode in replied] == asked


# -- errors and notices ------------------------------------------------------------------------------------


def test_options_without_effect_and_a_file_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="--exact is for games small enough"):
        run(tmp_path, EVERYTHING, agent="random", exact=True)
    overrides = [*LEVEL_1, ("env.opponent", "open")]
    results, printed = run(tmp_path, overrides, agent="empty", num_episodes=5)
    assert printed.startswith("env.opponent = 'open' has no effect on traces.\n")
    assert list(results["sampled"])[-1] == "all" and "level 1" not in results["sampled"]  # the only level
    assert [interval[0] for interval in results["sampled"]["all"]["by_scoring"].values()] == [0.0, 0.0, 0.0]
    for agent in ("oracle", "random"):
        with pytest.raises(TaskGymError, match="there is no such file"):
            run(tmp_path, [*EVERYTHING, ("env.source", "/no/where.jsonl")], agent=agent)


# -- a policy ----------------------------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.sample
def test_a_policy_learns_on_some_tasks_and_is_evaluated_on_others(tmp_path: Path) -> None:
    small = {
        "env.task_ids": "[[0, 319]]", "ppo.batch_size": "4", "ppo.ppo_epochs": "1",
        "ppo.num_train_steps": "1", "run.eval_games": "2", "run.device": "cpu", "run.num_threads": "1",
        "run.output_dir": str(tmp_path / "run"),
    }  # fmt: skip
    folder = train_quietly(resolve("tiny-trace", overrides=small.items()))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["decisions"] == 4  # a step of four choices
    assert set(summary["before"]) == {"score", "success rate", "return", "illegal rate", "legal mass"}

    held_out = [("env.task_ids", "[[5000000000, 5999999999]]")]
    settings = resolve(base=saved_config(folder), overrides=held_out)
    for greedy in (False, True):
        options = EvalOptions(config=settings, checkpoint=folder, num_episodes=2, greedy=greedy)
        sampled = evaluate(options, quiet())["sampled"]
        assert sampled["all"]["episodes"] == 2 and sampled["all"]["illegal_rate"] == 0
        assert set(sampled["all"]["by_scoring"]) == {"affine", "exact", "lines"}
    written = {path.name for path in folder.glob("eval-*")}
    assert written == {"eval-sampled-trace.json", "eval-sampled-trace-greedy.json"}


# -- programs of the hub -----------------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.sample
def test_runs_and_results_name_the_commit_that_programs_are_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = {"program": "a = 1\nb = a + 2\nc = b * 3\nprint(a, b, c)\n", "inputs": ""}
    monkeypatch.setattr(hub, "commit_of", lambda revision: revision or COMMIT)
    monkeypatch.setattr(hub, "rows_at", lambda commit: Rows([program]))
    sources._open_hub.cache_clear()
    few = [("ppo.batch_size", "1"), ("ppo.num_train_steps", "1"), ("run.eval_games", "0")]
    overrides = [*EVERYTHING, ("env.source", "hub"), ("run.output_dir", str(tmp_path / "run")), *few]
    folder = train_quietly(config(overrides))
    assert saved_config(folder).env.source == f"hub@{COMMIT}"
    results, _ = run(tmp_path, [*EVERYTHING, ("env.source", "hub")], agent="oracle", num_episodes=1)
    assert results["env"]["source"] == f"hub@{COMMIT}"
    sources._open_hub.cache_clear()
