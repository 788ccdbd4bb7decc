"""Architectures without weights: their sizes are those of the models that transformers builds from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from gamespiel.agents.models.adapters import ALL_LINEAR
from gamespiel.agents.models.architectures import FAMILIES, KNOWN, architecture_of, from_config
from gamespiel.agents.models.loading import TINY, ModelError
from gamespiel.agents.models.memory_plan import Load, adapter_parameters
from tests.agents import ggufs

PARAMETERS = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-3B-Instruct": 3_085_938_688,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
    "google/gemma-3-1b-it": 999_885_952,
}
"""As the models' own weights have them."""


def built(config: dict[str, Any]) -> Any:
    """Returns the model without memory for its weights."""
    keys = {key: value for key, value in config.items() if key not in ("model_type", "dtype")}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(CONFIG_MAPPING[config["model_type"]](**keys))


def count(model: Any, *, trained: bool = False) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)


@pytest.mark.parametrize("name", KNOWN)
def test_known_models_have_the_parameters_of_their_weights(name: str) -> None:
    assert architecture_of(name).parameters == PARAMETERS[name] == count(built(dict(KNOWN[name])))


def test_adapters_of_a_known_model() -> None:
    """Rank 16 on all linear modules of Qwen2.5-3B: per layer 16 * (4096 + 2 * 2304 + 4096 + 3 * 13056)."""
    name = "Qwen/Qwen2.5-3B-Instruct"
    expected = 36 * 16 * (4096 + 2 * 2304 + 4096 + 3 * 13_056)
    assert adapter_parameters(Load(architecture_of(name))) == expected == 29_933_568
    with torch.device("meta"):
        adapted = get_peft_model(
            built(dict(KNOWN[name])), LoraConfig(task_type="CAUSAL_LM", r=16, target_modules=list(ALL_LINEAR))
        )
    assert count(adapted, trained=True) == expected


SMALL = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_configuration_leaves_out_is_the_familys_default(family: str) -> None:
    variants: list[dict[str, Any]] = [{}, {"tie_word_embeddings": False}, {"num_key_value_heads": 1}]
    if family not in ("qwen2", "mistral"):  # these do not read the key
        variants.append({"attention_bias": True})
    if family == "llama":
        variants.append({"mlp_bias": True})
    for variant in variants:
        config = {"model_type": family, **SMALL, **variant}
        assert from_config(config, family).parameters == count(built(config)), variant


def test_the_embedded_model() -> None:
    tiny = architecture_of("tiny")
    assert (tiny.parameters, tiny.dtype) == (196_992, "float32")
    assert tiny == architecture_of(str(TINY))


@pytest.mark.parametrize(
    ("kind", "family", "tied"),
    [
        ("llama", "llama", False),
        ("qwen2", "qwen2", True),
        ("qwen3", "qwen3", False),
        ("gemma3", "gemma3_text", True),
    ],
)
def test_the_metadata_of_a_gguf_file(kind: str, family: str, tied: bool, tmp_path: Path) -> None:
    path = ggufs.write(tmp_path / "model.gguf", kind, kv_heads=2, tied=tied)
    config = {
        "model_type": family, "vocab_size": len(ggufs.vocabulary()), "hidden_size": ggufs.HIDDEN,
        "intermediate_size": ggufs.INNER, "num_hidden_layers": ggufs.LAYERS,
        "num_attention_heads": ggufs.HEADS, "num_key_value_heads": 2, "tie_word_embeddings": tied,
        "dtype": "bfloat16",
    }  # fmt: skip
    assert architecture_of(str(path)) == from_config(config, "x")


def test_models_that_are_not_known_here(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'Qwen/Qwen3-4C' is not known here.*'Qwen/Qwen3-4B'\?"):
        architecture_of("Qwen/Qwen3-4C")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen9"}))
    with pytest.raises(ModelError, match=r"model_type 'qwen9'; allowed in a plan: llama, .*'qwen"):
        architecture_of(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 8}))
    with pytest.raises(ModelError, match=r"a configuration without 'num_attention_heads'"):
        architecture_of(str(tmp_path))
