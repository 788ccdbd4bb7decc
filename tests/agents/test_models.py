"""Base models by name."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch

from gamespiel.agents.models import (
    TINY,
    LoraSettings,
    ModelError,
    ModelSettings,
    add_adapters,
    load_base,
    load_tokenizer,
    resolve,
)


def test_names() -> None:
    assert resolve("tiny") == resolve(str(TINY)) == str(TINY)
    assert resolve("Qwen/Qwen3-4B") == "Qwen/Qwen3-4B"  # a name on the hub


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tinny", "is unknown; did you mean 'tiny'"),
        ("Tiny", "is unknown; did you mean 'tiny'"),
        ("./nowhere", "is not a folder"),
        ("/no/such/model", "is not a folder"),
        ("a/b/c", "is not a folder"),
    ],
)
def test_names_that_are_none(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        resolve(name)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is a folder without a config\.json"):
        resolve(str(tmp_path))


def test_the_base_is_frozen_and_in_evaluation_mode() -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    assert not any(p.requires_grad for p in base.parameters()) and not base.training
    assert {p.dtype for p in base.parameters()} == {torch.float32}


def test_an_unknown_dtype() -> None:
    with pytest.raises(
        ModelError, match="dtype 'int4' is unknown; allowed: auto, float32, bfloat16, float16"
    ):
        load_base(ModelSettings(dtype="int4"), "cpu", seed=0)


def test_random_weights_are_the_seeds() -> None:
    settings = ModelSettings(random_weights=True)
    a, b, c = (load_base(settings, "cpu", seed).get_input_embeddings().weight for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert not torch.equal(a, load_base(ModelSettings(), "cpu", 0).get_input_embeddings().weight)


def test_adapters_begin_as_the_identity() -> None:
    ids = torch.tensor([[18, 19, 20, 30]])
    with torch.no_grad():
        expected = load_base(ModelSettings(), "cpu", 0)(input_ids=ids).logits
        model = add_adapters(load_base(ModelSettings(), "cpu", 0), LoraSettings(r=2, lora_alpha=4), seed=0)
        assert torch.equal(model(input_ids=ids).logits, expected)
    config = model.peft_config["default"]
    assert (config.r, config.lora_alpha, config.lora_dropout) == (2, 4, 0.0)


@pytest.mark.parametrize(
    ("targets", "message"),
    [(("q_proj", "v_prj"), "'v_prj' was given.*did you mean 'v_proj'"), (("nope",), "'nope'")],
)
def test_a_target_that_is_no_module(targets: tuple[str, ...], message: str) -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    with pytest.raises(ModelError, match=message):
        add_adapters(base, LoraSettings(target_modules=targets), seed=0)


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
