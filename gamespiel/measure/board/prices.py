"""Prices of tokens, which ``gamespiel leaderboard --prices NAME=IN:OUT`` gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gamespiel.errors import InvalidValueError
from task_gym.errors import nearest, quote

Prices = Mapping[str, tuple[float, float]]
"""Dollars per million tokens of prompts and of replies, by an agent's name."""

_PRICE = re.compile(r"(.+)=(\d{1,9}(?:\.\d{1,9})?):(\d{1,9}(?:\.\d{1,9})?)", re.ASCII | re.DOTALL)


def read_prices(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Returns the prices of words as NAME=IN:OUT.

    Raises:
        InvalidValueError: a word is no price, or an agent has two.
    """
    prices = {}
    for word in words:
        match = _PRICE.fullmatch(word)
        if match is None:
            raise InvalidValueError(
                f"--prices {quote(word)}: allowed: NAME=IN:OUT, dollars per million tokens, as gpt=0.5:2"
            )
        if match[1] in prices:
            raise InvalidValueError(f"--prices: {quote(match[1])} has two prices")
        prices[match[1]] = float(match[2]), float(match[3])
    return prices


def check_priced(prices: Prices, kinds: Mapping[str, str]) -> None:
    """Raises InvalidValueError unless each price is of an endpoint.

    Args:
        prices: The prices.
        kinds: The kinds of a board's agents, by name.
    """
    names = [name for name, kind in kinds.items() if kind == "endpoint"]
    for name in prices:
        if name not in names:
            raise InvalidValueError(
                f"--prices {quote(name)}: allowed: agents behind endpoints, here "
                f"{', '.join(names) or 'none'}{nearest(name, names)}"
            )
