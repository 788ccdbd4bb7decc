"""The token budgets of forwards, which fall if memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.models.memory import halve_budget, is_out_of_memory, release
from gamespiel.agents.models.memory_plan import KEPT

T = TypeVar("T")


class Budgets:
    """The most tokens per forward: one object, which the local sampler and the scorer share.

    Args:
        tokens_per_forward: Without gradients. It only splits the work: the grouping of sequences depends
            only on their tokens.
        tokens_per_backward: With gradients.

    Attributes:
        tokens_per_forward: The budget in force, which is lower after memory has run out.
        tokens_per_backward: Likewise.
        given: Both budgets as they were given, by name.
    """

    def __init__(
        self,
        tokens_per_forward: int = Hyperparameters.tokens_per_forward,
        tokens_per_backward: int = Hyperparameters.tokens_per_backward,
    ) -> None:
        self.give(tokens_per_forward, tokens_per_backward)

    def give(self, tokens_per_forward: int, tokens_per_backward: int) -> None:
        """Puts other budgets in force."""
        self.given = {"tokens_per_forward": tokens_per_forward, "tokens_per_backward": tokens_per_backward}
        for name, tokens in self.given.items():
            if tokens < 1:
                raise ValueError(f"{name} must be at least 1, got {tokens}")
        self.tokens_per_forward, self.tokens_per_backward = tokens_per_forward, tokens_per_backward

    @property
    def tokens_kept(self) -> int:
        """Returns the most tokens whose keys and values are kept between turns of conversations."""
        return KEPT * self.tokens_per_forward

    @property
    def forward_is_lowered(self) -> bool:
        """Returns whether memory has run out in a forward without gradients."""
        return self.tokens_per_forward < self.given["tokens_per_forward"]

    def state_dict(self) -> dict[str, dict[str, int]]:
        """Returns the budgets as they were given and as they are in force, by name."""
        return {name: {"given": given, "in_force": getattr(self, name)} for name, given in self.given.items()}

    def load_state_dict(self, state: Mapping[str, Mapping[str, int]]) -> None:
        """Lowers the budgets as far as those of a state were, unless others were given since."""
        for name, tokens in state.items():
            if tokens["given"] == self.given[name]:
                setattr(self, name, min(tokens["in_force"], getattr(self, name)))

    def retry_forward(self, work: Callable[[], T], texts: Sequence[Sequence[int]]) -> T:
        """Returns ``work()``, forwards of these texts; it is repeated with half the budget if need be.

        Args:
            work: May be called several times; a call that fails must leave nothing behind.
            texts: Tokens of the texts that are read.

        Raises:
            MemoryLimitError: not even one text fits into memory.
        """
        while True:
            try:
                return work()
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            # Only here is the error gone, and with it the tensors that its traceback kept.
            release()
            self.tokens_per_forward = halve_budget("ppo.tokens_per_forward", self.tokens_per_forward, texts)

    def retry_backward(
        self,
        work: Callable[[], T],
        texts: Sequence[Sequence[int]],
        undo: Callable[[], None],
        agree: Callable[[bool], bool] = bool,
    ) -> T:
        """Returns ``work()``, forwards of these texts and their gradients, as ``retry_forward`` does.

        Args:
            work: May be called several times.
            texts: Tokens of the texts that are read.
            undo: Forgets what a call that failed left behind.
            agree: Returns whether memory ran out here or on another rank, which then has the same texts.

        Raises:
            MemoryLimitError: not even one text fits into memory.
        """
        while True:
            found: list[T] = []
            try:
                found.append(work())
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            if not agree(not found):
                return found[0]
            found.clear()
            undo()
            release()
            self.tokens_per_backward = halve_budget(
                "ppo.tokens_per_backward", self.tokens_per_backward, texts
            )
