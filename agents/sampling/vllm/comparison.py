"""The gap between a server's log-probabilities and those of the model in this process, step by step."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gamespiel.agents.models.names import NEWEST
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.drawing import inverse_cdf
from gamespiel.agents.sampling.vllm.choices import Draw, mask
from gamespiel.agents.sampling.vllm.reader import LocalReader, LogProbs
from gamespiel.agents.sampling.vllm.server import ServerError
from gamespiel.agents.tokens.constraints import FreeText

log = logging.getLogger(__name__)

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


class GapError(ServerError):
    """A server whose log-probabilities are too far from those of the trainer's model."""


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
        chosen = [draw for draw in draws if draw.query.adapters == NEWEST][: max(0, room)]
        if not chosen:
            return
        read = self.reader.read_nodes([draw.query for draw in chosen])
        uniforms = np.array([draw.uniform for draw in chosen])
        again = inverse_cdf(mask(read)[0], range(len(chosen)), uniforms)
        for draw, own, child in zip(chosen, read, again.tolist(), strict=True):
            self._compare(draw, own)
            self._differing += child != draw.child
        self._require()

    def _compare(self, draw: Draw, own: LogProbs) -> None:
        theirs = draw.log_probs
        masked, their_masked = own - np.logaddexp.reduce(own), theirs - np.logaddexp.reduce(theirs)
        self._masked.append(abs(float(masked[draw.child] - their_masked[draw.child])))
        self._unmasked.append(abs(float(own[draw.child] - theirs[draw.child])))
        self._shift = max(self._shift, float(np.abs(np.exp(masked) - np.exp(their_masked)).sum()))
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
            own = self.reader.read_text(
                NEWEST, decision.prompt, decision.tokens, decision.constraint.temperature
            )
            gaps: npt.NDArray[np.float64] = np.abs(own - decision.log_probs)
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
        found = {
            "gap": float(np.mean(self._masked)),
            "gap_max": max(self._masked),
            "unmasked_gap": float(np.mean(self._unmasked)),
            "unmasked_gap_max": max(self._unmasked),
            "compared": float(len(self._masked)),
        }
        if self._draws:
            found["near_ties"] = float(sum(margin <= self._shift for margin in self._margins))
            found["differing"] = self._differing / self._draws
        return found


def mean_gap(own: LogProbs, theirs: LogProbs) -> float:
    """Returns the mean gap of tokens' log-probabilities, weighted by their probabilities in this process."""
    p = np.exp(own)
    return float((p * np.abs(own - theirs)).sum() / p.sum())


def _margin(log_probs: LogProbs, uniform: float) -> float:
    """Returns the distance of a uniform from the nearest boundary between two children."""
    p = np.exp(log_probs - np.logaddexp.reduce(log_probs))
    return float(np.abs(p.cumsum()[:-1] - uniform).min())
