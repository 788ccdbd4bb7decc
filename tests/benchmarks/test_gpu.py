"""The GPU check on small models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu import check

KEYS = {
    "facts": {"versions", "launch_us", "matrix_tflops", "copy_tb_per_second"},
    "sdpa": {"default", "no_cudnn", "default_against_math"},
    "numerics": {"float32", "bfloat16"},
    "bf16": {"first_step", "steps", "memory", "passes", "step_kernels", "full_budget", "plan"},
    "nf4": {"first_step", "steps", "memory", "passes", "step_kernels", "full_budget", "plan"},
    "oom": {"before", "step", "after", "next_step"},
    "tiny": {"steps", "weights_relative"},
    "five": {"first_step", "steps", "memory"},
}
"""Results of each stage on small models."""

QUICK = ["facts", "sdpa", "tiny"]


def find_errors(value: Any) -> list[str]:
    """Returns the errors anywhere in a result."""
    if not isinstance(value, dict):
        return []
    inner = [error for part in value.values() for error in find_errors(part)]
    return [*inner, value["error"]] if "error" in value else inner


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(QUICK, marks=[pytest.mark.trains, pytest.mark.sample]),
        pytest.param([name for name in KEYS if name not in QUICK], marks=pytest.mark.launch),
    ],
)
def test_stages_run_on_small_models(stages: list[str], tmp_path: Path) -> None:
    arguments = ["--small", "--seconds", "3600", "--out", str(tmp_path), "--stages", *stages]
    results = check.main(arguments)
    assert set(KEYS) == set(check.STAGES) - {"smollm2"}
    assert list(results["stages"]) == stages and find_errors(results) == []
    for name in stages:
        assert set(results["stages"][name]) >= KEYS[name] | {"stage_seconds"}, name
    assert json.loads((tmp_path / "gpu.check.json").read_text()) == results
    if "numerics" in stages:
        rows = results["stages"]["numerics"]
        assert (
            rows["float32"]["log_prob_difference_max"] < 1e-5 and rows["float32"]["gradient_relative"] < 1e-4
        )
        assert (
            rows["bfloat16"]["log_prob_difference_max"] < 0.05 and rows["bfloat16"]["gradient_relative"] < 0.1
        )


@pytest.mark.trains
@pytest.mark.sample
def test_a_stage_that_fails_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = {"sdpa": ("no_such_module", 5), "oom": ("training", 10**9), "facts": ("hardware", 5)}
    monkeypatch.setattr(check, "STAGES", stages)
    results = check.main(["--small", "--out", str(tmp_path / "x.json"), "--stages", *stages])
    sdpa, oom, facts = (results["stages"][name] for name in stages)
    assert sdpa["error"].startswith("ModuleNotFoundError: No module named 'benchmarks.gpu.no_such_module'")
    assert set(oom) == {"left_out"} and "versions" in facts
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == results


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_large_models_need_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        check.main([])
    assert "PyTorch finds no GPU; add --small" in capsys.readouterr().err
