"""Draws by given noise, the same draw for the same noise, descents of tries, and what was written by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from gamespiel.agents import transfer
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.constraints import ActionTrie, Branch
from task_gym.errors import TaskGymError

BLOCK = 1024
"""Probabilities that are summed first, to find a place in a whole vocabulary in two steps."""


class NotFiniteError(TaskGymError, FloatingPointError):
    """Logits that are not finite numbers."""


class WrittenAnswers(NamedTuple):
    """The replies that were written after each of n prompts.

    Attributes:
        tokens: The answers' tokens.
        log_probs: Log-probabilities of each answer's decided tokens, float32 (decided,).
        legal_mass: See ``Decision``.
        hidden: Hidden states of the last prompt tokens, for the critic, (n, hidden_size).
    """

    tokens: list[Tokens]
    log_probs: list[npt.NDArray[np.float32]]
    legal_mass: Sequence[float | None]
    hidden: Tensor


def make_decisions(
    requests: Sequence[Request], written: WrittenAnswers, values: Sequence[float] | None = None
) -> list[Decision]:
    """Returns the decisions of n requests, to which answers were written.

    Args:
        requests: The requests.
        written: Their answers.
        values: The critic's estimates; None without a critic.
    """
    critic_values = [None] * len(requests) if values is None else values
    rows = zip(requests, written.tokens, written.log_probs, written.legal_mass, critic_values, strict=True)
    return [
        Decision(
            prompt=request.prompt,
            constraint=request.constraint,
            tokens=tokens,
            log_probs=log_probs,
            legal_mass=mass,
            cut=request.constraint.is_cut(tokens),
            adapters=request.adapters,
            value=value,
            left_out=request.left_out,
        )
        for request, tokens, log_probs, mass, value in rows
    ]


def inverse_cdf(
    log_probs: Tensor, where: Sequence[int] | npt.NDArray[np.int64], uniforms: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Returns the place at which the cumulative probability first exceeds the uniform, int64 (rows,).

    Args:
        log_probs: float32 (k, c), of the children of a node or of the whole vocabulary.
        where: The row of ``log_probs`` of each uniform.
        uniforms: float64 (rows,), in [0, 1).

    Raises:
        NotFiniteError: a probability is not a finite number.
    """
    device = log_probs.device
    drawn, totals = draw_places(log_probs, transfer.send(where, device), transfer.send(uniforms, device))
    places, sums = transfer.read(drawn, totals)
    if not bool(sums.isfinite().all()):
        raise NotFiniteError("the model's logits are not finite: its weights or activations have overflowed")
    return places.numpy()


def draw_places(log_probs: Tensor, where: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the places of ``inverse_cdf``, int64 (rows,), and the sum of each row's probabilities, (k,).

    All is on the device, and nothing waits for it. Probabilities are summed in float64, first in blocks: a
    block's sum needs no order, and only the blocks that are drawn are summed one by one. A place of
    probability 0 is never returned. If a sum is not finite, its places mean nothing.
    """
    p = log_probs.double().exp()
    size = min(BLOCK, p.shape[1])
    blocks = pad(p, (0, -p.shape[1] % size)).view(len(p), -1, size)
    sums = blocks.sum(-1)
    ends = sums.cumsum(-1)
    totals, row_ends = ends[:, -1], ends.index_select(0, where)
    targets = (uniforms * totals.index_select(0, where))[:, None]
    block = _first_above(row_ends, sums.index_select(0, where), targets)
    before = row_ends.gather(1, (block - 1).clamp(min=0)[:, None]).masked_fill((block == 0)[:, None], 0.0)
    inside = blocks[where, block]
    return block * size + _first_above(before + inside.cumsum(-1), inside, targets), totals


def _first_above(cumulative: Tensor, p: Tensor, targets: Tensor) -> Tensor:
    """Returns the first place where the cumulative sum exceeds the target, int64 (rows,)."""
    # Rounding can leave no sum above the target: then the last place with any mass is taken.
    last = p.shape[1] - 1 - (p > 0).flip(-1).int().argmax(-1)
    return torch.minimum((cumulative <= targets).sum(-1), last)


ReadNodes = Callable[[dict[int, int]], tuple[list[int], Tensor, Tensor]]
"""Nodes by row to the place of each among the nodes that are read, and what is found there, on the CPU.

That is log-probabilities of the k nodes' children, float32 (k, c), and their unmasked mass, float32 (k,).
"""


class TrieDescent:
    """Answers, log-probabilities and legal mass as rows descend their tries."""

    def __init__(self, tries: Sequence[ActionTrie]) -> None:
        self.tries = tries
        self._actions = [-1 if trie.nodes else next(iter(trie.paths)) for trie in tries]
        self._log_probs: list[list[float]] = [[] for _ in tries]
        self._mass = np.ones(len(tries), dtype=np.float32)

    def lead(self, rows: Sequence[int], uniforms: Uniforms, read: ReadNodes) -> None:
        """Leads rows from their tries' roots to an action, one depth at a time.

        Args:
            rows: The rows; those with one legal action have nothing to decide.
            uniforms: Returns the noise of the depth-th decision, float64 (n,).
            read: See ``ReadNodes``.
        """
        at, depth = {row: 0 for row in rows if self.tries[row].nodes}, 0
        while at:
            noise = uniforms(depth)[list(at)]
            where, log_probs, mass = read(at)
            chosen = inverse_cdf(log_probs, where, noise)
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
            at, depth = further, depth + 1

    def finish(self, hidden: Tensor) -> WrittenAnswers:
        return WrittenAnswers(
            [trie.tokens[action] for trie, action in zip(self.tries, self._actions, strict=True)],
            [np.array(row_log_probs, dtype=np.float32) for row_log_probs in self._log_probs],
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
