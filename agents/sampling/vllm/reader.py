"""Log-probabilities by the model in this process, which are compared with those of a server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.nodes import NodeRead, NodeReader
from gamespiel.agents.engines.vocabulary import vocabulary_log_probs
from gamespiel.agents.models.adapter_sets import AdapterSets
from gamespiel.agents.tokens import Tokens


class NodeQuery(NamedTuple):
    """A question about the next token of a text.

    Attributes:
        adapters: Name of the adapters.
        text: The tokens so far, prompt and answer.
        children: The tokens whose log-probabilities are asked for.
    """

    adapters: str
    text: Tokens
    children: Tokens


LogProbs = npt.NDArray[np.float64]
"""Log-probabilities over the whole vocabulary, unmasked, float64."""


class LocalReader:
    """Reads log-probabilities with the engine that also learns.

    Args:
        engine: Runs the forwards.
        adapters: The sets of adapters by name.
    """

    def __init__(self, engine: Engine, adapters: AdapterSets) -> None:
        self.engine, self.adapters = engine, adapters
        self._nodes = NodeReader(engine)

    @torch.no_grad()
    def read_nodes(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        """Returns the unmasked log-probabilities of each query's children, float64 (c,)."""
        found: dict[int, LogProbs] = {}
        for name in dict.fromkeys(query.adapters for query in queries):
            rows = [row for row, query in enumerate(queries) if query.adapters == name]
            own = [queries[row] for row in rows]
            with self.adapters.use(name):
                texts = [query.text for query in own]
                read = self.engine.budgets.retry_forward(partial(self._read, own), texts, self.engine.count)
            found.update(zip(rows, read, strict=True))
        return [found[row] for row in range(len(queries))]

    def _read(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        reads = [NodeRead(row, len(query.text) - 1, query.children) for row, query in enumerate(queries)]
        states, _ = self._nodes.read([query.text for query in queries], reads, [])
        children = [query.children for query in queries]
        log_probs, log_mass = self._nodes.child_log_probs(states, children)
        unmasked = (log_probs + log_mass[:, None]).double().cpu().numpy()
        return [row[: len(own)] for row, own in zip(unmasked, children, strict=True)]

    @torch.no_grad()
    def read_text(self, adapters: str, prompt: Tokens, tokens: Tokens, temperature: float) -> LogProbs:
        """Returns the log-probabilities of a written text's tokens, float64 (tokens,)."""
        whole = (*prompt, *tokens[:-1])
        places = list(range(len(prompt) - 1, len(whole)))

        def read() -> LogProbs:
            states = self.engine.read([whole], [0] * len(places), places)
            log_probs = vocabulary_log_probs(self.engine.logits(states), temperature)
            own = log_probs[torch.arange(len(tokens)), torch.tensor(tokens)]
            values: LogProbs = own.double().cpu().numpy()
            return values

        with self.adapters.use(adapters):
            return self.engine.budgets.retry_forward(read, [whole], self.engine.count)

    @torch.no_grad()
    def likeliest(self, adapters: str, prompt: Tokens, count: int) -> Tokens:
        """Returns the most probable next tokens, ascending by their ids."""
        with self.adapters.use(adapters):
            states = self.engine.read([prompt], [0], [len(prompt) - 1])
            top = self.engine.logits(states)[0].topk(min(count, self.engine.vocab_size)).indices
        return tuple(sorted(top.tolist()))
