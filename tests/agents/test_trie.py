"""The trie of legal actions: which nodes branch, and where each action's path leads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.tokens.trie import ActionTrie, Branch, Node

END = 99


def digits(action: int) -> tuple[int, ...]:
    """Returns an action's tokens, one per digit, closed by end-of-turn."""
    return (*map(int, str(action)), END)


def build(*actions: int) -> ActionTrie:
    return ActionTrie.build({action: digits(action) for action in actions})


def test_ids_that_begin_one_another() -> None:
    """
    root ─ 1 ─┬─ end               1
              └─ 2 ─┬─ end         12
                    └─ 3 ─ end     123
         └ 2 ─ end                 2
    """
    trie = build(1, 12, 123, 2)
    assert trie.nodes == (Node((), (1, 2)), Node((1,), (2, END)), Node((1, 2), (3, END)))
    assert trie.paths == {
        1: (Branch(0, 0), Branch(1, 1)),
        12: (Branch(0, 0), Branch(1, 0), Branch(2, 1)),
        123: (Branch(0, 0), Branch(1, 0), Branch(2, 0)),
        2: (Branch(0, 1),),
    }
    assert trie.following == {Branch(0, 0): 1, Branch(1, 0): 2}
    assert trie.ends == {Branch(1, 1): 1, Branch(2, 1): 12, Branch(2, 0): 123, Branch(0, 1): 2}


def test_what_is_shared_at_first_is_no_decision() -> None:
    """123 and 124 differ in their third digit only; one legal action leaves nothing to decide."""
    assert build(123, 124).nodes == (Node((1, 2), (3, 4)),)
    trie = build(123)
    assert trie.nodes == () and trie.paths == {123: ()} and not trie.following and not trie.ends


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ({}, "at least one legal action, got none"),
        ({3: (3, END), 4: (3, END)}, r"action 3's tokens \[3, 99\] equal or begin those of \[4\]"),
        ({12: (1, 2), 1: (1,), 2: (2, END)}, r"action 1's tokens .* \[12\]"),
    ],
)
def test_sequences_that_cannot_be_told_apart(sequences: dict[int, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActionTrie.build(sequences)


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=60))
def test_walking_the_trie_enumerates_the_legal_set(legal: set[int]) -> None:
    """A walk over every child from the root finds each action once, by its path and with its tokens."""
    trie = build(*legal)
    found: dict[int, tuple[Branch, ...]] = {}
    waiting: list[tuple[Branch, ...]] = [
        (Branch(0, child),) for child in range(len(trie.nodes[0].children) if trie.nodes else 0)
    ]
    while waiting:
        path = waiting.pop()
        if path[-1] in trie.ends:
            assert path[-1] not in trie.following
            found[trie.ends[path[-1]]] = path
        else:
            node = trie.following[path[-1]]
            waiting += [(*path, Branch(node, child)) for child in range(len(trie.nodes[node].children))]
    assert found == (trie.paths if trie.nodes else {})
    assert set(trie.paths) == legal and len(set(trie.paths.values())) == len(legal)
    for action, path in trie.paths.items():
        # Parents come before children.
        assert [choice.node for choice in path] == sorted({choice.node for choice in path})
        for choice in path:
            node = trie.nodes[choice.node]
            tokens = (*node.prefix, node.children[choice.child])
            assert digits(action)[: len(tokens)] == tokens
    # If every child of a node is equally likely, the actions' probabilities add up to 1.
    shares = [math.prod(1 / len(trie.nodes[c.node].children) for c in path) for path in trie.paths.values()]
    assert math.isclose(sum(shares), 1.0)
