"""Prompts and answers as tokens, and the tokenizers that are refused."""

from __future__ import annotations

import pickle
import string
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gamespiel.agents.decoding import ChatCodec, TokenBoundaryError
from gamespiel.agents.models import ModelSettings, load_tokenizer

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + '\\n' + message['content'] + '<e>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant\\n' }}{% endif %}"
)


def tokenizer(*merges: tuple[str, str], template: str = TEMPLATE, **kwargs: Any) -> Any:
    """Returns a tokenizer with one token per character, but for the merges, which cross boundaries."""
    tokens = ["<e>", *string.printable, *(a + b for a, b in merges)]
    bpe = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, list(merges)))
    names = {"eos_token": "<e>", "chat_template": template} | kwargs
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **names)


def test_a_prompt_is_the_chat_template_tokenised() -> None:
    own = load_tokenizer(ModelSettings())
    codec = ChatCodec(own)
    text = "seat 0\nlegal 1 12"
    assert codec.prompt_text(text) == (
        "<|im_start|>user\nseat 0\nlegal 1 12<|im_end|>\n<|im_start|>assistant\n"
    )
    whole = own.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert codec.encode_prompt(text) == tuple(whole)


def test_an_answer_is_its_digits_and_the_end_of_the_turn() -> None:
    own = load_tokenizer(ModelSettings())
    codec = ChatCodec(own)
    one, two = (own.convert_tokens_to_ids(digit) for digit in "12")
    assert codec.encode_action(12) == (one, two, own.eos_token_id)
    assert codec.end_of_turn == own.convert_tokens_to_ids("<|im_end|>")
    assert codec.pad == own.convert_tokens_to_ids("<|endoftext|>")


@pytest.mark.parametrize("action", [0, 7, 12, 123, 4673])
def test_apart_and_together_are_the_same_tokens(action: int) -> None:
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    together = codec.tokenizer(f"{codec.prompt_text('x')}{action}<|im_end|>", add_special_tokens=False)
    assert codec.encode_prompt("x") + codec.encode_action(action) == tuple(together["input_ids"])


def test_a_template_is_told_not_to_think() -> None:
    thinks = (
        TEMPLATE + "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    )
    assert ChatCodec(tokenizer(template=thinks)).prompt_text("x").endswith("assistant\n<think></think>")


def test_without_a_pad_the_end_of_turn_pads() -> None:
    codec = ChatCodec(tokenizer())
    assert codec.pad == codec.end_of_turn == 0


def test_digits_that_merge_are_refused() -> None:
    with pytest.raises(TokenBoundaryError, match="tokenises '12' after a prompt otherwise than"):
        ChatCodec(tokenizer(("1", "2")))


def test_a_seam_that_merges_is_refused() -> None:
    """The prompt ends with a line end."""
    with pytest.raises(TokenBoundaryError, match="tokenises '3' after a prompt otherwise than"):
        ChatCodec(tokenizer(("\n", "3")))


def test_a_split_at_line_ends_keeps_the_seam_apart() -> None:
    """The same merge is harmless if the tokenizer splits after a line end."""
    own = tokenizer(("\n", "3"))
    own.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n"), "merged_with_previous")
    assert len(ChatCodec(own).encode_action(3)) == 2


def test_digits_of_two_tokens_are_refused() -> None:
    own = tokenizer()
    own.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("_", prepend_scheme="always")
    with pytest.raises(TokenBoundaryError, match=r"digits \['0', .* are not one token each"):
        ChatCodec(own)


def test_a_turn_must_be_able_to_end() -> None:
    with pytest.raises(TokenBoundaryError, match="names no eos_token"):
        ChatCodec(tokenizer(eos_token=None))


def test_action_texts_of_ones_own_are_checked_too() -> None:
    """ "\\n" and "a" merge, "\\n" and "b" do not; neither is a digit."""
    codec = ChatCodec(tokenizer(("\n", "a")), action_text=lambda action: "ab"[action])
    assert codec.encode_action(1) == (codec.tokenizer.convert_tokens_to_ids("b"), 0)
    with pytest.raises(TokenBoundaryError, match="tokenises 'a' after a prompt"):
        codec.encode_action(0)


def test_pickles() -> None:
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    copy = pickle.loads(pickle.dumps(codec))
    assert copy.encode_prompt("x") == codec.encode_prompt("x") and copy.encode_action(
        12
    ) == codec.encode_action(12)
