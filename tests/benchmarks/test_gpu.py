"""The GPU check on small models, its counts of shapes, and that padded rows are the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu import check
from benchmarks.gpu.shapes import (
    SMALL,
    CountOperations,
    RowReader,
    make_engine,
)
from gamespiel.agents.engines.kernels import NAMES
from gamespiel.agents.models.architectures import KNOWN

KEYS = {
    "facts": {"versions", "launch_us", "matrix_tflops", "copy_tb_per_second"},
    "sdpa": {"default", "no_cudnn", "default_against_math"},
    "numerics": {"float32", "bfloat16"},
    "bf16": {"first_step", "steps", "memory", "passes", "step_kernels", "full_budget", "plan"},
    "nf4": {"first_step", "steps", "memory", "passes", "step_kernels", "full_budget", "plan"},
    "variants": {"none", *NAMES, "all"},
    "oom": {"before", "step", "after", "next_step"},
    "tiny": {"steps", "weights_relative"},
    "five": {"first_step", "steps", "shapes"},
    "graphs": {"tokens", "padded_tokens", "eager", "padded"},
    "shapes": {"leduc_poker, shared", "leduc_poker, padded", "five_games, shared", "operations_per_layer"},
}
"""Results of each stage on small models."""

QUICK = ["facts", "sdpa", "tiny", "graphs"]


def find_errors(value: Any) -> list[str]:
    """Returns the errors anywhere in a result."""
    if not isinstance(value, dict):
        return []
    inner = [error for own in value.values() for error in find_errors(own)]
    return [*inner, value["error"]] if "error" in value else inner


@pytest.mark.parametrize(
    "stages", [QUICK, pytest.param([name for name in KEYS if name not in QUICK], marks=pytest.mark.launch)]
)
def test_stages_run_on_small_models(stages: list[str], tmp_path: Path) -> None:
    arguments = ["--small", "--seconds", "3600", "--out", str(tmp_path), "--stages", *stages]
    results = check.main(arguments)
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


def test_every_stage_is_checked() -> None:
    assert set(KEYS) == set(check.STAGES) - {"smollm2"}


def test_a_stage_that_fails_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = {"facts": ("no_such_module", 5), "oom": ("training", 10**9), "graphs": ("shapes", 5)}
    monkeypatch.setattr(check, "STAGES", stages)
    results = check.main(["--small", "--out", str(tmp_path / "x.json"), "--stages", *stages])
    facts, oom, graphs = (results["stages"][name] for name in stages)
    assert facts["error"].startswith("ModuleNotFoundError: No module named 'benchmarks.gpu.no_such_module'")
    assert set(oom) == {"left_out"} and "eager" in graphs
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == results


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_large_models_need_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        check.main([])
    assert "PyTorch finds no GPU; add --small" in capsys.readouterr().err


def make_reader(layers: int, tokens: int) -> RowReader:
    config = {**KNOWN["HuggingFaceTB/SmolLM2-135M-Instruct"], **SMALL, "num_hidden_layers": layers}
    return RowReader(make_engine(config, "cpu", rank=1), tokens)


def test_operations_are_counted_without_views() -> None:
    x = torch.ones(4)
    with CountOperations() as counted:
        (x + 1).view(2, 2).t().mul(2)
    assert counted.count == 2


def test_padded_rows_and_flexattention_give_the_trainers_states() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    reader = make_reader(2, tokens=200)
    expected, n = reader.read_eager().detach(), len(reader.tree.tokens)
    assert reader.padded.shape[1] > n
    torch.testing.assert_close(reader.read_padded()[:n].detach(), expected, atol=2e-6, rtol=1e-5)
    with torch.no_grad():
        flexible = reader.read_flexibly(flex_attention)
    torch.testing.assert_close(flexible[:n], expected, atol=2e-6, rtol=1e-5)


def test_gradients_of_a_padded_row_are_the_same() -> None:
    found = []
    reader = make_reader(1, tokens=150)
    for read in (reader.read_eager, reader.read_padded):
        reader.zero_grad()
        read()[: len(reader.tree.tokens)].square().sum().backward()
        found.append([parameter.grad.clone() for parameter in reader.adapters if parameter.grad is not None])
    assert len(found[0]) == len(list(reader.adapters)) > 0
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
