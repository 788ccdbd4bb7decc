"""A run knows its base model's weights: those of a wheel in place of the hub's, and no others on resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gamespiel.agents.models import weights
from gamespiel.agents.models.weights import Wheel
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.config import resolve, saved_config
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from tests.agents.ggufs import write
from tests.consoles import quiet
from tests.gamespiel.runs import train_aloud, train_quietly

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a wheel with a small Llama for the preset smollm2-135m; returns the file of its weights."""
    site = tmp_path / "site"
    info = site / "small_weights-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small-weights\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(str(site))
    wheel = Wheel("small-weights", "small.gguf", "make smollm2")
    monkeypatch.setattr(weights, "WHEELS", {NAME: wheel})
    monkeypatch.setattr("gamespiel.agents.runs.checkpoint.WHEELS", {NAME: wheel})
    return write(site / "small.gguf")


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_goes_on_with_its_own_weights_alone(file: Path, tmp_path: Path) -> None:
    """The run of the preset with that wheel."""
    overrides = {
        "ppo.batch_size": "2", "ppo.num_train_steps": "1", "run.eval_games": "0", "run.device": "cpu",
        "run.num_threads": "1", "run.output_dir": str(tmp_path / "run"),
    }  # fmt: skip
    run, said = train_aloud(resolve("smollm2-135m", overrides=overrides.items()))
    source = "small.gguf of the installed wheel small-weights 1.2"
    assert f"loading {NAME}: {source}\n" in said
    state = json.loads((run / "checkpoints" / "step-000001" / "state.json").read_text())
    digest = weights.identity(NAME)["sha256"]
    assert state["base"] == {
        "model_name": NAME, "weights": source, "sha256": digest, "r": 16, "lora_alpha": 32.0,
    }  # fmt: skip
    content = file.read_bytes()
    write(file, seed=1)  # the same name, size and header
    assert file.stat().st_size == len(content)
    longer = resolve(base=saved_config(run), overrides=[("ppo.num_train_steps", "2")])
    with pytest.raises(CheckpointError, match=r"it was trained on .*; make smollm2 installs those weights$"):
        train_quietly(longer, run)
    with pytest.raises(CheckpointError, match=r"it was trained on "):
        evaluate(EvalOptions(saved_config(run), checkpoint=run, num_episodes=1), quiet())
    file.write_bytes(content)
    train_quietly(longer, run)
    assert (run / "checkpoints" / "step-000002").is_dir()
