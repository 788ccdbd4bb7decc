"""Rows of shared beginnings in few shapes, read eagerly, by a graph of CUDA and by FlexAttention.

Nothing of it is in the trainer: only `benchmarks.gpu_shapes` uses it. What needs no GPU is tested against the
trainer's own reading: that pads change no state, and that FlexAttention's mask is the tree's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.ending import Row
from benchmarks.train_step import clocked
from gamespiel.agents.engines.shared import TILE, SharedEngine
from gamespiel.agents.engines.token_tree import (
    Tiles,
    TokenTree,
    tile_tree,
)
from gamespiel.agents.engines.tree_attention import Layout, _Part, empty_mask
from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models.adapters import add_adapters
from gamespiel.agents.models.architectures import KNOWN

WAYS = ("eager", "padded", "graph", "flex", "flex_graph")
"""As today; on padded shapes; these in a graph of CUDA; FlexAttention compiled on them; that in a graph.

The last is without gradients only, and without the making of its mask.
"""

FLEX = "benchmark_flex"

BRANCH = 48
"""Tokens of each sequence after the half that all share."""

WARM_UP = 3


def round_up(number: int, rungs: int) -> int:
    """Returns the next size of a ladder with so many sizes per doubling; from 64 on, multiples of 64."""
    step = math.floor(rungs * math.log2(max(1, number)))
    while True:
        size = math.ceil(2 ** (step / rungs) - 1e-9)
        size = size if size < 64 else -(-size // 64) * 64
        if size >= number:
            return size
        step += 1


def make_tree(tokens: int, vocabulary: int) -> TokenTree:
    """Returns a tree of about so many tokens: one half is shared, and the rest are branches."""
    rng, shared = np.random.default_rng(0), tokens // 2
    beginning = tuple(rng.integers(vocabulary, size=shared).tolist())
    branches = max(1, round((tokens - shared) / BRANCH))
    return TokenTree.build(
        [(*beginning, *rng.integers(vocabulary, size=BRANCH).tolist()) for _ in range(branches)]
    )


def pad_tree(tree: TokenTree, size: int) -> TokenTree:
    """Returns a tree of ``size`` tokens: each pad is a sequence of its own, which nothing else attends to."""
    n = len(tree.tokens)
    pads = np.arange(n, size)
    none = np.zeros(size - n, dtype=np.int64)
    return TokenTree(
        np.concatenate([tree.tokens, none]),
        np.concatenate([tree.depths, none]),
        np.concatenate([tree.ends, pads + 1]),
        [*tree.paths, *(np.array([pad]) for pad in pads)],
    )


def tile_evenly(tree: TokenTree, width: int, keys: int) -> Tiles:
    """Returns a tree in tiles of one kind, (n / width, width, keys), without those that only repeat a token.

    Raises:
        ValueError: the tokens are no multiple of the width, or a tile has more keys.
    """
    if len(tree.tokens) % width:
        raise ValueError(f"{len(tree.tokens)} tokens are no multiple of tiles of {width}")
    order, rows = [], []
    for part in tile_tree(tree, width):
        missing = keys - part.keys.shape[1]
        if missing < 0:
            raise ValueError(f"a tile has {part.keys.shape[1]} keys, allowed: at most {keys}")
        spread = ((0, 0), (0, missing))
        rows.append(
            (
                part.queries,
                np.pad(part.keys, spread, mode="edge"),
                np.pad(part.allowed, ((0, 0), *spread)),
                part.query_depths,
                np.pad(part.key_depths, spread, mode="edge"),
            )
        )
        order.append(part.queries[:, 0])
    by_start = np.argsort(np.concatenate(order))
    return Tiles(*(np.concatenate(column)[by_start] for column in zip(*rows, strict=True)))


def attend_flexibly(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    flex: Callable[..., Tensor] | None = None,
    block_mask: Any = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attends by FlexAttention; an attention function of transformers."""
    assert flex is not None
    attended = flex(query, key, value, block_mask=block_mask, scale=scaling, enable_gqa=True)
    return attended.transpose(1, 2).contiguous(), None


class RowReader(nn.Module):
    """A model with adapters of random weights, and one row for it, as it is and padded.

    Args:
        architecture: One of ``KNOWN``.
        layers: Layers of the model; 0 for all.
        device: Where it computes: in bfloat16 on a GPU, in float32 on a CPU.
        tokens: About the tokens of the row.
        small: Whether the layers are small, for counts and tests.
        rungs: Sizes per doubling of the padded shapes.
    """

    def __init__(
        self, architecture: str, layers: int, device: torch.device, tokens: int, small: bool, rungs: int = 2
    ) -> None:
        super().__init__()
        from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

        AttentionInterface.register(FLEX, attend_flexibly)
        config = dict(KNOWN[architecture])
        config["num_hidden_layers"] = layers or config["num_hidden_layers"]
        if small:
            config |= {
                "vocab_size": 128, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 4,
                "num_key_value_heads": 2, "head_dim": 16,
            }  # fmt: skip
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        model_type = config.pop("model_type")
        config.pop("dtype")
        torch.manual_seed(0)
        with torch.device(device):
            base = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **config), dtype=dtype)
        # Layers this small would add adapters of rank 16 to their weights.
        settings = LoraSettings(r=1) if small else LoraSettings()
        model = add_adapters(base.requires_grad_(False), settings, seed=0).to(device)
        self.device = device
        self.engine = SharedEngine(model)
        self.adapters = nn.ParameterList(p for p in model.parameters() if p.requires_grad)
        self.tree = make_tree(tokens, config["vocab_size"])
        size = -(-round_up(len(self.tree.tokens), rungs) // TILE) * TILE
        self.padded = pad_tree(self.tree, size)
        keys = max(part.keys.shape[1] for part in tile_tree(self.padded, TILE))
        tiles = tile_evenly(self.padded, TILE, round_up(keys, rungs))
        #: The inputs that change from row to row, in pinned memory, so that a copy to a GPU is asynchronous.
        self.host = [
            self._pin(array) for array in (self.padded.tokens, self.padded.depths, *vars(tiles).values())
        ]
        self.ends = self._pin(self.padded.ends).to(device)

    def _pin(self, array: np.ndarray[Any, Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def send(self) -> list[Tensor]:
        """Returns the padded row's tensors on the device."""
        return [tensor.to(self.device, non_blocking=True) for tensor in self.host]

    def read_eager(self) -> Tensor:
        """Returns the row's states as the trainer's engine reads them, with the making of its tiles."""
        return self.engine._read_tree(self.tree, range(len(self.tree.tokens)))

    def read_padded(self) -> Tensor:
        """Returns the padded row's states."""
        states: Tensor = self(*self.send())
        return states

    def forward(self, ids: Tensor, depths: Tensor, *tiles: Tensor) -> Tensor:
        """Returns states from the tensors of ``send``; nothing in it depends on their values."""
        layout = Layout([_Part(*tiles)], torch.arange(len(ids), device=self.device))
        states: Tensor = self.engine.transformer(
            input_ids=ids[None],
            position_ids=depths[None],
            attention_mask=empty_mask(self.device),
            use_cache=False,
            tree=layout,
        ).last_hidden_state
        return states[0]

    def make_mask(self) -> Any:
        """Returns FlexAttention's mask of the padded tree."""
        from torch.nn.attention.flex_attention import create_block_mask

        ends, size = self.ends, len(self.ends)

        def may_attend(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < ends[k])

        return create_block_mask(may_attend, None, None, size, size, device=self.device.type)

    def read_flexibly(
        self, flex: Callable[..., Tensor], ids: Tensor, depths: Tensor, mask: Any = None
    ) -> Tensor:
        """Returns the padded row's states by FlexAttention; without a mask, it makes one."""
        block_mask = self.make_mask() if mask is None else mask
        return self._attend_by(FLEX, ids, depths, flex=flex, block_mask=block_mask)

    def _attend_by(self, name: str, ids: Tensor, depths: Tensor, **more: Any) -> Tensor:
        transformer: Any = self.engine.transformer
        before = transformer.config._attn_implementation
        transformer.set_attn_implementation(name)
        try:
            states: Tensor = transformer(
                input_ids=ids[None],
                position_ids=depths[None],
                attention_mask=empty_mask(self.device),
                use_cache=False,
                **more,
            ).last_hidden_state
        finally:
            transformer.set_attn_implementation(before)
        return states[0]


# -- on a GPU ----------------------------------------------------------------------------------------------


def time_ways(architecture: str, layers: int, tokens: int, repetitions: int, rungs: int) -> Row:
    """Returns milliseconds of every way on a GPU, without and with gradients; or a failure's text."""
    reader = RowReader(architecture, layers, torch.device("cuda"), tokens, small=False, rungs=rungs)
    row: Row = {
        "architecture": architecture,
        "layers": layers,
        "tokens": len(reader.tree.tokens),
        "padded_tokens": len(reader.padded.tokens),
    }
    for way in WAYS:
        for gradients in (False,) if way == "flex_graph" else (False, True):
            name = f"{way}_{'with' if gradients else 'without'}_gradients"
            try:
                row[name] = _time(_make_call(reader, way, gradients), repetitions)
            except (RuntimeError, NotImplementedError) as error:  # one way must not cost the others
                row[name] = f"{type(error).__name__}: {str(error)[:300]}"
    return row


def _make_call(reader: RowReader, way: str, gradients: bool) -> Callable[[], None]:
    """Returns a call that reads the row once in this way, and goes back if gradients are asked for."""
    read = _make_reading(reader, way, gradients)

    def call() -> None:
        with torch.set_grad_enabled(gradients):
            states = read()
        if gradients:
            states.float().sum().backward()

    return call


def _make_reading(reader: RowReader, way: str, gradients: bool) -> Callable[[], Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    if way == "eager":
        return reader.read_eager
    if way == "padded":
        return reader.read_padded
    if way == "graph":
        if not gradients:
            return _capture(reader, reader.send(), reader.host)
        graphed: Any = torch.cuda.make_graphed_callables(
            reader, tuple(reader.send()), allow_unused_input=True
        )
        return lambda: graphed(*reader.send())
    flex: Any = torch.compile(flex_attention, dynamic=False)
    if way == "flex":
        return lambda: reader.read_flexibly(flex, *reader.send()[:2])
    mask = reader.make_mask()
    return _capture(
        lambda ids, depths: reader.read_flexibly(flex, ids, depths, mask), reader.send()[:2], reader.host[:2]
    )


def _capture(
    read: Callable[..., Tensor], static: Sequence[Tensor], host: Sequence[Tensor]
) -> Callable[[], Tensor]:
    """Returns a call that copies a row's tensors into those of a graph, and replays it, without gradients."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            read(*static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        states = read(*static)

    def replay() -> Tensor:
        for held, new in zip(static, host, strict=True):
            held.copy_(new, non_blocking=True)
        graph.replay()
        return states

    return replay


def _time(call: Callable[[], None], repetitions: int) -> float:
    """Returns the median of wall-clock milliseconds: the launches on the CPU are what is asked about."""
    for _ in range(WARM_UP):
        call()
    return round(statistics.median(clocked(call) for _ in range(repetitions)) * 1e3, 3)
