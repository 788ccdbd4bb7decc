"""A stranger's JSON, read within limits: what is small as text can be very large in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from task_gym.files import read_finite

DEEPEST = 16
"""The most lists and objects in one another."""

DENSEST = 16
"""The fewest bytes of a file per list or object: honest boards have more, and each takes 100 in memory."""

MOST_NAMES = 1000
"""The most names in an object: a board's results have one for each agent or meeting."""

LARGEST_NUMBER = 1e16
"""The largest number."""

_OPENINGS = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|([\[{])', re.DOTALL)
"""The beginnings of lists and objects, and strings, whose brackets are none."""


def read_limited(content: bytes) -> Any:
    """Returns the data of a JSON text in UTF-8.

    Raises:
        ValueError: it is no JSON, or has a name twice, a number that is too large, or lists and objects that
            are too many or too deep.
        RecursionError: it is nested far too deeply.
    """
    _check_density(content)
    document = json.loads(
        content.decode("utf-8"),
        parse_int=partial(_read_number, int),
        parse_float=partial(_read_number, float),
        parse_constant=read_finite,
        object_pairs_hook=_read_object,
    )
    _check_depth(document)
    return document


def _check_density(content: bytes) -> None:
    """Raises ValueError if a text has more lists and objects than a board of its length."""
    most = len(content) // DENSEST
    if content.count(b"[") + content.count(b"{") > most:  # as replies full of brackets have, too
        openings = (token for token in _OPENINGS.finditer(content) if token.lastindex)
        if next(islice(openings, most, None), None):
            raise ValueError(f"it has more than {most:,} lists and objects, allowed: one per {DENSEST} bytes")


def _read_number(kind: Callable[[str], float], text: str) -> float:
    if not -LARGEST_NUMBER <= (number := kind(text)) <= LARGEST_NUMBER:
        raise ValueError(
            f"the number {text:.40} was given, allowed: {-LARGEST_NUMBER:g} … {LARGEST_NUMBER:g}"
        )
    return number


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_NAMES:
        raise ValueError(f"an object has {len(pairs):,} names, allowed: {MOST_NAMES:,}")
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {twice!r:.60} twice")
    return members


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"its lists and objects are nested more than {DEEPEST} deep")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
