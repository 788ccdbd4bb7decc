"""Choices drawn in this process: an exact distribution over legal actions, from tries of the model's tokens.

Each branching node's logits are masked to its children and renormalised in float32. So legal actions have all
the mass, and an action's probability is the product along its path. States that repeat in a batch are read
once. In small games most states repeat, since a prompt depends only on the information state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.base import Prefill
from gamespiel.agents.engines.nodes import NodeRead, child_log_probs, read_nodes
from gamespiel.agents.sampling.drawing import (
    TrieDescent,
    WrittenAnswers,
    action_probabilities,
    write_best,
)
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.tokens import Index, Tokens
from gamespiel.agents.tokens.constraints import ActionTrie

READ_AT_ONCE = 32
"""The most tokens to a trie's branching nodes that are read in one forward with its prompt, used or not.

Read when a draw has reached them, they cost a forward for each digit of an action. It has few tokens, and a
GPU waits longer for its launches than it computes.
"""


class ChoiceSampler:
    """Draws legal actions with a language model.

    Args:
        engine: Runs the forwards.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @torch.no_grad()
    def sample(
        self,
        prompts: Sequence[Tokens],
        tries: Sequence[ActionTrie],
        uniforms: Uniforms,
        prefill: Prefill | None = None,
    ) -> WrittenAnswers:
        """Draws one legal action per state.

        Args:
            prompts: Token sequences, n of them.
            tries: The legal actions, n tries.
            uniforms: Returns the noise of the depth-th decision, float64 (n,). It is called for each
                depth of each group of rows that share a forward, and the group uses its own rows.
            prefill: Reads prompts in the place of the engine's.
        """
        descent, small = TrieDescent(tries), list[int]()
        # Only a tree has a prompt once for all nodes of its trie. Turns of conversations are read to be kept.
        if prefill is None and self.engine.reading == "shared":
            small = [
                row
                for row, trie in enumerate(tries)
                if sum(len(n.prefix) for n in trie.nodes) <= READ_AT_ONCE
            ]
        large = sorted({*range(len(tries))}.difference(small))
        states = [
            self._descend_small(descent, small, prompts, uniforms),
            self._descend_large(descent, large, prompts, uniforms, prefill or self.engine.prefill),
        ]
        hidden = torch.cat([part for part in states if part is not None])
        if small and large:
            hidden = hidden.index_select(0, transfer.send(np.argsort([*small, *large]), hidden.device))
        return descent.finish(hidden)

    def _descend_small(
        self, descent: TrieDescent, rows: list[int], prompts: Sequence[Tokens], uniforms: Uniforms
    ) -> Tensor | None:
        """Leads rows to an action, all of whose nodes are read with the prompts; returns these' states."""
        if not rows:
            return None
        inputs = [prompts[row] for row in rows], [descent.tries[row] for row in rows]
        log_probs, log_mass, where, hidden = self._read_all(*inputs, anchored=True)
        mass, nodes_of = log_mass.exp(), dict(zip(rows, where, strict=True))
        descent.lead(
            rows, uniforms, lambda at: ([nodes_of[row][node] for row, node in at.items()], log_probs, mass)
        )
        return hidden

    def _descend_large(
        self,
        descent: TrieDescent,
        every: list[int],
        prompts: Sequence[Tokens],
        uniforms: Uniforms,
        prefill: Prefill,
    ) -> Tensor | None:
        """Leads rows to an action; nodes are read as they are reached. Returns the prompts' states."""
        if not every:
            return None
        tries, index = descent.tries, Index[Tokens]()
        prompt_of = {row: index(prompts[row]) for row in every}
        hidden: list[Tensor | None] = [None] * len(index.items)
        rows_of: dict[int, list[int]] = {}
        for row, prompt in prompt_of.items():
            rows_of.setdefault(prompt, []).append(row)
        for chunk in self.engine.chunks(index.items):
            rows = sorted(row for prompt in chunk for row in rows_of[prompt])
            # The last node of a trie is its deepest.
            deep = any(node.prefix for row in rows for node in tries[row].nodes[-1:])
            last, prefix = prefill([index.items[p] for p in chunk], cache=deep)
            local = {prompt: i for i, prompt in enumerate(chunk)}
            for prompt, i in local.items():
                hidden[prompt] = last[i]
            self._descend_tries(descent, {row: local[prompt_of[row]] for row in rows}, last, prefix, uniforms)
        stacked = torch.stack([h for h in hidden if h is not None])
        return stacked.index_select(0, transfer.send(list(prompt_of.values()), stacked.device))

    def _descend_tries(
        self, descent: TrieDescent, slot: dict[int, int], last: Tensor, prefix: Any, uniforms: Uniforms
    ) -> None:
        """Leads the rows of one chunk to an action.

        Args:
            descent: The tries, and what is drawn.
            slot: By row, its prompt's place in the chunk.
            last: Hidden states of the chunk's last prompt tokens.
            prefix: The engine's prefix of the chunk.
            uniforms: See ``sample``.
        """

        def read(at: dict[int, int]) -> tuple[list[int], Tensor, Tensor]:
            reads = Index[tuple[int, Tokens, Tokens]]()  # prompt slot, tokens so far, children
            where = [reads((slot[row], *descent.tries[row].nodes[node])) for row, node in at.items()]
            started = [not tokens for _, tokens, _ in reads.items]
            states = last.index_select(0, transfer.send([i for i, _, _ in reads.items], last.device))
            if not all(started):
                assert prefix is not None
                further = [k for k, first in enumerate(started) if not first]
                places, continued = [reads.items[k][0] for k in further], [reads.items[k][1] for k in further]
                further_states = self.engine.extend(prefix, places, continued)
                states = states.index_copy(0, transfer.send(further, states.device), further_states)
            all_children = [children for _, _, children in reads.items]
            log_probs, log_mass = child_log_probs(self.engine, states, all_children)
            log_probs, mass = transfer.read(log_probs, log_mass.exp())
            return where, log_probs, mass

        descent.lead(list(slot), uniforms, read)

    @torch.no_grad()
    def best(self, prompts: Sequence[Tokens], tries: Sequence[ActionTrie]) -> WrittenAnswers:
        """Returns the most probable legal action of each state, the first of equals.

        This reads every branching node, as ``distribution`` does.
        """
        log_probs, log_mass, where, hidden = self._read_all(prompts, tries, anchored=True)
        return write_best(tries, where, log_probs.double().numpy(), log_mass.double().numpy(), hidden)

    @torch.no_grad()
    def distribution(
        self, prompts: Sequence[Tokens], tries: Sequence[ActionTrie]
    ) -> list[npt.NDArray[np.float64]]:
        """Returns every legal action's probability, a float64 array per state in the order of its trie.

        This reads every branching node, so the cost grows with the legal set; that of ``sample`` does not.
        """
        log_probs, _, where, _ = self._read_all(prompts, tries, anchored=False)
        odds = log_probs.double().numpy()
        return [action_probabilities(odds, at, trie) for at, trie in zip(where, tries, strict=True)]

    def _read_all(
        self, prompts: Sequence[Tokens], tries: Sequence[ActionTrie], *, anchored: bool
    ) -> tuple[Tensor, Tensor, list[list[int]], Tensor]:
        """Reads every branching node of every state's trie.

        Returns:
            On the CPU, log-probabilities of the children, float32 (k, c), and the log of their unmasked mass,
            float32 (k,); per state, the rows of its nodes; if ``anchored``, the last prompt tokens' hidden
            states (n, hidden).
        """
        sequences, reads = Index[Tokens](), Index[NodeRead]()
        where: list[list[int]] = []
        for prompt, trie in zip(prompts, tries, strict=True):
            at = []
            for node in trie.nodes:
                sequence = sequences((*prompt, *node.prefix))
                at.append(reads(NodeRead(sequence, len(prompt) + len(node.prefix) - 1, node.children)))
            where.append(at)
        anchors = [(sequences(prompt), len(prompt) - 1) for prompt in prompts] if anchored else []
        if not sequences.items:
            return torch.zeros(0, 1), torch.zeros(0), where, torch.zeros(0, 0, device=self.engine.device)
        states, hidden = read_nodes(self.engine, sequences.items, reads.items, anchors)
        all_children = [read.children for read in reads.items]
        log_probs, log_mass = child_log_probs(self.engine, states, all_children)
        log_probs, log_mass = transfer.read(log_probs, log_mass)
        return log_probs, log_mass, where, hidden
