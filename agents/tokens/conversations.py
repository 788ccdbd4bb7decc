"""Observations as tokens. In conversations, what the policy said stays as it was written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import (
    ANSWER,
    MARKS,
    QUESTION,
    ChatCodec,
    ChatTemplateError,
    PromptLengthError,
    Recent,
    TokenBoundaryError,
)
from task_gym.replies import ReplyText
from task_gym.wrappers import ConversationText

BLOCK = 0.75
"""The share of the context that is left out at a time.

What follows a gap has to be read again. The larger the gap, the longer it suffices: with this share, a token
of a long conversation is read 1.3 times, and between a quarter and all of the context is in use.
"""

PIECES_CACHED = 2_000_000
"""Tokens of all cached pieces of conversations; each takes up to 40 bytes."""


def is_readable(space: spaces.Space[Any]) -> bool:
    """Returns whether a space's observations are texts or rows of token ids."""
    token_ids = (
        isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer) and len(space.shape) == 1
    )
    return token_ids or isinstance(space, spaces.Text)


class Prompt(NamedTuple):
    """A prompt, as a policy reads it.

    Attributes:
        tokens: Its tokens.
        left_out: Earlier turns of its conversation that are left out; None if it is no conversation.
    """

    tokens: Tokens
    left_out: int | None = None


class ConversationCodec:
    """Conversations of one codec.

    The chat template goes around the whole conversation, and each answer of the policy is put into its place
    there as the tokens in which it was written: they are never tokenised again. (An answer of which a part is
    kept, such as one whose white space is cut off, has other tokens if that part ends within a token.)

    So each turn's prompt begins with the tokens of the turn before, answer included, wherever the template
    writes an earlier answer as a new one. Where it does not (Qwen3's writes an empty thought before a new
    answer only, and drops earlier thoughts), the prompt differs from the first such token on, and is what a
    server would make of the same messages.

    If a conversation has more tokens than the context, earlier turns are left out: whole ones, the oldest
    first. The system message and the turn to answer stay. They are left out in blocks of three quarters of
    the context, so that the next turns' prompts begin as this one does.

    Args:
        codec: The codec of single prompts.
        context_tokens: The most tokens of a conversation; None for as many as the model reads.

    Raises:
        TokenBoundaryError: an answer within a conversation has other tokens than where it was written.
        ChatTemplateError: the template cannot write a conversation.
    """

    def __init__(self, codec: ChatCodec, context_tokens: int | None = None) -> None:
        self.codec, self.context_tokens = codec, context_tokens
        self._pieces = Recent(PIECES_CACHED)
        self._checked = False

    def read_prompts(self, observations: Any) -> list[Prompt]:
        """Returns prompts of texts, of conversations, or of right-padded token ids without their padding.

        Raises:
            ValueError: a row of token ids is all padding.
        """
        codec = self.codec
        if isinstance(observations, Tensor) or (
            isinstance(observations, np.ndarray) and np.issubdtype(observations.dtype, np.number)
        ):
            rows = np.atleast_2d(np.asarray(torch.as_tensor(observations).cpu())).astype(np.int64)
            filled = rows != codec.pad
            if not filled.any(-1).all():
                raise ValueError(f"rows {np.flatnonzero(~filled.any(-1)).tolist()} hold nothing but padding")
            lengths = rows.shape[1] - filled[:, ::-1].argmax(-1)
            codec.check_length(int(lengths.max()))
            return [Prompt(tuple(row[:length].tolist())) for row, length in zip(rows, lengths, strict=True)]
        texts = [observations] if isinstance(observations, str) else observations
        return [
            self.encode(text.messages)
            if isinstance(text, ConversationText) and text.messages
            else Prompt(codec.encode_prompt(str(text)))
            for text in texts
        ]

    def encode(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Returns the tokens that the model reads before it answers the last message.

        Args:
            messages: ``{"role", "content"}`` each: perhaps a system message, then user's and assistant's in
                turn, a user's last. The content of an assistant's may be a ``ReplyText`` with its tokens.

        Raises:
            PromptLengthError: the system message and the last message alone have too many tokens.
        """
        if not self._checked:
            self._check_answers()
            self._checked = True
        head = 1 if messages[0]["role"] == "system" else 0
        pieces = self._encode_pieces(messages)
        limit, why = self.codec.find_limit()
        if self.context_tokens is not None and self.context_tokens < limit:
            limit, why = self.context_tokens, "env.context_tokens"
        if (total := sum(map(len, pieces))) <= limit:
            return Prompt(tuple(token for piece in pieces for token in piece), 0)
        # A turn is the piece before an answer, and the answer; the system message is in the first.
        sizes = [len(one) + len(other) for one, other in zip(pieces[0:-1:2], pieces[1::2], strict=True)]
        dropped = [0, *accumulate(sizes)]
        block, cut = max(1, int(limit * BLOCK)), 0
        while cut < len(sizes):
            cut = min(bisect_left(dropped, dropped[cut] + block), len(sizes))
            if total - dropped[cut] > limit and cut < len(sizes):
                continue
            left = self._encode_pieces([*messages[:head], *messages[head + 2 * cut :]])
            if sum(map(len, left)) <= limit:
                return Prompt(tuple(token for piece in left for token in piece), cut)
        least = sum(map(len, self._encode_pieces([*messages[:head], messages[-1]])))
        raise PromptLengthError(
            f"a turn of a conversation has {least} tokens on its own, its system message included; allowed: "
            f"at most {limit}: {why}"
        )

    def _encode_pieces(self, messages: Sequence[Mapping[str, str]]) -> list[Tokens]:
        """Returns the tokens before the first answer, of the answer, between it and the next, and so on."""
        free = [mark for mark in MARKS if not any(mark in message["content"] for message in messages)]
        if len(free) < 2:
            raise ChatTemplateError("a conversation has nearly all noncharacters of Unicode; allowed: text")
        cut_mark, answer_mark = free[:2]
        marked = [
            {"role": message["role"], "content": answer_mark}
            if message["role"] == "assistant"
            else {"role": message["role"], "content": cut_mark.join(self._cut_text(message["content"]))}
            for message in messages
        ]
        answers = [message["content"] for message in messages if message["role"] == "assistant"]
        rendered = self.codec.render(marked, add_generation_prompt=True)
        self.codec.check_ending(rendered)
        between = rendered.split(answer_mark)
        if len(between) != len(answers) + 1:
            raise ChatTemplateError(
                f"the chat template of {self.codec.name} writes {len(between) - 1} of {len(answers)} answers "
                "of a conversation; allowed: one that writes each as it is"
            )
        pieces = [self._encode_piece(between[0], cut_mark)]
        for answer, text in zip(answers, between[1:], strict=True):
            pieces += [self._encode_answer(answer), self._encode_piece(text, cut_mark)]
        return pieces

    def _cut_text(self, text: str) -> list[str]:
        parts = self.codec.cut_controls(text)
        self.codec.check_controls(text, tuple(t for part in parts for t in self._encode_text(part)), 0)
        return parts

    def _encode_piece(self, text: str, cut: str) -> Tokens:
        return tuple(token for part in text.split(cut) for token in self._encode_text(part))

    def _encode_text(self, text: str) -> Tokens:
        tokens = self._pieces.get(text)
        if tokens is None:
            tokens = self.codec.encode_text(text)
            self._pieces.put(text, tokens)
        return tokens

    def _encode_answer(self, text: str) -> Tokens:
        """Returns an answer's tokens without its end, which the template writes."""
        if isinstance(text, ReplyText) and (tokens := self._find_own(text)) is not None:
            return tokens
        return tuple(token for part in self.codec.cut_controls(text) for token in self._encode_text(part))

    def _find_own(self, text: ReplyText) -> Tokens | None:
        """Returns the part of a reply's tokens that spells its text; None if they are cut elsewhere.

        Reasoning and white space may come before it, the end of the turn and white space after it.
        """
        tokens, spelt = text.tokens, self.codec.decode_reply
        for whole in (tokens, tokens[:-1]):  # the usual case, which takes no search
            if spelt(whole) == text:
                return whole
        for end in range(len(tokens), max(len(tokens) - 4, 0), -1):
            first = end
            # From the end, since what is kept is short, and reasoning is long.
            while first > 0 and len(spelt(tokens[first:end])) < len(text):
                first -= 1
            if spelt(tokens[first:end]) == text:
                return tokens[first:end]
        return None

    def _check_answers(self) -> None:
        """Checks that an answer within a conversation has the tokens that it has on its own."""
        answer = "12" if self.codec.numbers else ANSWER
        roles = ("user", "assistant", "user")
        messages = [
            {"role": r, "content": c} for r, c in zip(roles, (QUESTION, answer, QUESTION), strict=True)
        ]
        piece_tokens = tuple(token for piece in self._encode_pieces(messages) for token in piece)
        together = self.codec.encode_text(self.codec.render(messages, add_generation_prompt=True))
        if piece_tokens != together:
            raise TokenBoundaryError(
                f"{self.codec.name} tokenises {answer!r} within a conversation otherwise than as an answer, "
                "so the policy would read other tokens than it wrote; allowed: a tokenizer that splits at "
                "line ends (Qwen, SmolLM)"
            )
