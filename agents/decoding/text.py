"""The text decoder: replies in free text, sampled token by token over the model's whole vocabulary.

Nothing is masked or cut off, so the distribution that is sampled is the one that is scored. A reply is scored
as the tokens that were sampled: its text, tokenised again, may be other tokens.

Texts that are the same so far, prompt and written tokens alike, are one state, which is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gamespiel.agents.engines import Engine
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.sampling.drawing import NotFiniteError, Uniforms, inverse_cdf
from gamespiel.agents.sampling.samples import Reply
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.index import Index

LOGITS_AT_ONCE = 2**24
"""Logits made together, 64 MB in float32. Sampling or a backward pass takes several times as much."""


class TextSample(NamedTuple):
    """Written replies, one per prompt; n prompts.

    Attributes:
        replies: The replies.
        log_probs: Per reply, log-probabilities of its tokens, float32 (tokens,).
        hidden: Hidden states of the last prompt tokens, for the critic, (n, hidden_size).
    """

    replies: list[Reply]
    log_probs: list[npt.NDArray[np.float32]]
    hidden: Tensor


@dataclass(frozen=True)
class TextEvaluation:
    """Given replies under the current weights, differentiable; n replies, k tokens in all, m states.

    Attributes:
        log_probs: One per token of all replies, in order, float32 (k,).
        entropy: Entropy, in nats, of the distribution over the whole vocabulary that each token was drawn
            from, float32 (k,).
        hidden: Hidden states of the last prompt tokens, (n, hidden_size).
        turns: The reply of each token, ascending, int64 (k,).
        nodes: Hidden states that predict tokens, one per distinct state, (m, hidden_size).
        node_of: The state that predicts each token, int64 (k,).
    """

    log_probs: Tensor
    entropy: Tensor
    hidden: Tensor
    turns: Tensor
    nodes: Tensor
    node_of: Tensor
    _kl: Callable[[Tensor, Tensor], Tensor]

    @property
    def states(self) -> Tensor:
        """Returns the hidden states that predict the tokens, (k, hidden_size), for another's ``kl_to``."""
        return self.nodes.index_select(0, self.node_of)

    def kl_to(self, reference: TextEvaluation | Tensor) -> Tensor:
        """Returns KL(this || reference) at each token in nats, float32 (k,), exact over the vocabulary.

        Both distributions have this decoder's temperature. The reference's logits are computed here, part by
        part, from its hidden states.

        Args:
            reference: The same replies under the reference, or their ``states`` there, (k, hidden_size).
        """
        states = reference.states if isinstance(reference, TextEvaluation) else reference
        tokens = torch.arange(len(self.node_of), device=self.node_of.device)
        first = tokens.new_zeros(len(self.nodes))
        first = first.scatter_reduce(0, self.node_of, tokens, "amin", include_self=False)
        divergences = self._kl(self.nodes, states.detach().index_select(0, first))
        return divergences.index_select(0, self.node_of)

    def kl_estimate(self, reference: TextEvaluation | Tensor) -> Tensor:
        """Returns an estimate of ``kl_to`` from the sampled tokens alone, float32 (k,).

        It is r - 1 - log r, where r is the reference's probability of the token over this one's ("k3"): never
        negative, and unbiased if these weights drew the tokens. Its gradient is not that of ``kl_to``: in
        the mean it is the gradient of KL(reference || this).

        Args:
            reference: The same replies under the reference, or their log-probabilities there, (k,).
        """
        other = reference.log_probs if isinstance(reference, TextEvaluation) else reference
        log_ratio = other.detach() - self.log_probs
        return torch.expm1(log_ratio) - log_ratio

    def per_turn(self, values: Tensor) -> Tensor:
        """Returns the sum of ``values``, one per token, over each reply's tokens, (n,)."""
        zeros = torch.zeros(len(self.hidden), dtype=values.dtype, device=values.device)
        return zeros.index_add(0, self.turns, values)


class TextDecoder:
    """A language model's distribution over replies.

    A reply ends with the codec's end-of-turn token, or with another token that ends texts: the tokenizer's
    ``eos_token``, or one of the model's generation config. Servers stop at all of these. The generation
    config's count only if they are control tokens of the tokenizer: configs have ids by default.

    Args:
        codec: Turns prompts into tokens.
        engine: Runs the forwards.
        max_new_tokens: The most tokens of a reply, its end included.
        temperature: Divides the logits, in what is sampled and in what is scored.
    """

    def __init__(
        self,
        codec: ChatCodec,
        engine: Engine,
        *,
        max_new_tokens: int = Hyperparameters.max_new_tokens,
        temperature: float = 1.0,
    ) -> None:
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens: {max_new_tokens} was given; allowed: at least 1")
        if not 0 < temperature < float("inf"):
            raise ValueError(f"temperature: {temperature} was given; allowed: finite and above 0")
        self.codec, self.engine = codec, engine
        self.max_new_tokens, self.temperature = max_new_tokens, temperature
        self.ends = _ends(codec, engine)

    # -- sampling ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def sample(self, prompts: Sequence[Tokens], uniforms: Uniforms) -> TextSample:
        """Draws a reply to each prompt.

        Args:
            prompts: Token sequences, n of them.
            uniforms: Returns the noise of the depth-th token, float64 (n,). It is called for each depth of
                each group of rows that share forwards, and the group uses its own rows.

        Raises:
            NotFiniteError: the model's logits are not finite.
        """
        return self._write(prompts, uniforms)

    @torch.no_grad()
    def best(self, prompts: Sequence[Tokens]) -> TextSample:
        """Returns the replies of which each token is the most probable, the lowest id of equals."""
        return self._write(prompts, None)

    def _write(self, prompts: Sequence[Tokens], uniforms: Uniforms | None) -> TextSample:
        index = Index[Tokens]()
        prompt_of = [index(prompt) for prompt in prompts]
        rows_of: list[list[int]] = [[] for _ in index.items]
        for row, prompt in enumerate(prompt_of):
            rows_of[prompt].append(row)
        draft = _Draft(prompts)
        hidden: list[Tensor | None] = [None] * len(index.items)
        waiting = [_Group(0, index.items, rows_of)]
        while waiting:
            group = waiting.pop()
            # The other half of the budget is for what is written.
            for chunk in self.engine.chunks(group.texts, max(1, self.engine.tokens_per_forward // 2)):
                more = group.depth + 1 < self.max_new_tokens
                last, prefix = self.engine.prefill([group.texts[i] for i in chunk], cache=more)
                if group.depth == 0:
                    for prompt, state in zip(chunk, last, strict=True):
                        hidden[prompt] = state
                live = [group.rows[i] for i in chunk]
                waiting += self._continue(draft, _Live(group.depth, last, prefix, live), uniforms)
        stacked = torch.stack([state for state in hidden if state is not None])
        at = torch.tensor(prompt_of, device=stacked.device)
        replies = [self._reply(tuple(tokens)) for tokens in draft.tokens]
        log_probs = [np.array(values, dtype=np.float32) for values in draft.log_probs]
        return TextSample(replies, log_probs, stacked.index_select(0, at))

    def _continue(self, draft: _Draft, live: _Live, uniforms: Uniforms | None) -> list[_Group]:
        """Writes the live rows to their ends; returns those put off, which are to be read again."""
        put_off: list[_Group] = []
        depth, states, prefix, rows = live
        while True:
            where = np.repeat(np.arange(len(rows)), [len(members) for members in rows])
            order = [row for members in rows for row in members]
            noise = None if uniforms is None else uniforms(depth)[order]
            tokens, log_probs = self._next(states, where, noise)
            depth += 1
            branches = Index[tuple[int, int]]()  # place in the prefix, token
            followers: list[list[int]] = []
            for row, place, token, log_prob in zip(
                order, where.tolist(), tokens.tolist(), log_probs.tolist(), strict=True
            ):
                draft.take(row, token, log_prob)
                if token in self.ends or depth == self.max_new_tokens:
                    continue
                branch = branches((place, token))
                if branch == len(followers):
                    followers.append([])
                followers[branch].append(row)
            rows, grown = followers, branches.items
            if not rows:
                return put_off
            if len(rows) > (room := self.engine.room(prefix)):
                # Half of those for which there is room: or the next token would put off some more.
                keep = max(1, room // 2)
                put_off.append(_Group(depth, [draft.text(row) for row, *_ in rows[keep:]], rows[keep:]))
                rows, grown = rows[:keep], grown[:keep]
            states, prefix = self.engine.grow(
                prefix, [place for place, _ in grown], [token for _, token in grown]
            )

    def _next(
        self, states: Tensor, where: npt.NDArray[np.int64], noise: npt.NDArray[np.float64] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Returns a token of each row and its log-probability, (rows,); the most probable without noise.

        Args:
            states: Hidden states, (k, hidden).
            where: The state of each row, ascending.
            noise: Uniforms of the rows, in [0, 1).
        """
        tokens, chosen = np.empty(len(where), dtype=np.int64), np.empty(len(where), dtype=np.float32)
        for part in self._parts(len(states)):
            log_probs = self._log_probs(self.engine.logits(states[part]))
            first, end = np.searchsorted(where, [part.start, part.stop])
            at = where[first:end] - part.start
            if noise is None:
                found = log_probs.argmax(-1).cpu().numpy()[at]
            else:
                found = inverse_cdf(log_probs, at, noise[first:end])
            picked = log_probs[torch.from_numpy(at), torch.from_numpy(found)].cpu().numpy()
            if not np.isfinite(picked).all():
                raise NotFiniteError(
                    "the model's logits are not finite: its weights or activations have overflowed"
                )
            tokens[first:end], chosen[first:end] = found, picked
        return tokens, chosen

    def _reply(self, tokens: Tokens) -> Reply:
        cut = tokens[-1] not in self.ends
        text: str = self.codec.tokenizer.decode(
            tokens if cut else tokens[:-1], skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return Reply(text, tokens, cut)

    # -- scoring -------------------------------------------------------------------------------------------

    def split(
        self, prompts: Sequence[Tokens], replies: Sequence[Tokens], tokens: int
    ) -> list[npt.NDArray[np.int64]]:
        """Returns replies in groups, each of which ``evaluate`` reads within ``tokens`` tokens.

        Groups are arrays of positions, int64. If one group is enough, it has the given order.
        """
        rows_of: dict[Tokens, list[int]] = {}
        for row, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
            rows_of.setdefault((*prompt, *reply[:-1]), []).append(row)
        sequences = list(rows_of)
        chunks = list(self.engine.chunks(sequences, tokens))
        if len(chunks) <= 1:
            return [np.arange(len(prompts))] if prompts else []
        return [np.array([row for i in chunk for row in rows_of[sequences[i]]]) for chunk in chunks]

    def evaluate(self, prompts: Sequence[Tokens], replies: Sequence[Tokens]) -> TextEvaluation:
        """Returns log-probabilities, entropies and hidden states of given replies, token by token.

        Raises:
            ValueError: a reply has no tokens.
        """
        plan = _Plan.of(prompts, replies)
        states = self.engine.read(plan.sequences, *zip(*plan.places, strict=True))
        device = states.device
        node_of, pair_of, anchors = (
            torch.tensor(indices, dtype=torch.long, device=device)
            for indices in (plan.node_of, plan.pair_of, plan.anchors)
        )
        turns = torch.tensor(
            np.repeat(np.arange(len(replies)), [len(reply) for reply in replies]), device=device
        )
        log_probs, entropies = self._scored(states, plan.pairs)
        return TextEvaluation(
            log_probs=log_probs.index_select(0, pair_of),
            entropy=entropies.index_select(0, node_of),
            hidden=states.index_select(0, anchors),
            turns=turns,
            nodes=states,
            node_of=node_of,
            _kl=self._divergence,
        )

    def _scored(self, states: Tensor, pairs: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        """Returns log-probabilities of pairs of state and token, (pairs,), and entropies of states, (m,)."""
        at, tokens = np.array(pairs, dtype=np.int64).T
        order = np.argsort(at, kind="stable")
        inverse = np.empty(len(order), dtype=np.int64)
        inverse[order] = np.arange(len(order))
        scored = []
        for part in self._parts(len(states)):
            first, end = np.searchsorted(at[order], [part.start, part.stop])
            here = order[first:end]
            where, token = (
                torch.from_numpy(x).to(states.device) for x in (at[here] - part.start, tokens[here])
            )
            scored.append(self._once_more(len(states), self._score, states[part], where, token))
        log_probs, entropies = (torch.cat(parts) for parts in zip(*scored, strict=True))
        return log_probs.index_select(0, torch.from_numpy(inverse).to(states.device)), entropies

    def _score(self, states: Tensor, where: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = self._log_probs(self.engine.logits(states))
        return log_probs[where, tokens], -_mean(log_probs, log_probs)

    def _divergence(self, states: Tensor, reference: Tensor) -> Tensor:
        """Returns KL(this || reference) over the vocabulary, float32 (m,), from hidden states (m, hidden)."""
        parts = self._parts(len(states))
        return torch.cat(
            [self._once_more(len(states), self._diverge, states[part], reference[part]) for part in parts]
        )

    def _diverge(self, states: Tensor, reference: Tensor) -> Tensor:
        log_probs = self._log_probs(self.engine.logits(states))
        with torch.no_grad():
            other = self._log_probs(self.engine.reference_logits(reference))
        return _mean(log_probs, log_probs - other)

    # -- logits --------------------------------------------------------------------------------------------

    def _log_probs(self, logits: Tensor) -> Tensor:
        return (logits / self.temperature).log_softmax(-1)

    def _rows_at_once(self) -> int:
        """Returns the number of states whose logits are made together."""
        return max(1, LOGITS_AT_ONCE // self.engine.vocab_size)

    def _parts(self, states: int) -> Iterator[slice]:
        rows = self._rows_at_once()
        return (slice(start, min(start + rows, states)) for start in range(0, states, rows))

    def _once_more(self, states: int, function: Callable[..., Any], *arguments: Tensor) -> Any:
        """Returns the function's value; of several parts, none keeps its logits for the backward pass."""
        if states <= self._rows_at_once() or not torch.is_grad_enabled():
            return function(*arguments)
        return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)


class _Group(NamedTuple):
    """Texts to read and continue, all of which have ``depth`` tokens of a reply, and the rows of each."""

    depth: int
    texts: list[Tokens]
    rows: list[list[int]]


class _Live(NamedTuple):
    """Texts that are being written: hidden states of their last tokens, and the rows of each."""

    depth: int
    states: Tensor
    prefix: Any
    rows: list[list[int]]


class _Draft:
    """The tokens written so far, by row."""

    def __init__(self, prompts: Sequence[Tokens]) -> None:
        self.prompts = prompts
        self.tokens: list[list[int]] = [[] for _ in prompts]
        self.log_probs: list[list[float]] = [[] for _ in prompts]

    def take(self, row: int, token: int, log_prob: float) -> None:
        self.tokens[row].append(token)
        self.log_probs[row].append(log_prob)

    def text(self, row: int) -> Tokens:
        return (*self.prompts[row], *self.tokens[row])


@dataclass
class _Plan:
    """The reads of ``evaluate``; a node is a text that predicts a token.

    Attributes:
        sequences: Texts to read, none of which is the beginning of another that has the same prompt.
        places: The sequence and the position at which each node is read.
        pairs: Distinct pairs of node and token.
        node_of: The node of each token of all replies.
        pair_of: The pair of each token.
        anchors: The node of each reply's first token.
    """

    sequences: list[Tokens]
    places: list[tuple[int, int]]
    pairs: list[tuple[int, int]]
    node_of: list[int]
    pair_of: list[int]
    anchors: list[int]

    @classmethod
    def of(cls, prompts: Sequence[Tokens], replies: Sequence[Tokens]) -> _Plan:
        roots, branches, pairs = Index[Tokens](), Index[tuple[int, int]](), Index[tuple[int, int]]()
        node_at: dict[tuple[str, int], int] = {}
        sequences: list[Tokens] = []
        places: list[tuple[int, int]] = []
        nodes: list[list[int]] = [[] for _ in replies]
        # Longest first, so that a text that is the beginning of another has been read when its turn comes.
        for row in sorted(range(len(replies)), key=lambda row: -len(replies[row])):
            prompt, reply = prompts[row], replies[row]
            if not reply:
                raise ValueError(f"reply {row} has no tokens; allowed: at least the one that ends it")
            key, sequence = ("root", roots(prompt)), (*prompt, *reply[:-1])
            for depth in range(len(reply)):
                if depth:
                    key = ("branch", branches((nodes[row][-1], reply[depth - 1])))
                if key not in node_at:
                    if not sequences or sequences[-1] is not sequence:
                        sequences.append(sequence)
                    node_at[key] = len(places)
                    places.append((len(sequences) - 1, len(prompt) - 1 + depth))
                nodes[row].append(node_at[key])
        node_of = [node for found in nodes for node in found]
        tokens = [token for reply in replies for token in reply]
        pair_of = [pairs(pair) for pair in zip(node_of, tokens, strict=True)]
        return cls(sequences, places, pairs.items, node_of, pair_of, [found[0] for found in nodes])


def _mean(log_probs: Tensor, values: Tensor) -> Tensor:
    """Returns the mean of values under each distribution, (k,); those of probability 0 do not count."""
    return (log_probs.exp() * values.masked_fill(torch.isneginf(log_probs), 0.0)).sum(-1)


def _ends(codec: ChatCodec, engine: Engine) -> frozenset[int]:
    """Returns the tokens that end a reply; see ``TextDecoder``."""
    tokenizer = codec.tokenizer
    controls = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    own = {codec.end_of_turn, tokenizer.eos_token_id} - {None}
    return frozenset(own | (engine.end_tokens & controls))
