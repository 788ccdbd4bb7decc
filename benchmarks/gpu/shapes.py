"""Few shapes, which graphs of CUDA need: how many forwards have, and the times of rows that have them.

Only prompts and budgets decide shapes, so one small layer has those of a large model. A ladder has some sizes
per doubling, to which tokens, stored tokens and keys are rounded up; then each tree has one kind of tile.
The trainer has graphs of small trees without gradients (the kernel ``graphs``), and nothing else of it.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.gpu.models import FIVE, LEDUC, make_config, make_learner, make_step, write_model
from benchmarks.gpu.timing import CUDA, DEVICE, Row, attempt, median_ms
from gamespiel.agents import transfer
from gamespiel.agents.engines.graphs import pad_row, round_up
from gamespiel.agents.engines.kernels import using
from gamespiel.agents.engines.shared import SharedEngine
from gamespiel.agents.engines.token_tree import TokenTree
from gamespiel.agents.engines.tree_attention import empty_mask
from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models.adapters import add_adapters
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.loading import ModelSettings, load_base
from gamespiel.agents.ppo import LLMPPO

WAYS = ("eager", "padded", "flex", "graph")
"""As today; on padded shapes; FlexAttention compiled on them; padded in a graph of CUDA.

The graph is last, because it takes the place of the reader's own forward.
"""

FLEX = "benchmark_flex"
ARCHITECTURES = ("HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen3-4B")

BRANCH = 48
"""Tokens of each sequence after the half that all share."""

SMALL = {
    "vocab_size": 128, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 2,
}  # fmt: skip
"""Sizes for counts and tests. Adapters of rank 16 would be added to the weights of layers this small."""


def make_tree(tokens: int, vocabulary: int) -> TokenTree:
    """Returns a tree of about so many tokens: one half is shared, and the rest are branches."""
    rng, shared = np.random.default_rng(0), tokens // 2
    beginning = tuple(rng.integers(vocabulary, size=shared).tolist())
    branches = max(1, round((tokens - shared) / BRANCH))
    return TokenTree.build(
        [(*beginning, *rng.integers(vocabulary, size=BRANCH).tolist()) for _ in range(branches)]
    )


def attend_flexibly(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **named: Any
) -> tuple[Tensor, None]:
    """Attends by FlexAttention; an attention function of transformers."""
    flex, block_mask, scale = named["flex"], named["block_mask"], named["scaling"]
    attended = flex(query, key, value, block_mask=block_mask, scale=scale, enable_gqa=True)
    return attended.transpose(1, 2).contiguous(), None


def make_engine(config: Mapping[str, Any], device: str, rank: int = LoraSettings.r) -> SharedEngine:
    """Returns the trainer's engine on random weights, in bfloat16 on a GPU and in float32 on a CPU."""
    dtype: Any = "bfloat16" if device == "cuda" else "float32"
    with write_model(config) as folder:
        base = load_base(ModelSettings(folder, dtype=dtype, random_weights=True), device, seed=0)
    return SharedEngine(add_adapters(base, LoraSettings(r=rank), seed=0).to(device))


class RowReader(nn.Module):
    """A model with adapters, and one row for it, as it is and padded.

    Args:
        engine: The model.
        tokens: About the tokens of the row.
    """

    def __init__(self, engine: SharedEngine, tokens: int) -> None:
        super().__init__()
        from transformers import AttentionInterface

        AttentionInterface.register(FLEX, attend_flexibly)
        self.engine, self.device = engine, engine.device
        self.adapters = nn.ParameterList(p for p in engine.model.parameters() if p.requires_grad)
        self.tree = make_tree(tokens, engine.vocab_size)
        self.padded = pad_row(self.tree)
        self.ends = self.send()[2]

    def send(self) -> Tensor:
        """Returns the padded row on the device; it changes from row to row, so each reading sends it."""
        return transfer.send(self.padded, self.device)

    def read_eager(self) -> Tensor:
        """Returns the row's states as the trainer's engine reads them, with the making of its tiles."""
        return self.engine._read_tree(self.tree, range(len(self.tree.tokens)))

    def read_padded(self) -> Tensor:
        """Returns the padded row's states."""
        states: Tensor = self(self.send())
        return states

    def forward(self, row: Tensor) -> Tensor:
        """Returns states as the trainer's graphs do."""
        return self.engine._run_row(row)

    def read_flexibly(self, flex: Callable[..., Tensor]) -> Tensor:
        """Returns the padded row's states by FlexAttention, with the making of its mask."""
        transformer: Any = self.engine.transformer
        before = transformer.config._attn_implementation
        transformer.set_attn_implementation(FLEX)
        try:
            ids, depths, _ = self.send()[:, None]
            states: Tensor = self.engine.transformer(
                input_ids=ids, position_ids=depths, attention_mask=empty_mask(self.device), use_cache=False,
                flex=flex, block_mask=self.make_mask(),
            ).last_hidden_state  # fmt: skip
            return states[0]
        finally:
            transformer.set_attn_implementation(before)

    def make_mask(self) -> Any:
        """Returns FlexAttention's mask of the padded tree."""
        from torch.nn.attention.flex_attention import create_block_mask

        ends, size = self.ends, len(self.ends)

        def may_attend(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (k <= q) & (q < ends[k])

        return create_block_mask(may_attend, None, None, size, size, device=self.device.type)


def graphs(options: argparse.Namespace, end_by: float) -> Row:
    """Returns milliseconds of every way, without and with gradients; without a GPU nothing is compiled."""
    options.learner = None  # its memory is needed
    sizes, rank, tokens = (SMALL, 1, 256) if options.small else ({"num_hidden_layers": 12}, 16, 1024)
    reader = RowReader(make_engine({**KNOWN[options.architecture], **sizes}, DEVICE, rank), tokens)
    row: Row = {"tokens": len(reader.tree.tokens), "padded_tokens": reader.padded.shape[1]}
    return row | {way: attempt(partial(_time_way, reader, way)) for way in WAYS[: 4 if CUDA else 2]}


def _time_way(reader: RowReader, way: str) -> Row:
    read: Callable[[], Tensor] = reader.read_eager if way == "eager" else reader.read_padded
    if way == "flex":
        from torch.nn.attention.flex_attention import flex_attention

        flex: Any = torch.compile(flex_attention, dynamic=False)
        read = partial(reader.read_flexibly, flex)

    def call(gradients: bool) -> None:
        with torch.set_grad_enabled(gradients):
            states = read()
        if gradients:
            states.float().sum().backward()

    if way == "graph":
        with using(reader.engine, ["graphs"]), torch.no_grad():
            row = {"without_gradients_ms": median_ms(reader.read_eager, warm_up=3)}
        torch.cuda.make_graphed_callables(reader, (reader.send(),), allow_unused_input=True)
        return row | {"with_gradients_ms": median_ms(partial(call, True), warm_up=3)}
    phases = {"without_gradients_ms": False, "with_gradients_ms": True}
    return {name: median_ms(partial(call, gradients), warm_up=3) for name, gradients in phases.items()}


# -- counts ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Forward:
    """The shape of one forward.

    Attributes:
        tokens: Rows and width of the input; a tree is one row.
        tiles: Per kind of tile, their number, queries and keys; empty for padded rows.
        stored: Tokens stored before the row.
        gradients: Whether gradients are kept.
    """

    tokens: tuple[int, int]
    tiles: tuple[tuple[int, int, int], ...]
    stored: int
    gradients: bool

    @classmethod
    def read(cls, named: dict[str, Any]) -> Forward:
        """Returns the shape of a forward from its arguments by name."""
        tiles: Any = ()
        layout, cache = named.get("tree"), named.get("past_key_values")
        stored = 0 if cache is None else cache.get_seq_length()
        if layout is not None:
            tiles = tuple((*part.queries.shape, part.keys.shape[1]) for part in layout.parts)
            stored = next((keys.shape[1] for keys, _ in layout.stored.values()), 0)
        return cls(tuple(named["input_ids"].shape), tiles, stored, torch.is_grad_enabled())

    def pad(self, rungs: int) -> Forward:
        """Returns the shape on a ladder; a tree's tiles become one kind, of the most keys."""
        rows, width = self.tokens
        stored = round_up(self.stored, rungs) if self.stored else 0
        width = round_up(width, rungs)
        if not self.tiles:
            return Forward((round_up(rows, rungs), width), (), stored, self.gradients)
        queries = max(t for _, t, _ in self.tiles)
        keys = round_up(max(k for _, _, k in self.tiles), rungs)
        return Forward((rows, width), ((-(-width // queries), queries, keys),), stored, self.gradients)

    @property
    def size(self) -> int:
        """Tokens, with those of padding."""
        return self.tokens[0] * self.tokens[1]

    @property
    def pairs(self) -> int:
        """Queries times keys."""
        return sum(b * t * k for b, t, k in self.tiles) or self.size * (self.tokens[1] + self.stored)


def shapes(options: argparse.Namespace, end_by: float) -> Row:
    """Returns counts for a step of each game with each reading, and operations per layer."""
    config, row = make_config(options, 1, 64, 16), Row()
    for game, env in {"leduc_poker": LEDUC, "five_games": FIVE}.items():
        for reading in ("shared", "padded"):
            algorithm = make_learner(options, env, config=config, reading=reading)
            with record_forwards(algorithm) as forwards:
                make_step(algorithm)
            row[f"{game}, {reading}"] = summarize(forwards)
    return row | {"operations_per_layer": {name: count_operations(name) for name in ARCHITECTURES}}


@contextmanager
def record_forwards(algorithm: LLMPPO) -> Iterator[list[Forward]]:
    """Yields a list of the forwards within the context."""
    forwards: list[Forward] = []
    transformer: Any = algorithm.policy.engine.transformer  # type: ignore[attr-defined]
    with transformer.register_forward_pre_hook(
        lambda _, __, named: forwards.append(Forward.read(named)), with_kwargs=True
    ):
        yield forwards


def summarize(forwards: Sequence[Forward]) -> Row:
    """Returns counts without gradients (play and reference) and with them (update)."""
    return {
        f"{phase}_gradients": count_shapes([one for one in forwards if one.gradients == (phase == "with")])
        for phase in ("without", "with")
    }


def count_shapes(forwards: Sequence[Forward], rungs: Sequence[int] = (2, 1, 4)) -> Row:
    """Returns counts of forwards and shapes, as they are and on ladders with so many sizes per doubling."""
    row: Row = {"forwards": len(forwards), "shapes": len(set(forwards))}
    if not forwards:
        return row
    row["most_frequent"] = Counter(forwards).most_common(1)[0][1]
    row["tokens"] = sum(one.size for one in forwards)
    pairs = sum(one.pairs for one in forwards)
    for number in rungs:
        padded = [one.pad(number) for one in forwards]
        row[f"rungs_{number}"] = {
            "shapes": len(set(padded)),
            "tokens_over_own": round(sum(one.size for one in padded) / row["tokens"], 3),
            "pairs_over_own": round(sum(one.pairs for one in padded) / pairs, 3),
        }
    return row


class CountOperations(TorchDispatchMode):
    """Counts the operations that are started, without views."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def count_operations(architecture: str) -> Row:
    """Returns operations per layer of a forward with gradients and of its backward, on a small row."""

    def count(layers: int) -> tuple[int, int]:
        config = {**KNOWN[architecture], **SMALL, "num_hidden_layers": layers}
        reader = RowReader(make_engine(config, "cpu", rank=1), tokens=64)
        with CountOperations() as counted:
            states = reader.read_padded()
            before = counted.count
            states.float().sum().backward()
        return before, counted.count - before

    (one, back_one), (two, back_two) = count(1), count(2)
    return {"forward": two - one, "backward": back_two - back_one}
