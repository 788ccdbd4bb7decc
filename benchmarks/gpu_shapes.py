"""Counts the shapes of forwards, and what few shapes would bring on a GPU: `python -m benchmarks.gpu_shapes`.

- **Shapes.** Training steps are played and learned. A forward of a tree has its row's tokens, its tiles and
  the tokens stored before it; one of padded rows has rows and width. Counted are forwards and distinct
  shapes, without gradients (play and reference) and with them (update). Only prompts and budgets decide
  them, so the model has one small layer of random weights; its tokenizer is that of `--model`.
- **Padding.** The same forwards if tokens, stored tokens and keys are rounded up to a ladder of `--rungs`
  sizes per doubling, and each tree has one kind of tile: distinct shapes, and tokens and attended pairs over
  those that are read today.
- **Operations.** Operations per layer that PyTorch starts in a forward and in a backward, without views: on a
  GPU, about as many kernels.
- **Times on a GPU**, of rows of `--tokens` in the architectures of `--architectures`: eager as today, a graph
  of CUDA on padded shapes, and FlexAttention compiled on padded shapes, without and with gradients. Without
  a GPU they are left out, by name.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.ending import Row, end, make_parser, parse
from benchmarks.graph_rows import WAYS, RowReader, round_up, time_ways
from benchmarks.machine import machine
from gamespiel.agents.engines.tree_attention import Layout
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config.sections import EnvConfig
from gamespiel.environments import copies

GAMES = {
    "leduc_poker": EnvConfig(game="leduc_poker", opponent="random", rules=True),
    "five_games": EnvConfig(
        task_ids=tuple(index * 100_000_000 for index in (0, 1, 2, 4, 6)), opponent="random", rules=True
    ),
}
"""The environments: Leduc poker, and goofspiel, liar's dice, Leduc poker, othello and hex 5x5."""

PHASES = ("without_gradients", "with_gradients")


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

    def pad(self, rungs: int) -> Forward:
        """Returns the shape on a ladder; a tree's tiles become one kind, of the most keys."""
        rows, width = self.tokens
        stored = round_up(self.stored, rungs) if self.stored else 0
        if not self.tiles:
            return dataclasses.replace(
                self, tokens=(round_up(rows, rungs), round_up(width, rungs)), stored=stored
            )
        queries = max(t for _, t, _ in self.tiles)
        keys = round_up(max(k for _, _, k in self.tiles), rungs)
        width = round_up(width, rungs)
        return Forward((rows, width), ((-(-width // queries), queries, keys),), stored, self.gradients)

    @property
    def pairs(self) -> int:
        """Queries times keys."""
        rows, width = self.tokens
        tiled = sum(b * t * k for b, t, k in self.tiles)
        return tiled or rows * width * (width + self.stored)


# -- what a step has ---------------------------------------------------------------------------------------


@contextmanager
def small_model(tokenizer: str, reading: str) -> Iterator[ModelSettings]:
    """Yields the settings of a model of one layer with random weights."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_tokenizer(ModelSettings(tokenizer))
        loaded.save_pretrained(folder)
        config = {
            "model_type": "qwen3", "vocab_size": len(loaded), "num_hidden_layers": 1, "hidden_size": 16,
            "intermediate_size": 16, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 16,
            "tie_word_embeddings": True,
        }  # fmt: skip
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        yield ModelSettings(folder, random_weights=True, reading=reading)


def record_step(game: str, tokenizer: str, reading: str, episodes: int, steps: int) -> list[Forward]:
    """Returns the shapes of all forwards of some training steps."""
    found: list[Forward] = []
    with small_model(tokenizer, reading) as settings:
        algorithm = LLMPPO(
            LLMPolicy,
            TextVecEnv(copies(GAMES[game], episodes)),
            hyperparameters=Hyperparameters(batch_size=episodes, num_train_steps=steps),
            policy_kwargs={"model": settings},
        )
        transformer = algorithm.policy.engine.transformer
        transformer.register_forward_pre_hook(
            lambda _, given, named: found.append(read_shape(named)), with_kwargs=True
        )
        algorithm.total_steps = steps
        algorithm.learn(log_interval=10**9)
    return found


def read_shape(named: dict[str, Any]) -> Forward:
    """Returns the shape of a forward from its arguments by name."""
    rows, width = named["input_ids"].shape
    layout: Layout | None = named.get("tree")
    if layout is None:
        cache = named.get("past_key_values")
        return Forward(
            (rows, width), (), 0 if cache is None else cache.get_seq_length(), torch.is_grad_enabled()
        )
    tiles = tuple((*part.queries.shape, part.keys.shape[1]) for part in layout.parts)
    stored = next((keys.shape[1] for keys, _ in layout.stored.values()), 0)
    return Forward((rows, width), tiles, stored, torch.is_grad_enabled())


def summarize(forwards: Sequence[Forward], rungs: Sequence[int]) -> Row:
    """Returns counts of forwards and shapes, as they are and on each ladder."""
    row: Row = {"forwards": len(forwards), "shapes": len(set(forwards))}
    if not forwards:
        return row
    row["most_frequent"] = Counter(forwards).most_common(1)[0][1]
    row["tokens"] = sum(one.tokens[0] * one.tokens[1] for one in forwards)
    pairs = sum(one.pairs for one in forwards)
    for number in rungs:
        padded = [one.pad(number) for one in forwards]
        tokens = sum(one.tokens[0] * one.tokens[1] for one in padded)
        row[f"rungs_{number}"] = {
            "shapes": len(set(padded)),
            "tokens_over_own": round(tokens / row["tokens"], 3),
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
        reader = RowReader(architecture, layers, torch.device("cpu"), tokens=64, small=True)
        with CountOperations() as counted:
            states = reader.read_padded()
            before = counted.count
            states.float().sum().backward()
        return before, counted.count - before

    (one, back_one), (two, back_two) = count(1), count(2)
    return {"forward": two - one, "backward": back_two - back_one}


# -- the run -----------------------------------------------------------------------------------------------


def time_on_gpu(given: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Returns the times, and the names of those that were left out for want of a GPU."""
    asked = [(architecture, tokens) for architecture in given.architectures for tokens in given.tokens]
    if not torch.cuda.is_available():
        left_out = [f"{architecture}/{tokens}/{way}" for architecture, tokens in asked for way in WAYS]
        print(f"left out, because PyTorch finds no CUDA device: {', '.join(left_out)}")
        return [], left_out
    rows = []
    for architecture, tokens in asked:
        rows.append(time_ways(architecture, given.layers, tokens, given.repetitions, given.rungs[0]))
        print(rows[-1], flush=True)
    return rows, []


def main(argv: Sequence[str] | None = None) -> Row:
    """Measures and returns the results."""
    parser = make_parser("gpu_shapes", __doc__)
    parser.add_argument("--model", default="tiny", metavar="NAME", help="whose tokenizer [tiny]")
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=GAMES, help="[all]")
    parser.add_argument("--readings", nargs="+", default=["shared", "padded"], metavar="NAME", help="[both]")
    parser.add_argument("--episodes", type=int, default=64, metavar="N", help="episodes per step [64]")
    parser.add_argument("--steps", type=int, default=2, metavar="N", help="[2]")
    parser.add_argument(
        "--rungs", nargs="+", type=int, default=[2, 1, 4], metavar="N", help="sizes per doubling [2 1 4]"
    )
    parser.add_argument(
        "--architectures",
        nargs="+",
        default=["HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen3-4B"],
        choices=KNOWN,
        metavar="NAME",
        help="of the operations and the times [SmolLM2-135M and Qwen3-4B]",
    )
    parser.add_argument("--layers", type=int, default=0, metavar="N", help="of the times; 0: all [0]")
    parser.add_argument("--tokens", nargs="+", type=int, default=[512, 2048, 4096], metavar="N")
    parser.add_argument("--repetitions", type=int, default=20, metavar="N", help="[20]")
    given = parse(parser, argv)

    shapes = []
    for game in given.games:
        for reading in given.readings:
            found = record_step(game, given.model, reading, given.episodes, given.steps)
            phases = {
                phase: summarize([one for one in found if one.gradients == gradients], given.rungs)
                for phase, gradients in zip(PHASES, (False, True), strict=True)
            }
            shapes.append({"game": game, "reading": reading, **phases})
            print(shapes[-1], flush=True)
    operations = {architecture: count_operations(architecture) for architecture in given.architectures}
    print(operations, flush=True)
    times, left_out = time_on_gpu(given)
    results = {
        "benchmark": "gpu_shapes",
        "machine": machine(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "tokenizer": given.model,
        "episodes": given.episodes,
        "steps": given.steps,
        "shapes": shapes,
        "operations_per_layer": operations,
        "times_ms": times,
        "left_out": left_out,
    }
    return end(results, given.out)


if __name__ == "__main__":
    main()
