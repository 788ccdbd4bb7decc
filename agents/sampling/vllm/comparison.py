"""Servers compared with the model in this process: on a probe, and on a part of each step's draws.

Adapters that never arrive leave a run that learns from an ever older policy without a word (verl#7495).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.base import vocabulary_log_probs
from gamespiel.agents.engines.nodes import NodeRead, NodeReader
from gamespiel.agents.models import BASE, NEWEST
from gamespiel.agents.models.adapters import AdapterSets
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.drawing import inverse_cdf
from gamespiel.agents.sampling.vllm.answers import (
    IDS,
    Draw,
    LogProbs,
    NodeQuery,
    mask,
    node_body,
    read_children,
)
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError
from gamespiel.agents.tokens import Tokens, map_groups
from gamespiel.agents.tokens.constraints import FreeText

NOISE = 4.0
"""Adapters that move the probe by less than so many times the rounding need not show on a server."""

LIMITS = {"float32": 0.01, "float16": 0.05, "bfloat16": 0.15, "quantised": 0.5}
"""Mean gaps, in nats, above which a server does not serve the trainer's model, by the trainer's type.

In float32 the gap is rounding, around 1e-5. A server in bfloat16 rounds its logits to 8 bits, so that a
probability moves by up to 13%; one of 16 bits beside a quantised trainer has other weights.
"""

COMPARED_AT_ONCE = 16
"""Draws of one depth of one call that are compared."""

COMPARED = 256
"""Draws, or tokens of texts, of one step that are compared."""

ENOUGH = 8
"""Compared draws from which on a mean says something."""


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
        self._nodes = NodeReader(engine)

    @torch.no_grad()
    def read_nodes(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        """Returns the unmasked log-probabilities of each query's children, float64 (c,)."""
        return map_groups(queries, lambda query: query.adapters, self._read_group)

    def _read_group(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        texts, children = [query.text for query in queries], [query.children for query in queries]
        reads = [NodeRead(row, len(query.text) - 1, query.children) for row, query in enumerate(queries)]

        def read() -> LogProbs:
            states, _ = self._nodes.read(texts, reads, [])
            log_probs, log_mass = self._nodes.child_log_probs(states, children)
            unmasked: LogProbs = (log_probs + log_mass[:, None]).double().cpu().numpy()
            return unmasked

        with self.adapters.use(queries[0].adapters):
            unmasked = self.engine.budgets.retry_forward(read, texts, self.engine.count)
        return [row[: len(node_children)] for row, node_children in zip(unmasked, children, strict=True)]

    @torch.no_grad()
    def read_text(self, adapters: str, prompt: Tokens, tokens: Tokens, temperature: float) -> LogProbs:
        """Returns the log-probabilities of a written text's tokens, float64 (tokens,)."""
        whole = (*prompt, *tokens[:-1])
        places = list(range(len(prompt) - 1, len(whole)))

        def read() -> LogProbs:
            states = self.engine.read([whole], [0] * len(places), places)
            log_probs = vocabulary_log_probs(self.engine.logits(states), temperature)
            chosen_log_probs = log_probs[torch.arange(len(tokens)), torch.tensor(tokens)]
            values: LogProbs = chosen_log_probs.double().cpu().numpy()
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


@dataclass
class _Seen:
    ours: LogProbs
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
        now, before = _Seen(self.read(name), self.ask(name)), self._seen.get(name)
        for url, theirs in now.theirs.items():
            gap = mean_gap(now.ours, theirs)
            if before is None:
                self._rounding = max(self._rounding, float(np.abs(now.ours - theirs).max()))
            elif url in before.theirs:
                moved = float(np.abs(now.ours - before.ours).max())
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


class Comparison:
    """Compares a part of each step's draws with the model in this process.

    Args:
        reader: Reads the model in this process.
        limit: The largest mean gap, in nats.
    """

    def __init__(self, reader: LocalReader, limit: float) -> None:
        self.reader, self.limit = reader, limit
        self.begin_step()

    def begin_step(self) -> None:
        """Forgets what was compared."""
        self._masked: list[float] = []
        self._unmasked: list[float] = []
        self._margins: list[float] = []
        self._shift, self._differing, self._draws = 0.0, 0, 0

    def add_draws(self, draws: Sequence[Draw]) -> None:
        """Notes draws, and compares some of those of the newest adapters.

        Raises:
            GapError: the mean gap of this step is above the limit.
        """
        self._margins += [_margin(draw.log_probs, draw.uniform) for draw in draws]
        room = min(COMPARED_AT_ONCE, COMPARED - len(self._masked))
        newest = [draw for draw in draws if draw.query.adapters == NEWEST][: max(0, room)]
        if not newest:
            return
        local_log_probs = self.reader.read_nodes([draw.query for draw in newest])
        uniforms = np.array([draw.uniform for draw in newest])
        children = inverse_cdf(mask(local_log_probs)[0], range(len(newest)), uniforms)
        for draw, local, child in zip(newest, local_log_probs, children.tolist(), strict=True):
            self._compare(draw, local)
            self._differing += child != draw.child
        self._require()

    def _compare(self, draw: Draw, local: LogProbs) -> None:
        theirs = draw.log_probs
        local_masked, their_masked = local - np.logaddexp.reduce(local), theirs - np.logaddexp.reduce(theirs)
        self._masked.append(abs(float(local_masked[draw.child] - their_masked[draw.child])))
        self._unmasked.append(abs(float(local[draw.child] - theirs[draw.child])))
        self._shift = max(self._shift, float(np.abs(np.exp(local_masked) - np.exp(their_masked)).sum()))
        self._draws += 1

    def add_texts(self, decisions: Sequence[Decision]) -> None:
        """Compares some tokens of texts that the newest adapters wrote.

        Raises:
            GapError: the mean gap of this step is above the limit.
        """
        for decision in decisions:
            if decision.adapters != NEWEST or len(self._masked) >= COMPARED:
                continue
            assert isinstance(decision.constraint, FreeText)
            local = self.reader.read_text(
                NEWEST, decision.prompt, decision.tokens, decision.constraint.temperature
            )
            gaps: npt.NDArray[np.float64] = np.abs(local - decision.log_probs)
            self._masked += gaps.tolist()
            self._unmasked += gaps.tolist()  # nothing is masked in a text
        self._require()

    def _require(self) -> None:
        mean = float(np.mean(self._masked)) if self._masked else 0.0
        if len(self._masked) >= ENOUGH and mean > self.limit:
            raise GapError(
                f"the vLLM server's log-probabilities differ from the trainer's by {mean:.3g} nats on "
                f"average, allowed: {self.limit:g} (run.vllm_gap_limit); it serves another model, "
                "other adapters, another type or another quantisation"
            )

    def metrics(self) -> dict[str, float]:
        """Returns the figures of the step so far.

        gap, gap_max: Mean and largest difference of the chosen tokens' log-probabilities under the mask.
        unmasked_gap, unmasked_gap_max: Those of the whole vocabulary's, as the legal mass has them.
        near_ties: Draws, of all, so near the boundary of two tokens that the largest gap could change them.
        differing: Share of the compared draws that the model in this process would have made otherwise.
        compared: Draws, or tokens of texts, that were compared.
        """
        if not self._masked:
            return {}
        figures = {
            "gap": float(np.mean(self._masked)),
            "gap_max": max(self._masked),
            "unmasked_gap": float(np.mean(self._unmasked)),
            "unmasked_gap_max": max(self._unmasked),
            "compared": float(len(self._masked)),
        }
        if self._draws:
            figures["near_ties"] = float(sum(margin <= self._shift for margin in self._margins))
            figures["differing"] = self._differing / self._draws
        return figures


def mean_gap(ours: LogProbs, theirs: LogProbs) -> float:
    """Returns the mean gap of tokens' log-probabilities, weighted by their probabilities in this process."""
    p = np.exp(ours)
    return float((p * np.abs(ours - theirs)).sum() / p.sum())


def _margin(log_probs: LogProbs, uniform: float) -> float:
    """Returns the distance of a uniform from the nearest boundary between two children."""
    p = np.exp(log_probs - np.logaddexp.reduce(log_probs))
    return float(np.abs(p.cumsum()[:-1] - uniform).min())
