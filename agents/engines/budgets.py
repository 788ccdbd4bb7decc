"""The token budgets of forwards, which fall if memory runs out, and rise again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.models.memory import MemoryLimitError, is_out_of_memory, release
from gamespiel.agents.models.memory_plan import KEPT
from gamespiel.agents.tokens import Tokens

log = logging.getLogger(__name__)

T = TypeVar("T")

CLEAN_STEPS, MOST_CLEAN_STEPS = 16, 1024
"""Training steps without a shortage after which a budget doubles, the first time and at the most."""


Count = Callable[[Sequence[Tokens]], int]
"""Returns the least budget that reads these texts in one forward: see ``Engine.count``."""


class _Budget:
    """One budget: what was given, what is in force, and when it rises.

    Another program may have taken the memory for a minute, or one step had the longest prompts. So a budget
    that fell doubles after ``wait`` steps in which it did not fall. If that was too much, the next wait is
    twice as long: a budget that is too large for the device costs a step in a thousand, not in sixteen.
    """

    def __init__(self, key: str, tokens: int) -> None:
        self.key, self.given, self.in_force = key, tokens, tokens
        self.clean, self.wait, self.risen = 0, CLEAN_STEPS, False

    def put(self, tokens: int) -> None:
        if tokens < self.in_force:
            if self.risen:
                self.wait = min(2 * self.wait, MOST_CLEAN_STEPS)
            self.clean, self.risen = 0, False
        self.in_force = tokens

    def halve(self, texts: Sequence[Tokens], count: Count) -> None:
        """Halves the budget, after these texts found no memory.

        Raises:
            MemoryLimitError: the next budget is smaller than one text.
        """
        longest = max(map(len, texts))
        # A budget above what there was to read did not split anything, and half of it might not either.
        tried = min(self.in_force, count(texts))
        if tried <= longest:
            raise MemoryLimitError(
                f"out of memory with {self.key} = {self.in_force}, which cannot be less than one turn"
                f" of {longest}; use a smaller model or type (model.model_name, model.use_4bit, "
                "model.dtype), model.gradient_checkpointing, shorter prompts (env.rules), or a device with "
                "more memory"
            )
        half = max(tried // 2, longest)
        log.warning("out of memory: %s falls from %d to %d", self.key, self.in_force, half)
        self.put(half)

    def end_step(self) -> None:
        if self.in_force == self.given:
            return
        self.clean += 1
        if self.clean < self.wait:
            return
        risen = min(2 * self.in_force, self.given)
        log.info(
            "%d steps had enough memory: %s rises from %d to %d", self.wait, self.key, self.in_force, risen
        )
        self.in_force, self.clean, self.risen = risen, 0, True

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("given", "in_force", "clean", "wait", "risen")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["given"] == self.given:
            vars(self).update(state)


class Budgets:
    """The most tokens per forward: one object, which the local sampler and the scorer share.

    Args:
        tokens_per_forward: Without gradients. It only splits the work: the grouping of sequences depends
            only on their tokens.
        tokens_per_backward: With gradients.

    Attributes:
        tokens_per_forward: The budget in force, which is lower after memory has run out.
        tokens_per_backward: Likewise.
    """

    def __init__(
        self,
        tokens_per_forward: int = Hyperparameters.tokens_per_forward,
        tokens_per_backward: int = Hyperparameters.tokens_per_backward,
    ) -> None:
        self.give(tokens_per_forward, tokens_per_backward)

    def give(self, tokens_per_forward: int, tokens_per_backward: int) -> None:
        """Puts other budgets in force."""
        budgets = {"tokens_per_forward": tokens_per_forward, "tokens_per_backward": tokens_per_backward}
        for name, tokens in budgets.items():
            if tokens < 1:
                raise ValueError(f"{name} must be at least 1, got {tokens}")
        self._forward, self._backward = (_Budget(f"ppo.{name}", tokens) for name, tokens in budgets.items())

    @property
    def tokens_per_forward(self) -> int:
        return self._forward.in_force

    @tokens_per_forward.setter
    def tokens_per_forward(self, tokens: int) -> None:
        """Puts a budget in force; a lower one counts as a shortage, here or on another rank."""
        self._forward.put(tokens)

    @property
    def tokens_per_backward(self) -> int:
        return self._backward.in_force

    @property
    def tokens_kept(self) -> int:
        """Returns the most tokens whose keys and values are kept between turns of conversations."""
        return KEPT * self.tokens_per_forward

    @property
    def forward_is_lowered(self) -> bool:
        """Returns whether memory has run out in a forward without gradients."""
        return self._forward.in_force < self._forward.given

    def end_step(self) -> None:
        """Ends a training step; after some without a shortage, a budget that fell doubles."""
        self._forward.end_step()
        self._backward.end_step()

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Returns each budget as it was given and as it is in force, and what decides when it rises."""
        return {
            "tokens_per_forward": self._forward.state_dict(),
            "tokens_per_backward": self._backward.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Puts the budgets of a state in force, unless others were given since."""
        self._forward.load_state_dict(state["tokens_per_forward"])
        self._backward.load_state_dict(state["tokens_per_backward"])

    def retry(
        self,
        work: Callable[[], T],
        texts: Sequence[Tokens],
        count: Count,
        *,
        gradients: bool = False,
        undo: Callable[[], None] = lambda: None,
        agree: Callable[[bool], bool] = bool,
    ) -> T:
        """Returns ``work()``, forwards of these texts; it is repeated with half the budget if need be.

        Args:
            work: May be called several times.
            texts: Tokens of the texts that are read.
            count: See ``Count``.
            gradients: Whether the forwards have gradients, and with them the other budget.
            undo: Forgets what a call that failed left behind.
            agree: Returns whether memory ran out here or on another rank, which then has the same texts.

        Raises:
            MemoryLimitError: not even one text fits into memory.
        """
        budget = self._backward if gradients else self._forward
        while True:
            results: list[T] = []
            try:
                results.append(work())
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            # Only here is the error gone, and with it the tensors that its traceback kept.
            if not agree(not results):
                return results[0]
            results.clear()
            undo()
            release()
            budget.halve(texts, count)
