"""Loading of base models from folders, and the adapters put on them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gamespiel.agents.models import loading as models
from gamespiel.agents.models.loading import (
    TINY,
    ModelError,
    ModelSettings,
    load_base,
    load_tokenizer,
)
from gamespiel.agents.models.memory import MemoryLimitError
from tests.agents.toys import make_policy


def test_the_base_is_frozen_and_in_evaluation_mode() -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    assert not any(p.requires_grad for p in base.parameters()) and not base.training
    assert {p.dtype for p in base.parameters()} == {torch.float32}


def test_an_unknown_dtype() -> None:
    message = r"dtype: Input should be 'auto', 'float32', 'bfloat16' or 'float16', got 'int4'"
    with pytest.raises(ValueError, match=message):
        make_policy(model={"dtype": "int4"})
    with pytest.raises(TypeError, match=r"model got an unexpected keyword argument 'dtyp'.*'dtype'"):
        make_policy(model={"dtyp": "float32"})


def test_random_weights_are_the_seeds() -> None:
    settings = ModelSettings(random_weights=True)
    a, b, c = (load_base(settings, "cpu", seed).get_input_embeddings().weight for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert not torch.equal(a, load_base(ModelSettings(), "cpu", 0).get_input_embeddings().weight)


@pytest.fixture
def with_own_code(tmp_path: Path) -> ModelSettings:
    """Returns a model folder whose configuration and tokenizer name classes of the folder's own code."""
    folder = tmp_path / "custom"
    shutil.copytree(TINY, folder)
    for name, entries in {
        "config.json": {
            "model_type": "custom",
            "auto_map": {"AutoConfig": "configuration.Own", "AutoModelForCausalLM": "modeling.Own"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "Own",
            "auto_map": {"AutoTokenizer": ["tokenization.Own", None]},
        },
    }.items():
        data = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(data | entries))
    (folder / "configuration.py").write_text("raise SystemExit('code of the model was run')")
    return ModelSettings(str(folder))


def test_code_of_a_models_own_is_refused_without_a_question(
    with_own_code: ModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*arguments: object) -> str:
        raise AssertionError("the terminal was asked")

    monkeypatch.setattr("builtins.input", asked)
    fresh = dataclasses.replace(with_own_code, random_weights=True)
    for load in (
        lambda: load_tokenizer(with_own_code),
        lambda: load_base(with_own_code, "cpu", 0),
        lambda: load_base(fresh, "cpu", 0),
    ):
        with pytest.raises(
            ModelError, match=r"names code of its own .*architectures that transformers knows"
        ):
            load()


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "new")
    config = json.loads((TINY / "config.json").read_text()) | {"model_type": "qwen99"}
    (tmp_path / "new" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"cannot be loaded: .*qwen99"):
        load_base(ModelSettings(str(tmp_path / "new")), "cpu", 0)


# -- folders that cannot be loaded -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a copy of the embedded model, to be damaged."""
    shutil.copytree(TINY, tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path, **settings: bool) -> str:
    with pytest.raises(ModelError) as caught:
        load_base(ModelSettings(str(folder), **settings), "cpu", 0)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"model_name {str(folder)!r} ")


def test_a_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert refused(folder) == (
        "is a folder without weights; allowed: a folder with model.safetensors or pytorch_model.bin, whole "
        "or in shards, or model.random_weights"
    )
    load_base(ModelSettings(str(folder), random_weights=True), "cpu", 0)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
@pytest.mark.parametrize("bits", [{}, {"use_4bit": True}])
def test_a_damaged_safetensors_file(folder: Path, share: float, bits: dict[str, bool]) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: int(share * len(content))])
    message = refused(folder, **bits)
    assert message.startswith("has a damaged safetensors file (")
    assert message.endswith("); copy or download it again")


def test_weights_that_are_missing_are_not_drawn_at_random(folder: Path) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    for name in [name for name in weights if "layers.1.mlp" in name]:
        del weights[name]
    save_file(weights, path, metadata={"format": "pt"})
    assert refused(folder) == (
        "lacks the weights model.layers.1.mlp.down_proj.weight, model.layers.1.mlp.gate_proj.weight, "
        "model.layers.1.mlp.up_proj.weight, which its architecture needs"
    )


def test_weights_of_another_shape(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 96}))
    assert refused(folder) == "has weights of other shapes than its config.json describes"
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": "wide"}))
    assert refused(folder) == (
        "cannot be loaded: Validation error for field 'hidden_size': "
        "TypeError: Field 'hidden_size' expected int, got str (value: 'wide')"
    )


def test_a_folder_without_a_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer; allowed: a model with a tokenizer\.json beside"):
        load_tokenizer(ModelSettings(str(folder)))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_torn_file_beside_the_weights(folder: Path, name: str) -> None:
    (folder / name).write_text((folder / name).read_text()[:40])
    with pytest.raises(ModelError, match=r"is not a valid JSON file|has a damaged JSON file \("):
        load_base(ModelSettings(str(folder)), "cpu", 0)
        load_tokenizer(ModelSettings(str(folder)))


def test_loading_prints_nothing(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    load_base(ModelSettings(str(folder)), "cpu", 0)
    load_tokenizer(ModelSettings(str(folder)))
    assert capfd.readouterr() == ("", "")


# -- GPUs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7.49 GiB"),
        torch.AcceleratorError("CUDA error: out of memory"),
    ],
)
@pytest.mark.parametrize("random_weights", [False, True])
def test_a_model_that_does_not_fit(
    error: Exception, random_weights: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are moved to a GPU whole, within the loading by transformers or after it."""

    def full(self: torch.nn.Module, *args: object, **kwargs: object) -> torch.nn.Module:
        raise error

    monkeypatch.setattr(torch.nn.Module, "to", full)
    with pytest.raises(MemoryLimitError, match=r"'tiny' does not fit into the memory of the cpu; use a smal"):
        load_base(ModelSettings(random_weights=random_weights), "cpu", 0)


def test_a_model_that_does_not_fit_while_transformers_loads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", full)
    with pytest.raises(MemoryLimitError, match=r"'tiny' does not fit into the memory of the cpu"):
        load_base(ModelSettings(), "cpu", 0)


@pytest.mark.parametrize("native", [False, True])
def test_a_gpu_without_bfloat16_is_told(
    native: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    for device, dtype in (("cpu", torch.bfloat16), ("cuda", torch.float16), ("cuda:0", torch.bfloat16)):
        models._warn_of_emulation(dtype, torch.device(device))
    said = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert said == ([] if native else ["cuda"])
    assert native or "cuda:0 (Tesla T4) emulates bfloat16" in caplog.text
