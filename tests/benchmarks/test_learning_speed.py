"""Runs of the benchmark that are far too short to learn anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.image import imread

from benchmarks import advantages, learning_speed


@pytest.mark.trains
def test_a_short_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps have 64 games in place of 512."""
    preset = learning_speed.llm_overrides
    monkeypatch.setattr(
        learning_speed, "llm_overrides", lambda *arguments: [*preset(*arguments), ("ppo.batch_size", "64")]
    )
    results = learning_speed.main(["--decisions", "100", "--out", str(tmp_path / "new"), "--threads", "1"])
    printed = capsys.readouterr().out.splitlines()
    assert (
        json.loads(printed[-1]) == results == json.loads((tmp_path / "new/learning_speed.json").read_text())
    )
    assert list(results["learners"]) == ["mlp", "tiny", "gae", "random_weights"]
    assert set(results["machine"]) == {"cpu", "cores", "threads", "python", "torch", "date"}
    for key, learner in results["learners"].items():
        (run,) = learner["runs"]
        (first, *_, last) = run["curve"]
        # One rollout of 16 x 128 decisions, or steps of 64 games of one to four decisions each until 100.
        assert len(run["curve"]) >= 2 and first[0] == 0
        assert last[0] == 16 * 128 if key == "mlp" else 100 <= last[0] <= 100 + 4 * 64
        assert first[1] == pytest.approx(0, abs=0.5) and last[1] > 0
        assert abs(first[2]) < 0.1  # nobody knows anything yet
        assert sum(line.startswith(f"{key}, seed 0:") for line in printed) == len(run["curve"])
    assert imread(tmp_path / "new" / "learning_speed.png").std() > 0


@pytest.mark.parametrize(
    ("preset", "games"),
    [
        pytest.param("tiny", 256, marks=[pytest.mark.trains, pytest.mark.sample]),
        pytest.param("tiny-gae", 1024, marks=pytest.mark.trains),
    ],
)
def test_a_step_of_an_estimator(preset: str, games: int, tmp_path: Path) -> None:
    """Nothing is learned in it, and what was read for the evaluations is not counted."""
    out = tmp_path / "advantages.json"
    there = [{"game": "kuhn_poker", "preset": preset, "seed": seed, "points": []} for seed in (3, 4)]
    out.write_text(json.dumps({"rows": there}))
    arguments = ["--games", "kuhn_poker", "--presets", preset, "--seeds", "3", "--steps", "1"]
    results = advantages.main([*arguments, "--out", str(out)])
    assert json.loads(out.read_text()) == json.loads(json.dumps(results))
    run, old = results["rows"]
    assert old == there[1] and (run["preset"], run["seed"]) == (preset, 3)
    (before, *_), (decisions, tokens, _, share) = run["points"][0], run["points"][-1]
    assert before == 0 and games <= decisions <= 2 * games
    assert tokens > 12 * 20 and share < 0.85 and run["reached"]["0.85"] is None
