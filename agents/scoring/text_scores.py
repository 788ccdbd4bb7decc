"""The scores of free text: every token of each reply, over the whole vocabulary, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.base import apply_in_parts, split_states, vocabulary_log_probs
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.scoring import Scores
from gamespiel.agents.tokens import Index, Tokens
from gamespiel.agents.tokens.constraints import FreeText


@dataclass(frozen=True)
class TextScores(Scores):
    """Scores of replies, of which every token is decided among the whole vocabulary.

    Attributes:
        states: Hidden states that predict tokens, one per distinct state, (m, hidden_size).
        state_of: The state that predicts each token, int64 (k,).
    """

    states: Tensor
    state_of: Tensor
    _state_divergence: Callable[[Tensor, Tensor], Tensor]

    def keep(self, estimator: str) -> Tensor:
        if estimator == "exact":
            return self.states.index_select(0, self.state_of)
        return self.log_probs[:, None]

    def divergence(self, other: Tensor, estimator: str) -> Tensor:
        """Returns KL(this || other) at each token in nats, float32 (k,).

        "exact" is exact over the vocabulary: both distributions have the replies' temperature, and the
        other's logits are computed here, part by part, from its hidden states, behind the head without
        adapters. "k3" estimates it from the sampled tokens: r - 1 - log r, where r is the other's
        probability of the token over this one's. That is never negative, and unbiased if these weights drew
        the tokens. Its gradient is another one: in the mean it is the gradient of KL(other || this).
        """
        if estimator != "exact":
            log_ratio = other[:, 0].detach() - self.log_probs
            return torch.expm1(log_ratio) - log_ratio
        tokens = torch.arange(len(self.state_of), device=self.state_of.device)
        first = tokens.new_zeros(len(self.states))
        first = first.scatter_reduce(0, self.state_of, tokens, "amin", include_self=False)
        divergences = self._state_divergence(self.states, other.detach().index_select(0, first))
        return divergences.index_select(0, self.state_of)


class TextScorer:
    """Scores replies with a language model.

    Args:
        engine: Runs the forwards.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def read_tokens(self, decision: Decision, *, mass: bool) -> Tokens:
        """Returns the tokens of a reply that are read after the prompt: all but the last."""
        return decision.tokens[:-1]

    def score(self, decisions: Sequence[Decision], *, mass: bool = False) -> TextScores:
        """Returns the scores of replies, token by token.

        Args:
            decisions: The replies, n of them, all of one temperature.
            mass: Has no effect on replies.

        Raises:
            ValueError: a reply has no tokens, or the replies differ in their temperature.
        """
        temperature = _one_temperature(decisions)
        replies = [decision.tokens for decision in decisions]
        # A state is a text that predicts a token. No sequence is the beginning of another of the same prompt.
        roots, branches, pairs = Index[Tokens](), Index[tuple[int, int]](), Index[tuple[int, int]]()
        state_at: dict[tuple[str, int], int] = {}
        sequences: list[Tokens] = []
        places: list[tuple[int, int]] = []  # per state: sequence, position
        reply_states: list[list[int]] = [[] for _ in replies]
        # Longest first, so that a text that is the beginning of another has been read when its turn comes.
        for row in sorted(range(len(replies)), key=lambda row: -len(replies[row])):
            prompt, reply = decisions[row].prompt, replies[row]
            if not reply:
                raise ValueError(f"reply {row} has no tokens; allowed: at least the one that ends it")
            key, sequence = ("root", roots(prompt)), (*prompt, *reply[:-1])
            for depth in range(len(reply)):
                if depth:
                    key = ("branch", branches((reply_states[row][-1], reply[depth - 1])))
                if key not in state_at:
                    if not sequences or sequences[-1] is not sequence:
                        sequences.append(sequence)
                    state_at[key] = len(places)
                    places.append((len(sequences) - 1, len(prompt) - 1 + depth))
                reply_states[row].append(state_at[key])
        token_states = [state for states_of in reply_states for state in states_of]
        tokens = [token for reply in replies for token in reply]
        token_pairs = [pairs(pair) for pair in zip(token_states, tokens, strict=True)]
        states = self.engine.read(sequences, *zip(*places, strict=True))
        device = states.device
        state_of, pair_of = transfer.send(token_states, device), transfer.send(token_pairs, device)
        anchors = transfer.send([states_of[0] for states_of in reply_states], device)
        lengths = [len(reply) for reply in replies]
        log_probs, entropies = self._score_pairs(states, pairs.items, temperature)
        return TextScores(
            log_probs=log_probs.index_select(0, pair_of),
            entropy=entropies.index_select(0, state_of),
            owners=transfer.send(np.repeat(np.arange(len(replies)), lengths), device),
            hidden=states.index_select(0, anchors),
            states=states,
            state_of=state_of,
            _state_divergence=lambda hidden, other: self._divergence(hidden, other, temperature),
        )

    def _score_pairs(
        self, states: Tensor, pairs: Sequence[tuple[int, int]], temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Returns log-probabilities of pairs of state and token, (pairs,), and entropies of states, (m,)."""
        at, tokens = np.array(pairs, dtype=np.int64).T
        order = np.argsort(at, kind="stable")
        inverse = np.empty(len(order), dtype=np.int64)
        inverse[order] = np.arange(len(order))
        arguments = []
        for part in split_states(self.engine, len(states)):
            first, end = np.searchsorted(at[order], [part.start, part.stop])
            here = order[first:end]
            where, token = (transfer.send(x, states.device) for x in (at[here] - part.start, tokens[here]))
            arguments.append((states[part], where, token, temperature))
        scored = apply_in_parts(self._score_part, arguments)
        log_probs, entropies = (torch.cat(parts) for parts in zip(*scored, strict=True))
        return log_probs.index_select(0, transfer.send(inverse, states.device)), entropies

    def _score_part(
        self, states: Tensor, where: Tensor, tokens: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        log_probs = vocabulary_log_probs(self.engine.logits(states), temperature)
        return log_probs[where, tokens], -_mean_under(log_probs, log_probs)

    def _divergence(self, states: Tensor, other: Tensor, temperature: float) -> Tensor:
        """Returns KL(this || other) over the vocabulary, float32 (m,), from hidden states (m, hidden)."""
        parts = split_states(self.engine, len(states))
        arguments = [(states[part], other[part], temperature) for part in parts]
        return torch.cat(apply_in_parts(self._divergence_part, arguments))

    def _divergence_part(self, states: Tensor, other: Tensor, temperature: float) -> Tensor:
        log_probs = vocabulary_log_probs(self.engine.logits(states), temperature)
        with torch.no_grad():
            others = vocabulary_log_probs(self.engine.reference_logits(other), temperature)
        return _mean_under(log_probs, log_probs - others)


def _one_temperature(decisions: Sequence[Decision]) -> float:
    """Returns the temperature that all replies have."""
    values = {d.constraint.temperature if isinstance(d.constraint, FreeText) else None for d in decisions}
    temperature = values.pop()
    if values or temperature is None:
        raise ValueError("replies are scored together with choices or at several temperatures; allowed: one")
    return temperature


def _mean_under(log_probs: Tensor, values: Tensor) -> Tensor:
    """Returns the mean of values under each distribution, (k,); those of probability 0 do not count."""
    return (log_probs.exp() * values.masked_fill(torch.isneginf(log_probs), 0.0)).sum(-1)
