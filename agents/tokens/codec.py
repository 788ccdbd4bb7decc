"""The codec from a text to the tokens of a chat turn, and from an action to the tokens of its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from gamespiel.agents.tokens import Tokens, templates
from task_gym.errors import TaskGymError

ANSWERS_CACHED = 65_536

TOKENS_CACHED = 8_000_000
"""Tokens of all cached prompts; each takes up to 40 bytes."""

DIGITS = "0123456789"
QUESTION, ANSWER = "a question", "an answer"
"""Messages that templates are probed with. No template has these words of its own."""

THOUGHTS = ("<think>", "</think>")

DAY = {"%d": "26", "%m": "07", "%b": "Jul", "%B": "July", "%y": "24", "%Y": "2024", "%A": "Friday"}
SAME_DAY = (
    "{% macro strftime_now(format) %}{{ format"
    + "".join(f" | replace({code!r}, {text!r})" for code, text in DAY.items())
    + " }}{% endmacro %}"
)
"""Replaces the date in templates that write it (Llama 3.2, SmolLM3): a run is resumed on another day."""

MARKS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Noncharacters of Unicode, which no text needs."""


class TokenBoundaryError(TaskGymError):
    """A tokenizer whose prompt and answer tokens would merge, or that does not keep digits apart."""


class ChatTemplateError(TaskGymError):
    """A chat template that is missing, fails, or does not lead from a question to its answer."""


class PromptLengthError(TaskGymError):
    """A prompt of more tokens than the model or its tokenizer reads."""


class ChatCodec:
    """Prompts and answers of one tokenizer.

    A prompt is the chat template around one user message, with the generation prompt; thinking is off unless
    asked for. An answer is the action's text closed by the end-of-turn token: the control token that the
    template writes after an assistant's message, or ``eos_token`` if it writes none.

    Prompt and answer are tokenised apart, which gives the tokens of both together only if the tokenizer
    splits at the seam. The constructor checks this for numbers, each digit of which must be one token (Qwen's
    tokenizers pass); the first encoding checks any other action's text. One prompt is enough to check, since
    all end with the same generation prompt.

    Control tokens come from the template alone. If a game's text or an action's name spells one, such as
    ``<|im_end|>``, it is read as ordinary characters.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        numbers: Whether actions are answered by number.
        think: Whether the template's switch for thinking is on, if it has one. Then a prompt may end with an
            open ``<think>``.
        positions: The most tokens that the model reads, if it has a limit.
        answer_tokens: The positions that are kept free for an answer.

    Raises:
        PromptLengthError: the answer leaves no position for a prompt.
        TokenBoundaryError: the tokenizer merges digits, merges across the seam, or has no end-of-turn token.
        ChatTemplateError: the tokenizer has no chat template, or one that cannot be used.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        numbers: bool = True,
        think: bool = False,
        positions: int | None = None,
        answer_tokens: int = 0,
    ) -> None:
        self.tokenizer = tokenizer
        self.numbers, self.think = numbers, think
        self.positions, self.answer_tokens = positions, answer_tokens
        self._template = self._find_template()
        self._controls = _control_tokens(tokenizer, self._template)
        self._control_ids = frozenset(self._controls.values())
        self._spelt = re.compile("|".join(map(re.escape, sorted(self._controls, key=len, reverse=True))))
        self.end_of_turn: int = self._find_end_of_turn()
        self.pad: int = self.end_of_turn if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self._prompts = Recent(TOKENS_CACHED)
        self.encode_action: Callable[[int], Tokens] = lru_cache(ANSWERS_CACHED)(
            lambda action: self.encode_answer(str(action))
        )
        self._probe_text = self.prompt_text(QUESTION)
        self._probe = self.encode_text(self._probe_text)
        self.ending = self._find_ending()
        if numbers:
            self._check_digits()

    def __getstate__(self) -> dict[str, Any]:
        names = ("tokenizer", "numbers", "think", "positions", "answer_tokens")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # caches do not pickle; the rest is cheap to redo

    # -- encoding ------------------------------------------------------------------------------------------

    def prompt_text(self, text: str) -> str:
        """Returns the text that the model reads before it answers.

        Raises:
            ChatTemplateError: there is no template, or it fails.
        """
        return self.render([{"role": "user", "content": text}], add_generation_prompt=True)

    def encode_prompt(self, text: str) -> Tokens:
        """Returns the tokens that the model reads before it answers.

        Raises:
            ChatTemplateError: the template ends this prompt otherwise than others.
            PromptLengthError: the prompt is longer than the tokenizer's ``model_max_length``, or leaves fewer
                of the model's positions than an answer takes.
        """
        if (known := self._prompts.get(text)) is not None:
            return known
        parts = self.cut_controls(text)
        if len(parts) == 1:
            rendered = self.prompt_text(text)
            tokens = self.encode_text(rendered)
        else:
            # The template goes around the whole text: it may trim it, or change it in other ways.
            mark = next(mark for mark in MARKS if mark not in text)
            rendered = self.prompt_text(mark.join(parts))
            tokens = tuple(token for part in rendered.split(mark) for token in self.encode_text(part))
        self.check_controls(text, tokens, self._count_controls(self._probe))
        self.check_ending(rendered)
        self.check_length(len(tokens), text)
        self._prompts.put(text, tokens)
        return tokens

    def encode_answer(self, text: str) -> Tokens:
        """Returns the tokens of an answer, end-of-turn included.

        Raises:
            TokenBoundaryError: the answer merges with the prompt.
        """
        parts = self.cut_controls(text)
        tokens = self.encode_text(parts[0])
        self._check_seam(parts[0], tokens)
        for part in parts[1:]:
            tokens += self.encode_text(part)
        self.check_controls(text, tokens, 0)
        return (*tokens, self.end_of_turn)

    def decode_reply(self, tokens: Tokens) -> str:
        """Returns the text of a reply's tokens, without the token that ends it.

        Control tokens are in it as they are spelt, and bytes that are no UTF-8 as U+FFFD. Ids that the
        tokenizer does not know have no text.
        """
        text: str = self.tokenizer.decode(
            tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def end_tokens(self, generation_ends: frozenset[int]) -> frozenset[int]:
        """Returns the tokens that end a reply.

        These are the end-of-turn token and other tokens that end texts: the tokenizer's ``eos_token``, and
        those of the model's generation config. Servers stop at all of these. The generation config's count
        only if they are control tokens of the tokenizer: configs have ids by default.
        """
        controls = {index for index, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        tokenizer_ends = {self.end_of_turn, self.tokenizer.eos_token_id} - {None}
        return frozenset(tokenizer_ends | (generation_ends & controls))

    def encode_text(self, text: str) -> Tokens:
        """Returns the tokens of a text, in which control tokens that it spells are read as such."""
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def check_ending(self, rendered: str) -> None:
        """Checks that a rendered prompt ends as all do.

        Raises:
            ChatTemplateError: it ends otherwise.
        """
        if not rendered.endswith(self.ending):
            raise ChatTemplateError(
                f"the chat template of {self.name} ends a prompt with {rendered[-40:]!r}, and another with "
                f"{self.ending!r}; allowed: a template that ends all prompts alike"
            )

    def check_length(self, tokens: int, text: str | None = None) -> None:
        """Checks that a prompt of so many tokens can be read, and an answer after it.

        Raises:
            PromptLengthError: it cannot.
        """
        limit, why = self.find_limit()
        if tokens > limit:
            of = "" if text is None else f" of {len(text)} characters"
            raise PromptLengthError(
                f"a prompt{of} has {tokens} tokens of {self.name}; allowed: at most {limit}: {why}"
            )

    def find_limit(self) -> tuple[int, str]:
        """Returns the most tokens of a prompt, and what sets them."""
        limit, why = int(self.tokenizer.model_max_length), "its model_max_length"
        if self.positions is not None and self.positions - self.answer_tokens < limit:
            limit = self.positions - self.answer_tokens
            why = f"the model reads {self.positions} tokens, of which {self.answer_tokens} are for the answer"
        return limit, why

    def is_control(self, token: int) -> bool:
        """Returns whether a token comes from the chat template alone."""
        return token in self._control_ids

    def cut_controls(self, text: str) -> list[str]:
        """Returns the text, cut after the first character of each control token that is spelt in it.

        Its parts are tokenised apart, so that none of them is a control token.
        """
        if not self._controls:
            return [text]
        cuts = [0, *(match.start() + 1 for match in self._spelt.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(cuts)]

    # -- what the template says ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Returns the tokenizer's name, quoted, for messages."""
        return repr(self.tokenizer.name_or_path or type(self.tokenizer).__name__)

    def render(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool) -> str:
        settings = {
            **self.tokenizer.special_tokens_map,
            "add_generation_prompt": add_generation_prompt,
            "enable_thinking": self.think,  # without, Qwen3 answers at once; others ignore the variable
        }
        try:
            return templates.render(self._template, messages, settings)
        except templates.TemplateFailure as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ChatTemplateError(
                f"the chat template of {self.name} fails for messages of these roles: {roles}: {error}"
            ) from error

    def _find_template(self) -> str:
        """Returns the chat template, with a date that stays the same."""
        if not self.tokenizer.chat_template:
            raise ChatTemplateError(
                f"{self.name} has no chat template; allowed: a tokenizer with one, as models have that are "
                "tuned to follow instructions"
            )
        try:
            template = self.tokenizer.get_chat_template()
        except (ValueError, TypeError) as error:  # of several, none is the default
            raise ChatTemplateError(f"the chat template of {self.name} cannot be found: {error}") from error
        if not isinstance(template, str):
            raise ChatTemplateError(f"the chat template of {self.name} is no text: {template!r:.60}")
        return SAME_DAY + template if "strftime_now" in template else template

    def _find_end_of_turn(self) -> int:
        """Returns the token that ends an answer.

        ``eos_token`` ends a text, which is not always a turn: Gemma's is ``<eos>``, and its turns end with
        ``<end_of_turn>``.
        """
        messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
        _, answer, after = self.render(messages, add_generation_prompt=False).rpartition(ANSWER)
        if not answer:
            raise ChatTemplateError(
                f"the chat template of {self.name} leaves out or changes an assistant's message; allowed: "
                "one that writes it as it is"
            )
        tokens = self.encode_text(after.lstrip())
        if tokens and tokens[0] in self._control_ids:
            return tokens[0]
        if self.tokenizer.eos_token_id is None:
            raise TokenBoundaryError(
                f"{self.name} names no eos_token, and its chat template no token, to end a turn with"
            )
        return int(self.tokenizer.eos_token_id)

    def _find_ending(self) -> str:
        """Returns the end that all prompts have."""
        _, question, ending = self._probe_text.rpartition(QUESTION)
        if not question or not ending:
            raise ChatTemplateError(
                f"the chat template of {self.name} writes {QUESTION!r} as {self._probe_text!r}; allowed: "
                "one that writes it as it is, and a generation prompt after it"
            )
        start, end = THOUGHTS
        if not self.think and ending.rpartition(start)[1] and end not in ending.rpartition(start)[2]:
            raise ChatTemplateError(
                f"the chat template of {self.name} opens {start} before every answer, even with "
                "enable_thinking=False; allowed: a model that can answer without thoughts"
            )
        return ending

    # -- checks --------------------------------------------------------------------------------------------

    def _check_digits(self) -> None:
        """Checks that numbers are their digits, so that every program writes a number in the same tokens."""
        single = {digit: self.encode_text(digit) for digit in DIGITS}
        split = [digit for digit, tokens in single.items() if len(tokens) != 1]
        if split:
            raise TokenBoundaryError(
                f"digits {split} are not one token each in {self.name}; {self._advise_other()}"
            )
        for digit in DIGITS:
            for answer in (digit, f"1{digit}", f"{digit}00", f"20{digit}8"):
                self._check_seam(answer, tuple(single[d][0] for d in answer))

    def _check_seam(self, answer: str, tokens: Tokens) -> None:
        together = self.encode_text(self._probe_text + answer)
        if together != self._probe + tokens:
            raise TokenBoundaryError(
                f"{self.name} tokenises {answer!r} after a prompt otherwise than as {list(tokens)}, so the "
                f"tokens scored would not be the tokens read: the tokens at the end of both together are "
                f"{list(together[-len(tokens) - 1 :])}; {self._advise_other()}"
            )

    def _advise_other(self) -> str:
        """Returns the advice for tokenizers that merge."""
        other = "name" if self.numbers else "id"
        return f"use a tokenizer that splits digits and at line ends (Qwen, SmolLM), or env.answer: {other}"

    def check_controls(self, text: str, tokens: Tokens, allowed: int) -> None:
        """Checks that the text has brought no control token, such as one of a single character."""
        if self._count_controls(tokens) != allowed:
            raise TokenBoundaryError(
                f"a control token of {self.name} is spelt in a text of {len(text)} characters and cannot be "
                f"read as ordinary characters; the control tokens are {', '.join(self._controls)}"
            )

    def _count_controls(self, tokens: Tokens) -> int:
        return sum(map(self._control_ids.__contains__, tokens))


class Recent:
    """Tokens by text, of which the least recently used are forgotten beyond ``limit`` tokens in all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._tokens: dict[str, Tokens] = {}

    def get(self, text: str) -> Tokens | None:
        tokens = self._tokens.pop(text, None)
        if tokens is not None:
            self._tokens[text] = tokens  # dictionaries keep the order of insertion
        return tokens

    def put(self, text: str, tokens: Tokens) -> None:
        self._tokens[text] = tokens
        self.held += len(tokens)
        while self.held > self.limit:
            self.held -= len(self._tokens.pop(next(iter(self._tokens))))


def _control_tokens(tokenizer: Any, template: str) -> dict[str, int]:
    """Returns the added tokens by their spelling that are special, or that the chat template names.

    Qwen3's ``<think>`` is named but not special. Other added tokens are ordinary text: Gemma has line ends.
    """
    return {
        token.content: index
        for index, token in tokenizer.added_tokens_decoder.items()
        if token.special or (token.content.strip() and token.content in template)
    }
