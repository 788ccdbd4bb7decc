"""The sampler in this process, on the engine that also learns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines import Engine
from gamespiel.agents.engines.base import Prefill
from gamespiel.agents.engines.shared import TreePrefix, join_written
from gamespiel.agents.engines.token_tree import KeptPrefixes
from gamespiel.agents.models.adapters import Adapters, AdapterSets
from gamespiel.agents.sampling.choice_sampler import ChoiceSampler
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.sampling.drawing import WrittenAnswers, make_decisions, require_trie
from gamespiel.agents.sampling.noise import group_uniforms
from gamespiel.agents.sampling.texts import Keep, TextSampler
from gamespiel.agents.tokens import Tokens, map_groups
from gamespiel.agents.tokens.constraints import FreeText


class EngineSampler:
    """A ``Sampler`` that also fills in the critic's values.

    Requests with the same adapters, the same kind of constraint and the same way to answer share forwards.

    Args:
        engine: Runs the forwards; its budgets are halved if memory runs out.
        adapters: The sets of adapters by name.
        critic: Returns values (n,) from hidden states (n, hidden).
    """

    def __init__(self, engine: Engine, adapters: AdapterSets, critic: Callable[[Tensor], Tensor]) -> None:
        self._engine, self._adapters, self._critic = engine, adapters, critic
        self._choices, self._texts = ChoiceSampler(engine), TextSampler(engine)
        self._cache = KeptPrefixes()

    @property
    def tokens_read(self) -> int:
        return self._engine.tokens_read

    def publish(self, name: str, adapters: Adapters) -> None:
        self._adapters.publish(name, adapters)

    def forget(self, name: str) -> None:
        self._adapters.forget(name)

    def end_episodes(self) -> None:
        self._cache.clear()

    def check_gap(self, gap: float) -> None:
        """Does nothing: the model is the one that learns."""

    @torch.no_grad()
    def sample(self, requests: Sequence[Request]) -> list[Decision]:
        def share_forwards(request: Request) -> Hashable:
            text = request.constraint if isinstance(request.constraint, FreeText) else None
            return request.adapters, text, request.noise is None, request.left_out is None

        return map_groups(requests, share_forwards, self._sample_group)

    def _sample_group(self, requests: Sequence[Request]) -> list[Decision]:
        prompts, first = [request.prompt for request in requests], requests[0]
        conversing = first.left_out is not None and self._engine.keeps_prefixes
        owner = first.adapters, self._adapters.stamp(first.adapters)
        replies = _Replies() if conversing else None

        def write() -> WrittenAnswers:
            if replies is None:
                return self._write_answers(requests, None, None)
            replies.clear()  # if memory ran out before
            return self._write_answers(requests, partial(self._read_turns, owner), replies.add)

        with self._adapters.use(first.adapters):
            written = self._engine.budgets.retry(write, prompts, self._engine.count)
            values: list[float] = self._critic(written.hidden).tolist()
        if replies is not None:
            self._cache.drop_followed(owner, prompts)
            for prefix in replies.join():
                self._cache.drop_followed(owner, prefix.prompts)
                self._cache.put(owner, prefix, self._engine.budgets.tokens_kept)
        return make_decisions(requests, written, values)

    def _read_turns(self, owner: Hashable, prompts: Sequence[Tokens], *, cache: bool) -> tuple[Tensor, Any]:
        """Reads turns of conversations without what was read before, and keeps them for later turns."""
        try:
            last, prefix = self._engine.prefill(prompts, cache=True, before=self._cache.list_prefixes(owner))
        except Exception:  # out of memory, as a rule: this is memory too
            self._cache.clear()
            raise
        self._cache.put(owner, prefix, self._engine.budgets.tokens_kept)
        return last, prefix if cache else None

    def _write_answers(
        self, requests: Sequence[Request], prefill: Prefill | None, keep: Keep | None
    ) -> WrittenAnswers:
        """Writes the answers to requests that share forwards."""
        prompts = [request.prompt for request in requests]
        noises = [request.noise for request in requests if request.noise is not None]
        uniforms = group_uniforms(noises) if noises else None
        first = requests[0].constraint
        if isinstance(first, FreeText):
            return self._texts.write(prompts, first, uniforms, prefill, keep)
        tries = [require_trie(request) for request in requests]
        if uniforms is None:
            return self._choices.best(prompts, tries)
        return self._choices.sample(prompts, tries, uniforms, prefill)

    @torch.no_grad()
    def distribution(self, requests: Sequence[Request]) -> list[npt.NDArray[np.float64]]:
        def find(group: list[Request]) -> list[npt.NDArray[np.float64]]:
            prompts = [request.prompt for request in group]
            work = partial(self._choices.distribution, prompts, list(map(require_trie, group)))
            with self._adapters.use(group[0].adapters):
                return self._engine.budgets.retry(work, prompts, self._engine.count)

        return map_groups(requests, lambda request: request.adapters, find)


class _Replies:
    """The replies of one call that have ended, with the prefixes that they were written on."""

    def __init__(self) -> None:
        self._parts: dict[int, list[tuple[TreePrefix, Sequence[Tokens]]]] = {}  # by the prompts' keys

    def clear(self) -> None:
        self._parts = {}

    def add(self, prefix: TreePrefix | None, rows: Sequence[int], texts: Sequence[Tokens]) -> None:
        """Takes replies that have ended; of those without a token that was read, the prompts are kept."""
        if prefix is None or not prefix.written.count or not rows:
            return
        selection = prefix.select(rows, transfer.send(np.array(rows, dtype=np.int64), prefix.written.device))
        self._parts.setdefault(id(prefix.stored), []).append((selection, texts))

    def join(self) -> list[TreePrefix]:
        """Returns a prefix of whole replies per prefix of prompts."""
        return [join_written(parts) for parts in self._parts.values()]
