"""The scores of choices: the branching nodes on each action's path, with gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.nodes import NodeRead, child_log_probs, read_nodes
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.scoring import Scores
from gamespiel.agents.tokens import Index, Tokens, spans
from gamespiel.agents.tokens.constraints import ActionTrie


@dataclass(frozen=True)
class ChoiceScores(Scores):
    """Scores of choices, whose decided tokens are the k branching nodes on their paths.

    Divergences are exact, whatever the estimator.

    Attributes:
        child_log_probs: Log-probabilities of the nodes' children, float32 (k, c), padded with -inf.
        exact: Whether the choice's trie has at most one branching node, so that the sums over its path of
            entropy and divergence are exact, bool (n,). Otherwise they are unbiased estimates under the
            weights that drew the choice.
    """

    child_log_probs: Tensor
    exact: npt.NDArray[np.bool_]

    @property
    def measures(self) -> Mapping[str, float]:
        return {"exact_entropy": float(self.exact.mean())}

    def keep(self, estimator: str) -> Tensor:
        return self.child_log_probs

    def divergence(self, other: Tensor, estimator: str) -> Tensor:
        width = self.child_log_probs.shape[1]
        legal = torch.isfinite(self.child_log_probs)
        # The other may come from a batch with a wider node: its further columns are padding.
        log_probs = self.child_log_probs.masked_fill(~legal, 0.0)
        difference = log_probs - other[:, :width].masked_fill(~legal, 0.0)
        return (self.child_log_probs.exp() * difference).sum(-1)


class ChoiceScorer:
    """Scores choices with a language model.

    Args:
        engine: Runs the forwards.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def read_tokens(self, decision: Decision, *, mass: bool) -> Tokens:
        """Returns the tokens of a choice that are read after the prompt.

        Those are the ones before its last branching node or, for the mass, before its end of turn.
        """
        trie = trie_of(decision)
        if mass:
            return decision.tokens[:-1]
        path = trie.paths[trie.action_of(decision.tokens)]
        return trie.nodes[path[-1].node].prefix if path else ()

    def score(self, decisions: Sequence[Decision], *, mass: bool = False) -> ChoiceScores:
        """Returns the scores of choices.

        Args:
            decisions: The choices, n of them.
            mass: Whether ``log_mass`` is computed too. Then every token of an answer is read.

        Raises:
            ValueError: an answer's tokens are no legal action's.
        """
        sequences, reads = Index[Tokens](), Index[NodeRead]()
        distinct = Index[tuple[Tokens, ActionTrie, Tokens]]()
        turns = [(decision.prompt, trie_of(decision), decision.tokens) for decision in decisions]
        where = np.array([distinct(turn) for turn in turns], dtype=np.int64)
        first = {turn: decision for turn, decision in zip(turns, decisions, strict=True)}
        # In small games most turns repeat: distinct ones are read, and then all are laid out together.
        anchors: list[tuple[int, int]] = []
        chosen: list[list[tuple[int, int]]] = []  # per turn: read, child
        passed: list[list[tuple[int]]] = []  # per turn: reads of branching nodes and forced tokens
        for turn in distinct.items:
            prompt, trie, tokens = turn
            action, last = trie.action_of(tokens), len(prompt) - 1
            sequence = sequences((*prompt, *self.read_tokens(first[turn], mass=mass)))
            anchors.append((sequence, last))
            chosen.append([])
            for branch in trie.paths[action]:
                node = trie.nodes[branch.node]
                read = reads(NodeRead(sequence, last + len(node.prefix), node.children))
                chosen[-1].append((read, branch.child))
            passed.append([(read,) for read, _ in chosen[-1]])
            for depth, token in trie.list_forced(action) if mass else ():
                passed[-1].append((reads(NodeRead(sequence, last + depth, (token,))),))
        states, hidden = read_nodes(self.engine, sequences.items, reads.items, anchors, where)
        read_children = [read.children for read in reads.items]
        log_probs, log_mass = child_log_probs(self.engine, states, read_children, mass=mass)
        device = hidden.device
        owners, rows, children = transfer.send(_lay_out(chosen, where, 2), device)
        nodes = log_probs.index_select(0, rows)
        terms = nodes.exp() * nodes.masked_fill(~torch.isfinite(nodes), 0.0)
        path_mass = None
        if mass:
            turn_of, rows = transfer.send(_lay_out(passed, where, 1), device)
            zeros = torch.zeros(len(where), device=device)
            path_mass = zeros.index_add(0, turn_of, log_mass.index_select(0, rows))
        exact = np.array([len(trie.nodes) <= 1 for _, trie, _ in distinct.items], dtype=np.bool_)
        return ChoiceScores(
            log_probs=nodes[torch.arange(len(nodes), device=device), children],
            entropy=-terms.sum(-1),
            owners=owners,
            hidden=hidden,
            child_log_probs=nodes,
            exact=exact[where],
            log_mass=path_mass,
        )


def trie_of(decision: Decision) -> ActionTrie:
    """Returns the trie of a choice.

    Raises:
        ValueError: the decision is no choice: decisions that are scored together are of one kind.
    """
    if not isinstance(decision.constraint, ActionTrie):
        raise ValueError(f"a choice is scored together with {decision.constraint}; allowed: one kind")
    return decision.constraint


def _lay_out(
    rows: Sequence[Sequence[tuple[int, ...]]], where: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.int64]:
    """Returns the rows of all turns, one after the other, below their turn: int64 (1 + width, k).

    Args:
        rows: Per distinct turn, rows of ``width`` numbers.
        where: The distinct turn of each turn, int64 (n,).
        width: Numbers of a row.
    """
    table = np.array([row for turn_rows in rows for row in turn_rows], dtype=np.int64).reshape(-1, width)
    counts = np.array([len(turn_rows) for turn_rows in rows], dtype=np.int64)
    taken = table[spans(counts.cumsum() - counts, counts, where)]
    turns = np.repeat(np.arange(len(where)), counts[where])
    return np.ascontiguousarray(np.concatenate([turns[:, None], taken], axis=1).T)
