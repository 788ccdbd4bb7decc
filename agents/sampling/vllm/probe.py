"""A probe: a prompt whose log-probabilities say which model and which adapters a server has.

Adapters that never arrive leave a run that learns from an ever older policy without a word (verl#7495).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamespiel.agents.models.names import BASE
from gamespiel.agents.sampling.vllm.choices import IDS, node_body, read_children
from gamespiel.agents.sampling.vllm.comparison import GapError, mean_gap
from gamespiel.agents.sampling.vllm.reader import LocalReader, LogProbs, NodeQuery
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError
from gamespiel.agents.tokens import Tokens

NOISE = 4.0
"""Adapters that move the probe by less than so many times the rounding need not show on a server."""


class StaleAdaptersError(ServerError):
    """Adapters that were loaded, and that a server's answers do not follow."""


@dataclass
class _Seen:
    own: LogProbs
    theirs: dict[str, LogProbs]


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
        self._seen: dict[str, _Seen] = {}
        self._rounding = 0.0

    def ask(self, name: str, temperature: float = 1.0) -> dict[str, LogProbs]:
        """Returns the log-probabilities of the probe's tokens by server."""
        body = {**node_body([self.prompt], self.children), "temperature": temperature}
        answers = self.replicas.complete_on_each(Job(name, body))
        return {url: np.array(read_children(choice, self.children)) for url, (choice,) in answers.items()}

    def read(self, name: str) -> LogProbs:
        """Returns the log-probabilities of the probe's tokens by the model in this process."""
        (own,) = self.reader.read_nodes([NodeQuery(name, self.prompt, self.children)])
        return own

    def forget(self, name: str) -> None:
        self._seen.pop(name, None)

    def check(self, name: str) -> None:
        """Checks that servers answer with the adapters that have a name now.

        Raises:
            StaleAdaptersError: their answers did not change, and should have.
            GapError: they answer otherwise than the model in this process.
        """
        now, before = _Seen(self.read(name), self.ask(name)), self._seen.get(name)
        for url, theirs in now.theirs.items():
            gap = mean_gap(now.own, theirs)
            if before is None:
                self._rounding = max(self._rounding, float(np.abs(now.own - theirs).max()))
            elif url in before.theirs:
                moved = float(np.abs(now.own - before.own).max())
                if moved > NOISE * self._rounding and np.array_equal(theirs, before.theirs[url]):
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
        self._seen[name] = now
