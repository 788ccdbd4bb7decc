"""The memory that training takes, calculated from a model's architecture before anything is loaded.

All results are bytes. Formulas of activations name the tensor behind each term. They were derived from what
autograd keeps in one layer (``tests/agents/test_plan.py`` compares them, tensor by tensor, and counts what is
alive at a peak), for the reading ``shared``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gamespiel.agents.hyperparameters import ALL_LINEAR
from gamespiel.agents.models.architectures import Architecture

GIB = 2**30
WIDTHS: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number by dtype."""

TILE = 128
"""Tokens of the smallest tile of the engine ``shared``, which attend together and share the keys they gather.

Small tiles gather keys often; large ones attend to keys that they mask.
"""

KEPT = 2
"""Tokens that are kept between turns, per token of a forward: there are activations in neither."""

NF4_BLOCK, NESTED_BLOCK = 64, 256
"""Weights per quantisation constant of 4 bits, and constants per constant if those are quantised too."""

CUDA_CONTEXT = 0.6 * GIB
"""The CUDA context, kernels and workspaces of cuBLAS: an estimate, beyond what PyTorch's allocator counts."""

SPARE = 0.1
"""Share of a card that stays free: for what the allocator wastes, the display, and the estimate's error."""

LOGITS_LEARNED_FROM = 2**24
"""Logits made together with gradients, where several tensors of this size are alive: 64 MB each."""


@dataclass(frozen=True)
class Load:
    """The sizes from which a training run's memory follows.

    Attributes:
        architecture: The base model's.
        dtype: The type of computation, and of weights that are not quantised: a key of ``WIDTHS``.
        bits: 4 or 8 if linear layers are quantised, else None.
        nested: Whether the constants of 4 bits are quantised too.
        rank: Rank of the adapters.
        targets: Names of the linear modules with adapters.
        tokens_per_backward: Most tokens per forward with gradients.
        backward_budget: The budget of such tokens, if an optimizer step has fewer; 0 if it does not.
        tokens_per_forward: Most tokens per forward without.
        gradient_checkpointing: Whether only each layer's input is kept for the way back.
        rows_backward: Positions of answers per forward with gradients, at which logits are computed.
        rows_forward: The same without gradients.
        prompt_tokens: Tokens of the longest prompts, to which a token attends.
        tokens_kept: Tokens whose keys and values stay between the turns of conversations.
        keep_checkpoints: Checkpoints kept on disk.
        on_gpu: Whether the memory is a GPU's.
    """

    architecture: Architecture
    dtype: str = "bfloat16"
    bits: int | None = None
    nested: bool = False
    rank: int = 16
    targets: tuple[str, ...] = ALL_LINEAR
    tokens_per_backward: int = 4096
    backward_budget: int = 0
    tokens_per_forward: int = 16_384
    gradient_checkpointing: bool = False
    rows_backward: int = 32
    rows_forward: int = 256
    prompt_tokens: int = 512
    tokens_kept: int = 0
    keep_checkpoints: int = 3
    on_gpu: bool = True

    @property
    def width(self) -> int:
        """Bytes of a number in which the model computes."""
        return WIDTHS[self.dtype]

    @property
    def adapter_width(self) -> int:
        """Bytes of a number in which adapters compute: the model's, or float32 beside float16."""
        return 4 if self.dtype == "float16" else self.width


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of a run by part, in bytes.

    Attributes:
        weights: The base model.
        adapters: Adapters and value head, in float32.
        gradients: Theirs.
        optimizer: AdamW's two moments of each of them.
        activations: What a forward with gradients keeps, as configured.
        activations_plain: The same without gradient checkpointing.
        activations_checkpointed: The same with it, the one layer that is computed again included.
        backward: Temporary tensors of the way back.
        head: Logits of an update's action positions, and their gradients.
        sampling: Temporary tensors of a layer in a forward without gradients.
        cache: Keys and values of prompts while their actions are sampled, and of conversations between turns.
        sampling_head: Logits of the sampled action positions.
        context: Outside PyTorch: ``CUDA_CONTEXT`` on a GPU.
        on_disk: One checkpoint.
        kept_on_disk: All checkpoints that are there at once, the one being written included.
    """

    weights: int
    adapters: int
    gradients: int
    optimizer: int
    activations: int
    activations_plain: int
    activations_checkpointed: int
    backward: int
    head: int
    sampling: int
    cache: int
    sampling_head: int
    context: int
    on_disk: int
    kept_on_disk: int

    @property
    def always(self) -> int:
        """Memory that is taken from the first update to the end."""
        return self.weights + self.adapters + self.gradients + self.optimizer + self.context

    @property
    def updating(self) -> int:
        """The peak of an update. The head's tensors are gone before the first layer's way back begins."""
        return self.always + self.activations + max(self.backward, self.head)

    @property
    def playing(self) -> int:
        """The peak of playing."""
        return self.always + self.cache + max(self.sampling, self.sampling_head)

    @property
    def peak(self) -> int:
        return max(self.updating, self.playing)

    def fits(self, card: float) -> bool:
        """Returns whether the peak leaves ``SPARE`` of a card of that many bytes."""
        return self.peak <= (1 - SPARE) * card


def plan(load: Load) -> MemoryPlan:
    """Returns the memory that a run takes."""
    trained = count_trained_parameters(load)
    plain = activations(replace(load, gradient_checkpointing=False))
    checkpointed = activations(replace(load, gradient_checkpointing=True))
    disk = checkpoint(load)
    return MemoryPlan(
        weights=weights(load),
        adapters=4 * trained,
        gradients=4 * trained,
        optimizer=8 * trained,
        activations=checkpointed if load.gradient_checkpointing else plain,
        activations_plain=plain,
        activations_checkpointed=checkpointed,
        backward=backward(load),
        head=head(load),
        sampling=sampling(load),
        cache=cache(load),
        sampling_head=sampling_head(load),
        context=round(CUDA_CONTEXT) if load.on_gpu else 0,
        on_disk=disk,
        kept_on_disk=(load.keep_checkpoints + 1) * disk,
    )


# -- what stays ----------------------------------------------------------------------------------------------


def weights(load: Load) -> int:
    """Returns the base model's weights. Embedding, head, norms and biases are never quantised."""
    model = load.architecture
    other = model.other_parameters * load.width
    if load.bits is None:
        return model.linear_parameters * load.width + other
    if load.bits == 8:
        rows = model.layers * sum(outputs for _, outputs in model.linears.values())
        return model.linear_parameters + 4 * rows + other  # a float32 scale per row
    constants = math.ceil(model.linear_parameters / NF4_BLOCK)  # float32 each, or a byte and their own
    constant_bytes = constants + 4 * math.ceil(constants / NESTED_BLOCK) if load.nested else 4 * constants
    return model.linear_parameters // 2 + constant_bytes + other


def adapter_parameters(load: Load) -> int:
    """Returns the number of the adapters' parameters: A (rank, inputs) and B (outputs, rank) per module."""
    sizes = load.architecture.linears
    return load.architecture.layers * sum(load.rank * sum(sizes[name]) for name in load.targets)


def count_trained_parameters(load: Load) -> int:
    """Returns the number of all trained parameters: the adapters' and the value head's."""
    return adapter_parameters(load) + load.architecture.hidden_size + 1


def checkpoint(load: Load) -> int:
    """Returns the size of a checkpoint: adapters, value head and AdamW's two moments, all in float32."""
    return 12 * count_trained_parameters(load)


# -- a forward with gradients --------------------------------------------------------------------------------


def bytes_kept_per_token(load: Load) -> dict[str, int]:
    """Returns the bytes that autograd keeps per token of one layer, by the part that needs them.

    A frozen linear layer keeps nothing: its weight is enough. An adapter keeps its input, which adapters of
    the same input share, unless each has to copy it to another type.
    """
    model, width = load.architecture, load.width
    hidden, inner = model.hidden_size, model.intermediate_size
    queries, values = model.query_size, model.kv_size
    adapted = set(load.targets)

    def inputs(size: int, *names: str) -> int:
        copies = len(adapted.intersection(names))
        return load.adapter_width * size * (min(copies, 1) if load.adapter_width == width else copies)

    # The product of gate and up is kept by nobody but its adapter.
    product = inputs(inner, "down_proj")
    keys = load.prompt_tokens + TILE
    return {
        # x in float32, and one root per token
        "norms": model.norms * (4 * hidden + 4),
        # queries and keys in float32, and one root per head
        "norms of heads": 4 * (queries + values + model.heads + model.kv_heads) if model.qk_norm else 0,
        # the output of A
        "adapters": load.adapter_width * load.rank * len(adapted),
        # the norm's output
        "inputs of attention": inputs(hidden, "q_proj", "k_proj", "v_proj"),
        # queries, attended values, and a logarithm per head
        "attention": 2 * width * queries + 4 * model.heads,
        # keys and values, gathered once per tile
        "keys and values": 2 * width * values * keys // TILE,
        # the mask as numbers to add, for each head that shares keys
        "mask": width * keys * model.heads // model.kv_heads,
        "output of attention": inputs(queries, "o_proj"),
        "inputs of the feed-forward part": inputs(hidden, "gate_proj", "up_proj"),
        # gate, its activation, and up
        "feed-forward part": 3 * width * inner,
        "product of the feed-forward part": product,
    }


def activations(load: Load) -> int:
    """Returns the bytes that a forward with gradients keeps at the token budget.

    With gradient checkpointing, that is each layer's input, and one layer that is being computed again.
    Otherwise the last layer is counted whole, although it keeps little of tokens whose states are not read.
    """
    layer = load.tokens_per_backward * sum(bytes_kept_per_token(load).values()) + cast_adapters(load)
    # The last norm's input in float32, and the rotations' sines and cosines
    per_token = 4 * load.architecture.hidden_size + 2 * load.width * load.architecture.head_dim
    ends = load.tokens_per_backward * (per_token + layout_per_token(load))
    if not load.gradient_checkpointing:
        return load.architecture.layers * layer + ends
    entrance = load.tokens_per_backward * load.width * load.architecture.hidden_size
    return load.architecture.layers * entrance + layer + ends


def cast_adapters(load: Load) -> int:
    """Returns the bytes of a layer's adapters in the type in which they compute, if that is not float32."""
    if load.adapter_width == 4:
        return 0
    return load.adapter_width * adapter_parameters(load) // load.architecture.layers


def layout_per_token(load: Load) -> int:
    """Returns the bytes of distances and of masks with and without heads, by which tokens attend."""
    groups = load.architecture.heads // load.architecture.kv_heads
    return (load.prompt_tokens + TILE) * (8 + 1 + groups)


def backward(load: Load) -> int:
    """Returns the bytes of temporary tensors at the peak of the way back, in a layer's feed-forward part.

    These are the gradients of the activation and of up, and the latter with the adapter's scale. Beside
    float16, that one is in float32, before and after the scale.
    """
    inner, width = load.architecture.intermediate_size, load.width
    per_token = (3 * width + (8 if load.adapter_width != width else 0)) * inner
    residual = 2 * width * load.architecture.hidden_size  # the stream's gradient, and its sum with a branch's
    return load.tokens_per_backward * (per_token + residual) + unpacked_layer_bytes(load)


def head(load: Load) -> int:
    """Returns the logits of an update: in the model's type, in float32 with and without the legal ones, and
    the exponentials of their sum.

    Their gradients, in both types, come when these are gone.
    """
    rows = min(load.rows_backward, 1 + LOGITS_LEARNED_FROM // load.architecture.vocabulary)
    return rows * load.architecture.vocabulary * (load.width + 12)


def unpacked_layer_bytes(load: Load) -> int:
    """Returns the largest linear layer in the model's type: quantised weights are unpacked one at a time."""
    if load.bits is None:
        return 0
    return load.width * max(inputs * outputs for inputs, outputs in load.architecture.linears.values())


# -- a forward without gradients -----------------------------------------------------------------------------


def sampling(load: Load) -> int:
    """Returns the temporary tensors of a forward at its peak: the layer up, with its adapter."""
    inner, width = load.architecture.intermediate_size, load.width
    # The activation, the frozen layer's product, and the adapter's before and after its scale
    per_token = 2 * (width + load.adapter_width) * inner
    # The stream, its norm, and the adapter's copy of that
    residual = (2 * width + (4 if load.adapter_width != width else 0)) * load.architecture.hidden_size
    return load.tokens_per_forward * (per_token + residual + layout_per_token(load)) + unpacked_layer_bytes(
        load
    )


def cache(load: Load) -> int:
    """Returns keys and values of all layers at the token budget, those that stay between turns, and those
    that one layer gathers.
    """
    per_token = 2 * load.width * load.architecture.kv_size
    gathered = load.rows_forward * load.prompt_tokens
    tokens = load.tokens_per_forward + load.tokens_kept
    return per_token * (tokens * load.architecture.layers + gathered)


def sampling_head(load: Load) -> int:
    """Returns the logits of sampled positions: in the model's type, in float32, and their exponentials."""
    return load.rows_forward * load.architecture.vocabulary * (load.width + 8)
