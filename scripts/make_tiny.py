"""The script that makes the embedded model: ``python -m scripts.make_tiny``.

The model is a small Qwen3 with its own tokenizer, trained from random weights on two kinds of text.

The first kind is prompts of uniformly random play in every declared game and variant, each answered by a
uniformly random legal action. The model learns their language and which answers are legal. It learns no
strategy: legal answers are equally likely, and no outcome is shown.

The second kind is short code traces of one family, with an empty answer. They have the program and, in the
environment's last observation, its output. So the model has read programs with their outputs, but it was
never trained to answer with an output.

The same command on the same versions makes the same files.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from game_gym.games import DECLARED
from gamespiel.agents.models.loading import TINY

GAMES = tuple(DECLARED)

TRACES: dict[str, Any] = {
    "level": 1,
    "family": "sorting",
    "task_ids": [(10_000_000_000, 19_999_999_999)],
}
"""The traces to read: short programs of one of sixteen families, since the model is too small for all.

Their task ids are neither in a preset nor held-out.
"""

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""ChatML as Qwen writes it, without Qwen3's variable ``enable_thinking``: this model has no thinking."""

POSITIONS = 8192
"""Positions in the model's configuration. They cost nothing: rotary embeddings have no weights per position.

The longest prompts are backgammon's doubles with hundreds of moves: 3,424 tokens in the states drawn here,
about 6,000 in 1.5 million turns of random play with rules.
"""


@dataclass(frozen=True)
class Recipe:
    """The settings of the model and its training.

    Attributes:
        seed: Seed of all random numbers.
        states_per_game: Distinct states of random play that are kept per game, over all its variants.
        tokenizer_states: States per game that the tokenizer is made from: few, so that small games count.
        episodes_per_game: The most episodes per game, for games with fewer states.
        traces: Episodes of code tracing that are kept; one is read after every second state of a game.
        tokenizer_traces: Episodes of code tracing that the tokenizer is made from.
        vocab_size: Qwen3's setting, as the next six are.
        hidden_size: Width of the hidden states.
        intermediate_size: Width within a feed-forward layer.
        num_hidden_layers: Number of layers.
        num_attention_heads: Attention heads per layer.
        num_key_value_heads: Heads of keys and values per layer.
        head_dim: Width of a head.
        steps: Optimizer steps.
        longest_row: Tokens of the longest row; longer ones are left out of training.
        batch_tokens: Padded tokens per step; the shorter its rows, the more of them share it.
        prompt_share: Share of the prompts' positions that count in the loss.
        learning_rate: AdamW's learning rate, after the warmup.
    """

    seed: int = 0
    states_per_game: int = 3000
    tokenizer_states: int = 900
    episodes_per_game: int = 15000
    traces: int = 20000
    tokenizer_traces: int = 900
    vocab_size: int = 1536
    hidden_size: int = 64
    intermediate_size: int = 192
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 16
    steps: int = 9000
    longest_row: int = 700
    batch_tokens: int = 4096
    prompt_share: float = 0.25
    learning_rate: float = 3e-3


@dataclass(frozen=True)
class Shown:
    """One state as a player sees it.

    Attributes:
        text: The observation.
        legal: The legal actions, ascending.
    """

    text: str
    legal: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A prompt and one of its legal answers, in tokens; or the text of an episode, which has no answer.

    Attributes:
        prompt: Tokens of the prompt or of the episode.
        asked: Before this position, a random share of the positions counts in the loss.
        close: From this position on, all count. Between the two none does: empty answers are not learned.
        answer: Tokens of the answer.
        chances: For each token of the answer, the probabilities of the tokens that may follow those before
            it, over all legal answers, which are equally likely.
    """

    prompt: tuple[int, ...]
    asked: int
    close: int
    answer: tuple[int, ...] = ()
    chances: tuple[Mapping[int, float], ...] = ()

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def random_play(game: str, states: int, episodes: int, seed: int) -> list[Shown]:
    """Returns distinct states of random play, as the seat to move sees them; variants take turns.

    Play ends with the episode that reaches ``states`` states, and after ``episodes`` in any case.
    """
    spec = DECLARED[game]
    envs = [
        gym.make("GameSpiel-v0", game=game, params=spec.params(config), opponent="open", rules=False)
        for config in range(spec.variants)
    ]
    rng = random.Random(seed)
    seen: dict[Shown, None] = {}
    for episode in range(episodes):
        env = envs[episode % len(envs)]
        text, info = env.reset(seed=rng.randrange(2**31))
        done = "result" in info
        while not done:
            legal = tuple(info["legal_actions"])
            seen.setdefault(Shown(text, legal))
            text, _, terminated, truncated, info = env.step(rng.choice(legal))
            done = terminated or truncated
        if len(seen) >= states:
            break
    return list(seen)


def unanswered_traces(count: int, seed: int) -> list[tuple[str, str]]:
    """Returns episodes of ``CodeTrace-v0`` with an empty reply: first and last observation of each."""
    env = gym.make("CodeTrace-v0", **TRACES)
    rng = random.Random(seed)
    episodes = []
    for _ in range(count):
        asked, _ = env.reset(seed=rng.randrange(2**31))
        episodes.append((asked, env.step("")[0]))
    env.close()
    return episodes


def make_tokenizer(texts: Sequence[str], vocab_size: int) -> Any:
    """Returns a byte-level BPE tokenizer whose words are lines, with one token per digit."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            # Merges may span words but not lines, so that a prompt's fixed phrases become single tokens.
            pre_tokenizers.Split(Regex(r"\n"), "merged_with_previous"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrap: Any = PreTrainedTokenizerFast
    return wrap(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        model_max_length=POSITIONS,
    )


def make_model(recipe: Recipe, tokenizer: Any) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(recipe.seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=recipe.hidden_size,
            intermediate_size=recipe.intermediate_size,
            num_hidden_layers=recipe.num_hidden_layers,
            num_attention_heads=recipe.num_attention_heads,
            num_key_value_heads=recipe.num_key_value_heads,
            head_dim=recipe.head_dim,
            max_position_embeddings=POSITIONS,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def draw_row(shown: Shown, codec: Any, rng: random.Random) -> Row:
    """Returns a state with a random legal answer."""
    answers = [codec.encode_action(action) for action in shown.legal]
    answer = rng.choice(answers)
    chances = []
    for depth, token in enumerate(answer):
        counts = Counter(other[depth] for other in answers)
        chances.append({key: count / len(answers) for key, count in counts.items()})
        answers = [other for other in answers if other[depth] == token]
    prompt = codec.encode_prompt(shown.text)
    return Row(prompt, len(prompt), len(prompt), answer, tuple(chances))


def trace_row(asked: str, ending: str, codec: Any) -> Row:
    """Returns an episode of code tracing as a chat: prompt, empty answer and last observation."""
    roles = (("user", asked), ("assistant", ""), ("user", ending))
    chat = [{"role": role, "content": content} for role, content in roles]
    text = codec.tokenizer.apply_chat_template(chat, tokenize=False)
    close = text.index(ending, len(codec.prompt_text(asked)))
    before, after = (
        codec.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (text[:close], text[close:])
    )
    return Row((*before, *after), len(codec.encode_prompt(asked)), len(before))


def rows(
    games: Sequence[Sequence[Shown]], traces: Sequence[Row], codec: Any, recipe: Recipe, rng: random.Random
) -> Iterator[Row]:
    """Yields random states of the games in turn, and a random trace after every second; no too long rows."""
    for turn, states in enumerate(cycle(games)):
        drawn = [draw_row(rng.choice(states), codec, rng), *([rng.choice(traces)] if turn % 2 else [])]
        yield from (row for row in drawn if len(row) <= recipe.longest_row)


def batches(stream: Iterator[Row], recipe: Recipe, rng: random.Random) -> Iterator[list[Row]]:
    """Yields batches of rows of similar length, of at most ``batch_tokens``, in random order of length."""
    while True:
        pool = sorted((next(stream) for _ in range(20 * len(GAMES))), key=len)
        cut: list[list[Row]] = [[]]
        for row in pool:
            if cut[-1] and (len(cut[-1]) + 1) * len(row) > recipe.batch_tokens:
                cut.append([])
            cut[-1].append(row)
        rng.shuffle(cut)
        yield from cut


def losses_of(
    model: Any, batch: Sequence[Row], pad: int, recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the losses of a batch's prompts and of its answers, scalars.

    The loss of prompts is the mean cross-entropy of the next token, at a random share of the positions and
    at those of a program's output. The loss of answers is the mean divergence from a uniform player's tokens,
    at all positions. It is 0 if exactly the legal answers are likely, and equally so.
    """
    width = max(map(len, batch))
    ids = torch.tensor([[*row.prompt, *row.answer, *(pad,) * (width - len(row))] for row in batch])
    begins = torch.tensor([[len(row.prompt)] for row in batch])
    asked = torch.tensor([[row.asked] for row in batch])
    close = torch.tensor([[row.close] for row in batch])
    ends = torch.tensor([[len(row)] for row in batch])
    position = torch.arange(1, width)
    in_answer = (position >= begins) & (position < ends)
    drawn = torch.rand(len(batch), width - 1) < recipe.prompt_share
    in_prompt = (position < begins) & ((drawn & (position < asked)) | (position >= close))
    hidden, following = model.model(input_ids=ids).last_hidden_state[:, :-1], ids[:, 1:]
    prompts = torch.nn.functional.cross_entropy(model.lm_head(hidden[in_prompt]), following[in_prompt])
    said = torch.log_softmax(model.lm_head(hidden[in_answer]), dim=-1)
    uniform = torch.zeros_like(said)
    for position_target, chances in zip(uniform, (c for row in batch for c in row.chances), strict=True):
        position_target[list(chances)] = torch.tensor(list(chances.values()))
    # A batch can have traces only, which have no answers.
    answers = torch.nn.functional.kl_div(said, uniform, reduction="sum") / max(1, len(said))
    return prompts, answers


def pretrain(
    model: Any, codec: Any, games: Sequence[Sequence[Shown]], traces: Sequence[Row], recipe: Recipe
) -> dict[str, float]:
    """Trains on prompts, answers and traces; returns the mean losses of the last 100 steps."""
    rng = random.Random(recipe.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    stream = batches(rows(games, traces, codec, recipe, rng), recipe, rng)
    losses = []
    for step in range(recipe.steps):
        warm, done = min(1.0, (step + 1) / 100), step / recipe.steps
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * warm * (0.5 + 0.5 * math.cos(math.pi * done))
        prompt, answer = losses_of(model, next(stream), codec.pad, recipe)
        optimizer.zero_grad()
        loss: Any = prompt + answer  # Any: torch leaves backward untyped
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append((float(prompt.detach()), float(answer.detach())))
        if step % 100 == 0:
            print(f"step {step}/{recipe.steps}  prompt {prompt:.4f}  answer {answer:.4f}", flush=True)
    last = losses[-100:]
    means = [round(sum(column) / len(last), 4) for column in zip(*last, strict=True)]
    return dict(zip(("prompt", "answer"), means, strict=True))


def make(recipe: Recipe, folder: Path, games: Sequence[str] = GAMES) -> dict[str, Any]:
    """Writes the model, its tokenizer and a record of both into ``folder``; returns the record."""
    import gamespiel  # noqa: F401  # registers the environments
    from gamespiel.agents.tokens.codec import ChatCodec

    played = {
        game: random_play(game, recipe.states_per_game, recipe.episodes_per_game, recipe.seed)
        for game in games
    }
    read = unanswered_traces(recipe.traces, recipe.seed)
    texts = [shown.text for states in played.values() for shown in states[: recipe.tokenizer_states]]
    texts += [text for episode in read[: recipe.tokenizer_traces] for text in episode]
    tokenizer = make_tokenizer(texts, recipe.vocab_size)
    model, codec = make_model(recipe, tokenizer), ChatCodec(tokenizer)
    traces = [trace_row(*episode, codec) for episode in read]
    losses = pretrain(model, codec, list(played.values()), traces, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    record = {
        "recipe": vars(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "losses": losses,
        "states": {game: len(states) for game, states in played.items()},
        "longest_prompt_tokens": {
            game: max(len(codec.encode_prompt(shown.text)) for shown in states)
            for game, states in played.items()
        }
        | {"code_trace": max(row.asked for row in traces)},
    }
    (folder / "made.json").write_text(json.dumps(record, indent=2) + "\n")
    return record


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.make_tiny", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=TINY, help="where to write (default: the shipped model)"
    )
    for name, value in vars(Recipe()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default {value}")
    options = vars(parser.parse_args(argv))
    folder = options.pop("folder")
    print(json.dumps(make(Recipe(**options), folder), indent=2))


if __name__ == "__main__":
    main()
