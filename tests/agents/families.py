"""Small tokenizers and configurations in the shapes of public model families."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import transformers  # each class is looked up where it is used: Llama's alone loads for seconds
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
"""The words of Qwen's tokenizers, with one digit each, and of Llama 3's, with one to three."""

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (
    "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\nToday: "
    "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}<|eot_id|>"
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] + '\n\n' %}"
    "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' + "
    "(first if loop.first else '') }}{{ m['content'] | trim }}{{ '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
"""The texts that the published template of Gemma 3 writes for these roles."""

QWEN_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LLAMA_TOKENS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
    "<|eot_id|>",
)  # fmt: skip
GEMMA_TOKENS = ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>")

MERGES = (("1", "2"), ("12", "3"), ("B", "e"), ("Be", "t"))
"""Digits merge where words allow it."""


def byte_level(digits: str, special: Sequence[str], **named: str) -> Any:
    """Returns a byte-level tokenizer whose words have ``digits`` digits, a quantifier."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in MERGES)]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, list(MERGES)))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS % digits), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return wrap_tokenizer(tokenizer, special, named)


def pieces(special: Sequence[str], **named: str) -> Any:
    """Returns a tokenizer in the shape of Gemma's: spaces are letters, unknown letters bytes, lines added."""
    letters = [*(c for c in string.printable if not c.isspace()), "\n", "▁", "Be", "Bet"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    tokenizer = Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(tokens)}, list(MERGES[2:]), byte_fallback=True, fuse_unk=True,
            unk_token="<unk>",
        )
    )  # fmt: skip
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_tokens([AddedToken("\n" * count, normalized=False) for count in (1, 2, 3)])
    return wrap_tokenizer(tokenizer, special, named)


def wrap_tokenizer(tokenizer: Tokenizer, special: Sequence[str], named: Mapping[str, str]) -> Any:
    """Returns the tokenizer as transformers has it; it begins texts with its BOS, if it has one."""
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    if bos := named.get("bos_token"):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=4096, **named)


def chatml() -> Any:
    return byte_level(
        "{1}", QWEN_TOKENS, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )


def llama(digits: str = "{1,3}") -> Any:
    """Returns a tokenizer without a pad, whose ``eos_token`` ends a text and not a turn."""
    return byte_level(
        digits, LLAMA_TOKENS, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>", chat_template=LLAMA
    )


def gemma() -> Any:
    return pieces(
        GEMMA_TOKENS, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>",
        chat_template=GEMMA,
    )  # fmt: skip


SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.1,  # at 0.02 a model this small says nearly the same everywhere
}


@dataclass(frozen=True)
class Family:
    """A model family.

    Attributes:
        tokenizer: Makes its tokenizer.
        config: Makes its configuration from sizes.
        answer: The form of its answers.
    """

    tokenizer: Callable[[], Any]
    config: Callable[..., Any]
    answer: str = "id"

    def save(self, folder: Path) -> str:
        """Writes configuration and tokenizer, without weights; returns the folder."""
        tokenizer = self.tokenizer()
        tokenizer.save_pretrained(folder)
        ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
        self.config(vocab_size=len(tokenizer), **SIZES, **ids).save_pretrained(folder)
        return str(folder)


def gemma3(**sizes: Any) -> Any:
    """Returns a configuration of sliding layers and a full one; prompts are longer than the window."""
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    more = {"layer_types": layers, "num_hidden_layers": 3, "sliding_window": 16, "query_pre_attn_scalar": 8}
    return transformers.Gemma3TextConfig(**sizes | more)


def config_maker(name: str, *, tie: bool = True) -> Callable[..., Any]:
    """Returns what makes configurations of a class; the head is the embedding's weights if they are tied."""
    return lambda **sizes: getattr(transformers, name)(**sizes, tie_word_embeddings=tie)


FAMILIES = {
    "qwen2.5": Family(chatml, config_maker("Qwen2Config")),
    "qwen3": Family(chatml, config_maker("Qwen3Config")),
    "llama": Family(lambda: llama("{1}"), config_maker("LlamaConfig", tie=False)),
    "llama3": Family(llama, config_maker("LlamaConfig"), answer="name"),
    "gemma3": Family(gemma, gemma3),
}


def parametrize_families(names: Iterable[str], at_once: Sequence[str]) -> pytest.MarkDecorator:
    """Returns the parameter ``family`` of a test; ``make test`` leaves out all but those of ``at_once``."""
    others = (name for name in names if name not in at_once)
    marked = [pytest.param(name, marks=pytest.mark.families) for name in others]
    return pytest.mark.parametrize("family", [*at_once, *marked])
