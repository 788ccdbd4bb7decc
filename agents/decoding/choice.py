"""Choosing among legal actions: an exact distribution over a trie of the model's own tokens.

Each branching node's logits are masked to its children and renormalised in float32, so legal actions have all
the mass and an action's probability is the product along its path. States that repeat in a batch (a prompt
depends on the information state alone, so in small games most do) are read once and shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.decoding.codec import ChatCodec
from gamespiel.agents.decoding.trie import ActionTrie, Choice
from gamespiel.agents.engines.transformers import Prefix, TransformersEngine
from task_gym.errors import TaskGymError

Tokens = tuple[int, ...]


class AmbiguousNamesError(TaskGymError, ValueError):
    """Actions that are to be answered by names which say the same."""


class NamedLegal(NamedTuple):
    """Legal actions, ascending, and what the policy is to write for each of them in this state."""

    actions: tuple[int, ...]
    names: tuple[str, ...]


#: What is legal in a state; without names, the codec says how an action is written.
Legal = tuple[int, ...] | NamedLegal
Uniforms = Callable[[int], npt.NDArray[np.float64]]
TRIES_CACHED = 65_536

#: Named actions are a state's own and can be long; what is kept is for the passes of one update.
NAMED_TRIES_CACHED = 4096
T = TypeVar("T")


class ChoiceSample(NamedTuple):
    """What sampling found, one row a state; n rows.

    actions: int64 (n,). log_probs: float32 (n,), of the sampled action among the legal ones.
    legal_mass: float32 (n,), the unmasked model's mass on legal children, multiplied over the branching nodes
        of the sampled path: what is forced is not read, so it counts as 1.
    hidden: (n, hidden_size), the last prompt token's hidden states, for the critic.
    """

    actions: npt.NDArray[np.int64]
    log_probs: Tensor
    legal_mass: Tensor
    hidden: Tensor


@dataclass(frozen=True)
class ChoiceEvaluation:
    """Actions under the current weights, differentiable; n turns, k branching nodes on their paths.

    log_probs: float32 (n,). entropy: float32 (n,), in nats: exact where the trie has one branching node, else
    the sum of the exact entropies of the nodes on the path, which is unbiased for the sampling policy.
    hidden: (n, hidden_size) at the last prompt token.
    nodes: float32 (k, c) log-probabilities of the children, -inf beyond a node's own.
    turns: int64 (k,), the turn each node belongs to, ascending.
    exact: bool (n,), whether the turn's entropy (and a divergence summed the same way) is exact.
    """

    log_probs: Tensor
    entropy: Tensor
    hidden: Tensor
    nodes: Tensor
    turns: Tensor
    exact: npt.NDArray[np.bool_]

    def kl_to(self, reference: ChoiceEvaluation | Tensor) -> Tensor:
        """KL(this || reference) per turn in nats, float32 (n,), summed over each path's nodes."""
        other = reference if isinstance(reference, Tensor) else reference.nodes
        width = self.nodes.shape[1]
        legal = torch.isfinite(self.nodes)
        # Nodes are padded to the widest of their batch; what lies beyond this batch's width is padding.
        difference = self.nodes.masked_fill(~legal, 0.0) - other[:, :width].masked_fill(~legal, 0.0)
        return self._per_turn((self.nodes.exp() * difference).sum(-1))

    def _per_turn(self, per_node: Tensor) -> Tensor:
        zeros = torch.zeros(len(self.exact), dtype=per_node.dtype, device=per_node.device)
        return zeros.index_add(0, self.turns, per_node)


class _Read(NamedTuple):
    """One branching node to be read: a token sequence, the position that predicts the child, the children."""

    sequence: int
    position: int
    children: Tokens


class _Index(Generic[T]):
    """Distinct items in order of first appearance."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._where: dict[T, int] = {}

    def __call__(self, item: T) -> int:
        where = self._where.setdefault(item, len(self.items))
        if where == len(self.items):
            self.items.append(item)
        return where


class ChoiceDecoder:
    """The distribution over legal actions of a language model.

    Args:
        codec: how prompts and actions become tokens.
        engine: where forwards run.
    """

    def __init__(self, codec: ChatCodec, engine: TransformersEngine) -> None:
        self.codec = codec
        self.engine = engine
        self._numbered: Callable[[tuple[int, ...]], ActionTrie] = lru_cache(TRIES_CACHED)(self._of_numbers)
        self._named: Callable[[NamedLegal], ActionTrie] = lru_cache(NAMED_TRIES_CACHED)(self._of_names)

    def trie(self, legal: Legal) -> ActionTrie:
        """The trie of what may be answered.

        Raises:
            AmbiguousNamesError: names that the tokenizer cannot tell apart.
        """
        return self._named(legal) if isinstance(legal, NamedLegal) else self._numbered(legal)

    def _of_numbers(self, legal: tuple[int, ...]) -> ActionTrie:
        return ActionTrie.build({action: self.codec.encode_action(action) for action in legal})

    def _of_names(self, legal: NamedLegal) -> ActionTrie:
        answers = [self.codec.encode_answer(name) for name in legal.names]
        try:
            return ActionTrie.build(dict(zip(legal.actions, answers, strict=True)))
        except ValueError as error:
            raise AmbiguousNamesError(
                f"names of actions: {list(legal.names)} were given, of which two are the same to the "
                "tokenizer, or one the beginning of another; allowed: names that differ, or answers by id"
            ) from error

    # -- sampling ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def sample(self, prompts: Sequence[Tokens], legal: Sequence[Legal], uniforms: Uniforms) -> ChoiceSample:
        """Draw one legal action a state.

        Args:
            prompts: n token sequences. legal: n ascending, non-empty legal sets.
            uniforms: `uniforms(depth)` gives n numbers in [0, 1), float64, the noise of the depth-th
                decision. It is asked once for each group of rows that shares a forward, which takes its own.
        """
        n = len(prompts)
        states, prompt_index = _Index[tuple[int, Legal]](), _Index[Tokens]()
        state_of = [
            states((prompt_index(prompt), actions)) for prompt, actions in zip(prompts, legal, strict=True)
        ]
        descent = _Descent(n, self.engine.device)
        hidden: list[Tensor | None] = [None] * len(prompt_index.items)
        rows_of: dict[int, list[int]] = {}
        for row, state in enumerate(state_of):
            rows_of.setdefault(states.items[state][0], []).append(row)
        for chunk in self.engine.chunks(prompt_index.items):
            rows = sorted(row for prompt in chunk for row in rows_of[prompt])
            tries = {row: self.trie(states.items[state_of[row]][1]) for row in rows}
            deep = any(node.prefix for trie in tries.values() for node in trie.nodes[-1:])
            last, prefix = self.engine.prefill([prompt_index.items[p] for p in chunk], cache=deep)
            local = {prompt: i for i, prompt in enumerate(chunk)}
            for prompt, i in local.items():
                hidden[prompt] = last[i]
            slot = {row: local[states.items[state_of[row]][0]] for row in rows}
            self._descend(descent, tries, slot, last, prefix, uniforms)
        stacked = torch.stack([h for h in hidden if h is not None])
        index = torch.tensor([states.items[state][0] for state in state_of], device=stacked.device)
        return ChoiceSample(descent.actions, descent.log_probs, descent.legal_mass, stacked[index])

    def _descend(
        self,
        descent: _Descent,
        tries: dict[int, ActionTrie],
        slot: dict[int, int],
        last: Tensor,
        prefix: Prefix | None,
        uniforms: Uniforms,
    ) -> None:
        """Leads rows of one chunk from their tries' roots to an action, all of one depth together."""
        at = {}
        for row, trie in tries.items():
            if trie.nodes:
                at[row] = 0
            else:
                descent.actions[row] = next(iter(trie.paths))
        depth = 0
        while at:
            noise = uniforms(depth)
            reads = _Index[tuple[int, Tokens, Tokens]]()  # prompt slot, tokens so far, children
            rows = list(at)
            where = [reads((slot[row], *tries[row].nodes[at[row]])) for row in rows]
            started = [not tokens for _, tokens, _ in reads.items]
            states = last[[i for i, _, _ in reads.items]]
            if not all(started):
                assert prefix is not None
                further = [k for k, first in enumerate(started) if not first]
                states = states.clone()
                states[further] = self.engine.extend(
                    prefix, [reads.items[k][0] for k in further], [reads.items[k][1] for k in further]
                )
            log_probs, mass = self._children(states, [children for _, _, children in reads.items])
            chosen = _inverse_cdf(log_probs, where, noise[rows])
            descent.take(rows, where, chosen, log_probs, mass)
            moved = {}
            for row, child in zip(rows, chosen, strict=True):
                choice = Choice(at[row], int(child))
                if choice in tries[row].following:
                    moved[row] = tries[row].following[choice]
                else:
                    descent.actions[row] = tries[row].ends[choice]
            at = moved
            depth += 1

    # -- scoring -------------------------------------------------------------------------------------------

    def evaluate(
        self, prompts: Sequence[Tokens], legal: Sequence[Legal], actions: Sequence[int]
    ) -> ChoiceEvaluation:
        """Log-probabilities, entropies and prompt states of given actions.

        Raises:
            ValueError: an action that is not in its legal set.
        """
        sequences, reads, anchors = _Index[Tokens](), _Index[_Read](), []
        turn_of, read_of, chosen, exact = [], [], [], []
        for turn, (prompt, allowed, action) in enumerate(zip(prompts, legal, actions, strict=True)):
            trie = self.trie(allowed)
            if action not in trie.paths:
                raise ValueError(f"action {action} is not legal: the legal actions are {list(trie.paths)}")
            path = trie.paths[action]
            tokens = trie.nodes[path[-1].node].prefix if path else ()
            sequence = sequences((*prompt, *tokens))
            anchors.append((sequence, len(prompt) - 1))
            exact.append(len(trie.nodes) <= 1)
            for choice in path:
                node = trie.nodes[choice.node]
                turn_of.append(turn)
                read_of.append(reads(_Read(sequence, len(prompt) - 1 + len(node.prefix), node.children)))
                chosen.append(choice.child)
        states, prompt_states = self._read(sequences.items, reads.items, anchors)
        device = prompt_states.device
        turns = torch.tensor(turn_of, dtype=torch.long, device=device)
        log_probs, _ = self._children(states, [read.children for read in reads.items])
        p = log_probs.exp()
        entropies = -(p * log_probs.masked_fill(~torch.isfinite(log_probs), 0.0)).sum(-1)
        index = torch.tensor(read_of, dtype=torch.long, device=device)
        nodes = log_probs.index_select(0, index)
        picked = nodes[
            torch.arange(len(chosen), device=device), torch.tensor(chosen, dtype=torch.long, device=device)
        ]
        zeros = torch.zeros(len(exact), device=device)
        return ChoiceEvaluation(
            log_probs=zeros.index_add(0, turns, picked),
            entropy=zeros.index_add(0, turns, entropies.index_select(0, index)),
            hidden=prompt_states,
            nodes=nodes,
            turns=turns,
            exact=np.array(exact),
        )

    @torch.no_grad()
    def distribution(
        self, prompts: Sequence[Tokens], legal: Sequence[Legal]
    ) -> list[npt.NDArray[np.float64]]:
        """Every legal action's probability, one float64 array per state in the order of its legal set.

        Reads every branching node, so its cost grows with the legal set; `sample` and `evaluate` do not.
        """
        log_probs, _, where, _ = self._all_nodes(prompts, legal, anchored=False)
        return [self._probabilities(log_probs, at, actions) for at, actions in zip(where, legal, strict=True)]

    @torch.no_grad()
    def best(self, prompts: Sequence[Tokens], legal: Sequence[Legal]) -> ChoiceSample:
        """The most probable legal action of each state, the first of equals.

        Reads every branching node, as `distribution` does.
        """
        log_probs, mass, where, hidden = self._all_nodes(prompts, legal, anchored=True)
        chosen = _Descent(len(prompts), self.engine.device)
        for row, (at, actions) in enumerate(zip(where, legal, strict=True)):
            paths = list(self.trie(actions).paths.items())
            action, path = paths[int(self._probabilities(log_probs, at, actions).argmax())]
            chosen.actions[row] = action
            chosen.log_probs[row] = sum(float(log_probs[at[c.node], c.child]) for c in path)
            chosen.legal_mass[row] = math.prod(float(mass[at[c.node]]) for c in path)
        return ChoiceSample(chosen.actions, chosen.log_probs, chosen.legal_mass, hidden)

    def _all_nodes(
        self, prompts: Sequence[Tokens], legal: Sequence[Legal], *, anchored: bool
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[list[int]], Tensor]:
        """Reads every branching node of every state's trie.

        Returns:
            float64 (k, c) log-probabilities of the children; float64 (k,) their unmasked mass; per state, the
            row of each of its nodes; and, if `anchored`, the last prompt tokens' hidden states (n, hidden).
        """
        sequences, reads = _Index[Tokens](), _Index[_Read]()
        where: list[list[int]] = []
        for prompt, allowed in zip(prompts, legal, strict=True):
            at = []
            for node in self.trie(allowed).nodes:
                sequence = sequences((*prompt, *node.prefix))
                at.append(reads(_Read(sequence, len(prompt) + len(node.prefix) - 1, node.children)))
            where.append(at)
        anchors = [(sequences(prompt), len(prompt) - 1) for prompt in prompts] if anchored else []
        if not sequences.items:
            nothing = np.zeros((0, 1))
            return nothing, nothing[:, 0], where, torch.zeros(0, 0, device=self.engine.device)
        states, hidden = self._read(sequences.items, reads.items, anchors)
        log_probs, mass = self._children(states, [read.children for read in reads.items])
        return log_probs.double().cpu().numpy(), mass.double().cpu().numpy(), where, hidden

    def _probabilities(
        self, log_probs: npt.NDArray[np.float64], at: list[int], legal: Legal
    ) -> npt.NDArray[np.float64]:
        """Probabilities of one state's legal actions, from the rows `at` of its nodes."""
        paths = self.trie(legal).paths.values()
        return _normalised([sum(log_probs[at[c.node], c.child] for c in path) for path in paths])

    def _read(
        self, sequences: list[Tokens], reads: list[_Read], anchors: list[tuple[int, int]]
    ) -> tuple[Tensor, Tensor]:
        """Hidden states of the reads, and of the anchors (one a turn), each distinct place read once."""
        places = _Index[tuple[int, int]]()
        at = [places((read.sequence, read.position)) for read in reads] + [
            places(anchor) for anchor in anchors
        ]
        states = self.engine.read(
            sequences, [row for row, _ in places.items], [pos for _, pos in places.items]
        )
        # index_select, here and below: with many threads, plain indexing adds up the gradients of repeats
        # in any order, and two runs would differ.
        states = states.index_select(0, torch.tensor(at, dtype=torch.long, device=states.device))
        return states[: len(reads)], states[len(reads) :]

    def _children(self, states: Tensor, children: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Renormalised log-probabilities of each state's children, and their unmasked mass.

        Shapes: states (k, hidden) -> float32 (k, c), -inf beyond a state's own children; float32 (k,).
        """
        logits = self.engine.logits(states)
        width = max(map(len, children), default=1)
        tokens = torch.tensor(
            [[*c, *(-1,) * (width - len(c))] for c in children], dtype=torch.long, device=states.device
        ).reshape(-1, width)
        selected = logits.gather(1, tokens.clamp(min=0)).masked_fill(tokens < 0, -torch.inf)
        with torch.no_grad():
            mass = (selected.logsumexp(-1) - logits.logsumexp(-1)).exp()
        return selected.log_softmax(-1), mass


class _Descent:
    """Actions, log-probabilities and legal mass as rows descend their tries."""

    def __init__(self, n: int, device: torch.device) -> None:
        self.actions = np.full(n, -1, dtype=np.int64)
        self.log_probs = torch.zeros(n, device=device)
        self.legal_mass = torch.ones(n, device=device)

    def take(
        self,
        rows: list[int],
        where: list[int],
        chosen: npt.NDArray[np.int64],
        log_probs: Tensor,
        mass: Tensor,
    ) -> None:
        device = log_probs.device
        at = torch.tensor(where, device=device)
        self.log_probs[rows] += log_probs[at, torch.from_numpy(chosen).to(device)]
        self.legal_mass[rows] *= mass[at]


def _inverse_cdf(
    log_probs: Tensor, where: Sequence[int], uniforms: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """The child at which the cumulative probability first exceeds the uniform; never one of probability 0.

    Raises:
        FloatingPointError: probabilities that are not numbers.
    """
    p = log_probs.double().exp().cpu().numpy()
    cumulative = p.cumsum(-1)
    if not np.isfinite(cumulative[:, -1]).all():
        raise FloatingPointError(
            "the model's logits are not finite: its weights or activations have overflowed"
        )
    below = cumulative[where] <= uniforms[:, None] * cumulative[where][:, -1:]
    # Rounding can leave the total at the uniform itself: the last child with any mass takes the rest.
    last = p.shape[1] - 1 - (p > 0)[:, ::-1].argmax(-1)
    return np.minimum(below.sum(-1), last[where]).astype(np.int64)


def _normalised(log_probs: Sequence[float]) -> npt.NDArray[np.float64]:
    p = np.exp(np.array(log_probs, dtype=np.float64))
    normalised: npt.NDArray[np.float64] = p / p.sum()
    return normalised
