"""The codec from a text to the tokens of a chat turn, and from an action to the tokens of its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

PROMPTS_CACHED = 65_536
DIGITS = "0123456789"


class TokenBoundaryError(ValueError):
    """A tokenizer whose prompt and answer tokens would merge, or that does not keep digits apart."""


class ChatCodec:
    """Prompts and answers of one tokenizer.

    A prompt is the chat template around one user message, with the generation prompt. An answer is the
    action's text closed by the end-of-turn token. Prompt and answer are tokenised apart, which gives the
    tokens of both together only if the tokenizer splits at the seam. The constructor checks this for digits,
    each of which must be one token (Qwen's tokenizers pass); the first encoding checks any other action's
    text. One prompt is enough to check, since all end with the same generation prompt.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        action_text: Returns the text of an action.

    Raises:
        TokenBoundaryError: the tokenizer merges digits, merges across the seam, or has no end-of-turn token.
    """

    def __init__(self, tokenizer: Any, action_text: Callable[[int], str] = str) -> None:
        self.tokenizer = tokenizer
        self.action_text = action_text
        if tokenizer.eos_token_id is None:
            raise TokenBoundaryError(f"{tokenizer.name_or_path!r} names no eos_token to end a turn with")
        self.end_of_turn: int = tokenizer.eos_token_id
        self.pad: int = self.end_of_turn if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.encode_prompt: Callable[[str], tuple[int, ...]] = lru_cache(PROMPTS_CACHED)(self._encode_prompt)
        self.encode_action: Callable[[int], tuple[int, ...]] = lru_cache(PROMPTS_CACHED)(self._encode_action)
        self._probe_text = self.prompt_text("x")
        self._probe = self._encode(self._probe_text)
        self._check_boundaries()

    def __getstate__(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer, "action_text": self.action_text}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # caches do not pickle; the rest is cheap to redo

    def prompt_text(self, text: str) -> str:
        """Returns the text that the model reads before it answers."""
        rendered: str = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,  # Qwen3 answers at once; other templates ignore the variable
        )
        return rendered

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _encode_prompt(self, text: str) -> tuple[int, ...]:
        return self._encode(self.prompt_text(text))

    def _encode_action(self, action: int) -> tuple[int, ...]:
        return self.encode_answer(self.action_text(action))

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Returns the tokens of an answer, end-of-turn included.

        Raises:
            TokenBoundaryError: the answer merges with the prompt.
        """
        tokens = self._encode(text)
        self._check_seam(text, tokens)
        return (*tokens, self.end_of_turn)

    def _check_boundaries(self) -> None:
        single = {digit: self._encode(digit) for digit in DIGITS}
        split = [digit for digit, tokens in single.items() if len(tokens) != 1]
        if split:
            raise TokenBoundaryError(
                f"digits {split} are not one token each in {self.tokenizer.name_or_path!r}"
            )
        for digit in DIGITS:
            for answer in (digit, f"1{digit}", f"{digit}00", f"20{digit}8"):
                self._check_seam(answer, tuple(single[d][0] for d in answer))

    def _check_seam(self, answer: str, tokens: tuple[int, ...]) -> None:
        together = self._encode(self._probe_text + answer)
        if together != self._probe + tokens:
            raise TokenBoundaryError(
                f"{self.tokenizer.name_or_path!r} tokenises {answer!r} after a prompt otherwise than as "
                f"{list(tokens)}, so the tokens scored would not be the tokens read: both together are "
                f"{list(together)}; use a tokenizer that splits digits and at line ends (Qwen, SmolLM)"
            )
