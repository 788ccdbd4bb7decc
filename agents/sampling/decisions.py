"""Requests for answers, the decisions that come back, and what an environment is given for them.

Baselines answer without a learning library, so none is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gamespiel.agents.models import NEWEST
from gamespiel.agents.tokens import Tokens

if TYPE_CHECKING:
    from gamespiel.agents.sampling.noise import Noise
    from gamespiel.agents.tokens.constraints import Constraint


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one answer to one prompt.

    Attributes:
        prompt: The prompt's tokens.
        constraint: Limits the answer's tokens.
        noise: Where the answer's noise is drawn; None asks for the most probable answer instead.
        adapters: Name of the adapters that answer.
        left_out: Earlier turns that the prompt, a conversation, leaves out; None if it is a turn on its own.
    """

    prompt: Tokens
    constraint: Constraint
    noise: Noise | None
    adapters: str = NEWEST
    left_out: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to one prompt.

    Attributes:
        prompt: The prompt's tokens.
        constraint: What limited the answer's tokens.
        tokens: The answer's tokens, with the one that ended it, if there is one.
        log_probs: One per token that was decided, as the sampler gave it, float32 (decided,). Of a choice
            these are its path's branching nodes; forced tokens are not decided.
        legal_mass: Product, over the path's branching nodes, of the unmasked probability of the node's
            children; None without such nodes to measure, as in free text.
        cut: Whether a limit came before the answer's end.
        adapters: Name of the adapters that answered.
        value: The critic's estimate; None from a sampler without the critic.
        left_out: As the request has it.
    """

    prompt: Tokens
    constraint: Constraint
    tokens: Tokens
    log_probs: npt.NDArray[np.float32]
    legal_mass: float | None = None
    cut: bool = False
    adapters: str = NEWEST
    value: float | None = None
    left_out: int | None = None

    @property
    def measures(self) -> dict[str, float]:
        """Returns what metrics report of the decision."""
        measured = dict(self.constraint.measures(self.tokens, self.legal_mass, self.cut))
        if self.left_out is not None:
            measured |= {
                "conversation_tokens": len(self.prompt),
                "conversations_cut": float(self.left_out > 0),
            }
        return measured

    @classmethod
    def from_answer(
        cls, prompt: Tokens, constraint: Constraint, tokens: Tokens, left_out: int | None = None
    ) -> Decision:
        """Returns the decision for a given answer, which nobody sampled: its log-probabilities are NaN."""
        decided = sum(constraint.unit_sizes(tokens))
        unknown = np.full(decided, np.nan, dtype=np.float32)
        return cls(prompt, constraint, tokens, unknown, cut=constraint.is_cut(tokens), left_out=left_out)


class Answer(NamedTuple):
    """An agent's answer in an episode.

    Attributes:
        action: The argument of the environment's step: an action's number, or a reply's text.
        decision: The policy's decision; None if a baseline answered.
    """

    action: int | str
    decision: Decision | None = None
