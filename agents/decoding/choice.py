"""The choice decoder: an exact distribution over legal actions, from a trie of the model's own tokens.

Each branching node's logits are masked to its children and renormalised in float32. So legal actions have all
the mass, and an action's probability is the product along its path. States that repeat in a batch are read
once. In small games most states repeat, since a prompt depends on the information state alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch.utils.checkpoint import checkpoint

from gamespiel.agents.engines import Engine
from gamespiel.agents.models.memory_plan import LOGITS_LEARNED_FROM
from gamespiel.agents.sampling.drawing import Uniforms, inverse_cdf
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.index import Index, spans
from gamespiel.agents.tokens.trie import ActionTrie, Choice
from task_gym.errors import TaskGymError


class AmbiguousNamesError(TaskGymError, ValueError):
    """Names of legal actions that the tokenizer cannot tell apart."""


class NamedLegal(NamedTuple):
    """Legal actions of a state that are answered by name.

    Attributes:
        actions: The legal actions, ascending.
        names: The text to write for each of them.
    """

    actions: tuple[int, ...]
    names: tuple[str, ...]


Legal = tuple[int, ...] | NamedLegal
"""The legal actions of a state. Without names, the codec gives an action's text."""

TRIES_CACHED = 65_536

NAMED_TRIES_CACHED = 4096
"""Fewer than ``TRIES_CACHED``: names differ by state and can be long, and one update reuses them."""

LOGITS_AT_ONCE = 2**26
"""Logits made together without gradients: 256 MB. A greedy choice reads every node of every state."""


class ChoiceSample(NamedTuple):
    """Chosen actions, one row per state; n rows.

    Attributes:
        actions: int64 (n,).
        log_probs: Log-probabilities of the chosen actions among the legal ones, float32 (n,).
        legal_mass: Product, over the chosen path's branching nodes, of the unmasked probability of the node's
            children, float32 (n,). Forced tokens are not read and count as 1.
        hidden: Hidden states of the last prompt tokens, for the critic, (n, hidden_size).
    """

    actions: npt.NDArray[np.int64]
    log_probs: Tensor
    legal_mass: Tensor
    hidden: Tensor


@dataclass(frozen=True)
class ChoiceEvaluation:
    """Given actions under the current weights, differentiable; n turns, k branching nodes on their paths.

    Attributes:
        log_probs: float32 (n,).
        entropy: In nats, float32 (n,). It is exact if the trie has at most one branching node. Otherwise it
            is the sum of the exact entropies of the path's nodes: unbiased if these weights drew the action.
        hidden: Hidden states of the last prompt tokens, (n, hidden_size).
        nodes: Log-probabilities of the nodes' children, float32 (k, c), padded with -inf.
        turns: The turn of each node, ascending, int64 (k,).
        exact: Whether the turn's trie has at most one branching node, so that entropy and ``kl_to`` are
            exact, bool (n,).
        log_mass: Log of the unmasked model's mass on legal answers along the path, forced tokens and the end
            of turn included, float32 (n,); None unless asked for.
    """

    log_probs: Tensor
    entropy: Tensor
    hidden: Tensor
    nodes: Tensor
    turns: Tensor
    exact: npt.NDArray[np.bool_]
    log_mass: Tensor | None = None

    def kl_to(self, reference: ChoiceEvaluation | Tensor) -> Tensor:
        """Returns KL(this || reference) per turn in nats, float32 (n,), summed over each path's nodes."""
        other = reference if isinstance(reference, Tensor) else reference.nodes
        width = self.nodes.shape[1]
        legal = torch.isfinite(self.nodes)
        # The reference may come from a batch with a wider node: its further columns are padding.
        difference = self.nodes.masked_fill(~legal, 0.0) - other[:, :width].masked_fill(~legal, 0.0)
        return self._per_turn((self.nodes.exp() * difference).sum(-1))

    def _per_turn(self, per_node: Tensor) -> Tensor:
        zeros = torch.zeros(len(self.exact), dtype=per_node.dtype, device=per_node.device)
        return zeros.index_add(0, self.turns, per_node)


class _Read(NamedTuple):
    """A branching node to read: index of a token sequence, position that predicts the child, children."""

    sequence: int
    position: int
    children: Tokens


class ChoiceDecoder:
    """A language model's distribution over legal actions.

    Args:
        codec: Turns prompts and actions into tokens.
        engine: Runs the forwards.
    """

    def __init__(self, codec: ChatCodec, engine: Engine) -> None:
        self.codec = codec
        self.engine = engine
        self._numbered: Callable[[tuple[int, ...]], ActionTrie] = lru_cache(TRIES_CACHED)(self._of_numbers)
        self._named: Callable[[NamedLegal], ActionTrie] = lru_cache(NAMED_TRIES_CACHED)(self._of_names)

    def trie(self, legal: Legal) -> ActionTrie:
        """Returns the legal actions' token trie.

        Raises:
            AmbiguousNamesError: the tokenizer cannot tell two names apart.
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
        """Draws one legal action per state.

        Args:
            prompts: Token sequences, n of them.
            legal: Ascending, non-empty legal sets, n of them.
            uniforms: Returns the noise of the depth-th decision, float64 (n,). It is called for each
                depth of each group of rows that share a forward, and the group uses its own rows.
        """
        n = len(prompts)
        states, prompt_index = Index[tuple[int, Legal]](), Index[Tokens]()
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
            # The last node of a trie is its deepest.
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
        prefix: Any,
        uniforms: Uniforms,
    ) -> None:
        """Leads the rows of one chunk from their tries' roots to an action, one depth at a time."""
        at = {}
        for row, trie in tries.items():
            if trie.nodes:
                at[row] = 0
            else:
                descent.actions[row] = next(iter(trie.paths))
        depth = 0
        while at:
            noise = uniforms(depth)
            reads = Index[tuple[int, Tokens, Tokens]]()  # prompt slot, tokens so far, children
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
            log_probs, log_mass = self._children(states, [children for _, _, children in reads.items])
            chosen = inverse_cdf(log_probs, where, noise[rows])
            descent.take(rows, where, chosen, log_probs, log_mass.exp())
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

    def split(
        self,
        prompts: Sequence[Tokens],
        legal: Sequence[Legal],
        actions: Sequence[int],
        tokens: int,
        *,
        mass: bool = False,
    ) -> list[npt.NDArray[np.int64]]:
        """Returns turns in groups, each of which ``evaluate`` reads within ``tokens`` tokens.

        Groups are arrays of positions, int64. If one group is enough, it has the given order.
        """
        rows_of_turn: dict[tuple[Tokens, Legal, int], list[int]] = {}
        for row, turn in enumerate(zip(prompts, legal, actions, strict=True)):
            rows_of_turn.setdefault(turn, []).append(row)
        rows_of: dict[Tokens, list[int]] = {}
        for (prompt, allowed, action), rows in rows_of_turn.items():
            read = self._read_of(self.trie(allowed), action, mass)
            rows_of.setdefault((*prompt, *read), []).extend(rows)
        rows_of = {sequence: sorted(rows) for sequence, rows in rows_of.items()}
        sequences = list(rows_of)
        chunks = list(self.engine.chunks(sequences, tokens))
        if len(chunks) <= 1:
            return [np.arange(len(prompts))] if prompts else []
        return [np.array([row for i in chunk for row in rows_of[sequences[i]]]) for chunk in chunks]

    def _read_of(self, trie: ActionTrie, action: int, mass: bool) -> Tokens:
        """Returns the tokens of an action that are read after the prompt.

        Those are the ones before its last choice or, for the mass, before its end of turn.
        """
        if mass:
            return trie.tokens[action][:-1]
        path = trie.paths[action]
        return trie.nodes[path[-1].node].prefix if path else ()

    def evaluate(
        self,
        prompts: Sequence[Tokens],
        legal: Sequence[Legal],
        actions: Sequence[int],
        *,
        mass: bool = False,
    ) -> ChoiceEvaluation:
        """Returns log-probabilities, entropies and hidden states of given actions.

        Args:
            prompts: Token sequences, n of them.
            legal: Ascending, non-empty legal sets, n of them.
            actions: An action of each legal set.
            mass: Whether ``log_mass`` is computed too. Then every token of an answer is read.

        Raises:
            ValueError: an action is not in its legal set.
        """
        sequences, reads = Index[Tokens](), Index[_Read]()
        distinct = Index[tuple[Tokens, Legal, int]]()
        where = np.array(
            [distinct(turn) for turn in zip(prompts, legal, actions, strict=True)], dtype=np.int64
        )
        plan = _Plan()
        for prompt, allowed, action in distinct.items:
            trie = self.trie(allowed)
            if action not in trie.paths:
                raise ValueError(f"action {action} is not legal: the legal actions are {list(trie.paths)}")
            last = len(prompt) - 1
            sequence = sequences((*prompt, *self._read_of(trie, action, mass)))
            plan.begin((sequence, last), exact=len(trie.nodes) <= 1)
            for choice in trie.paths[action]:
                node = trie.nodes[choice.node]
                read = reads(_Read(sequence, last + len(node.prefix), node.children))
                plan.choose(read, choice.child)
            for depth, token in trie.forced(action) if mass else ():
                plan.force(reads(_Read(sequence, last + depth, (token,))))
        states, prompt_states = self._read(sequences.items, reads.items, plan.anchors, where)
        log_probs, log_mass = self._children(states, [read.children for read in reads.items], mass=mass)
        return plan.evaluation(where, prompt_states, log_probs, log_mass if mass else None)

    @torch.no_grad()
    def distribution(
        self, prompts: Sequence[Tokens], legal: Sequence[Legal]
    ) -> list[npt.NDArray[np.float64]]:
        """Returns every legal action's probability, a float64 array per state in the order of its legal set.

        This reads every branching node, so the cost grows with the legal set; that of ``sample`` and
        ``evaluate`` does not.
        """
        log_probs, _, where, _ = self._all_nodes(prompts, legal, anchored=False)
        return [self._probabilities(log_probs, at, actions) for at, actions in zip(where, legal, strict=True)]

    @torch.no_grad()
    def best(self, prompts: Sequence[Tokens], legal: Sequence[Legal]) -> ChoiceSample:
        """Returns the most probable legal action of each state, the first of equals.

        This reads every branching node, as ``distribution`` does.
        """
        log_probs, log_mass, where, hidden = self._all_nodes(prompts, legal, anchored=True)
        chosen = _Descent(len(prompts), self.engine.device)
        for row, (at, actions) in enumerate(zip(where, legal, strict=True)):
            paths = list(self.trie(actions).paths.items())
            action, path = paths[int(self._probabilities(log_probs, at, actions).argmax())]
            chosen.actions[row] = action
            chosen.log_probs[row] = sum(float(log_probs[at[c.node], c.child]) for c in path)
            chosen.legal_mass[row] = math.exp(sum(float(log_mass[at[c.node]]) for c in path))
        return ChoiceSample(chosen.actions, chosen.log_probs, chosen.legal_mass, hidden)

    def _all_nodes(
        self, prompts: Sequence[Tokens], legal: Sequence[Legal], *, anchored: bool
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[list[int]], Tensor]:
        """Reads every branching node of every state's trie.

        Returns:
            Log-probabilities of the children, float64 (k, c); the log of their unmasked mass, float64 (k,);
            per state, the rows of its nodes; if ``anchored``, the last prompt tokens' hidden states
            (n, hidden).
        """
        sequences, reads = Index[Tokens](), Index[_Read]()
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
        log_probs, log_mass = self._children(states, [read.children for read in reads.items])
        return log_probs.double().cpu().numpy(), log_mass.double().cpu().numpy(), where, hidden

    def _probabilities(
        self, log_probs: npt.NDArray[np.float64], at: list[int], legal: Legal
    ) -> npt.NDArray[np.float64]:
        """Returns the probabilities of one state's legal actions, from the rows ``at`` of its nodes."""
        paths = self.trie(legal).paths.values()
        return _normalised([sum(log_probs[at[c.node], c.child] for c in path) for path in paths])

    def _read(
        self,
        sequences: list[Tokens],
        reads: list[_Read],
        anchors: list[tuple[int, int]],
        where: npt.NDArray[np.int64] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns hidden states of the reads, and of the anchors, reading each place once.

        With ``where``, int64 (n,), turn i gets the hidden state of anchor ``where[i]``.
        """
        places = Index[tuple[int, int]]()
        own = np.array([places((read.sequence, read.position)) for read in reads], dtype=np.int64)
        anchored = np.array([places(anchor) for anchor in anchors], dtype=np.int64)
        at = np.concatenate([own, anchored if where is None else anchored[where]])
        states = self.engine.read(
            sequences, [row for row, _ in places.items], [pos for _, pos in places.items]
        )
        # index_select, here and elsewhere: with many threads, the backward pass of plain indexing sums
        # repeated rows in no fixed order, and two runs would differ.
        states = states.index_select(0, torch.from_numpy(at).to(states.device))
        return states[: len(reads)], states[len(reads) :]

    def _rows_at_once(self) -> int:
        """Returns the number of states whose logits are made together."""
        logits = LOGITS_LEARNED_FROM if torch.is_grad_enabled() else LOGITS_AT_ONCE
        return max(1, logits // len(self.codec.tokenizer))

    def _children(
        self, states: Tensor, children: Sequence[Tokens], *, mass: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Returns renormalised log-probabilities of each state's children, and the log of their mass.

        Shapes: states (k, hidden) -> float32 (k, c), -inf beyond a state's own children; float32 (k,), or
        (0,) without ``mass``.
        """
        width = max(map(len, children), default=1)
        # A state with fewer children repeats its first, which changes nothing where it is masked.
        padded = [[*c, *c[:1] * (width - len(c))] for c in children]
        tokens = torch.tensor(padded, dtype=torch.long, device=states.device).reshape(-1, width)
        own = torch.tensor([len(c) for c in children], device=states.device)
        selected = self.engine.logits_of(states, tokens)
        selected = selected.masked_fill(torch.arange(width, device=states.device) >= own[:, None], -torch.inf)
        if not mass:
            return selected.log_softmax(-1), states.new_zeros(0)
        rows = self._rows_at_once()
        # One part of nothing, if no prompt has anything to choose.
        parts = [slice(start, start + rows) for start in range(0, max(1, len(states)), rows)]
        if len(parts) > 1 and torch.is_grad_enabled():
            again = partial(checkpoint, self._others, use_reentrant=False, preserve_rng_state=False)
            others = [again(states[p], tokens[p]) for p in parts]
        else:
            others = [self._others(states[p], tokens[p]) for p in parts]
        # log(a / (a + b)) = -softplus(log b - log a): exact where the mass is almost 1, too.
        return selected.log_softmax(-1), -softplus(torch.cat(others) - selected.logsumexp(-1))

    def _others(self, states: Tensor, tokens: Tensor) -> Tensor:
        """Returns logsumexp of the logits of all tokens but the given ones, float32 (k,)."""
        return self.engine.logits(states).scatter(1, tokens, -torch.inf).logsumexp(-1)


class _Plan:
    """The reads of an evaluation: branching nodes and forced tokens of each distinct turn, as indices.

    In small games most turns repeat, so only distinct ones are planned, and then all are laid out together.
    """

    def __init__(self) -> None:
        self.anchors: list[tuple[int, int]] = []
        self._exact: list[bool] = []
        self._chosen: list[list[tuple[int, int]]] = []  # per turn: read, child
        self._passed: list[list[tuple[int]]] = []  # per turn: reads of branching nodes and forced tokens

    def begin(self, anchor: tuple[int, int], *, exact: bool) -> None:
        """Begins the next turn."""
        self.anchors.append(anchor)
        self._exact.append(exact)
        self._chosen.append([])
        self._passed.append([])

    def choose(self, read: int, child: int) -> None:
        self._chosen[-1].append((read, child))
        self._passed[-1].append((read,))

    def force(self, read: int) -> None:
        self._passed[-1].append((read,))

    def evaluation(
        self, where: npt.NDArray[np.int64], hidden: Tensor, log_probs: Tensor, log_mass: Tensor | None
    ) -> ChoiceEvaluation:
        """Returns the turns' evaluation from log-probabilities (k, c) and log-masses (k,) of the reads.

        Turn i is the planned one ``where[i]``; int64 (n,).
        """
        device = hidden.device
        turns, reads, children = torch.from_numpy(_laid_out(self._chosen, where, 2)).to(device)
        nodes = log_probs.index_select(0, reads)
        zeros = torch.zeros(len(where), device=device)
        terms = nodes.exp() * nodes.masked_fill(~torch.isfinite(nodes), 0.0)
        if log_mass is not None:
            passed = torch.from_numpy(_laid_out(self._passed, where, 1)).to(device)
            log_mass = zeros.index_add(0, passed[0], log_mass.index_select(0, passed[1]))
        return ChoiceEvaluation(
            log_probs=zeros.index_add(0, turns, nodes[torch.arange(len(nodes), device=device), children]),
            entropy=zeros.index_add(0, turns, -terms.sum(-1)),
            hidden=hidden,
            nodes=nodes,
            turns=turns,
            exact=np.array(self._exact, dtype=np.bool_)[where],
            log_mass=log_mass,
        )


def _laid_out(
    rows: Sequence[Sequence[tuple[int, ...]]], where: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.int64]:
    """Returns the rows of all turns, one after the other, below their turn: int64 (1 + width, k).

    Args:
        rows: Per distinct turn, rows of ``width`` numbers.
        where: The distinct turn of each turn, int64 (n,).
        width: Numbers of a row.
    """
    table = np.array([row for own in rows for row in own], dtype=np.int64).reshape(-1, width)
    counts = np.array([len(own) for own in rows], dtype=np.int64)
    taken = table[spans(counts.cumsum() - counts, counts, where)]
    turns = np.repeat(np.arange(len(where)), counts[where])
    return np.ascontiguousarray(np.concatenate([turns[:, None], taken], axis=1).T)


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


def _normalised(log_probs: Sequence[float]) -> npt.NDArray[np.float64]:
    p = np.exp(np.array(log_probs, dtype=np.float64))
    normalised: npt.NDArray[np.float64] = p / p.sum()
    return normalised
