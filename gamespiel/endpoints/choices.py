"""The probabilities of a model's choice in a conversation, from its endpoint's log-probabilities.

A choice is one of some texts, the legal replies. Their tokens form a trie, of which the endpoint lists the
likeliest children place by place. Where one text alone is left, the reply is that text: nothing is asked
about its other tokens. Where a text is whole and others go on, the end of the turn is a child like any other.
So a text's probability is the product along its path of the model's own probabilities, summed over the ways
to write it, and what remains of 1 is the probability of replies that are none of the texts.
"""

from __future__ import annotations

import heapq
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gamespiel.endpoints.chat import Chat, EndpointError, Message, RefusedError
from gamespiel.endpoints.completion import TopTokens

TOP = 20
"""The tokens that are asked for at each place: as many as OpenAI's and vLLM's endpoints give by default."""

LIMIT = 300.0
"""Seconds that one request may take, with all repeats."""

NEGLIGIBLE = 1e-6
"""The probability up to which a beginning of a reply is not followed; it counts as unseen."""

ENDS = frozenset({
    "<|im_end|>", "<|endoftext|>", "</s>", "<eos>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>",
    "<|return|>", "<end_of_turn>", "<|endofturn|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>",
})  # fmt: skip
"""The tokens that end a turn in the templates of known models."""

_SPECIAL = re.compile(r"<[^<>]*>|")

MOST_KEPT = 1 << 16
"""The most conversations whose choices are kept."""


class ProbabilitiesError(EndpointError):
    """An endpoint that does not give the probabilities of a choice."""


@dataclass(frozen=True)
class Choice:
    """A model's choice among texts.

    Attributes:
        probabilities: The probability of each text among the texts, in their order; they sum to 1.
        legal_mass: The probability that the model's reply is one of the texts, as far as it is seen.
        unseen: The largest share of this choice that texts may have beyond what was listed, in [0, 1].
    """

    probabilities: tuple[float, ...]
    legal_mass: float
    unseen: float


class ChoiceReader:
    """Reads choices from an endpoint, from any number of threads. Each conversation is asked about once.

    Args:
        chat: The endpoint.
        top: The tokens that are asked for at each place. Endpoints have a limit of their own.
    """

    def __init__(self, chat: Chat, top: int = TOP) -> None:
        self._chat, self._top = chat, top
        self._known: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], Choice] = {}
        self._lock = threading.Lock()
        self._answered = False
        self._asked, self._mass, self._least, self._unseen = 0, 0.0, 1.0, 0.0

    def read(self, messages: Sequence[Message], texts: Sequence[str]) -> Choice:
        """Returns the choice among distinct, non-empty texts as the next reply to a conversation.

        Raises:
            ProbabilitiesError: the endpoint does not give what is needed.
            EndpointError: it fails.
        """
        key = tuple((message["role"], message["content"]) for message in messages), tuple(texts)
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = Choice((1.0,), 1.0, 0.0) if len(texts) == 1 else self._ask(messages, texts)
        with self._lock:
            new = key not in self._known
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[key] = found
            if new and len(texts) > 1:
                self._asked += 1
                self._mass += found.legal_mass
                self._least = min(self._least, found.legal_mass)
                self._unseen = max(self._unseen, found.unseen)
        return found

    def read_all(
        self,
        questions: Iterable[tuple[Sequence[Message], Sequence[str]]],
        at_once: int,
        on_read: Callable[[], None] = lambda: None,
    ) -> list[Choice]:
        """Returns the choices of several conversations, asked about together.

        Args:
            questions: Conversations and texts, as ``read`` takes them.
            at_once: The most conversations at once.
            on_read: Called after each.

        Raises:
            ProbabilitiesError, EndpointError: as ``read`` does. Requests under way end with the client, which
                is the caller's to close.
        """
        threads = ThreadPoolExecutor(at_once, thread_name_prefix="gamespiel.choices")
        try:
            found = []
            for choice in threads.map(lambda question: self.read(*question), questions):
                found.append(choice)
                on_read()
            return found
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def to_dict(self) -> dict[str, object] | None:
        """Returns the measures of the choices so far as plain data; None if there was none."""
        with self._lock:
            if not self._asked:
                return None
            return {
                "source": str(self._chat.endpoint),
                "conversations": self._asked,
                "legal_mass_mean": self._mass / self._asked,
                "legal_mass_min": self._least,
                "unseen_max": self._unseen,
            }

    def _ask(self, messages: Sequence[Message], texts: Sequence[str]) -> Choice:
        descent = _Descent(texts)
        prompt_tokens = 0
        while (beginning := descent.next_beginning()) is not None:
            top = self._list_tokens(messages, beginning.text)
            if not beginning.text:
                prompt_tokens = top.usage.prompt_tokens
            else:
                self._check_continued(beginning, top.usage.prompt_tokens, prompt_tokens)
            try:
                descent.take(beginning, top)
            except ValueError as error:
                raise self._make_error(f"{error}") from error
        if not sum(descent.masses):
            raise self._make_error(
                f"none of the legal replies {_list_some(texts)} begins with one of the {self._top} likeliest "
                f"tokens ({descent.describe_opening()}); allowed: one that answers without reasoning first"
            )
        mass = sum(descent.masses)
        shares = tuple(own / mass for own in descent.masses)
        return Choice(shares, min(mass, 1.0), descent.unseen / (mass + descent.unseen))

    def _list_tokens(self, messages: Sequence[Message], written: str) -> TopTokens:
        """Returns the likeliest tokens after the beginning of a reply.

        Raises:
            ProbabilitiesError: the endpoint refuses to list them, or does not.
            EndpointError: it fails.
        """
        try:
            top = self._chat.request_top_tokens(messages, written, self._top, time.monotonic() + LIMIT)
        except TimeoutError as error:
            where = self._chat.endpoint.base_url
            raise EndpointError(f"endpoint {where}: no log-probabilities came in {LIMIT:g} s") from error
        except RefusedError as error:
            if written:
                raise self._make_error(f"{self._explain_continuation(written)}. It says: {error}") from error
            if not self._answered:
                raise self._make_error(
                    f"it does not list {self._top} log-probabilities. It says: {error}"
                ) from error
            raise
        if not top.probabilities:
            raise self._make_error(
                "it does not list log-probabilities; allowed: one that heeds logprobs and top_logprobs"
            )
        self._answered = True
        return top

    def _check_continued(self, beginning: _Beginning, tokens: int, before: int) -> None:
        """Checks that a request was about the tokens that the beginning of the reply was followed along.

        An endpoint that ignores what it was asked begins another turn, whose template takes more tokens.
        """
        if not tokens or not before or tokens != before + beginning.tokens:
            counted = (
                f"it counted {tokens} tokens after a prompt of {before}, not {before + beginning.tokens}"
            )
            raise self._make_error(f"{self._explain_continuation(beginning.text)}: {counted}")

    def _explain_continuation(self, written: str) -> str:
        return (
            f"several legal replies begin with {written!r:.40}, and it does not go on from there; allowed: "
            "one that heeds continue_final_message and counts its tokens, as vLLM's servers do"
        )

    def _make_error(self, reason: str) -> ProbabilitiesError:
        return ProbabilitiesError(
            f"endpoint {self._chat.endpoint.base_url} does not give the probabilities of a choice: {reason}"
        )


@dataclass(frozen=True)
class _Beginning:
    """The beginning of a reply.

    Attributes:
        text: The text so far.
        mass: The probability of the likeliest way to write it.
        tokens: The tokens of that way.
    """

    text: str
    mass: float
    tokens: int


class _Descent:
    """The way down the trie of some texts.

    Args:
        texts: The texts.

    Attributes:
        masses: The probability of each text so far.
        unseen: An upper bound on what is missing in all of them together.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._places = {text: place for place, text in enumerate(texts)}
        self._waiting: dict[str, list[tuple[float, int]]] = {"": [(1.0, 0)]}
        self._order = [(0, "")]
        self._opening: TopTokens | None = None
        self.masses = [0.0] * len(texts)
        self.unseen = 0.0

    def next_beginning(self) -> _Beginning | None:
        """Returns the shortest beginning that is not followed yet; None at the end.

        All ways to a beginning are known then, since they lead over shorter ones. An endpoint goes on from a
        text, not from a way to write it. So only the likeliest way is followed.
        """
        while self._order:
            _, text = heapq.heappop(self._order)
            *others, (mass, tokens) = sorted(self._waiting.pop(text), key=lambda way: way[0])
            self.unseen += sum(other for other, _ in others)
            if mass > NEGLIGIBLE:
                return _Beginning(text, mass, tokens)
            self.unseen += mass
        return None

    def take(self, beginning: _Beginning, top: TopTokens) -> None:
        """Goes on by the likeliest tokens after a beginning.

        Raises:
            ValueError: a text ends there, and no token is known to end the turn.
        """
        self._opening = self._opening or top
        left = [text for text in self._places if text.startswith(beginning.text)]
        missing = {
            text[:end] for text in left for end in range(len(beginning.text) + 1, len(text) + 1)
        }  # fmt: skip
        for token, probability in top.probabilities.items():
            text = beginning.text + token
            missing.discard(text)
            fitting = [whole for whole in left if whole.startswith(text)]
            if not token or not fitting:
                continue
            mass = beginning.mass * probability
            if len(fitting) == 1:
                self.masses[self._places[fitting[0]]] += mass
                continue
            if text not in self._waiting:
                heapq.heappush(self._order, (len(text), text))
            self._waiting.setdefault(text, []).append((mass, beginning.tokens + 1))
        count = len(missing)
        if beginning.text in self._places:
            ended = _sum_ends(top)
            self.masses[self._places[beginning.text]] += beginning.mass * ended
            count += ended == 0.0
        self.unseen += beginning.mass * min(top.rest, count * top.most_unlisted)

    def describe_opening(self) -> str:
        """Returns the likeliest first tokens, for a message."""
        opening = self._opening.probabilities if self._opening is not None else {}
        likeliest = sorted(opening.items(), key=lambda row: -row[1])[:3]
        return ", ".join(f"{token!r:.30}: {probability:.3g}" for token, probability in likeliest)


def _sum_ends(top: TopTokens) -> float:
    """Returns the probability of the listed tokens that end the turn; 0 if none is among the likeliest.

    Raises:
        ValueError: none is, but another special token is likely, which may be one.
    """
    listed = top.probabilities
    ended = [probability for token, probability in listed.items() if token in ENDS]
    strange = [t for t, p in listed.items() if _SPECIAL.fullmatch(t) and t not in ENDS and p > NEGLIGIBLE]
    if not ended and strange:
        raise ValueError(
            f"none of the tokens {_list_some(strange)} is known to end a turn; known: "
            f"{_list_some(sorted(ENDS))}"
        )
    return sum(ended)


def _list_some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - 20} more" if len(texts) > 20 else ""
    return ", ".join(f"{text!r:.40}" for text in texts[:20]) + more
