"""The shapes of language models, known without their weights: a table, a ``config.json`` or a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamespiel.agents.models.weights import ModelError, find_cached, is_gguf, is_hub_name, resolve
from task_gym.errors import nearest
from task_gym.files import read_json


@dataclass(frozen=True)
class Family:
    """Properties that a ``model_type`` decides and its ``config.json`` leaves out.

    Attributes:
        qkv_bias: Whether queries, keys and values have biases.
        qk_norm: Whether queries and keys are normalised per head.
        norms: Norms of width ``hidden_size`` per layer.
        tied: Whether embedding and head are one matrix, if ``tie_word_embeddings`` is left out.
        head_dim: The width of a head if ``head_dim`` is left out; None divides ``hidden_size`` by the heads.
    """

    qkv_bias: bool = False
    qk_norm: bool = False
    norms: int = 2
    tied: bool = False
    head_dim: int | None = None


FAMILIES: Mapping[str, Family] = {
    "llama": Family(),
    "mistral": Family(),
    "qwen2": Family(qkv_bias=True),
    "qwen3": Family(qk_norm=True, head_dim=128),
    "gemma3_text": Family(qk_norm=True, norms=4, tied=True, head_dim=256),
}
"""Families by ``model_type``. Their layers have the same linear modules, under the same names."""


def _row(model_type: str, vocabulary: int, layers: int, hidden: int, intermediate: int, *heads: int) -> Any:
    """Returns a row of ``KNOWN``; ``heads`` are heads, key-value heads and a head's width."""
    names = ("num_attention_heads", "num_key_value_heads", "head_dim")
    return {
        "model_type": model_type,
        "vocab_size": vocabulary,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        **dict(zip(names, heads, strict=True)),
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }


KNOWN: Mapping[str, Mapping[str, Any]] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": _row("llama", 49_152, 30, 576, 1_536, 9, 3, 64),
    "Qwen/Qwen2.5-0.5B-Instruct": _row("qwen2", 151_936, 24, 896, 4_864, 14, 2, 64),
    "Qwen/Qwen2.5-1.5B-Instruct": _row("qwen2", 151_936, 28, 1_536, 8_960, 12, 2, 128),
    "Qwen/Qwen2.5-3B-Instruct": _row("qwen2", 151_936, 36, 2_048, 11_008, 16, 2, 128),
    "Qwen/Qwen3-0.6B": _row("qwen3", 151_936, 28, 1_024, 3_072, 16, 8, 128),
    "Qwen/Qwen3-1.7B": _row("qwen3", 151_936, 28, 2_048, 6_144, 16, 8, 128),
    "Qwen/Qwen3-4B": _row("qwen3", 151_936, 36, 2_560, 9_728, 32, 8, 128),
    "Qwen/Qwen3-32B": _row("qwen3", 151_936, 64, 5_120, 25_600, 64, 8, 128) | {"tie_word_embeddings": False},
    "meta-llama/Llama-3.2-1B-Instruct": _row("llama", 128_256, 16, 2_048, 8_192, 32, 8, 64),
    "meta-llama/Llama-3.2-3B-Instruct": _row("llama", 128_256, 28, 3_072, 8_192, 24, 8, 128),
    "google/gemma-3-1b-it": _row("gemma3_text", 262_144, 26, 1_152, 6_912, 4, 1, 256),
}
"""By hub name, the keys of the model's ``config.json`` that decide its size."""


@dataclass(frozen=True)
class Architecture:
    """The shape of a decoder of layers that are all alike.

    Attributes:
        hidden_size: Width of the residual stream.
        intermediate_size: Width of the gated feed-forward part.
        layers: Number of layers.
        heads: Heads of the queries.
        kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        vocabulary: Rows of the embedding.
        tied: Whether embedding and head are one matrix.
        biased: Names of the linear modules with a bias.
        qk_norm: Whether queries and keys are normalised per head.
        norms: Norms of width ``hidden_size`` per layer.
        dtype: The type of the saved weights.
    """

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    biased: tuple[str, ...]
    qk_norm: bool
    norms: int
    dtype: str

    @property
    def query_size(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """A layer's linear modules by name, with their inputs and outputs."""
        hidden, inner = self.hidden_size, self.intermediate_size
        queries, values = self.query_size, self.kv_size
        return {
            "q_proj": (hidden, queries),
            "k_proj": (hidden, values),
            "v_proj": (hidden, values),
            "o_proj": (queries, hidden),
            "gate_proj": (hidden, inner),
            "up_proj": (hidden, inner),
            "down_proj": (inner, hidden),
        }

    @property
    def linear_parameters(self) -> int:
        """Weights of all layers' linear modules without biases: those that can be quantised."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears.values())

    @property
    def other_parameters(self) -> int:
        """All parameters that keep the model's dtype when it is quantised: embedding, head, norms, biases."""
        biases = sum(self.linears[name][1] for name in self.biased)
        norms = self.norms * self.hidden_size + (2 * self.head_dim if self.qk_norm else 0)
        matrices = 1 if self.tied else 2
        return (
            matrices * self.vocabulary * self.hidden_size + self.layers * (biases + norms) + self.hidden_size
        )

    @property
    def parameters(self) -> int:
        return self.linear_parameters + self.other_parameters


def architecture_of(model_name: str) -> Architecture:
    """Returns the architecture of a model by name, folder or GGUF file, without a network.

    Raises:
        ModelError: the name is neither in ``KNOWN`` nor in the local cache of the hub, or the architecture is
            not of ``FAMILIES``.
    """
    if model_name in KNOWN:
        return from_config(KNOWN[model_name], model_name)
    location = resolve(model_name)
    if is_gguf(location):  # no weights are read
        from gamespiel.agents.models.loading import load_config  # it imports torch, which takes seconds

        # On anything but a CPU its blocks are unpacked to bfloat16.
        config = load_config(model_name, location).to_dict() | {"dtype": "bfloat16"}
        return from_config(config, model_name)
    path = find_cached(model_name) if is_hub_name(location) else Path(location) / "config.json"
    if path is None:
        raise ModelError(
            f"model_name {model_name!r} is not known here, and nothing is downloaded to plan; allowed: tiny, "
            f"{', '.join(KNOWN)}, a model in the hub's cache, a folder or a .gguf file"
            f"{nearest(model_name, KNOWN)}"
        )
    return from_config(read_json(path, ModelError), model_name)


def from_config(config: Mapping[str, Any], name: str) -> Architecture:
    """Returns the architecture that the keys of a ``config.json`` describe.

    Raises:
        ModelError: the ``model_type`` is not of ``FAMILIES``, or a key is missing.
    """
    config = config.get("text_config", config)
    if not isinstance(config, Mapping):
        raise ModelError(f"model_name {name!r} has a text_config that is no object: {config!r:.60}")
    kind = str(config.get("model_type"))
    if kind not in FAMILIES:
        raise ModelError(
            f"model_name {name!r} is of model_type {kind!r}; allowed in a plan: {', '.join(FAMILIES)}"
            f"{nearest(kind, FAMILIES)}"
        )
    family = FAMILIES[kind]
    try:
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        return Architecture(
            hidden_size=hidden,
            intermediate_size=int(config["intermediate_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or family.head_dim or hidden // heads),
            vocabulary=int(config["vocab_size"]),
            tied=bool(config.get("tie_word_embeddings", family.tied)),
            biased=_has_bias(family, config),
            qk_norm=family.qk_norm,
            norms=family.norms,
            dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
        )
    except KeyError as error:
        raise ModelError(f"model_name {name!r} has a configuration without {error}") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ModelError(f"model_name {name!r} has a configuration with wrong values: {error}") from error


def _has_bias(family: Family, config: Mapping[str, Any]) -> tuple[str, ...]:
    queries = ("q_proj", "k_proj", "v_proj")
    attention = (*queries, "o_proj") if config.get("attention_bias") else queries if family.qkv_bias else ()
    return (*attention, *(("gate_proj", "up_proj", "down_proj") if config.get("mlp_bias") else ()))
