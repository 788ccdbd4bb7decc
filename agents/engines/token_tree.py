"""The layout of token sequences that share beginnings: one row, in which each shared token is written once.

The sequences' trie is written depth first. A token's descendants then follow it without a gap, so one number
per token, the end of its subtree, says who may attend to it: token i attends to token j if j <= i < end[j].
Tokens are attended to in tiles of neighbours. All that a tile needs from before it are the ancestors of its
first token: as many as that token is deep.

Of conversations, keys and values of trees are kept between turns, so that a turn reads only what is new.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gamespiel.agents.tokens import Tokens

if TYPE_CHECKING:
    from gamespiel.agents.engines.shared import TreePrefix

Indices = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
A = TypeVar("A")


@dataclass(frozen=True)
class TokenTree:
    """Sequences as one row of n distinct tokens, depth first.

    Attributes:
        tokens: int64 (n,).
        depths: Each token's position in its sequences, int64 (n,).
        ends: End of each token's subtree in the row, exclusive, int64 (n,).
        paths: Per sequence, positions of its tokens in the row, int64 (its length,).
    """

    tokens: Indices
    depths: Indices
    ends: Indices
    paths: list[Indices]

    @classmethod
    def build(cls, sequences: Sequence[Tokens]) -> TokenTree:
        """Returns the tree of non-empty sequences; those given twice are in it once."""
        size = sum(map(len, sequences))
        tokens, depths, ends = (np.empty(size, dtype=np.int64) for _ in range(3))
        paths: list[Indices] = [np.empty(0, dtype=np.int64)] * len(sequences)
        path, n = np.empty(0, dtype=np.int64), 0
        for row, sequence, shared in walk_sequences(sequences):
            ends[path[shared:]] = n
            new = np.arange(n, n + len(sequence) - shared)
            tokens[new], depths[new] = sequence[shared:], np.arange(shared, len(sequence))
            path = paths[row] = np.concatenate([path[:shared], new])
            n += len(new)
        ends[path] = n
        return cls(tokens[:n], depths[:n], ends[:n], paths)


def walk_sequences(sequences: Sequence[Tokens]) -> Iterator[tuple[int, Tokens, int]]:
    """Yields each sequence's index and tokens, and how many of them the one before begins with.

    Their order is lexicographic, which puts shared beginnings side by side.
    """
    before: Tokens = ()
    for row in sorted(range(len(sequences)), key=sequences.__getitem__):
        yield row, sequences[row], count_shared(before, sequences[row])
        before = sequences[row]


def count_distinct(sequences: Sequence[Tokens]) -> int:
    """Returns the tokens of the sequences' tree: those of common beginnings count once."""
    return sum(len(tokens) - shared for _, tokens, shared in walk_sequences(sequences))


def group_sequences(sequences: Sequence[Tokens], budget: int) -> Iterator[list[int]]:
    """Yields indices of sequences whose tree has at most ``budget`` tokens; a longer sequence is alone."""
    group, n = list[int](), 0
    for row, tokens, shared in walk_sequences(sequences):
        n += len(tokens) - shared
        if group and n > budget:
            yield group
            group, n = [], len(tokens)
        group.append(row)
    if group:
        yield group


class Tiles(NamedTuple, Generic[A]):
    """Tiles of the same size: b of them, of t queries and k keys each. One alone has no first axis.

    They are arrays, and tensors when they are on the device.

    Attributes:
        queries: Tokens that attend, by place in the row that is read, int64 (b, t). A tile that is too short
            repeats its first token.
        keys: Tokens that they may attend to, by place among the stored tokens and, after them, the row,
            int64 (b, k). A tile with fewer repeats its last key.
        allowed: bool (b, t, k), true = attends.
        query_depths: Their positions, int64 (b, t).
        key_depths: Theirs, int64 (b, k).
    """

    queries: A
    keys: A
    allowed: A
    query_depths: A
    key_depths: A


KEYS_ROUNDED_TO = 64
"""Tiles with about as many keys share one call; fast kernels also want a mask's rows aligned."""


def choose_tile_width(tree: TokenTree, least: int, gathered: int, rows: Indices | None = None) -> int:
    """Returns the least width, doubled until the tiles have ``gathered`` keys per token of the row in all.

    With ``rows``, ascending, only these tokens are tiled.
    """
    n, width = len(tree.tokens), least
    depths = tree.depths if rows is None else tree.depths[rows]
    while width < len(depths) and int(depths[::width].sum()) + n > gathered * n:
        width *= 2
    return width


def tile_fresh(tree: TokenTree, fresh: Indices, places: Indices, width: int) -> list[Tiles[Array]]:
    """Returns some of the tree's tokens in tiles of ``width``, with what each may attend to.

    Args:
        tree: The tree.
        fresh: The tokens that are read, by position in the tree, ascending, int64 (f,).
        places: By position in the tree, place among the keys, int64 (n,).
        width: Tokens of a tile.
    """
    tiles = []
    leaves = {int(path[-1]): path for path in tree.paths}
    ends_of_paths = np.array(sorted(leaves))
    below = ends_of_paths[np.searchsorted(ends_of_paths, fresh)]
    for start in range(0, len(fresh), width):
        queries = fresh[start : start + width]
        paths = [leaves[int(end)] for end in np.unique(below[start : start + width])]
        on_paths = np.zeros(len(tree.tokens), dtype=np.bool_)
        on_paths[np.concatenate(paths)] = True
        keys = np.flatnonzero(on_paths[: queries[-1] + 1])
        allowed = (keys <= queries[:, None]) & (queries[:, None] < tree.ends[keys])
        at = np.arange(start, start + len(queries))
        tiles.append(Tiles(at, places[keys], allowed, tree.depths[queries], tree.depths[keys]))
    return _batch_tiles(tiles, width)


def tile_continuations(
    tree: TokenTree, paths: Sequence[Indices], counts: Sequence[int], width: int
) -> list[Tiles[Array]]:
    """Returns rows of new tokens in tiles: ``counts[i]`` tokens continue ``paths[i]``, a path of the tree.

    New tokens follow the stored ones, row by row.
    """
    tiles, first = [], np.concatenate([[0], np.cumsum(counts)])
    row_of = np.repeat(np.arange(len(counts)), counts)
    depths = np.concatenate([len(path) + np.arange(n) for path, n in zip(paths, counts, strict=True)])
    anchors = np.array([path[-1] for path in paths])[row_of]
    stored = len(tree.tokens)
    for start in range(0, len(row_of), width):
        queries = np.arange(start, min(start + width, len(row_of)))
        rows = np.unique(row_of[queries])
        old = np.unique(np.concatenate([paths[row] for row in rows]))
        new = np.arange(first[rows[0]], queries[-1] + 1)
        at = queries[:, None]
        allowed = np.concatenate(
            [
                (old <= anchors[at]) & (anchors[at] < tree.ends[old]),
                (row_of[new] == row_of[at]) & (new <= at),
            ],
            axis=1,
        )
        keys, key_depths = (
            np.concatenate([old, stored + new]),
            np.concatenate([tree.depths[old], depths[new]]),
        )
        tiles.append(Tiles(queries, keys, allowed, depths[queries], key_depths))
    return _batch_tiles(tiles, width)


def tile_paths(tree: TokenTree, paths: Sequence[Indices], width: int) -> list[Tiles[Array]]:
    """Returns rows of one token each in tiles: token i follows ``paths[i]`` and attends to nothing else."""
    tiles = []
    anchors, depths = np.array([path[-1] for path in paths]), np.array([len(path) for path in paths])
    for start in range(0, len(paths), width):
        queries = np.arange(start, min(start + width, len(paths)))
        distinct = {int(anchors[row]): paths[row] for row in queries.tolist()}
        keys = np.unique(np.concatenate(list(distinct.values())))
        at = anchors[queries][:, None]
        allowed = (keys <= at) & (at < tree.ends[keys])
        tiles.append(Tiles(queries, keys, allowed, depths[queries], tree.depths[keys]))
    return _batch_tiles(tiles, width)


def _batch_tiles(tiles: Sequence[Tiles[Array]], width: int) -> list[Tiles[Array]]:
    """Returns the tiles, those of about the same number of keys together."""
    by_size: dict[int, list[Tiles[Array]]] = {}
    for tile in tiles:
        size = -(-len(tile.keys) // KEYS_ROUNDED_TO) * KEYS_ROUNDED_TO
        by_size.setdefault(size, []).append(tile)
    return [_stack_tiles(members, width, size) for size, members in sorted(by_size.items())]


def _stack_tiles(members: Sequence[Tiles[Array]], width: int, size: int) -> Tiles[Array]:
    """Returns tiles stacked: short ones repeat their first query and, not allowed, their last key."""
    b = len(members)
    queries, query_depths = np.empty((b, width), dtype=np.int64), np.empty((b, width), dtype=np.int64)
    keys, key_depths = np.empty((b, size), dtype=np.int64), np.empty((b, size), dtype=np.int64)
    allowed = np.zeros((b, width, size), dtype=np.bool_)
    for row, tile in enumerate(members):
        t, k = tile.allowed.shape
        allowed[row, :t, :k] = tile.allowed
        allowed[row, t:, :k] = tile.allowed[0]
        for stacked, entries, more in (
            (queries, tile.queries, tile.queries[0]),
            (query_depths, tile.query_depths, tile.query_depths[0]),
            (keys, tile.keys, tile.keys[-1]),
            (key_depths, tile.key_depths, tile.key_depths[-1]),
        ):
            stacked[row, : len(entries)] = entries
            stacked[row, len(entries) :] = more
    return Tiles(queries, keys, allowed, query_depths, key_depths)


class KeptPrefixes:
    """The prefixes of earlier forwards, of which those read longest ago leave first.

    What has left is read again: the results are the same but for rounding.
    """

    def __init__(self) -> None:
        self._held: list[tuple[Hashable, TreePrefix]] = []

    @property
    def tokens(self) -> int:
        """Returns the distinct tokens whose keys and values are kept."""
        return sum(len(prefix.tree.tokens) for _, prefix in self._held)

    def list_prefixes(self, owner: Hashable) -> list[TreePrefix]:
        """Returns the prefixes of one owner, in the order in which they were read."""
        return [prefix for prefix_owner, prefix in self._held if prefix_owner == owner]

    def put(self, owner: Hashable, prefix: TreePrefix, limit: int) -> None:
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
            (prefix_owner, prefix)
            for prefix_owner, prefix in self._held
            if prefix_owner != owner or not all(_is_followed(prompt, order) for prompt in prefix.prompts)
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


def find_known(tree: TokenTree, prompts: Sequence[Tokens], held: Sequence[TreePrefix]) -> Known:
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
