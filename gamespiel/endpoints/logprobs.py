"""Log-probabilities of a whole conversation, which an endpoint counts in one forward pass.

The request and the result are those of upstream's ``collect_logprobs``: the conversation is written in the
template of Qwen's models, whatever the model is, and what an endpoint says of the tokens of replies is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gamespiel.endpoints.chat import Chat, EndpointError, Message

TOP = 20
"""The most likely tokens that are asked for at each place."""

TIMEOUT = 300.0
"""Seconds that the endpoint may take."""

_ROLES = ("system", "user", "assistant")


def collect_full_logprobs(chat: Chat, conversation: Sequence[Message]) -> dict[str, Any]:
    """Returns what ``extra`` says of a conversation's log-probabilities.

    Returns:
        ``full_logprobs``: None, or a dict of ``full`` (the conversation as text), ``token_ids`` (the place of
        each token in it, in characters: upstream calls them so) and ``logprobs`` (for each token of a reply a
        dict of the most likely tokens and their log-probabilities, else None). Where it is None because the
        endpoint failed, ``logprobs_error`` says how.
    """
    full, replies = _write(conversation)
    if not replies:
        return {"full_logprobs": None}
    asked = {
        "model": chat.endpoint.model, "prompt": full, "max_tokens": 1, "logprobs": TOP, "echo": True,
        "stream": False,
    }  # fmt: skip
    try:
        response = chat.post("/completions", asked, time.monotonic() + TIMEOUT)
        choices = response.get("choices", [])
        said = choices[0].get("logprobs") if choices else None
        if not said or not said.get("tokens"):
            return {"full_logprobs": None}
        return {"full_logprobs": {"full": full, **_mark(said, replies)}}
    except (EndpointError, LookupError, TypeError, AttributeError) as error:
        return {"full_logprobs": None, "logprobs_error": f"{error!s:.1000}"}


def _write(conversation: Sequence[Message]) -> tuple[str, list[range]]:
    """Returns a conversation as text, and where its replies are, in characters."""
    text, replies = "", []
    for message in conversation:
        role, content = message["role"], message["content"]
        if role not in _ROLES:
            continue
        part = f"<|im_start|>{role}\n{content}<|im_end|>\n"
        if role == "assistant":
            replies.append(range(len(text), len(text) + len(part)))
        text += part
    return text, replies


def _mark(said: dict[str, Any], replies: Sequence[range]) -> dict[str, Any]:
    tokens: list[str] = said["tokens"]
    top, places = said.get("top_logprobs") or [], said.get("text_offset") or []
    starts = list(accumulate(map(len, tokens), initial=0))
    return {
        "token_ids": [places[i] if i < len(places) else starts[i] for i in range(len(tokens))],
        "logprobs": [
            top[i]
            if i < len(top) and top[i] and isinstance(top[i], dict) and any(starts[i] in r for r in replies)
            else None
            for i in range(len(tokens))
        ],
    }
