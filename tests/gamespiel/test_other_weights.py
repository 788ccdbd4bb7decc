"""A run knows its base model's weights: those of a wheel in place of the hub's, and no others on resume."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from transformers import BertConfig, GPT2Config, MambaConfig, PretrainedConfig

from gamespiel.agents.models import weights
from gamespiel.agents.models.weights import ModelError, Wheel
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.tokens.codec import PromptLengthError
from gamespiel.config import Config, resolve, saved_config
from gamespiel.evaluation import evaluate
from gamespiel.options import EvalOptions
from gamespiel.training import train
from tests.agents.families import chatml
from tests.agents.ggufs import write
from tests.gamespiel.runs import train_quietly

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMALL = {
    "ppo.batch_size": "2",
    "ppo.num_train_steps": "1",
    "run.eval_games": "0",
    "run.device": "cpu",
    "run.num_threads": "1",
}


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


@pytest.fixture
def run(file: Path, tmp_path: Path) -> Path:
    """A run of the preset with that wheel."""
    folder, said = tmp_path / "run", io.StringIO()
    overrides = SMALL | {"run.output_dir": str(folder)}
    train(resolve("smollm2-135m", overrides=overrides.items()), console=Console(file=said, width=200))
    source = "small.gguf of the installed wheel small-weights 1.2"
    assert f"loading {NAME}: {source}\n" in said.getvalue()
    assert saved_config(folder).model.model_name == NAME
    adapters = json.loads((folder / "checkpoints/step-000001/adapter/adapter_config.json").read_text())
    assert adapters["base_model_name_or_path"] == NAME
    state = json.loads((folder / "checkpoints" / "step-000001" / "state.json").read_text())
    assert state["base"] == {
        "model_name": NAME,
        "weights": source,
        "sha256": weights.identity(NAME)["sha256"],
        "r": 16,
        "lora_alpha": 32.0,
    }
    return folder


def longer(run: Path) -> Config:
    return resolve(base=saved_config(run), overrides=[("ppo.num_train_steps", "2")])


def test_a_run_goes_on_with_its_own_weights_alone(run: Path, file: Path) -> None:
    kept = file.read_bytes()
    write(file, seed=1)  # the same name, size and header
    assert file.stat().st_size == len(kept)
    console = Console(file=io.StringIO())
    with pytest.raises(CheckpointError, match=r"it was trained on .*; make smollm2 installs those weights$"):
        train(longer(run), run, console)
    with pytest.raises(CheckpointError, match=r"it was trained on "):
        evaluate(EvalOptions(saved_config(run), checkpoint=run, num_episodes=1), console)
    file.write_bytes(kept)
    train(longer(run), run, console)
    assert (run / "checkpoints" / "step-000002").is_dir()


def test_without_the_wheel_a_run_says_how_to_get_it(
    run: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(file.parent / "small_weights-1.2.dist-info")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(file.parent / "cache"))
    with pytest.raises(
        ModelError, match=r"is not in the hub's cache .*; make smollm2 installs its weights from"
    ):
        train(longer(run), run, Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (GPT2Config(n_positions=100, n_embd=32), PromptLengthError, "at most 99: the model reads 100 tokens"),
        (GPT2Config(n_positions=900, n_embd=32, vocab_size=99), ModelError, "embedding of 99 tokens"),
        (BertConfig(hidden_size=32, initializer_range=0.1), ModelError, "is bidirectional"),
        (MambaConfig(hidden_size=32, state_size=4), ModelError, "lora.target_modules: 'c_attn'"),
    ],
    ids=["positions", "vocabulary", "bidirectional", "layers"],
)
def test_a_model_that_cannot_work_leaves_no_folder(
    config: PretrainedConfig, error: type[Exception], message: str, tmp_path: Path
) -> None:
    """A first prompt of Leduc poker has more than 99 characters, each of them a token here."""
    model = tmp_path / "model"
    chatml().save_pretrained(model)
    config.num_hidden_layers, config.num_attention_heads = 1, 2
    config.save_pretrained(model)
    changes = {
        "model.model_name": str(model), "model.random_weights": "true", "lora.target_modules": '["c_attn"]',
        "run.output_dir": str(tmp_path / "run"), "model.reading": "auto",
    }  # fmt: skip
    with pytest.raises(error, match=message):
        train_quietly(resolve("tiny", overrides=(SMALL | changes).items()))
    assert not (tmp_path / "run").exists()
