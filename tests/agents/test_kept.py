"""Prefixes that are kept between turns: what is read again, what is not, and what is forgotten."""

from __future__ import annotations

import random

import torch
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.engines.kept import KeptPrefixes, count_shared, find_known
from gamespiel.agents.engines.padded import PaddedEngine
from gamespiel.agents.engines.shared import SharedEngine
from gamespiel.agents.engines.token_tree import TokenTree
from gamespiel.agents.tokens import Tokens
from tests.agents.families import parametrize_families
from tests.agents.test_shared_engine import AT_ONCE, SHAPES, make_small

TALKS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple), min_size=1, max_size=6)


class Read:
    """A prefix without keys."""

    def __init__(self, *prompts: Tokens) -> None:
        self.prompts, self.tree = prompts, TokenTree.build(prompts)


@given(st.lists(TALKS, max_size=3), TALKS)
def test_a_known_token_has_the_same_text_before_it(
    earlier: list[list[Tokens]], prompts: list[Tokens]
) -> None:
    held = [Read(*talks) for talks in earlier]
    tree = TokenTree.build(prompts)
    known = find_known(tree, prompts, held)
    stored = [
        {int(place): talk[: depth + 1] for talk, path in zip(own.prompts, own.tree.paths, strict=True)
         for depth, place in enumerate(path)}
        for own in (held[at] for at in known.used)
    ]  # fmt: skip
    texts = [text for own in stored for _, text in sorted(own.items())]
    whole = {talk[:n] for talks in earlier for talk in talks for n in range(1, len(talk) + 1)}
    ends = {prompt for prompt in prompts}
    for prompt, path in zip(prompts, tree.paths, strict=True):
        for depth, at in enumerate(path.tolist()):
            text, place = prompt[: depth + 1], int(known.places[at])
            if place < len(texts):
                assert texts[place] == text
            else:
                assert known.fresh[place - len(texts)] == at
            # What is read again was never read, or is the last token of a prompt.
            assert (place >= len(texts)) == (text not in whole or text in ends)


@given(st.lists(st.integers(0, 1), max_size=9).map(tuple), st.lists(st.integers(0, 1), max_size=9).map(tuple))
def test_the_common_beginning_is_the_longest(one: Tokens, other: Tokens) -> None:
    shared = count_shared(one, other)
    assert one[:shared] == other[:shared]
    assert shared == min(len(one), len(other)) or one[shared] != other[shared]


def grow(talks: list[Tokens], rng: random.Random) -> list[Tokens]:
    """Returns the conversations a turn later; one is over, two begin, some share what they go on with."""
    more = [tuple(rng.randrange(50) for _ in range(rng.randrange(1, 40))) for _ in range(3)]
    return [*(talk + rng.choice(more) for talk in talks[1:]), (1, 2, 3), (1, 2, *more[0])]


@parametrize_families(SHAPES, AT_ONCE)
def test_turns_are_those_of_reading_whole_conversations(family: str) -> None:
    """Four turns of conversations that share and branch; the answers go on from what was kept."""
    model, rng = make_small(family), random.Random(2)
    padded, engine, kept = PaddedEngine(model), SharedEngine(model), KeptPrefixes[object]()
    talks = [tuple(rng.randrange(50) for _ in range(n)) for n in (5, 9, 40, 2)]
    for _ in range(4):
        before, seen = (
            engine.tokens_read,
            {t[:n] for p in kept.list_prefixes("me") for t in p.prompts for n in range(len(t) + 1)},
        )
        last, prefix = engine.prefill(talks, cache=True, before=kept.list_prefixes("me"))
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
        kept.put("me", prefix, 10_000)
        kept.drop_followed("me", talks)
        talks = grow(whole, rng)


def test_what_was_read_longest_ago_leaves_first() -> None:
    """Trees of 3, 2 and 4 tokens; a limit of 6 has room for the last two."""
    kept = KeptPrefixes[Read]()
    one, two, three, four = Read((1, 2), (1, 3)), Read((5, 6)), Read((7, 8, 9, 9)), Read((1,) * 7)
    for owner, prefix in (("me", one), ("you", two), ("me", three), ("me", four)):
        kept.put(owner, prefix, 6)
    assert kept.list_prefixes("me") == [three] and kept.list_prefixes("you") == [two] and kept.tokens == 6
    kept.clear()
    assert kept.tokens == 0


def test_a_prefix_that_all_go_on_from_is_forgotten() -> None:
    kept = KeptPrefixes[Read]()
    ended, followed, others = Read((1, 2), (3,)), Read((1, 2), (4, 4)), Read((1,))
    for owner, prefix in (("me", ended), ("me", followed), ("you", others)):
        kept.put(owner, prefix, 100)
    kept.drop_followed("me", [(1, 2, 9), (4, 4, 4), (4, 4)])
    assert kept.list_prefixes("me") == [ended] and kept.list_prefixes("you") == [others]
