"""Whether a language model suits a policy: it reads forwards only, and it knows its tokenizer's tokens."""

from __future__ import annotations

from typing import Any

import torch

from gamespiel.agents.models.weights import ModelError
from gamespiel.agents.tokens.codec import ChatCodec

EXACT, COARSE = 1e-3, 5e-2
"""Shares of the logits' spread up to which two equal readings differ, in float32 and in smaller types."""


def check(base: Any, codec: ChatCodec, model_name: str) -> None:
    """Checks a base model before adapters are put on it.

    Raises:
        ModelError: the tokenizer has tokens that the embedding has not, or a token's reading depends on the
            tokens after it, as in BERT: such a model cannot write.
    """
    _check_vocabulary(base, codec, model_name)
    _check_causal(base, codec, model_name)


def _check_vocabulary(base: Any, codec: ChatCodec, model_name: str) -> None:
    rows = base.get_input_embeddings().weight.shape[0]
    # Control tokens come from the template alone: Gemma 3 has one for images, which its text model lacks.
    used = {codec.end_of_turn, *codec.encode_prompt("")}
    beyond = {
        token: index
        for token, index in codec.tokenizer.get_vocab().items()
        if index >= rows and (index in used or not codec.is_control(index))
    }
    if beyond:
        token, index = min(beyond.items(), key=lambda item: item[1])
        raise ModelError(
            f"model_name {model_name!r} has an embedding of {rows:,} tokens and a tokenizer with "
            f"{len(beyond):,} more, the first of them {token!r} with id {index:,}; allowed: the tokenizer "
            "that the model was trained with, or a model whose embedding was resized to the tokenizer"
        )


@torch.no_grad()
def _check_causal(base: Any, codec: ChatCodec, model_name: str) -> None:
    """Reads two texts that begin alike: a causal model says the same of the beginning."""
    first, *others = dict.fromkeys(codec.encode_prompt("0 1"))
    if len(others) < 2:
        return
    texts = [[first, others[0], others[0]], [first, others[1], others[1]]]
    embedded = base.get_input_embeddings().weight
    logits = base(input_ids=torch.tensor(texts, device=embedded.device)).logits[:, 0].float()
    allowed = EXACT if base.dtype == torch.float32 else COARSE
    if (logits[0] - logits[1]).abs().max() > allowed * logits.std():
        raise ModelError(
            f"model_name {model_name!r} is bidirectional ({base.config.model_type}): what it says of a token "
            "depends on the tokens after it, so it cannot write an answer token by token; allowed: a causal "
            "language model, such as Qwen, Llama or SmolLM"
        )
