"""A small GGUF file, written by the package gguf, for tests that need no real weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.agents.families import CHATML

HIDDEN, HEADS, INNER, LAYERS = 64, 4, 128, 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def vocabulary() -> list[str]:
    """Returns the special tokens, the 256 bytes as GPT-2 spells them, and a line end with two spaces."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return [*SPECIAL, *bytes_to_unicode().values(), "ĠĠ", "ĊĠĠ"]


def weights(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the tensors of a Llama of ``LAYERS`` layers by their GGUF names, float32."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray[Any, Any]:
        return rng.normal(0, 0.1, shape).astype(np.float32)

    tensors = {"token_embd.weight": draw(len(vocabulary()), HIDDEN), "output_norm.weight": 1 + draw(HIDDEN)}
    for layer in range(LAYERS):
        shapes = {name: (HIDDEN, HIDDEN) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        shapes |= {"ffn_gate": (INNER, HIDDEN), "ffn_up": (INNER, HIDDEN), "ffn_down": (HIDDEN, INNER)}
        tensors |= {f"blk.{layer}.{name}.weight": draw(*shape) for name, shape in shapes.items()}
        tensors |= {f"blk.{layer}.{name}.weight": 1 + draw(HIDDEN) for name in ("attn_norm", "ffn_norm")}
    return tensors


def write(
    path: Path, architecture: str = "llama", seed: int = 0, *,
    kv_heads: int = HEADS, tied: bool = True, without: str = "",
) -> Path:  # fmt: skip
    """Writes a Llama with SmolLM's way of tokenising, matrices in blocks of 8 bits (Q8_0); returns the path.

    Args:
        path: Where to.
        architecture: What the file says it is.
        seed: Seed of the weights.
        kv_heads: How many heads of keys and values the file says it has.
        tied: Whether the head is the embedding.
        without: A tensor that is left out.
    """
    from gguf import GGMLQuantizationType, GGUFWriter, TokenType
    from gguf.quants import quantize

    writer = GGUFWriter(path, architecture)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(vocabulary()))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary())
    writer.add_token_types(
        [TokenType.CONTROL] * len(SPECIAL) + [TokenType.NORMAL] * (len(vocabulary()) - len(SPECIAL))
    )
    writer.add_token_merges(["Ġ Ġ", "Ċ ĠĠ"])
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(CHATML)
    tensors = weights(seed)
    if not tied:
        tensors["output.weight"] = tensors["token_embd.weight"]
    tensors.pop(without, None)
    for name, values in tensors.items():
        kind = GGMLQuantizationType.Q8_0
        if values.ndim == 2:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
