"""Descents of tries: from a trie's root to an action, one branching node at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gamespiel.agents.sampling.decisions import Request
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.constraints import ActionTrie, Branch


class TrieDescent:
    """Answers, log-probabilities and legal mass as rows descend their tries."""

    def __init__(self, tries: Sequence[ActionTrie]) -> None:
        self.tries = tries
        self._actions = [-1] * len(tries)
        self._log_probs: list[list[float]] = [[] for _ in tries]
        self._mass = np.ones(len(tries), dtype=np.float32)

    def begin(self, rows: Sequence[int] | dict[int, int]) -> dict[int, int]:
        """Returns the node at which each row begins; rows with one legal action have nothing to decide."""
        at = {}
        for row in rows:
            if self.tries[row].nodes:
                at[row] = 0
            else:
                self._actions[row] = next(iter(self.tries[row].paths))
        return at

    def take(
        self,
        at: dict[int, int],
        where: list[int],
        chosen: npt.NDArray[np.int64],
        log_probs: Tensor,
        mass: Tensor,
    ) -> dict[int, int]:
        """Takes a child in each row; returns the nodes of the rows that go on. Tensors are on the CPU."""
        taken = log_probs.numpy()[where, chosen].tolist()
        self._mass[list(at)] *= mass.numpy()[where]
        further = {}
        for (row, node), child, log_prob in zip(at.items(), chosen.tolist(), taken, strict=True):
            self._log_probs[row].append(log_prob)
            branch = Branch(node, child)
            if branch in self.tries[row].following:
                further[row] = self.tries[row].following[branch]
            else:
                self._actions[row] = self.tries[row].ends[branch]
        return further

    def finish(self, hidden: Tensor) -> WrittenAnswers:
        return WrittenAnswers(
            [trie.tokens[action] for trie, action in zip(self.tries, self._actions, strict=True)],
            [np.array(own, dtype=np.float32) for own in self._log_probs],
            self._mass.tolist(),
            hidden,
        )


def write_best(
    tries: Sequence[ActionTrie],
    where: Sequence[list[int]],
    log_probs: npt.NDArray[np.float64],
    log_mass: npt.NDArray[np.float64],
    hidden: Tensor,
) -> WrittenAnswers:
    """Returns the most probable legal action of each state, the first of equals.

    Args:
        tries: The states' tries, n of them.
        where: By state, the rows of its trie's nodes.
        log_probs: Log-probabilities of the nodes' children, renormalised, float64 (k, c).
        log_mass: Logs of the children's unmasked probability, float64 (k,).
        hidden: As in ``WrittenAnswers``.
    """
    tokens: list[Tokens] = []
    chosen: list[npt.NDArray[np.float32]] = []
    masses: list[float] = []
    for at, trie in zip(where, tries, strict=True):
        paths = list(trie.paths.items())
        action, path = paths[int(action_probabilities(log_probs, at, trie).argmax())]
        tokens.append(trie.tokens[action])
        chosen.append(np.array([log_probs[at[b.node], b.child] for b in path], dtype=np.float32))
        masses.append(float(np.exp(sum(float(log_mass[at[b.node]]) for b in path), dtype=np.float32)))
    return WrittenAnswers(tokens, chosen, masses, hidden)


def require_trie(request: Request) -> ActionTrie:
    """Returns a request's trie.

    Raises:
        ValueError: its text is free.
    """
    if not isinstance(request.constraint, ActionTrie):
        raise ValueError(f"a trie of legal actions is needed, got {request.constraint}")
    return request.constraint


def action_probabilities(
    log_probs: npt.NDArray[np.float64], at: list[int], trie: ActionTrie
) -> npt.NDArray[np.float64]:
    """Returns the probabilities of one state's legal actions, from the rows ``at`` of its nodes."""
    totals = [sum(log_probs[at[b.node], b.child] for b in path) for path in trie.paths.values()]
    p = np.exp(np.array(totals, dtype=np.float64))
    normalised: npt.NDArray[np.float64] = p / p.sum()
    return normalised
