"""What tokens cost: ``gamespiel leaderboard --prices NAME=IN:OUT``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from gamespiel.errors import InvalidValueError
from task_gym.errors import nearest, shown

Prices = Mapping[str, tuple[float, float]]
"""Dollars per million tokens of prompts and of replies, by an agent's name."""

_PRICE = re.compile(r"(.+)=(\d+\.?\d*):(\d+\.?\d*)", re.ASCII | re.DOTALL)


def read_prices(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Returns the prices of words as NAME=IN:OUT.

    Raises:
        InvalidValueError: a word is no price.
    """
    prices = {}
    for word in words:
        match = _PRICE.fullmatch(word)
        if match is None:
            raise InvalidValueError(
                f"--prices {shown(word)}: allowed: NAME=IN:OUT, dollars per million tokens, as gpt=0.5:2"
            )
        prices[match[1]] = float(match[2]), float(match[3])
    return prices


def check_priced(prices: Prices, names: Collection[str]) -> None:
    """Raises InvalidValueError unless each price is of an agent of the board."""
    for name in prices:
        if name not in names:
            raise InvalidValueError(
                f"--prices {shown(name)}: the board has {', '.join(names)}{nearest(name, names)}"
            )
