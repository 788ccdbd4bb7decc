"""The constraints of answers: which tokens may be written, and what they mean.

Choosing and writing are one thing: a choice is a reply whose tokens a trie limits. Only samplers, scorers and
the constraints themselves know which of the two a constraint is.

In a trie, every action's sequence ends with the end-of-turn token, which is a child like any other. With the
legal ids 1 and 12, the node reached by "1" has two children, end-of-turn and "2". Without end-of-turn, 1
could never be chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from gamespiel.agents.tokens import Tokens
from task_gym.replies import ReplyText

if TYPE_CHECKING:
    from gamespiel.agents.tokens.codec import ChatCodec


class Node(NamedTuple):
    """A branching node: one decision of the policy.

    Attributes:
        prefix: The action's tokens before this decision, shape (depth,).
        children: The tokens that may follow, ascending, shape (n_children,), n_children >= 2.
    """

    prefix: Tokens
    children: Tokens


class Branch(NamedTuple):
    """A child that is taken on an action's path.

    Attributes:
        node: Index of the branching node.
        child: Index of the chosen child.
    """

    node: int
    child: int


@dataclass(frozen=True, eq=False)
class ActionTrie:
    """The token sequences of one state's legal actions, one of which an answer must be.

    A choice is one ratio unit, whose log-probability is the sum over its path. A trie is compared by
    identity, since the codec gives equal legal sets the same trie, and so does unpickling.

    Attributes:
        nodes: The branching nodes, parents before children. Nodes with one child are left out: a forced
            token needs no forward and has probability 1.
        paths: By legal action, the choices from the root to its end; empty for an only action.
        following: By choice, the index of the next branching node, if one follows.
        ends: By choice, the action that it decides, if no branching node follows.
        tokens: By legal action, its tokens, end-of-turn included.
    """

    nodes: tuple[Node, ...]
    paths: Mapping[int, tuple[Branch, ...]]
    following: Mapping[Branch, int]
    ends: Mapping[Branch, int]
    tokens: Mapping[int, Tokens]

    @classmethod
    def build(cls, sequences: Mapping[int, Sequence[int]]) -> ActionTrie:
        """Builds the trie from a map of actions to their tokens, end-of-turn included.

        Raises:
            ValueError: there is no action, or an action's tokens equal or begin another's.
        """
        if not sequences:
            raise ValueError("an action trie needs at least one legal action, got none")
        nodes: list[Node] = []
        paths: dict[int, list[Branch]] = {action: [] for action in sequences}
        level: list[tuple[Tokens, list[int]]] = [((), list(sequences))]
        while level:
            deeper: list[tuple[Tokens, list[int]]] = []
            for prefix, actions in level:
                groups = _group_by_next_token(sequences, prefix, actions)
                children = tuple(sorted(groups))
                for child, token in enumerate(children):
                    if len(children) > 1:
                        for action in groups[token]:
                            paths[action].append(Branch(len(nodes), child))
                    if len(groups[token]) > 1:
                        deeper.append(((*prefix, token), groups[token]))
                if len(children) > 1:
                    nodes.append(Node(prefix, children))
            level = deeper
        following = {path[i]: path[i + 1].node for path in paths.values() for i in range(len(path) - 1)}
        ends = {path[-1]: action for action, path in paths.items() if path}
        tokens = {action: tuple(sequence) for action, sequence in sequences.items()}
        return cls(tuple(nodes), {a: tuple(p) for a, p in paths.items()}, following, ends, tokens)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (tuple(self.tokens.items()),)

    @cached_property
    def _actions(self) -> dict[Tokens, int]:
        return {tokens: action for action, tokens in self.tokens.items()}

    def action_of(self, tokens: Tokens) -> int:
        """Returns the action that an answer's tokens mean.

        Raises:
            ValueError: they are no legal action's.
        """
        if tokens not in self._actions:
            raise ValueError(f"the tokens {list(tokens)} are the answer of none of {list(self.paths)}")
        return self._actions[tokens]

    # -- the constraint ------------------------------------------------------------------------------------

    def unit_sizes(self, tokens: Tokens) -> Sequence[int]:
        """Returns the decided tokens of each ratio unit of an answer: one unit, of the whole path."""
        return (len(self.paths[self.action_of(tokens)]),)

    def is_cut(self, tokens: Tokens) -> bool:
        """Returns whether an answer ends before its end: a choice never does."""
        return False

    def answer_tokens(self, action: int | np.integer) -> Tokens:
        """Returns the tokens of a given action.

        Raises:
            ValueError: it is not legal.
        """
        if int(action) not in self.tokens:
            raise ValueError(f"action {action} is not legal: the legal actions are {list(self.paths)}")
        return self.tokens[int(action)]

    def read_answer(self, tokens: Tokens, codec: ChatCodec) -> int:
        """Returns the action that an environment takes for an answer."""
        return self.action_of(tokens)

    def measures(self, tokens: Tokens, legal_mass: float | None, cut: bool) -> Mapping[str, float]:
        """Returns what metrics report of an answer."""
        return {} if legal_mass is None else {"legal_mass": legal_mass}

    def path_log_probs(self, action: int, chances: Mapping[int, float]) -> npt.NDArray[np.float32]:
        """Returns the log-probability of each choice on an action's path, float32 (choices,).

        Args:
            action: The action.
            chances: The probability of every legal action.
        """
        path = self.paths[action]
        of_nodes, of_branches = dict.fromkeys(path, 0.0), dict.fromkeys(path, 0.0)
        for other, chance in chances.items():
            for choice, branch in zip(path, self.paths[other], strict=False):
                if choice.node != branch.node:
                    break
                of_nodes[choice] += chance
                of_branches[choice] += chance * (choice == branch)
        shares = np.array([of_branches[branch] / of_nodes[branch] for branch in path])
        return np.log(shares).astype(np.float32)

    def list_forced(self, action: int) -> list[tuple[int, int]]:
        """Returns the (depth, token) of an action at which no other token could lead to a legal action."""
        chosen = {len(self.nodes[choice.node].prefix) for choice in self.paths[action]}
        return [(depth, token) for depth, token in enumerate(self.tokens[action]) if depth not in chosen]


_UNPICKLED: WeakValueDictionary[tuple[tuple[int, Tokens], ...], ActionTrie] = WeakValueDictionary()


def _unpickle(tokens: tuple[tuple[int, Tokens], ...]) -> ActionTrie:
    """Returns the trie of these actions' tokens: the same one as long as it is in use."""
    trie = _UNPICKLED.get(tokens)
    if trie is None:
        trie = _UNPICKLED[tokens] = ActionTrie.build(dict(tokens))
    return trie


def _group_by_next_token(
    sequences: Mapping[int, Sequence[int]], prefix: Tokens, actions: list[int]
) -> dict[int, list[int]]:
    """Returns the actions by the token that follows ``prefix``; all of them begin with ``prefix``."""
    depth = len(prefix)
    groups: dict[int, list[int]] = {}
    for action in actions:
        if len(sequences[action]) == depth and len(actions) > 1:
            others = [other for other in actions if other != action]
            raise ValueError(
                f"action {action}'s tokens {list(prefix)} equal or begin those of {others}: texts must "
                "differ, and each must be closed by the end-of-turn token"
            )
        if len(sequences[action]) > depth:
            groups.setdefault(sequences[action][depth], []).append(action)
    return groups


@dataclass(frozen=True)
class FreeText:
    """Any tokens, up to one that ends a reply. Each is a decision and a ratio unit of its own.

    Attributes:
        ends: Tokens that end a reply; none of them is part of its text.
        max_new_tokens: The most tokens of a reply, its end included.
        temperature: Divides the logits, in what is sampled and in what is scored.
    """

    ends: frozenset[int]
    max_new_tokens: int
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens: {self.max_new_tokens} was given; allowed: at least 1")
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: {self.temperature} was given; allowed: finite and above 0")

    def unit_sizes(self, tokens: Tokens) -> Sequence[int]:
        """Returns the decided tokens of each ratio unit of an answer, in order."""
        return (1,) * len(tokens)

    def is_cut(self, tokens: Tokens) -> bool:
        """Returns whether the limit came before the end of an answer."""
        return tokens[-1] not in self.ends

    def answer_tokens(self, action: Any) -> Tokens:
        """Returns the tokens of a given answer, which are what is given."""
        return tuple(action)

    def read_answer(self, tokens: Tokens, codec: ChatCodec) -> ReplyText:
        """Returns the reply that an environment takes for an answer."""
        return ReplyText(codec.decode_reply(tokens if self.is_cut(tokens) else tokens[:-1]), tokens)

    def measures(self, tokens: Tokens, legal_mass: float | None, cut: bool) -> Mapping[str, float]:
        """Returns what metrics report of an answer, as numbers to be averaged over turns."""
        return {"reply_tokens": len(tokens), "cut_share": float(cut)}


Constraint = ActionTrie | FreeText
"""Limits the tokens of an answer."""
