"""Make the embedded model: `python -m scripts.make_tiny`.

A small Qwen3 with its own tokenizer, trained from nothing on two kinds of text. Prompts of uniformly random
play in every declared game and variant, each answered by a uniformly random legal action: it learns their
language and which answers are legal, and no strategy, since every legal answer was equally likely and no
outcome was ever shown. And episodes of short code traces of one family in which nothing was answered: what
stands in them is the program and, at the end, as the environment shows it, what it printed. So it has read
programs with their outputs, as any language model has, and was never taught to answer with one.

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
from gamespiel.agents.models import TINY

GAMES = tuple(DECLARED)

#: The traces it reads: short programs of one family, since of sixteen it would learn too little of each.
#: Their task ids are neither in a preset nor held out to evaluate on.
TRACES: dict[str, Any] = {
    "level": 1,
    "family": "sorting",
    "task_ids": [(10_000_000_000, 19_999_999_999)],
}

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
# ChatML as Qwen writes it; the variable enable_thinking that Qwen3 knows has nothing to switch off here.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

#: Positions the model is said to have. Rotary embeddings hold nothing a position, so they cost nothing; the
#: longest prompts, backgammon's doubles with hundreds of moves, have some five thousand tokens.
POSITIONS = 8192


@dataclass(frozen=True)
class Recipe:
    """How the model is made; `hidden_size` and the rest are Qwen3's own names.

    states_per_game: Distinct states of random play kept of each game, over all its variants.
    tokenizer_states: Of these, how many the tokenizer is made from: few, or small games would hardly count.
    episodes_per_game: Games after which a game that has fewer states is left at that.
    traces: Episodes of code tracing that are kept; one is read after every second state of a game.
    tokenizer_traces: Of these, how many the tokenizer is made from.
    longest_row: Longer prompts, in tokens, are left out of training.
    batch_tokens: Padded tokens a step; short prompts share it among many rows.
    prompt_share: Of the positions of prompts, how many the loss takes.
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
    """One state as a player saw it, with the ids that were legal."""

    text: str
    legal: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A prompt and one of its legal answers, in tokens; or the text of an episode, which has no answer.

    asked, told: A share of the positions before `asked` counts, and each from `told` on. What lies between is
        not learned: an empty answer is none to be taught.
    chances: For each token of the answer, the tokens that could have stood there after those before it, and
        how often each would: exactly, over all the legal answers, each as likely as any other.
    """

    prompt: tuple[int, ...]
    asked: int
    told: int
    answer: tuple[int, ...] = ()
    chances: tuple[Mapping[int, float], ...] = ()

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def random_play(game: str, states: int, episodes: int, seed: int) -> list[Shown]:
    """Distinct states of random play in which every seat is shown its prompt, a variant after another.

    It ends with the episode in which `states` of them are reached, and after `episodes` in any case.
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
    """Episodes of `CodeTrace-v0` with an empty reply: what was asked, and what was shown at the end."""
    env = gym.make("CodeTrace-v0", **TRACES)
    rng = random.Random(seed)
    episodes = []
    for _ in range(count):
        asked, _ = env.reset(seed=rng.randrange(2**31))
        episodes.append((asked, env.step("")[0]))
    env.close()
    return episodes


def make_tokenizer(texts: Sequence[str], vocab_size: int) -> Any:
    """Byte-level BPE whose words are lines, with every digit a token of its own."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            # Merges may span words, not lines: a prompt's fixed phrases become single tokens.
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
    """A state with a random legal answer."""
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
    """An episode of code tracing as a chat: the question, an empty answer, and how it ended."""
    roles = (("user", asked), ("assistant", ""), ("user", ending))
    chat = [{"role": role, "content": content} for role, content in roles]
    text = codec.tokenizer.apply_chat_template(chat, tokenize=False)
    told = text.index(ending, len(codec.prompt_text(asked)))
    before, after = (
        codec.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (text[:told], text[told:])
    )
    return Row((*before, *after), len(codec.encode_prompt(asked)), len(before))


def rows(
    games: Sequence[Sequence[Shown]], traces: Sequence[Row], codec: Any, recipe: Recipe, rng: random.Random
) -> Iterator[Row]:
    """Random states of the games in turn, a random trace after every second; without what is too long."""
    for turn, states in enumerate(cycle(games)):
        drawn = [draw_row(rng.choice(states), codec, rng), *([rng.choice(traces)] if turn % 2 else [])]
        yield from (row for row in drawn if len(row) <= recipe.longest_row)


def batches(stream: Iterator[Row], recipe: Recipe, rng: random.Random) -> Iterator[list[Row]]:
    """Rows of like length together, as many as `batch_tokens` hold, in random order of length."""
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
    """Of prompts and of answers.

    Of prompts the mean cross-entropy of the next token, at some of the positions, and wherever it is told
    what a program printed. Of answers the mean divergence from what a uniform player would say, at all of
    them: 0 where exactly the legal answers are left and equally likely.
    """
    width = max(map(len, batch))
    ids = torch.tensor([[*row.prompt, *row.answer, *(pad,) * (width - len(row))] for row in batch])
    begins = torch.tensor([[len(row.prompt)] for row in batch])
    asked = torch.tensor([[row.asked] for row in batch])
    told = torch.tensor([[row.told] for row in batch])
    ends = torch.tensor([[len(row)] for row in batch])
    position = torch.arange(1, width)
    in_answer = (position >= begins) & (position < ends)
    drawn = torch.rand(len(batch), width - 1) < recipe.prompt_share
    in_prompt = (position < begins) & ((drawn & (position < asked)) | (position >= told))
    hidden, following = model.model(input_ids=ids).last_hidden_state[:, :-1], ids[:, 1:]
    prompts = torch.nn.functional.cross_entropy(model.lm_head(hidden[in_prompt]), following[in_prompt])
    said = torch.log_softmax(model.lm_head(hidden[in_answer]), dim=-1)
    uniform = torch.zeros_like(said)
    for position_target, chances in zip(uniform, (c for row in batch for c in row.chances), strict=True):
        position_target[list(chances)] = torch.tensor(list(chances.values()))
    # A batch can be of traces alone, which have no answers.
    answers = torch.nn.functional.kl_div(said, uniform, reduction="sum") / max(1, len(said))
    return prompts, answers


def pretrain(
    model: Any, codec: Any, games: Sequence[Sequence[Shown]], traces: Sequence[Row], recipe: Recipe
) -> dict[str, float]:
    """Train on prompts, what may be answered, and traces; the mean losses of the last 100 steps."""
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
    """Write the model, its tokenizer and how it was made into `folder`."""
    import gamespiel  # noqa: F401  # registers the environments
    from gamespiel.agents.decoding import ChatCodec

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
    made = {
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
    (folder / "made.json").write_text(json.dumps(made, indent=2) + "\n")
    return made


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.make_tiny", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=TINY, help="where to write (default: the shipped model)"
    )
    for name, value in vars(Recipe()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default {value}")
    given = vars(parser.parse_args(argv))
    folder = given.pop("folder")
    print(json.dumps(make(Recipe(**given), folder), indent=2))


if __name__ == "__main__":
    main()
