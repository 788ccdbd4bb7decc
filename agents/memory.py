"""Memory that runs out: the token budget in force is halved, and the work is done again."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from task_gym.errors import TaskGymError

T = TypeVar("T")
log = logging.getLogger(__name__)


WORDS = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Parts of messages of plain RuntimeErrors: of the CPU's allocator, of CUDA itself, and of cuBLAS.

The last two come when a card is full, and what asks is not PyTorch's allocator.
"""


class MemoryLimitError(TaskGymError):
    """A device without the memory for even one turn."""


def is_out_of_memory(error: Exception) -> bool:
    """Returns whether torch or NumPy found no memory, on a GPU or on the CPU."""
    named = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return named or (isinstance(error, RuntimeError) and any(words in str(error) for words in WORDS))


def halved(key: str, tokens: int, prompts: Sequence[Sequence[int]]) -> int:
    """Returns the token budget to try next, and says so in the log.

    Args:
        key: Name of the budget's hyper-parameter.
        tokens: The budget that was too large.
        prompts: The prompts of the work that failed.

    Raises:
        MemoryLimitError: the next budget is smaller than one turn.
    """
    lengths = [len(prompt) for prompt in prompts]
    # A budget above what there was to read did not split anything, and half of it might not either.
    tried = min(tokens, sum(lengths))
    if tried <= max(lengths):
        raise MemoryLimitError(
            f"out of memory with {key} = {tokens}, which cannot be less than one turn"
            f" of {max(lengths)}; use a smaller model or type (model.model_name, model.use_4bit, "
            "model.dtype), model.gradient_checkpointing, shorter prompts (env.rules), or a device with more "
            "memory"
        )
    half = max(tried // 2, *lengths)
    log.warning("out of memory: %s falls from %d to %d", key, tokens, half)
    return half


def release() -> None:
    """Gives back what a failed attempt still holds."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def without_gradients(policy: Any, observations: Sequence[str], work: Callable[[], T]) -> T:
    """Returns ``work()``, forwards of these observations; it is repeated with half the budget if need be.

    Args:
        policy: The policy, whose ``engine.tokens_per_forward`` is the budget in force.
        observations: The observations that are read.
        work: May be called several times; a call that fails must leave nothing behind.

    Raises:
        MemoryLimitError: not even one turn fits into memory.
    """
    while True:
        try:
            return work()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Only here is the error gone, and with it the tensors that its traceback kept.
        release()
        tokens = policy.engine.tokens_per_forward
        policy.engine.tokens_per_forward = halved(
            "ppo.tokens_per_forward", tokens, policy.prompts(observations)
        )
