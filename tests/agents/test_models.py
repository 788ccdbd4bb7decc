"""Loading of base models from folders, and the adapters put on them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from gamespiel.agents.models.loading import (
    TINY,
    ModelError,
    ModelSettings,
    load_base,
    load_tokenizer,
)
from gamespiel.agents.models.memory import MemoryLimitError
from tests.agents.cards import card
from tests.agents.toys import make_policy


def test_the_base_is_frozen_and_in_evaluation_mode(capfd: pytest.CaptureFixture[str]) -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    load_tokenizer(ModelSettings())
    assert capfd.readouterr() == ("", "")
    assert not any(p.requires_grad for p in base.parameters()) and not base.training
    assert {p.dtype for p in base.parameters()} == {torch.float32}


def test_an_unknown_dtype() -> None:
    with pytest.raises(ValueError, match=r"dtype: .*'bfloat16' or 'float16', got 'int4'"):
        make_policy(model={"dtype": "int4"})
    with pytest.raises(TypeError, match=r"model got an unexpected keyword argument 'dtyp'.*'dtype'"):
        make_policy(model={"dtyp": "float32"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a copy of the embedded model, to be damaged."""
    shutil.copytree(TINY, tmp_path / "model")
    return tmp_path / "model"


def test_random_weights_are_the_seeds(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    settings = ModelSettings(str(folder), random_weights=True)
    a, b, c = (load_base(settings, "cpu", seed).get_input_embeddings().weight for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert not torch.equal(a, load_base(ModelSettings(), "cpu", 0).get_input_embeddings().weight)


# -- folders that cannot be loaded -------------------------------------------------------------------------


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def change(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def remove_feed_forward_part(path: Path) -> None:
    weights = {name: weight for name, weight in load_file(path).items() if "layers.1.mlp" not in name}
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("model.safetensors", Path.unlink, "is a folder without weights; .* or model.random_weights$"),
        (
            "model.safetensors",
            lambda path: truncate(path, 0),
            r"has a damaged safetensors file \(.*\); copy or",
        ),
        ("model.safetensors", lambda path: truncate(path, 1000), r"has a damaged safetensors file \("),
        ("model.safetensors", lambda path: truncate(path, -1), r"has a damaged safetensors file \("),
        (
            "model.safetensors",
            remove_feed_forward_part,
            "lacks the weights model.layers.1.mlp.down_proj.weight, model.layers.1.mlp.gate_proj.weight, "
            "model.layers.1.mlp.up_proj.weight, which",
        ),
        ("config.json", lambda path: change(path, intermediate_size=96), "has weights of other shapes than"),
        ("config.json", lambda path: change(path, hidden_size="wide"), "cannot be loaded: .*'hidden_size'"),
        ("config.json", lambda path: change(path, model_type="qwen99"), "cannot be loaded: .*qwen99"),
        ("config.json", lambda path: truncate(path, 40), ".*is not a valid JSON file"),
        # transformers would load the base and the rank that the file names, whoever wrote it.
        ("adapter_config.json", lambda path: path.write_text('{"peft_type": "LORA"}'), "has an adapter_co"),
    ],
)
def test_a_damaged_folder(name: str, damage: Callable[[Path], None], message: str, folder: Path) -> None:
    damage(folder / name)
    for use_4bit in (False, True) if name == "model.safetensors" else (False,):
        with pytest.raises(ModelError) as caught:
            load_base(ModelSettings(str(folder), use_4bit=use_4bit), "cpu", 0)
        said = str(caught.value)
        assert "\n" not in said and re.match(f"model_name {str(folder)!r} {message}", said)


def test_a_damaged_tokenizer(folder: Path) -> None:
    truncate(folder / "tokenizer.json", 40)
    with pytest.raises(ModelError, match=r"has a damaged JSON file \("):
        load_tokenizer(ModelSettings(str(folder)))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer; allowed: .* tokenizer\.json beside"):
        load_tokenizer(ModelSettings(str(folder)))


def test_code_of_a_models_own_is_refused_without_a_question(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(folder / "config.json", model_type="custom", auto_map={"AutoConfig": "configuration.Own"})
    own_tokenizer = {"AutoTokenizer": ["tokenization.Own", None]}
    change(folder / "tokenizer_config.json", tokenizer_class="Own", auto_map=own_tokenizer)
    for name in ("configuration.py", "tokenization.py"):
        (folder / name).write_text("raise SystemExit('code of the model was run')")

    def ask(*arguments: object) -> str:
        raise AssertionError("the terminal was asked")

    monkeypatch.setattr("builtins.input", ask)
    settings = ModelSettings(str(folder))
    fresh = ModelSettings(str(folder), random_weights=True)
    for load in (
        lambda: load_tokenizer(settings),
        lambda: load_base(settings, "cpu", 0),
        lambda: load_base(fresh, "cpu", 0),
    ):
        with pytest.raises(ModelError, match="names code of its own"):
            load()


# -- GPUs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7.49 GiB"), "torch.nn.Module.to"),
        (torch.AcceleratorError("CUDA error: out of memory"), "torch.nn.Module.to"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            "transformers.AutoModelForCausalLM.from_pretrained",
        ),
    ],
)
def test_a_model_that_does_not_fit(error: Exception, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are moved to a GPU whole, within the loading by transformers or after it."""

    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(place, fail)
    for random_weights in [False, True] if place == "torch.nn.Module.to" else [False]:
        with pytest.raises(MemoryLimitError, match=r"'tiny' does not fit into the memory of the cpu"):
            load_base(ModelSettings(random_weights=random_weights), "cpu", 0)


@pytest.mark.parametrize("native", [False, True])
def test_a_gpu_without_bfloat16_is_told(
    native: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with card(), monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
        patch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
        for device, dtype in (("cpu", "bfloat16"), ("cuda", "float16"), ("cuda:0", "bfloat16")):
            load_base(ModelSettings(dtype=dtype), device, 0)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (not native)
    assert native or said[0].startswith("cuda:0 (Tesla T4) emulates bfloat16")
