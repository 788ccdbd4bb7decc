"""The protocol of engines, and the parts that all engines on a transformers model share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.tokens import Tokens
from task_gym.errors import TaskGymError

PLAIN = frozenset({
    "arcee", "cohere", "cohere2", "ernie4_5", "exaone4", "gemma", "gemma3_text", "glm", "glm4",
    "gpt_neox", "granite", "helium", "hunyuan_v1_dense", "llama", "ministral", "ministral3", "mistral",
    "mixtral", "olmo", "olmo2", "olmo3", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe",
    "seed_oss", "smollm3", "starcoder2",
})  # fmt: skip
"""Families, by ``model_type``, whose layers are plain causal attention and have no dropout of their own.

Small models of them were read in every way of every engine and compared with transformers. In others, state
space models or several attentions per layer among them, tokens may depend on more than keys and values.
"""


class UnsupportedModelError(TaskGymError, ValueError):
    """A model that an engine cannot read."""


class ContextLengthError(TaskGymError, ValueError):
    """A text of more tokens than the model has positions for."""


class Engine(Protocol):
    """Runs the forwards of a language model, and reads them at chosen positions only.

    ``prefill`` gives an opaque prefix that the same engine's ``extend`` and ``grow`` take.

    Attributes:
        reading: The engine's name in ``ModelSettings.reading``.
        tokens_per_forward: Budget of tokens per forward. It only splits the work: the grouping of sequences
            depends on their tokens alone.
        tokens_read: Tokens read since the start, each repetition counted.
    """

    tokens_per_forward: int
    tokens_read: int

    reading: ClassVar[str]

    @property
    def device(self) -> torch.device:
        """Returns the device of inputs and outputs."""

    @property
    def dtype(self) -> torch.dtype:
        """Returns the type of hidden states."""

    @property
    def vocab_size(self) -> int:
        """Returns the number of logits."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """Returns the tokens that end a text according to the model's generation config."""

    def adapters_off(self) -> AbstractContextManager[None]:
        """Returns a context in which the model is the reference policy, without its adapters."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Returns next-token logits, float32 (k, vocab), from hidden states (k, hidden)."""

    def logits_of(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Returns next-token logits of chosen tokens (k, c), float32 (k, c), from hidden states (k, hidden).

        They are computed in float32: in bfloat16 a logit of 16 is rounded to eighths, so the odds of two
        actions would come in steps of 13% (MiniMax-M1, arXiv:2506.13585, section 3.2, on heads in float32).
        """

    def reference_logits(self, hidden: Tensor) -> Tensor:
        """Returns ``logits`` of the reference policy, from its hidden states, with adapters on or off."""

    def chunks(self, sequences: Sequence[Tokens], budget: int | None = None) -> Iterator[list[int]]:
        """Yields indices of sequences to share a forward within the budget, the engine's own if None."""

    def read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Returns hidden states at (row, position) pairs, shape (k, hidden), differentiable."""

    def prefill(self, prompts: Sequence[Tokens], *, cache: bool) -> tuple[Tensor, Any]:
        """Returns hidden states of the prompts' last tokens (n, hidden), and a prefix for ``extend``.

        Without ``cache`` the prefix is None.
        """

    def extend(self, prefix: Any, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        """Returns hidden states after continuing prompt ``rows[i]`` with ``tokens[i]``, shape (k, hidden)."""

    def grow(self, prefix: Any, rows: Sequence[int], tokens: Sequence[int]) -> tuple[Tensor, Any]:
        """Returns hidden states after one more token, and the prefix of the longer texts.

        Row i of the result is row ``rows[i]`` of the prefix and ``tokens[i]`` after it. Rows may repeat, and
        those left out are forgotten. Rows with common beginnings should be neighbours, as in ``chunks``. The
        given prefix is used up; the new one can only grow.
        """

    def room(self, prefix: Any) -> int:
        """Returns the most rows that ``grow`` may add to a prefix within the budget, at least 1.

        Here the budget is of the tokens whose keys and values are kept.
        """


class Model(ABC):
    """The parts of an engine that do not depend on how it lays out sequences.

    Args:
        model: A transformers causal language model, or the PEFT model around one.
        tokens_per_forward: See ``Engine``.
        gradient_checkpointing: Whether passes with gradients keep each layer's input alone, and compute the
            rest of it again when they go back: slower by a forward, for a fraction of the memory.
    """

    reading: ClassVar[str]

    def __init__(
        self, model: Any, tokens_per_forward: int | None = None, *, gradient_checkpointing: bool = False
    ) -> None:
        tokens = Hyperparameters.tokens_per_forward if tokens_per_forward is None else tokens_per_forward
        if tokens < 1:
            raise ValueError(f"tokens_per_forward must be at least 1, got {tokens}")
        self.model = model
        self.tokens_per_forward = tokens
        self.tokens_read = 0
        base = base_of(model)
        self.decoder: nn.Module = decoder_of(model)
        self.head: nn.Linear = base.get_output_embeddings()
        self.positions = positions_of(self.decoder.config)
        self._plain = is_plain(self.decoder)
        if gradient_checkpointing and not self._plain:
            raise UnsupportedModelError(
                f"gradient_checkpointing: {other_family(self.decoder)}; allowed: false"
            )
        self._checkpointed = checkpointed_layers(self.decoder) if gradient_checkpointing else []

    @contextmanager
    def _recomputing(self) -> Iterator[None]:
        """Checkpoints the layers within the context, if that was asked for.

        transformers checkpoints layers in training mode alone, silently. In plain families the layers
        themselves have nothing that depends on the mode; their parts, which might, stay in evaluation mode.
        """
        for layer in self._checkpointed:
            layer.training = torch.is_grad_enabled()
        try:
            yield
        finally:
            for layer in self._checkpointed:
                layer.training = False

    @abstractmethod
    def chunks(self, sequences: Sequence[Tokens], budget: int | None = None) -> Iterator[list[int]]:
        """Yields the indices of the sequences that one forward reads, within the budget."""

    @abstractmethod
    def _read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Does as ``read``, in one forward."""

    def read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        wanted: dict[int, list[int]] = {}
        for k, row in enumerate(rows):
            wanted.setdefault(row, []).append(k)
        order: list[int] = []
        parts: list[Tensor] = []
        for chunk in self.chunks(sequences):
            local = [(i, k) for i, row in enumerate(chunk) for k in wanted.get(row, ())]
            own = [i for i, _ in local], [positions[k] for _, k in local]
            parts.append(self._read([sequences[row] for row in chunk], *own))
            order.extend(k for _, k in local)
        inverse = torch.empty(len(order), dtype=torch.long)
        inverse[torch.tensor(order, dtype=torch.long)] = torch.arange(len(order))
        return torch.cat(parts).index_select(0, inverse.to(self.device))

    @property
    def device(self) -> torch.device:
        return next(self.decoder.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return self.head.weight.dtype

    @property
    def vocab_size(self) -> int:
        return self.head.out_features

    @property
    def end_tokens(self) -> frozenset[int]:
        config = getattr(base_of(self.model), "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        return frozenset(() if ends is None else (ends,) if isinstance(ends, int) else ends)

    def adapters_off(self) -> AbstractContextManager[None]:
        context: AbstractContextManager[None] = self.model.disable_adapter()
        return context

    def logits(self, hidden: Tensor) -> Tensor:
        return self._logits(self.head, hidden)

    def reference_logits(self, hidden: Tensor) -> Tensor:
        # An adapted head has the one it adapts inside. Adapters need not be switched off for it alone.
        return self._logits(getattr(self.head, "base_layer", self.head), hidden)

    def logits_of(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        if type(self.head) is not nn.Linear:  # adapted or quantised: it has no plain weights
            return self.logits(hidden).gather(1, tokens)
        distinct, where = tokens.unique(return_inverse=True)
        weight = self.head.weight.index_select(0, distinct).float()
        bias = None if self.head.bias is None else self.head.bias.index_select(0, distinct).float()
        return self._behind(linear(hidden.float(), weight, bias)).gather(1, where)

    def _logits(self, head: Any, hidden: Tensor) -> Tensor:
        return self._behind(head(hidden.to(head.weight.dtype)).float())

    def _behind(self, logits: Tensor) -> Tensor:
        """Returns logits scaled, divided or capped as the model's family does it after the head."""
        # Granite divides, Cohere multiplies, Gemma 2 caps.
        config = self.decoder.config
        if scale := getattr(config, "logit_scale", None):
            logits = logits * scale
        if divisor := getattr(config, "logits_scaling", None):
            logits = logits / divisor
        if cap := getattr(config, "final_logit_softcapping", None):
            logits = cap * torch.tanh(logits / cap)
        return logits


def base_of(model: Any) -> Any:
    """Returns the transformers model within a PEFT model, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def decoder_of(model: Any) -> Any:
    """Returns the model without its output embeddings."""
    return base_of(model).get_decoder()


def positions_of(config: Any) -> int | None:
    """Returns the most tokens that a model reads, by its configuration; None if it names no limit."""
    text = config.get_text_config()
    positions = getattr(text, "max_position_embeddings", None)
    if not isinstance(positions, int):
        return None
    rotary = getattr(text, "rope_parameters", None) or {}
    # Layers of several kinds have a mapping each.
    kinds = [each for each in rotary.values() if isinstance(each, Mapping)] or [rotary]
    return max(positions, *(_stretched(each, positions) for each in kinds))


def _stretched(rotary: Mapping[str, Any], positions: int) -> int:
    """Returns the positions that rotary embeddings are scaled to; some files name those before scaling."""
    original = rotary.get("original_max_position_embeddings") or positions
    return int(original * (rotary.get("factor") or 1))


def is_plain(decoder: Any) -> bool:
    """Returns whether a decoder's layers are plain causal attention, so far as it is known."""
    kinds = set(getattr(decoder.config, "layer_types", None) or ())
    return decoder.config.model_type in PLAIN and kinds <= {"full_attention", "sliding_attention"}


def other_family(decoder: Any) -> str:
    """Returns, for messages, that a decoder's family is none of the plain ones."""
    return f"the family {decoder.config.model_type!r} is none of {', '.join(sorted(PLAIN))}"


def checkpointed_layers(decoder: nn.Module) -> list[Any]:
    """Sets a decoder's layers to be checkpointed in training mode, and returns them.

    transformers' own method would also make the embeddings' output ask for a gradient that nobody needs.
    """
    layers: list[Any] = [m for m in decoder.modules() if isinstance(m, GradientCheckpointingLayer)]
    for layer in layers:
        layer.gradient_checkpointing = True
        # Nothing in a layer is random, so the generators' states need not be kept and set again.
        layer._gradient_checkpointing_func = partial(
            checkpoint, use_reentrant=False, preserve_rng_state=False
        )
    return layers
