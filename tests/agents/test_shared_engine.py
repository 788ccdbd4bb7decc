"""The engine that reads shared beginnings once: its layout, what it keeps, and equality to reading alone."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gamespiel.agents.engines import PaddedEngine, SharedEngine, UnsupportedModelError, tree_attention
from gamespiel.agents.engines.base import PLAIN, layers_of
from gamespiel.agents.engines.shared import TILE
from gamespiel.agents.engines.token_tree import (
    KeptPrefixes,
    TokenTree,
    choose_tile_width,
    tile_fresh,
)
from gamespiel.agents.tokens import Tokens
from tests.agents.families import parametrize_families

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple), min_size=1, max_size=12)

AT_ONCE = ("llama", "gemma3_text")
"""Families that every run reads: the plainest one, and one with windows and norms of heads."""

SHAPES = ("mistral", "qwen2", "qwen3", "phi3", "olmo2", "granite", "cohere")
"""Families that differ in their windows, biases, norms and scales."""


def read_attention(parts: Iterable[Any]) -> dict[int, tuple[int, list[tuple[int, int]]]]:
    """Returns the depth of each query, and its keys with their depths, in order."""
    seen = {}
    for part in parts:
        for queries, keys, allowed, query_depths, key_depths in zip(*part, strict=True):
            for query, depth, mask in zip(queries, query_depths, allowed, strict=True):
                pairs = zip(keys[mask].tolist(), key_depths[mask].tolist(), strict=True)
                seen[int(query)] = (int(depth), sorted(pairs))
    return seen


def test_a_tree_by_hand() -> None:
    """Depth first: 1 2 3, then 4 below 1 2, then 5 below 1; 1 2 is given too, and 1 2 3 twice."""
    tree = TokenTree.build([(1, 5), (1, 2, 3), (1, 2), (1, 2, 4), (1, 2, 3)])
    assert tree.tokens.tolist() == [1, 2, 3, 4, 5]
    assert tree.depths.tolist() == [0, 1, 2, 2, 1]
    assert tree.ends.tolist() == [5, 4, 3, 4, 5]
    assert [path.tolist() for path in tree.paths] == [[0, 4], [0, 1, 2], [0, 1], [0, 1, 3], [0, 1, 2]]


def test_tiles_grow_until_they_gather_few_keys() -> None:
    """Tiles of w tokens of a path of 2,048 gather w + 2w + … before their own, 2,048 / w - 1 terms.

    With 128: 128 * 120 / 2,048 = 7.5 keys per token, and 1 of its own. With 256: 3.5 and 1. With 512: 1.5 and
    1. Sixteen paths of 128 that share nothing gather nothing.

    Of every 64th token, tiles of 4 begin at 0, 256, …, 1,792, 7,168 in all. They gather 3.5 keys per token of
    the path, and 1 of its own. Tiles of 8 gather 1.5 and 1, tiles of 16 0.5 and 1, and one tile of 32 nothing
    and 1.
    """
    path = TokenTree.build([tuple(range(2048))])
    assert choose_tile_width(path, 128, 9) == 128 and choose_tile_width(path, 128, 8) == 256
    assert choose_tile_width(path, 128, 4) == 512 and choose_tile_width(path, 128, 1) == 2048
    assert choose_tile_width(TokenTree.build([(i,) * 128 for i in range(16)]), 128, 1) == 128
    few = np.arange(0, 2048, 64)
    assert [choose_tile_width(path, 4, gathered, few) for gathered in (5, 4, 2, 1)] == [4, 8, 16, 32]


@settings(max_examples=40)
@given(SEQUENCES, st.integers(1, 7), st.randoms(use_true_random=False))
def test_tokens_attend_to_their_paths_alone(sequences: list[Tokens], width: int, rng: random.Random) -> None:
    """All of a tree, or some."""
    tree = TokenTree.build(sequences)
    n = len(tree.tokens)
    rows = np.array(sorted(rng.sample(range(n), rng.randint(1, n))))
    paths = {int(path[depth]): path[: depth + 1] for path in tree.paths for depth in range(len(path))}
    for asked in (np.arange(n), rows):
        expected = [
            (len(paths[row]) - 1, [(int(token), depth) for depth, token in enumerate(paths[row])])
            for row in asked.tolist()
        ]
        assert read_attention(tile_fresh(tree, asked, np.arange(n), width)) == dict(enumerate(expected))


def make_small(family: str) -> Any:
    """Returns a small model with random weights: grouped heads, and windows shorter than the sequences."""
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    sizes: dict[str, Any] = {
        "vocab_size": 50, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
        "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0,
    }  # fmt: skip
    if family in ("mixtral", "qwen2_moe", "qwen3_moe"):
        sizes |= {
            "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
        }  # fmt: skip
    if family in ("gpt_neox", "phi", "starcoder2"):  # their heads divide the hidden size
        del sizes["head_dim"]
    if family in ("mistral", "gemma3_text"):
        sizes["sliding_window"] = 7
    if family == "gemma3_text":
        sizes["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"]
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**sizes)).eval()


def prompts() -> list[Tokens]:
    """Returns sequences that share beginnings at several levels, longer than a tile in all."""
    rng = random.Random(0)

    def some(count: int, of: int = 50) -> Tokens:
        return tuple(rng.randrange(of) for _ in range(count))

    system = some(150)
    texts = [system[: rng.choice([30, 100, 150])] + some(10, 2) + some(rng.randrange(40)) for _ in range(20)]
    return [*texts, texts[3], system[:50], (1, 2, 3)]


@parametrize_families(sorted(PLAIN), AT_ONCE)
def test_hidden_states_and_gradients_are_those_of_reading_alone(family: str) -> None:
    """Each family that is called plain; but for Llama, with gradient checkpointing."""
    model, sequences = make_small(family), prompts()
    padded = PaddedEngine(copy.deepcopy(model))
    shared = SharedEngine(model, gradient_checkpointing=family != "llama")
    rows = [row for row in range(len(sequences)) for _ in range(2)]
    places = [at for sequence in sequences for at in (len(sequence) - 1, len(sequence) // 2)]
    expected, states = padded.read(sequences, rows, places), shared.read(sequences, rows, places)
    assert torch.allclose(states, expected, atol=1e-5)
    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    (states * weights).sum().backward()
    # Some experts get no token, and so no gradient.
    reference, grads = (
        {name: p.grad for name, p in engine.transformer.named_parameters() if p.grad is not None}
        for engine in (padded, shared)
    )
    assert grads.keys() == reference.keys()
    whole = torch.cat([gradient.flatten() for gradient in reference.values()])
    assert (torch.cat([grads[name].flatten() for name in reference]) - whole).norm() <= 3e-6 * whole.norm()
    distinct = len({sequence[: n + 1] for sequence in sequences for n in range(len(sequence))})
    assert shared.tokens_read == distinct > TILE
    assert padded.tokens_read == sum(map(len, sequences)) > 3 * distinct
    shared.budgets.tokens_per_forward = 200
    assert torch.allclose(shared.read(sequences, rows, places), expected, atol=2e-5)


@parametrize_families(SHAPES, AT_ONCE)
def test_the_last_layer_computes_what_is_read(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens in attention and feed-forward part of each layer; the sequences have 22 distinct last tokens.

    Half of the row is the limit: with all of its tokens but one, all are computed.
    """
    attended: list[int] = []
    attend = tree_attention._attend
    monkeypatch.setattr(
        tree_attention,
        "_attend",
        lambda tree, q, *more: attended.append(q.shape[1]) or attend(tree, q, *more),
    )
    engine, sequences = SharedEngine(make_small(family)), prompts()
    n, counts = len(TokenTree.build(sequences).tokens), list[int]()
    for layer in layers_of(engine.transformer):
        layer.mlp.down_proj.register_forward_pre_hook(lambda _, inputs: counts.append(inputs[0].shape[-2]))
    engine.read(sequences, range(len(sequences)), [len(sequence) - 1 for sequence in sequences])
    engine.prefill(sequences, cache=True)
    every = [(row, at) for row, sequence in enumerate(sequences) for at in range(len(sequence) - 1)]
    engine.read(sequences, *zip(*every, strict=True))
    assert counts == attended == [n, n, 22, n, n, 22, n, n, n]


@torch.no_grad()
def test_what_an_interrupted_forward_computed_is_no_limit_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, sequences = llama_engine(), prompts()
    expected = engine.read(sequences, [0, 1], [5, 6])
    with monkeypatch.context() as patch:
        patch.setattr(engine.transformer.norm, "forward", lambda _: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            engine.read(sequences, [2], [9])
    assert torch.equal(engine.read(sequences, [0, 1], [5, 6]), expected)
    # Nothing is read of a whole row, and then of a chunk.
    assert engine.read(sequences, [], []).shape == (0, 48)
    expected = engine.read(sequences, [0], [5])
    engine.budgets.tokens_per_forward = 200
    assert torch.allclose(engine.read(sequences, [0], [5]), expected, atol=2e-5)
    config = SimpleNamespace(num_hidden_layers=2)
    config.get_text_config = lambda: config
    children = [nn.ModuleList([nn.Linear(1, 1)]), nn.Linear(1, 1)]
    with pytest.raises(UnsupportedModelError, match="no list of 2 layers"):
        layers_of(SimpleNamespace(config=config, children=lambda: children))


@parametrize_families(SHAPES, AT_ONCE)
def test_continuations_are_those_of_reading_alone(family: str) -> None:
    model, sequences, rng = make_small(family), prompts(), random.Random(1)
    rows = [rng.randrange(len(sequences)) for _ in range(16)]
    more = [tuple(rng.randrange(50) for _ in range(rng.randrange(1, 4))) for _ in rows]
    whole = [sequences[row] + tokens for row, tokens in zip(rows, more, strict=True)]
    alone = PaddedEngine(model)
    expected = alone.read(whole, range(len(whole)), [len(tokens) - 1 for tokens in whole])
    ends = alone.read(sequences, range(len(sequences)), [len(tokens) - 1 for tokens in sequences])
    for engine in (PaddedEngine(model), SharedEngine(model)):
        assert engine.prefill(sequences, cache=False)[1] is None
        last, prefix = engine.prefill(sequences, cache=True)
        assert torch.allclose(last, ends, atol=2e-5)
        for budget in (10_000, 60):  # extending leaves the cache as it was
            engine.budgets.tokens_per_forward = budget
            assert torch.allclose(engine.extend(prefix, rows, more), expected, atol=2e-5)


@parametrize_families(SHAPES, AT_ONCE)
def test_grown_texts_are_those_of_reading_alone(family: str) -> None:
    """Thirty tokens, more than there is place for at first; texts branch, end and change their order."""
    model, rng = make_small(family), random.Random(1)
    alone, beginnings = PaddedEngine(copy.deepcopy(model)), prompts()[:4]
    for engine in (PaddedEngine(model), SharedEngine(model)):
        texts, (_, prefix) = beginnings, engine.prefill(beginnings, cache=True)
        for step in range(30):
            rows = list(range(len(texts)))
            if step % 7 == 0:
                rows = [rng.randrange(len(texts)) for _ in range(rng.randrange(1, 6))]
            more = [rng.randrange(50) for _ in rows]
            before = engine.tokens_read
            states, prefix = engine.grow(prefix, rows, more)
            texts = [(*texts[row], token) for row, token in zip(rows, more, strict=True)]
            with torch.no_grad():
                expected = alone.read(texts, range(len(texts)), [len(t) - 1 for t in texts])
            assert torch.allclose(states, expected, atol=5e-5)
            # Padded, a window is full after 7 tokens, and texts are read anew.
            anew = engine.reading == "padded" and family in ("mistral", "gemma3_text")
            assert engine.tokens_read - before == (sum(map(len, texts)) if anew else len(texts))


def test_what_is_written_takes_half_of_the_budget_or_what_prompts_leave() -> None:
    """A tree of 15 tokens. Of 80, 65 are left; of 20, half; a token after them divides that by 2."""
    engine, sequences = llama_engine(), [(18, 30, 41), (10, 11, 12, 13, 14, 5, 6), (7,), (9, 8, 7, 6)]
    _, prefix = engine.prefill(sequences, cache=True)
    for expected in ([65, 10, 1], [32, 5, 1]):
        rooms = []
        for budget in (80, 20, 1):
            engine.budgets.tokens_per_forward = budget
            rooms.append(engine.room(prefix))
        assert rooms == expected
        _, prefix = engine.grow(prefix, [0, 1], [5, 6])


def test_the_order_of_sequences_changes_nothing() -> None:
    """Their tree is the same, so states are equal to the last bit: who shares a forward is not arrival's."""
    engine, sequences, rng = llama_engine(), prompts(), random.Random(0)
    with torch.no_grad():
        expected = engine.read(sequences, range(23), [0] * 23)
        for _ in range(4):
            order = rng.sample(range(23), 23)
            states = engine.read([sequences[row] for row in order], range(23), [0] * 23)
            assert torch.equal(states, expected[order])


def llama_engine() -> SharedEngine:
    return SharedEngine(make_small("llama"))


# -- prefixes that are kept between turns --------------------------------------------------------------------


class Read:
    """A prefix without keys."""

    def __init__(self, *prompts: Tokens) -> None:
        self.prompts, self.tree = prompts, TokenTree.build(prompts)


def grow(talks: list[Tokens], rng: random.Random) -> list[Tokens]:
    """Returns the conversations a turn later; one is over, two begin, some share what they go on with."""
    more = [tuple(rng.randrange(50) for _ in range(rng.randrange(1, 40))) for _ in range(3)]
    return [*(talk + rng.choice(more) for talk in talks[1:]), (1, 2, 3), (1, 2, *more[0])]


@parametrize_families(SHAPES, AT_ONCE)
def test_turns_are_those_of_reading_whole_conversations(family: str) -> None:
    """Four turns of conversations that share and branch; the answers go on from what was kept."""
    model, rng = make_small(family), random.Random(2)
    padded, engine, cache = PaddedEngine(model), SharedEngine(model), KeptPrefixes()
    talks = [tuple(rng.randrange(50) for _ in range(n)) for n in (5, 9, 40, 2)]
    for _ in range(4):
        before, seen = (
            engine.tokens_read,
            {t[:n] for p in cache.list_prefixes("me") for t in p.prompts for n in range(len(t) + 1)},
        )
        last, prefix = engine.prefill(talks, cache=True, before=cache.list_prefixes("me"))
        new = {talk[: n + 1] for talk in talks for n in range(len(talk))}
        assert engine.tokens_read - before == len(new - seen | set(talks))
        with torch.no_grad():
            expected = padded.read(talks, range(len(talks)), [len(talk) - 1 for talk in talks])
        assert torch.allclose(last, expected, atol=5e-5)
        answers = [(rng.randrange(50), rng.randrange(50)) for _ in talks]
        whole = [talk + answer for talk, answer in zip(talks, answers, strict=True)]
        with torch.no_grad():
            expected = padded.read(whole, range(len(whole)), [len(text) - 1 for text in whole])
        assert torch.allclose(engine.extend(prefix, range(len(talks)), answers), expected, atol=5e-5)
        cache.put("me", prefix, 10_000)
        cache.drop_followed("me", talks)
        talks = grow(whole, rng)


def test_what_was_read_longest_ago_leaves_first() -> None:
    """Trees of 3, 2 and 4 tokens; a limit of 6 has room for the last two.

    A prefix that all go on from is forgotten.
    """
    cache = KeptPrefixes()
    one, two, three, four = Read((1, 2), (1, 3)), Read((5, 6)), Read((7, 8, 9, 9)), Read((1,) * 7)
    for owner, prefix in (("me", one), ("you", two), ("me", three), ("me", four)):
        cache.put(owner, prefix, 6)
    assert cache.list_prefixes("me") == [three] and cache.list_prefixes("you") == [two] and cache.tokens == 6
    cache.clear()
    assert cache.tokens == 0
    ended, followed, others = Read((1, 2), (3,)), Read((1, 2), (4, 4)), Read((1,))
    for owner, prefix in (("me", ended), ("me", followed), ("you", others)):
        cache.put(owner, prefix, 100)
    cache.drop_followed("me", [(1, 2, 9), (4, 4, 4), (4, 4)])
    assert cache.list_prefixes("me") == [ended] and cache.list_prefixes("you") == [others]
