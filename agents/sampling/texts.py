"""Texts written in this process, token by token over the model's whole vocabulary.

Nothing is masked or cut off, so the distribution that is sampled is the one that is scored. A reply is scored
as the tokens that were sampled: its text, tokenised again, may be other tokens.

Texts that are the same so far, prompt and written tokens alike, are one state, which is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.base import Prefill, split_states, vocabulary_log_probs
from gamespiel.agents.sampling.drawing import NotFiniteError, WrittenAnswers, draw_places
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.tokens import Index, Tokens
from gamespiel.agents.tokens.constraints import FreeText

Keep = Callable[[Any, Sequence[int], Sequence[Tokens]], None]
"""Called with a prefix, its rows that have ended, and their texts without the last token, which is unread."""


class TextSampler:
    """Writes replies with a language model.

    Args:
        engine: Runs the forwards.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @torch.no_grad()
    def write(
        self,
        prompts: Sequence[Tokens],
        free: FreeText,
        uniforms: Uniforms | None,
        prefill: Prefill | None = None,
        keep: Keep | None = None,
    ) -> WrittenAnswers:
        """Writes a reply to each prompt.

        Args:
            prompts: Token sequences, n of them.
            free: The replies' ends, longest length and temperature.
            uniforms: Returns the noise of the depth-th token, float64 (n,). It is called for each depth of
                each group of rows that share forwards, and the group uses its own rows. None takes the most
                probable token each time, the lowest id of equals.
            prefill: Reads prompts in the place of the engine's.
            keep: Takes what was read of texts that have ended, before it is used up.

        Raises:
            NotFiniteError: the model's logits are not finite.
        """
        prefill = self.engine.prefill if prefill is None else prefill
        index = Index[Tokens]()
        prompt_of = [index(prompt) for prompt in prompts]
        rows_of: list[list[int]] = [[] for _ in index.items]
        for row, prompt in enumerate(prompt_of):
            rows_of[prompt].append(row)
        draft = _Draft(prompts, free, uniforms, keep)
        hidden: list[Tensor | None] = [None] * len(index.items)
        waiting = [_Group(0, index.items, rows_of)]
        while waiting:
            group = waiting.pop()
            # The other half of the budget is for what is written.
            for chunk in self.engine.chunks(group.texts, max(1, self.engine.budgets.tokens_per_forward // 2)):
                more = group.depth + 1 < free.max_new_tokens
                # Texts that were put off are no turns, and nothing begins with them.
                read = prefill if group.depth == 0 else self.engine.prefill
                last, prefix = read([group.texts[i] for i in chunk], cache=more)
                if group.depth == 0:
                    for prompt, state in zip(chunk, last, strict=True):
                        hidden[prompt] = state
                live = [group.rows[i] for i in chunk]
                waiting += self._write_on(draft, group.depth, last, prefix, live)
        stacked = torch.stack([state for state in hidden if state is not None])
        at = transfer.send(prompt_of, stacked.device)
        log_probs = [np.array(values, dtype=np.float32) for values in draft.log_probs]
        tokens = [tuple(reply) for reply in draft.tokens]
        return WrittenAnswers(tokens, log_probs, [None] * len(prompts), stacked.index_select(0, at))

    def _write_on(
        self, draft: _Draft, depth: int, states: Tensor, prefix: Any, rows: list[list[int]]
    ) -> list[_Group]:
        """Writes texts to their ends; returns those put off, which are to be read again.

        Args:
            draft: What is written.
            depth: Tokens of their replies so far.
            states: Hidden states of their last tokens.
            prefix: The engine's prefix of them.
            rows: The rows of each text.
        """
        put_off: list[_Group] = []
        while True:
            where = np.repeat(np.arange(len(rows)), [len(members) for members in rows])
            order = [row for members in rows for row in members]
            noise = None if draft.uniforms is None else draft.uniforms(depth)[order]
            tokens, log_probs = self._next_tokens(states, where, noise, draft.free.temperature)
            depth += 1
            branches = Index[tuple[int, int]]()  # place in the prefix, token
            followers: list[list[int]] = []
            ended: dict[int, Tokens] = {}
            for row, place, token, log_prob in zip(
                order, where.tolist(), tokens.tolist(), log_probs.tolist(), strict=True
            ):
                draft.take(row, token, log_prob)
                if token in draft.free.ends or depth == draft.free.max_new_tokens:
                    ended[place] = draft.text(row)[:-1]
                    continue
                branch = branches((place, token))
                if branch == len(followers):
                    followers.append([])
                followers[branch].append(row)
            if draft.keep is not None:
                draft.keep(prefix, list(ended), list(ended.values()))
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

    def _next_tokens(
        self,
        states: Tensor,
        where: npt.NDArray[np.int64],
        noise: npt.NDArray[np.float64] | None,
        temperature: float,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Returns a token of each row and its log-probability, (rows,); the most probable without noise.

        Args:
            states: Hidden states, (k, hidden).
            where: The state of each row, ascending.
            noise: Uniforms of the rows, in [0, 1).
            temperature: Divides the logits.
        """
        tokens, chosen = np.empty(len(where), dtype=np.int64), np.empty(len(where), dtype=np.float32)
        for part in split_states(self.engine, len(states)):
            log_probs = vocabulary_log_probs(self.engine.logits(states[part]), temperature)
            first, end = np.searchsorted(where, [part.start, part.stop])
            at = transfer.send(where[first:end] - part.start, states.device)
            if noise is None:
                drawn = log_probs.argmax(-1).index_select(0, at)
            else:
                drawn, _ = draw_places(log_probs, at, transfer.send(noise[first:end], states.device))
            ids, picked = transfer.read(drawn, log_probs[at, drawn])
            if not bool(picked.isfinite().all()):
                raise NotFiniteError(
                    "the model's logits are not finite: its weights or activations have overflowed"
                )
            tokens[first:end], chosen[first:end] = ids.numpy(), picked.numpy()
        return tokens, chosen


class _Group(NamedTuple):
    """Texts to read and continue, all of which have ``depth`` tokens of a reply, and the rows of each."""

    depth: int
    texts: list[Tokens]
    rows: list[list[int]]


class _Draft:
    """The tokens written so far, by row, how the next ones are drawn, and who keeps what was read."""

    def __init__(
        self, prompts: Sequence[Tokens], free: FreeText, uniforms: Uniforms | None, keep: Keep | None
    ) -> None:
        self.prompts, self.free, self.uniforms, self.keep = prompts, free, uniforms, keep
        self.tokens: list[list[int]] = [[] for _ in prompts]
        self.log_probs: list[list[float]] = [[] for _ in prompts]

    def take(self, row: int, token: int, log_prob: float) -> None:
        self.tokens[row].append(token)
        self.log_probs[row].append(log_prob)

    def text(self, row: int) -> Tokens:
        return (*self.prompts[row], *self.tokens[row])
