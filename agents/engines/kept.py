"""What an engine keeps of conversations between their turns, so that a turn reads only what is new."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gamespiel.agents.engines.token_tree import Indices, TokenTree
from gamespiel.agents.tokens import Tokens


class Held(Protocol):
    """A prefix whose keys and values can be used again.

    Attributes:
        tree: Its prompts' tokens.
        prompts: The prompts.
    """

    tree: TokenTree
    prompts: Sequence[Tokens]


H = TypeVar("H", bound=Held)


class KeptPrefixes(Generic[H]):
    """The prefixes of earlier forwards, of which those read longest ago leave first.

    What has left is read again: the results are the same but for rounding.
    """

    def __init__(self) -> None:
        self._held: list[tuple[Hashable, H]] = []

    @property
    def tokens(self) -> int:
        """Returns the distinct tokens whose keys and values are kept."""
        return sum(len(prefix.tree.tokens) for _, prefix in self._held)

    def list_prefixes(self, owner: Hashable) -> list[H]:
        """Returns the prefixes of one owner, in the order in which they were read."""
        return [prefix for own, prefix in self._held if own == owner]

    def put(self, owner: Hashable, prefix: H, limit: int) -> None:
        """Keeps a prefix, if it has at most ``limit`` tokens, which is the limit of all together."""
        size = len(prefix.tree.tokens)
        if size > limit:
            return
        while self._held and self.tokens + size > limit:
            del self._held[0]
        self._held.append((owner, prefix))

    def drop_followed(self, owner: Hashable, prompts: Sequence[Tokens]) -> None:
        """Forgets the prefixes of one owner that these prompts all continue."""
        order = sorted(prompts)
        self._held = [
            (own, prefix)
            for own, prefix in self._held
            if own != owner or not all(_is_followed(prompt, order) for prompt in prefix.prompts)
        ]

    def clear(self) -> None:
        """Forgets everything."""
        self._held = []


def _is_followed(prompt: Tokens, order: Sequence[Tokens]) -> bool:
    """Returns whether one of the prompts, in lexicographic order, begins with this one and goes on."""
    at = bisect_left(order, prompt)
    while at < len(order) and order[at] == prompt:
        at += 1
    return at < len(order) and order[at][: len(prompt)] == prompt


class Known(NamedTuple):
    """The tokens of a tree whose keys and values are there already.

    Attributes:
        used: The earlier prefixes that have them, by position, ascending.
        fresh: Positions of the other tokens in the tree, ascending, int64 (f,).
        places: Place of each token among the keys and values of the prefixes that are used, one after the
            other, and after them the fresh ones, int64 (n,).
    """

    used: list[int]
    fresh: Indices
    places: Indices


def find_known(tree: TokenTree, prompts: Sequence[Tokens], held: Sequence[Held]) -> Known:
    """Returns which tokens of a tree earlier prefixes have; never a prompt's last token, which is read anew.

    Args:
        tree: The tree of ``prompts``.
        prompts: The prompts.
        held: The earlier prefixes.
    """
    earlier = sorted(
        (prompt, at, row) for at, prefix in enumerate(held) for row, prompt in enumerate(prefix.prompts)
    )
    order = [prompt for prompt, _, _ in earlier]
    nearest = [_find_nearest(order, prompt) for prompt in prompts]
    used = sorted({earlier[at][1] for shared, at in nearest if shared})
    sizes = [len(held[at].tree.tokens) for at in used]
    offsets = dict(zip(used, np.cumsum([0, *sizes]).tolist(), strict=False))
    places = np.full(len(tree.tokens), -1, dtype=np.int64)
    for path, (shared, at) in zip(tree.paths, nearest, strict=True):
        if shared:
            _, prefix, row = earlier[at]
            places[path[:shared]] = held[prefix].tree.paths[row][:shared] + offsets[prefix]
    places[[path[-1] for path in tree.paths]] = -1
    fresh = np.flatnonzero(places < 0)
    places[fresh] = sum(sizes) + np.arange(len(fresh))
    return Known(used, fresh, places)


def _find_nearest(order: Sequence[Tokens], prompt: Tokens) -> tuple[int, int]:
    """Returns the most tokens in common with one of the prompts, which are in order, and its position."""
    at = bisect_left(order, prompt)
    near = [(count_shared(order[i], prompt), i) for i in (at - 1, at) if 0 <= i < len(order)]
    return max(near, default=(0, 0))


def count_shared(one: Tokens, other: Tokens) -> int:
    """Returns the length of the longest common beginning, in a number of steps that is its logarithm."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
