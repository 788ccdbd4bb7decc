"""Servers compared with the model in this process, on one prompt.

Adapters that never arrive leave a run that learns from an ever older policy without a word (verl#7495).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.nodes import NodeRead, child_log_probs, read_nodes
from gamespiel.agents.models import BASE
from gamespiel.agents.models.adapters import AdapterSets
from gamespiel.agents.sampling.vllm.answers import IDS, LogProbs, NodeQuery, node_body, read_children
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError
from gamespiel.agents.tokens import Tokens

NOISE = 4.0
"""Adapters that move the probe by less than so many times the rounding need not show on a server."""

LIMITS = {"float32": 0.01, "float16": 0.05, "bfloat16": 0.15, "quantised": 0.5}
"""Mean gaps per ratio unit, in nats, above which a server does not serve the trainer's model, by its type.

In float32 the gap is rounding, around 1e-5. A server in bfloat16 rounds its logits to 8 bits, so that a
probability moves by up to 13%; one of 16 bits beside a quantised trainer has other weights.
"""


class StaleAdaptersError(ServerError):
    """Adapters that were loaded, and that a server's answers do not follow."""


class GapError(ServerError):
    """A server whose log-probabilities are too far from those of the trainer's model."""


class LocalReader:
    """Reads log-probabilities with the engine that also learns.

    Args:
        engine: Runs the forwards.
        adapters: The sets of adapters by name.
    """

    def __init__(self, engine: Engine, adapters: AdapterSets) -> None:
        self.engine, self.adapters = engine, adapters

    @torch.no_grad()
    def read_nodes(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        """Returns the unmasked log-probabilities of each query's children, float64 (c,).

        All queries have the same adapters.
        """
        texts, children = [query.text for query in queries], [query.children for query in queries]
        reads = [NodeRead(row, len(query.text) - 1, query.children) for row, query in enumerate(queries)]

        def read() -> LogProbs:
            states, _ = read_nodes(self.engine, texts, reads, [])
            log_probs, log_mass = child_log_probs(self.engine, states, children)
            unmasked: LogProbs = (log_probs + log_mass[:, None]).double().cpu().numpy()
            return unmasked

        with self.adapters.use(queries[0].adapters):
            unmasked = self.engine.budgets.retry(read, texts, self.engine.count)
        return [row[: len(node_children)] for row, node_children in zip(unmasked, children, strict=True)]

    @torch.no_grad()
    def likeliest(self, adapters: str, prompt: Tokens, count: int) -> Tokens:
        """Returns the most probable next tokens, ascending by their ids."""
        with self.adapters.use(adapters):
            states = self.engine.read([prompt], [0], [len(prompt) - 1])
            top = self.engine.logits(states)[0].topk(min(count, self.engine.vocab_size)).indices
        return tuple(sorted(top.tolist()))


class Probe:
    """Compares servers with the model in this process on one prompt.

    Args:
        replicas: The servers.
        reader: Reads the model in this process.
        prompt: The prompt's tokens.
        limit: The largest mean gap, in nats.
    """

    def __init__(self, replicas: Replicas, reader: LocalReader, prompt: Tokens, limit: float) -> None:
        self.replicas, self.reader, self.prompt, self.limit = replicas, reader, prompt, limit
        self.children = reader.likeliest(BASE, prompt, IDS)
        #: By name of adapters, what was read here and what servers answered when they were checked last.
        self._seen: dict[str, tuple[LogProbs, dict[str, LogProbs]]] = {}
        self._rounding = 0.0

    def ask(self, name: str, temperature: float = 1.0) -> dict[str, LogProbs]:
        """Returns the log-probabilities of the probe's tokens by server."""
        body = {**node_body([self.prompt], self.children), "temperature": temperature}
        answers = self.replicas.complete_on_each(Job(name, body))
        return {url: np.array(read_children(choice, self.children)) for url, (choice,) in answers.items()}

    def read(self, name: str) -> LogProbs:
        """Returns the log-probabilities of the probe's tokens by the model in this process."""
        (log_probs,) = self.reader.read_nodes([NodeQuery(name, self.prompt, self.children)])
        return log_probs

    def forget(self, name: str) -> None:
        self._seen.pop(name, None)

    def check(self, name: str) -> None:
        """Checks that servers answer with the adapters that have a name now.

        Raises:
            StaleAdaptersError: their answers did not change, and should have.
            GapError: they answer otherwise than the model in this process.
        """
        ours, asked = self.read(name), self.ask(name)
        before, asked_before = self._seen.get(name, (None, {}))
        for url, theirs in asked.items():
            gap = mean_gap(ours, theirs)
            if before is None:
                self._rounding = max(self._rounding, float(np.abs(ours - theirs).max()))
            elif url in asked_before:
                moved = float(np.abs(ours - before).max())
                if moved > NOISE * self._rounding and np.array_equal(theirs, asked_before[url]):
                    raise StaleAdaptersError(
                        f"the vLLM server {url} loaded new adapters and answers as before: the probe's "
                        f"log-probabilities moved by {moved:.3g} here and by 0 there"
                    )
            if gap > self.limit:
                raise GapError(
                    f"the vLLM server {url} answers the probe otherwise than the trainer with adapters "
                    f"{name!r}: log-probabilities differ by {gap:.3g} nats on average, allowed: "
                    f"{self.limit:g} (run.vllm_gap_limit)"
                )
        self._seen[name] = ours, asked


def mean_gap(ours: LogProbs, theirs: LogProbs) -> float:
    """Returns the mean gap of tokens' log-probabilities, weighted by their probabilities in this process."""
    p = np.exp(ours)
    return float((p * np.abs(ours - theirs)).sum() / p.sum())
