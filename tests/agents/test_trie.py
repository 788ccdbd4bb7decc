"""The trie of legal actions: which nodes branch, and where each action's path leads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.tokens.codec import ChatCodec
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


def test_one_legal_action_leaves_nothing_to_decide() -> None:
    trie = build(123)
    assert trie.nodes == () and trie.paths == {123: ()} and not trie.following and not trie.ends


def test_what_is_shared_at_first_is_no_decision() -> None:
    """123 and 124 differ in their third digit only."""
    assert build(123, 124).nodes == (Node((1, 2), (3, 4)),)


def test_hundreds_of_ids() -> None:
    """0 … 499 have 1 + 9 + 40 branching nodes, since 0 and 50 … 99 only end.

    The root has 10 digits; below 1 … 9 comes any digit or the end, below 10 … 49 too.
    """
    trie = build(*range(500))
    assert len(trie.nodes) == 1 + 9 + 40
    assert trie.nodes[0].children == tuple(range(10))
    assert all(node.children == (*range(10), END) for node in trie.nodes[1:])
    assert len(set(trie.paths.values())) == 500
    assert max(map(len, trie.paths.values())) == 3


def test_parents_come_before_children() -> None:
    for path in build(*range(200)).paths.values():
        assert [choice.node for choice in path] == sorted({choice.node for choice in path})


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ({}, "at least one legal action, got none"),
        ({3: (3, END), 4: (3, END)}, r"action 3's tokens \[3, 99\] equal or begin those of \[4\]"),
        ({1: (1,), 12: (1, 2)}, r"action 1's tokens \[1\] equal or begin those of \[12\]"),
        ({12: (1, 2), 1: (1,), 2: (2, END)}, r"action 1's tokens \[1\] equal or begin those of \[12\]"),
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
        for choice in path:
            node = trie.nodes[choice.node]
            tokens = (*node.prefix, node.children[choice.child])
            assert digits(action)[: len(tokens)] == tokens
    # If every child of a node is equally likely, the actions' probabilities add up to 1.
    shares = [math.prod(1 / len(trie.nodes[c.node].children) for c in path) for path in trie.paths.values()]
    assert math.isclose(sum(shares), 1.0)


def test_a_name_with_a_control_token_in_it_begins_no_other() -> None:
    """Were it read as the end of the turn, the answer "a" would begin the answer "a<|im_end|>c"."""
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    answers = {action: codec.encode_answer(name) for action, name in enumerate(("a", "a<|im_end|>c", "b"))}
    trie = ActionTrie.build(answers)
    assert len(set(trie.paths.values())) == 3
    below = next(node for node in trie.nodes if node.prefix == answers[0][:-1])
    assert codec.end_of_turn in below.children and len(below.children) == 2
