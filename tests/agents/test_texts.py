"""Free text: what is sampled and scored, against the model's own logits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gamespiel.agents.engines import ENGINES, Budgets, base
from gamespiel.agents.models import BASE
from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.drawing import BLOCK, NotFiniteError, inverse_cdf
from gamespiel.agents.tokens.codec import ChatCodec
from tests.agents.deciders import Texts, kl
from tests.agents.families import FAMILIES
from tests.agents.smollm2 import policy as smollm2_policy
from tests.agents.toys import make_policy

Tokens = tuple[int, ...]
TEXTS = ("x", "seat 0\nlegal 1 12", "a longer state\n" * 4, "x")
BOTH = pytest.mark.parametrize("reading", ENGINES)
END = 2  # <|im_end|> of the embedded model's tokenizer


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(n_actions=3, adapters=0.05)


def prompts_of(policy: LLMPolicy, texts: Sequence[str] = TEXTS) -> list[Tokens]:
    return [policy.codec.encode_prompt(text) for text in texts]


def decoder_of(policy: LLMPolicy, reading: str, budget: int | None = None, **settings: Any) -> Texts:
    budgets = Budgets() if budget is None else Budgets(budget)
    return Texts(policy.codec, ENGINES[reading](policy.model, budgets), **settings)


def noise(rows: int, seed: int = 0) -> Any:
    """Returns uniforms that depend on depth and row alone."""
    return lambda depth: np.random.default_rng([seed, depth]).random(rows)


def scored_by_hand(policy: LLMPolicy, prompt: Tokens, reply: Tokens, temperature: float) -> Tensor:
    """Returns log-probabilities of the whole vocabulary at each token of a reply, (length, vocab)."""
    logits = policy.model(input_ids=torch.tensor([(*prompt, *reply[:-1])])).logits[0, len(prompt) - 1 :]
    return (logits / temperature).log_softmax(-1)


class Scripted:
    """An engine with a table of logits by the tokens that follow a prompt; a hidden state is its logits.

    Args:
        table: Logits after these tokens; elsewhere, the logits 0 everywhere.
        vocab_size: Number of tokens.
    """

    budgets = Budgets(1000)
    device = torch.device("cpu")
    end_tokens = frozenset({0, 5})

    def __init__(self, table: dict[Tokens, list[float]], vocab_size: int = 8, prompt: int = 1) -> None:
        self.table, self.vocab_size, self.prompt = table, vocab_size, prompt

    def _states(self, texts: Sequence[Tokens]) -> Tensor:
        return torch.stack(
            [torch.tensor(self.table.get(t[self.prompt :], [0.0] * self.vocab_size)) for t in texts]
        )

    def chunks(self, sequences: Sequence[Tokens], budget: int | None = None) -> Iterator[list[int]]:
        yield list(range(len(sequences)))

    def count(self, sequences: Sequence[Tokens]) -> int:
        return sum(map(len, sequences))

    def prefill(self, prompts: Sequence[Tokens], *, cache: bool) -> tuple[Tensor, Any]:
        return self._states(prompts), list(prompts)

    def grow(self, prefix: Any, rows: Sequence[int], tokens: Sequence[int]) -> tuple[Tensor, Any]:
        texts = [(*prefix[row], token) for row, token in zip(rows, tokens, strict=True)]
        return self._states(texts), texts

    def read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        return self._states([sequences[row][: at + 1] for row, at in zip(rows, positions, strict=True)])

    def room(self, prefix: Any) -> int:
        return 1000

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden

    reference_logits = logits


@pytest.fixture(scope="module")
def codec() -> ChatCodec:
    return ChatCodec(load_tokenizer(ModelSettings()))


def says(*tokens: int, vocab_size: int = 8) -> dict[Tokens, list[float]]:
    """Returns a script that writes the given tokens for sure."""
    return {
        tokens[:depth]: [0.0 if token == said else -math.inf for token in range(vocab_size)]
        for depth, said in enumerate(tokens)
    }


# -- sampling ------------------------------------------------------------------------------------------------


def test_the_inverse_cdf_by_hand_and_blocks_draw_as_one_sum_does() -> None:
    """Cumulative probabilities 1/2, 3/4, 3/4, 1: token 2 has none and is never drawn."""
    log_probs = torch.tensor([[0.5, 0.25, 0.0, 0.25], [0.0, 1.0, 0.0, 0.0]]).log()
    uniforms = np.array([0.0, 0.49, 0.51, 0.74, 0.76, 1 - 2**-53, 0.0, 1 - 2**-53])
    where = np.array([0] * 6 + [1] * 2)
    assert inverse_cdf(log_probs, where, uniforms).tolist() == [0, 0, 1, 1, 3, 3, 1, 1]
    rng = np.random.default_rng(0)
    assert 2 * BLOCK < 2500 and 2500 % BLOCK
    log_probs = torch.from_numpy(rng.normal(size=(5, 2500)) * 4).float().log_softmax(-1)
    where, uniforms = np.sort(rng.integers(5, size=400)), rng.random(400)
    sums = log_probs.double().exp().numpy().cumsum(-1)
    expected = [
        int(np.searchsorted(sums[row], u * sums[row, -1], side="right"))
        for row, u in zip(where, uniforms, strict=True)
    ]
    assert inverse_cdf(log_probs, where, uniforms).tolist() == expected


@BOTH
def test_samples_have_the_softmax_of_the_whole_vocabulary(policy: LLMPolicy, reading: str) -> None:
    """N rows whose noise is the middle of N equal intervals: each token is drawn N p times, but for one."""
    n, (prompt, *_) = 4000, prompts_of(policy)
    decoder = decoder_of(policy, reading, max_new_tokens=1, temperature=0.5)
    drawn = decoder.sample([prompt] * n, lambda depth: (np.arange(n) + 0.5) / n)
    counts = np.bincount([reply[0] for reply in drawn.tokens], minlength=1536)
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([prompt])).logits[0, -1]
    p = (logits / 0.5).softmax(-1).double().numpy()
    assert np.abs(counts - n * p).max() <= 1.01
    assert decoder.engine.tokens_read == len(prompt)
    (logged,) = {float(log_probs[0]) for log_probs in drawn.log_probs[:1]}
    assert logged == pytest.approx(math.log(p[drawn.tokens[0][0]]), abs=1e-5)


@BOTH
@pytest.mark.sample
@pytest.mark.trains
def test_the_sampled_log_probabilities_are_those_scored(policy: LLMPolicy, reading: str) -> None:
    """Also when rows are put off for want of room, and read again."""
    prompts, read, replies = prompts_of(policy) * 2, list[int](), list[list[Tokens]]()
    for budget in (None, 100, 1):
        decoder = decoder_of(policy, reading, budget, max_new_tokens=12, temperature=0.9)
        drawn = decoder.sample(prompts, noise(len(prompts)))
        read.append(decoder.engine.tokens_read)
        replies.append(drawn.tokens)
        scored = decoder.evaluate(prompts, drawn.tokens)
        assert torch.allclose(scored.log_probs, torch.from_numpy(np.concatenate(drawn.log_probs)), atol=1e-5)
        assert torch.allclose(scored.hidden, drawn.hidden, atol=1e-5)
        assert scored.owners.tolist() == [turn for turn, reply in enumerate(drawn.tokens) for _ in reply]
    assert replies[0] == replies[1] == replies[2] and read[0] < min(read[1:])
    assert {len(reply) for reply in replies[0]} > {12}  # some are cut, others end


@pytest.mark.parametrize(("reading", "prompts_read"), [("padded", 9), ("shared", 7)])
def test_same_texts_are_read_once(policy: LLMPolicy, reading: str, prompts_read: int) -> None:
    """Prompts of 5 and 4 tokens, 2 of them common. Rows 0 to 2 have the first, and row 3 the second.

    Rows 0 and 1 have the same noise; row 2 differs from them at its second token. So after the first token
    there are 2 texts, after the second 3, and nobody reads the third.
    """
    prompts = [(40, 41, 42, 43, 44)] * 3 + [(40, 41, 52, 53)]
    draws = [[0.5, 0.5, 0.5, 0.5], [0.2, 0.2, 0.8, 0.5], [0.3, 0.3, 0.3, 0.3]]
    decoder = decoder_of(policy, reading, max_new_tokens=3)
    one, same, other, _ = decoder.sample(prompts, lambda depth: np.array(draws[depth])).tokens
    assert one == same and one[0] == other[0] and one[1] != other[1]
    assert decoder.engine.tokens_read == prompts_read + 2 + 3


def test_the_end_is_in_the_tokens_and_not_in_the_text(codec: ChatCodec) -> None:
    """Replies of probability 1, of which the first ends at its last token, and two are cut.

    Bytes that are no text raise nothing: the first of a character alone, an id that the tokenizer lacks.
    Other tokens end a reply if they are control tokens. The engine names 0, <|endoftext|>, and 5, an ordinary
    token. 1, <|im_start|>, ends nothing.
    """
    said = codec.encode_answer("12")
    for tokens, words, longest, cut in [
        ((END,), "", 1, False),
        (said, "12", 4, False),
        (said[:2] * 2, "1212", 4, True),
        (said[:2], "12", 2, True),
    ]:
        script = Scripted(says(*tokens, vocab_size=1536), 1536)
        decoder = Texts(codec, script, max_new_tokens=longest)
        for drawn in (decoder.best([(7,)]), decoder.sample([(7,)], noise(1))):
            assert drawn.tokens == [tokens] and decoder.read(tokens) == (words, cut)
            assert drawn.log_probs[0].tolist() == [0.0] * len(tokens)
            assert drawn.log_probs[0].dtype == np.float32
    alone = codec.tokenizer.convert_tokens_to_ids("Ã")  # stands for the byte C3
    decoder = Texts(codec, Scripted(says(alone, 1599, END, vocab_size=1600), 1600))
    assert decoder.read(decoder.best([(7,)]).tokens[0])[0] == "\ufffd"
    # The best of equals is the lowest.
    decoder = Texts(codec, Scripted({(): [0, 0, 0, 3, 1, 3, 3, 2], (3,): [0, 0, 9, 0, 0, 0, 0, 9]}))
    assert decoder.best([(7,)]).tokens == [(3, END)]
    decoder = Texts(codec, Scripted(says(5, 1, 0), 8))
    assert decoder.free.ends == {END, 0}
    assert decoder.best([(7,)]).tokens == [(5, 1, 0)]
    assert decoder.read((5, 1, 0)) == (codec.tokenizer.decode([5]) + "<|im_start|>", False)


def test_what_is_no_number_or_no_reply_is_an_error(codec: ChatCodec) -> None:
    for bad in (math.nan, math.inf):
        decoder = Texts(codec, Scripted({(): [0, 0, bad, 0, 0, 0, 0, 0]}))
        with pytest.raises(NotFiniteError, match=r"logits are not finite"):
            decoder.sample([(7,)], noise(1))
        with pytest.raises(NotFiniteError, match=r"logits are not finite"):
            decoder.best([(7,)])
    with pytest.raises(ValueError, match=r"max_new_tokens: 0 was given; allowed: at least 1"):
        Texts(codec, Scripted({}), max_new_tokens=0)
    for wrong in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"temperature: .* was given; allowed: finite and above 0"):
            Texts(codec, Scripted({}), temperature=wrong)
    with pytest.raises(ValueError, match=r"reply 1 has no tokens"):
        Texts(codec, Scripted({})).evaluate([(7,), (7,)], [(END,), ()])


# -- scoring -------------------------------------------------------------------------------------------------


@BOTH
def test_scores_are_those_of_transformers(policy: LLMPolicy, reading: str) -> None:
    """Replies of the same prompt that begin alike, one of them twice, one the beginning of another."""
    a, b = prompts_of(policy)[:2]
    prompts, replies = [a, b, a, a, a], [(50, 51, END), (60,), (50, 51, 52, 53), (50, 51, END), (50, 51)]
    decoder = decoder_of(policy, reading, temperature=0.7)
    scored = decoder.evaluate(prompts, replies)
    tables = [scored_by_hand(policy, *each, 0.7) for each in zip(prompts, replies, strict=True)]
    log_probs = torch.cat([t[range(len(r)), r] for t, r in zip(tables, replies, strict=True)])
    entropy = torch.cat([-(table.exp() * table).sum(-1) for table in tables])
    assert torch.allclose(scored.log_probs, log_probs, atol=1e-5)
    assert torch.allclose(scored.entropy, entropy, atol=1e-5)
    # Texts that predict a token: a, a 50, a 50 51, a 50 51 52, and b.
    assert len(scored.states) == 5 and scored.keep("exact").shape == (13, 64)
    # One reading of a 50 51 52, and one of b, which has too little in common with it for a tree.
    assert decoder.engine.tokens_read == len(a) + 3 + len(b)
    assert scored.owners.tolist() == [0] * 3 + [1] + [2] * 4 + [3] * 3 + [4] * 2


class Precise(Scripted):
    """Hidden states of size 4 in float64, and a head."""

    def __init__(self) -> None:
        super().__init__({}, vocab_size=11)
        generator = torch.Generator().manual_seed(0)
        self.head = torch.randn(4, 11, generator=generator, dtype=torch.float64)
        self.states = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)

    def read(self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]) -> Tensor:
        return self.states[: len(rows)] * 1

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden @ self.head

    reference_logits = logits


@pytest.mark.parametrize("rows", [2, 5])
def test_parts_are_exact(codec: ChatCodec, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five states in parts of ``rows``, in float64, against autograd on the whole.

    Of several parts, none keeps its logits for the way back.
    """
    monkeypatch.setattr(base, "LOGITS_LEARNED_FROM", rows * 11)
    engine, lengths = Precise(), list[int]()
    decoder = Texts(codec, engine, temperature=0.5)
    reference = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def pack(tensor: Tensor) -> Tensor:
        if tensor.dim() == 2 and tensor.shape[-1] == 11 and tensor is not engine.head:
            lengths.append(len(tensor))
        return tensor

    # The states of 3 4 5 are read first, then that of the second prompt, then those of 3 6 after the first 3.
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        scored = decoder.evaluate([(7,), (8,), (7,)], [(3, 4, 5, 2), (3,), (3, 6)])
        divergence = kl(scored, reference)
    assert bool(lengths) == (rows == 5)
    weights = torch.arange(1.0, 8.0, dtype=torch.float64)
    order, tokens = [0, 1, 2, 3, 4, 0, 1], [3, 4, 5, 2, 3, 3, 6]
    assert scored.state_of.tolist() == order and len(scored.states) == 5

    p, q = ((x @ engine.head / 0.5).log_softmax(-1) for x in (engine.states[order], reference))
    # The reference of a state is that of its first token.
    between = (p.exp() * (p - q[order])).sum(-1)
    expected = (p[range(7), tokens], -(p.exp() * p).sum(-1), between)
    for one, other in zip((scored.log_probs, scored.entropy, divergence), expected, strict=True):
        assert torch.allclose(one, other, atol=1e-12)
        gradients = [
            torch.autograd.grad((x * weights).sum(), engine.states, retain_graph=True)[0]
            for x in (one, other)
        ]
        assert torch.allclose(*gradients, atol=1e-12) and gradients[0][:5].abs().min() > 0


def test_divergences_and_the_entropy_by_hand(codec: ChatCodec) -> None:
    """p = (1/2, 1/4, 1/4) against q = (1/4, 1/4, 1/2): KL = (ln 2)/2 - (ln 2)/4 = (ln 2)/4 both ways.

    The entropy of a coin is ln 2. Its other tokens have no probability, which is no NaN.
    """
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.25, 0.5])
    ours, theirs = (Texts(codec, Scripted({(): x.log().tolist()}, 3)) for x in (p, q))
    prompts, replies = [(7,)] * 3, list[Tokens]([(0,), (1,), (2,)])
    scored, reference = ours.evaluate(prompts, replies), theirs.evaluate(prompts, replies)
    assert kl(scored, reference).tolist() == pytest.approx([math.log(2) / 4] * 3)
    estimate = kl(scored, reference, "k3")
    # r = 1/2, 1, 2
    assert estimate.tolist() == pytest.approx([math.log(2) - 0.5, 0.0, 1 - math.log(2)], abs=1e-6)
    assert float((p * estimate).sum()) == pytest.approx(math.log(2) / 4)
    assert torch.equal(estimate, kl(scored, reference.log_probs[:, None], "k3"))
    assert torch.equal(kl(scored, reference), kl(scored, reference.keep("exact")))
    assert kl(scored, scored).tolist() == kl(scored, scored, "k3").tolist() == [0.0] * 3
    coin = [0.0 if token in (2, 3) else -math.inf for token in range(8)]
    scored = Texts(codec, Scripted({(): coin})).evaluate([(7,)], [(END,)])
    assert scored.entropy.tolist() == pytest.approx([math.log(2)])
    assert scored.log_probs.tolist() == pytest.approx([-math.log(2)])
    assert kl(scored, torch.zeros(1, 8)).tolist() == pytest.approx([math.log(8 / 2)])


def test_an_adapted_head_has_a_reference_without_its_adapters(tmp_path: Path) -> None:
    model = {"model_name": FAMILIES["llama"].save(tmp_path), "random_weights": True}  # has a head of its own
    lora = {"r": 4, "target_modules": ["q_proj", "lm_head"]}
    policy = make_policy(n_actions=3, adapters=0.1, lora=lora, model=model)
    states = torch.randn(3, 32)
    with torch.no_grad():
        with policy.adapters.use(BASE):
            expected = policy.engine.logits(states)
        assert torch.equal(policy.engine.reference_logits(states), expected)
        assert not torch.allclose(policy.engine.logits(states), expected, atol=1e-3)


@pytest.mark.weights("smollm2")
def test_smollm2_says_the_capital_of_france() -> None:
    """Beside it, a prompt without an end in sight, which is cut."""
    policy = smollm2_policy()
    assert policy.codec.prompt_text("x") == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    )
    # Its tokenizer splits digits off before anything else, so both spaces and the line end are one token.
    tokenizer = policy.codec.tokenizer
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("\n  12 -> Bet")["input_ids"])
    assert pieces == ["ĊĠĠ", "1", "2", "Ġ->", "ĠBet"]
    decoder = decoder_of(policy, "shared", max_new_tokens=12)
    asked = ("What is the capital of France?", "Tell me a long story about a lighthouse.")
    with policy.adapters.use(BASE):
        paris, story = decoder.best(prompts_of(policy, asked)).tokens
    assert decoder.read(paris) == ("The capital of France is Paris.", False)
    assert decoder.read(story)[1] and len(story) == 12
