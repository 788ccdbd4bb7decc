"""What of the benchmark of shapes needs no GPU: its counts, and that padded rows are the same rows."""

from __future__ import annotations

import pytest
import torch

from benchmarks.gpu_shapes import CountOperations, Forward, summarize
from benchmarks.graph_rows import RowReader, make_tree, pad_tree, round_up, tile_evenly

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"


def test_the_ladder() -> None:
    """Two sizes per doubling: 2 ** 6.5 is 90.5, rounded up to 128; from 64 on, multiples of 64."""
    assert [round_up(n, 2) for n in (1, 2, 3, 9, 12, 33, 64, 65, 129, 200, 1000)] == [
        1, 2, 3, 12, 12, 46, 64, 128, 192, 256, 1024,
    ]  # fmt: skip
    assert [round_up(n, 1) for n in (3, 129, 1025)] == [4, 256, 2048]


def test_a_forward_on_the_ladder() -> None:
    tree = Forward((1, 300), ((2, 128, 192), (1, 128, 320)), 0, True)
    assert tree.pairs == 128 * (2 * 192 + 320)
    # 300 tokens become 384 (2 ** 8.5 = 362), in three tiles of the most keys: 320 become 384 too.
    assert tree.pad(2) == Forward((1, 384), ((3, 128, 384),), 0, True)
    rows = Forward((9, 60), (), 100, False)
    assert rows.pairs == 9 * 60 * 160 and rows.pad(2) == Forward((12, 64), (), 128, False)
    row = summarize([tree, tree, rows], [2])
    assert (row["forwards"], row["shapes"], row["most_frequent"]) == (3, 2, 2)
    assert row["rungs_2"]["tokens_over_own"] == round((2 * 384 + 12 * 64) / (2 * 300 + 9 * 60), 3)


def test_operations_are_counted_without_views() -> None:
    x = torch.ones(4)
    with CountOperations() as counted:
        (x + 1).view(2, 2).t().mul(2)
    assert counted.count == 2


def test_tiles_of_one_kind() -> None:
    tree = pad_tree(make_tree(300, 50), 384)
    tiles = tile_evenly(tree, 128, 320)
    assert tiles.queries.tolist() == [list(range(first, first + 128)) for first in (0, 128, 256)]
    assert tiles.allowed.shape == (3, 128, 320) and tiles.allowed.any(2).all()
    n = len(make_tree(300, 50).tokens)
    assert tiles.allowed[2, n - 256 :].sum(1).tolist() == [1] * (384 - n)  # a pad attends to itself
    with pytest.raises(ValueError, match="300 tokens are no multiple"):
        tile_evenly(pad_tree(make_tree(200, 50), 300), 128, 320)
    with pytest.raises(ValueError, match="keys, allowed: at most 64"):
        tile_evenly(tree, 128, 64)


def test_padded_rows_and_flexattention_give_the_trainers_states() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    reader = RowReader(SMOLLM2, 2, torch.device("cpu"), tokens=200, small=True)
    expected, n = reader.read_eager().detach(), len(reader.tree.tokens)
    assert len(reader.padded.tokens) > n
    torch.testing.assert_close(reader.read_padded()[:n].detach(), expected, atol=2e-6, rtol=1e-5)
    with torch.no_grad():
        flexible = reader.read_flexibly(flex_attention, *reader.send()[:2])
    torch.testing.assert_close(flexible[:n], expected, atol=2e-6, rtol=1e-5)


def test_gradients_of_a_padded_row_are_the_same() -> None:
    found = []
    reader = RowReader(SMOLLM2, 1, torch.device("cpu"), tokens=150, small=True)
    for read in (reader.read_eager, reader.read_padded):
        reader.zero_grad()
        read()[: len(reader.tree.tokens)].square().sum().backward()
        found.append([parameter.grad.clone() for parameter in reader.adapters if parameter.grad is not None])
    assert len(found[0]) == len(list(reader.adapters)) > 0
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
