"""The engines' base class, with the parts that do not depend on how sequences are laid out."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from gamespiel.agents import transfer
from gamespiel.agents.engines.budgets import Budgets
from gamespiel.agents.models.memory_plan import LOGITS_LEARNED_FROM
from gamespiel.agents.tokens import Tokens
from task_gym.errors import TaskGymError

T = TypeVar("T")

PLAIN = frozenset({
    "arcee", "cohere", "cohere2", "ernie4_5", "exaone4", "gemma", "gemma3_text", "glm", "glm4",
    "gpt_neox", "granite", "helium", "hunyuan_v1_dense", "llama", "ministral", "ministral3", "mistral",
    "mixtral", "olmo", "olmo2", "olmo3", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe",
    "seed_oss", "smollm3", "starcoder2",
})  # fmt: skip
"""Families, by ``model_type``, whose layers are plain causal attention and have no dropout of their own.

``tests/agents/test_shared_engine.py`` compares small models of them with transformers. In others, state
space models or several attentions per layer among them, tokens may depend on more than keys and values.
"""


class UnsupportedModelError(TaskGymError, ValueError):
    """A model that an engine cannot read."""


class ContextLengthError(TaskGymError, ValueError):
    """A text of more tokens than the model has positions for."""


class Prefill(Protocol):
    """Reads prompts as ``Engine.prefill`` does."""

    def __call__(self, prompts: Sequence[Tokens], *, cache: bool) -> tuple[Tensor, Any]: ...


class _CudnnAttention:
    """Whether PyTorch may compute attention by cuDNN, which it prefers on H100 and later.

    With a mask it gives NaN for the gradient of queries if the number of keys is 64 modulo 128 and a row's
    logsumexp is below -88, which happens with Qwen2.5 (pytorch#196678); and it makes a plan for each new
    shape, for up to a second. The switch is the whole process's, so it is given back after the last engine.
    """

    engines = 0
    was_on = False

    @classmethod
    def switch_off_for(cls, engine: object) -> None:
        if not cls.engines:
            cls.was_on = torch.backends.cuda.cudnn_sdp_enabled()
        cls.engines += 1
        torch.backends.cuda.enable_cudnn_sdp(False)
        weakref.finalize(engine, cls._give_back)

    @classmethod
    def _give_back(cls) -> None:
        cls.engines -= 1
        if not cls.engines and cls.was_on:
            torch.backends.cuda.enable_cudnn_sdp(True)


class Engine(ABC):
    """Runs the forwards of a language model, and reads them at chosen positions only.

    ``prefill`` gives an opaque prefix that the same engine's ``extend`` and ``grow`` take.

    Args:
        model: A transformers causal language model, or the PEFT model around one.
        budgets: The most tokens per forward.
        gradient_checkpointing: Whether passes with gradients keep only each layer's input, and compute the
            rest of it again when they go back: slower by a forward, for a fraction of the memory.

    Attributes:
        reading: The engine's name in ``ModelSettings.reading``.
        keeps_prefixes: Whether ``prefill`` uses what earlier calls have read.
        tokens_read: Tokens read since the start, each repetition counted.
        transformer: The model without its head.
        head: The layer from hidden states to logits.
    """

    reading: ClassVar[str]
    keeps_prefixes: ClassVar[bool] = False

    def __init__(
        self, model: Any, budgets: Budgets | None = None, *, gradient_checkpointing: bool = False
    ) -> None:
        self.model = model
        self.budgets = Budgets() if budgets is None else budgets
        self.tokens_read = 0
        base = base_of(model)
        self.transformer: nn.Module = base.get_decoder()
        self.head: nn.Linear = base.get_output_embeddings()
        self.positions = positions_of(self.transformer.config)
        if self.device.type == "cuda":
            _CudnnAttention.switch_off_for(self)
        obstacle = find_obstacle(model)
        self._plain = obstacle is None
        if gradient_checkpointing and not self._plain:
            raise UnsupportedModelError(f"gradient_checkpointing: {obstacle}; allowed: false")
        self._checkpointed = set_checkpointing(self.transformer) if gradient_checkpointing else []

    @contextmanager
    def _checkpoint_layers(self) -> Iterator[None]:
        """Checkpoints the layers within the context, if that was asked for.

        transformers checkpoints layers only in training mode, silently. In plain families the layers
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
        """Yields indices of sequences to share a forward within the budget, by default without gradients."""

    @abstractmethod
    def count(self, sequences: Sequence[Tokens]) -> int:
        """Returns the least budget with which ``chunks`` does not split these sequences."""

    @abstractmethod
    def prefill(
        self, prompts: Sequence[Tokens], *, cache: bool, before: Sequence[Any] = ()
    ) -> tuple[Tensor, Any]:
        """Returns hidden states of the prompts' last tokens (n, hidden), and a prefix for ``extend``.

        Without ``cache`` the prefix is None. The tokens that prompts have in common with prefixes of earlier
        calls, ``before``, need not be read again, if ``keeps_prefixes``.
        """

    @abstractmethod
    def extend(self, prefix: Any, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        """Returns hidden states after continuing prompt ``rows[i]`` with ``tokens[i]``, shape (k, hidden)."""

    @abstractmethod
    def grow(self, prefix: Any, rows: Sequence[int], tokens: Sequence[int]) -> tuple[Tensor, Any]:
        """Returns hidden states after one more token, and the prefix of the longer texts.

        Row i of the result is row ``rows[i]`` of the prefix and ``tokens[i]`` after it. Rows may repeat, and
        those left out are forgotten. Rows with common beginnings should be neighbours, as in ``chunks``. The
        given prefix is used up; the new one can only grow.
        """

    @abstractmethod
    def room(self, prefix: Any) -> int:
        """Returns the most rows that ``grow`` may add to a prefix within the budget, at least 1.

        Here the budget is of the tokens whose keys and values are kept.
        """

    @abstractmethod
    def _read_forward(
        self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        """Returns what ``read`` does, in one forward."""

    def read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Returns hidden states at (row, position) pairs, shape (k, hidden), differentiable."""
        wanted: dict[int, list[int]] = {}
        for k, row in enumerate(rows):
            wanted.setdefault(row, []).append(k)
        order: list[int] = []
        parts: list[Tensor] = []
        for chunk in self.chunks(sequences):
            local = [(i, k) for i, row in enumerate(chunk) for k in wanted.get(row, ())]
            places = [i for i, _ in local], [positions[k] for _, k in local]
            parts.append(self._read_forward([sequences[row] for row in chunk], *places))
            order.extend(k for _, k in local)
        inverse = np.empty(len(order), dtype=np.int64)
        inverse[order] = np.arange(len(order))
        return torch.cat(parts).index_select(0, transfer.send(inverse, self.device))

    @property
    def device(self) -> torch.device:
        """Returns the device of inputs and outputs."""
        return next(self.transformer.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Returns the type of hidden states."""
        return self.head.weight.dtype

    @property
    def vocab_size(self) -> int:
        """Returns the number of logits."""
        return self.head.out_features

    @property
    def end_tokens(self) -> frozenset[int]:
        """Returns the tokens that end a text according to the model's generation config."""
        config = getattr(base_of(self.model), "generation_config", None)
        ends = getattr(config, "eos_token_id", None)
        return frozenset(() if ends is None else (ends,) if isinstance(ends, int) else ends)

    def logits(self, hidden: Tensor) -> Tensor:
        """Returns next-token logits, float32 (k, vocab), from hidden states (k, hidden)."""
        return self._apply_head(self.head, hidden)

    def reference_logits(self, hidden: Tensor) -> Tensor:
        """Returns ``logits`` of the reference policy, from its hidden states, with adapters on or off."""
        # An adapted head has the one it adapts inside. Adapters need not be switched off for it alone.
        return self._apply_head(getattr(self.head, "base_layer", self.head), hidden)

    def logits_of(self, hidden: Tensor, tokens: npt.NDArray[np.int64]) -> Tensor:
        """Returns next-token logits of chosen tokens (k, c), float32 (k, c), from hidden states (k, hidden).

        They are computed in float32: in bfloat16 a logit of 16 is rounded to eighths, so the odds of two
        actions would come in steps of 13% (MiniMax-M1, arXiv:2506.13585, section 3.2, on heads in float32).
        """
        if type(self.head) is not nn.Linear:  # adapted or quantised: it has no plain weights
            return self.logits(hidden).gather(1, transfer.send(tokens, hidden.device))
        # Here, because a GPU is waited for if the number of its results is unknown.
        ids, back = np.unique(tokens, return_inverse=True)
        distinct, where = (transfer.send(each, hidden.device) for each in (ids, back.reshape(tokens.shape)))
        weight = self.head.weight.index_select(0, distinct).float()
        bias = None if self.head.bias is None else self.head.bias.index_select(0, distinct).float()
        return self._postprocess(linear(hidden.float(), weight, bias)).gather(1, where)

    def _apply_head(self, head: Any, hidden: Tensor) -> Tensor:
        return self._postprocess(head(hidden.to(head.weight.dtype)).float())

    def _postprocess(self, logits: Tensor) -> Tensor:
        """Returns logits scaled, divided or capped, as the model's family does after its head."""
        # Granite divides, Cohere multiplies, Gemma 2 caps.
        config = self.transformer.config
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


def positions_of(config: Any) -> int | None:
    """Returns the most tokens that a model reads, by its configuration; None if it names no limit."""
    text = config.get_text_config()
    positions = getattr(text, "max_position_embeddings", None)
    if not isinstance(positions, int):
        return None
    rotary = getattr(text, "rope_parameters", None) or {}
    # Layers of several kinds have a mapping each. Some files name the positions before scaling.
    kinds = [kind for kind in rotary.values() if isinstance(kind, Mapping)] or [rotary]
    originals = [(kind.get("original_max_position_embeddings") or positions, kind) for kind in kinds]
    return max(positions, *(int(original * (kind.get("factor") or 1)) for original, kind in originals))


def find_obstacle(model: Any) -> str | None:
    """Returns why a model's layers are not known to be plain causal attention; None if they are."""
    config = base_of(model).get_decoder().config
    kinds = set(getattr(config, "layer_types", None) or ())
    if config.model_type in PLAIN and kinds <= {"full_attention", "sliding_attention"}:
        return None
    return f"the family {config.model_type!r} is none of {', '.join(sorted(PLAIN))}"


def layers_of(transformer: Any) -> list[nn.Module]:
    """Returns a model's decoder layers, in the order of a forward.

    Raises:
        UnsupportedModelError: the model has no list of as many layers as its configuration says.
    """
    count = transformer.config.get_text_config().num_hidden_layers
    for child in transformer.children():
        if isinstance(child, nn.ModuleList) and len(child) == count:
            return list(child)
    raise UnsupportedModelError(
        f"reading 'shared': the model has no list of {count} layers, its num_hidden_layers; allowed: reading "
        "'padded'"
    )


def set_checkpointing(transformer: nn.Module) -> list[Any]:
    """Sets a model's layers to be checkpointed in training mode, and returns them.

    transformers' own method would also make the embeddings' output ask for a gradient that nobody needs.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer  # imported late: it takes seconds

    layers: list[Any] = [m for m in transformer.modules() if isinstance(m, GradientCheckpointingLayer)]
    for layer in layers:
        layer.gradient_checkpointing = True
        # Nothing in a layer is random, so the generators' states need not be kept and set again.
        layer._gradient_checkpointing_func = partial(
            checkpoint, use_reentrant=False, preserve_rng_state=False
        )
    return layers


def vocabulary_log_probs(logits: Tensor, temperature: float) -> Tensor:
    """Returns log-probabilities at a temperature from logits (k, vocab)."""
    return (logits / temperature).log_softmax(-1)


def split_states(engine: Engine, states: int, logits: int | None = None) -> list[slice]:
    """Returns the parts of so many states whose logits are made together, one part at least."""
    rows = max(1, (logits or LOGITS_LEARNED_FROM) // engine.vocab_size)
    return [slice(start, min(start + rows, states)) for start in range(0, max(1, states), rows)]


def apply_in_parts(function: Callable[..., T], arguments: Sequence[Sequence[Any]]) -> list[T]:
    """Returns the function's values of the parts; of several, none keeps its logits for the backward pass."""
    if len(arguments) == 1 or not torch.is_grad_enabled():
        return [function(*part) for part in arguments]
    again = partial(checkpoint, function, use_reentrant=False, preserve_rng_state=False)
    return [again(*part) for part in arguments]
