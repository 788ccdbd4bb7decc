"""Make the embedded model: `python -m gamespiel.make_tiny`.

A small Qwen3 with its own tokenizer, trained from nothing on the prompts of uniformly random play, each
answered by a uniformly random legal action. It learns the prompts' language and which answers are legal; what
it has seen holds no strategy, since every legal answer was equally likely and no outcome was ever shown.

The same command on the same versions makes the same files.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from agents.models import TINY

GAMES = ("leduc_poker", "kuhn_poker", "tic_tac_toe")
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
# ChatML as Qwen writes it; the variable enable_thinking that Qwen3 knows has nothing to switch off here.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Recipe:
    """How the model is made; `hidden_size` and the rest are Qwen3's own names."""

    seed: int = 0
    episodes_per_game: int = 20000
    vocab_size: int = 640
    hidden_size: int = 64
    intermediate_size: int = 192
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 16
    steps: int = 1500
    batch_size: int = 64
    learning_rate: float = 3e-3


@dataclass(frozen=True)
class Shown:
    """One state as a player saw it, with the ids that were legal."""

    text: str
    legal: tuple[int, ...]


def random_play(game: str, episodes: int, seed: int) -> list[Shown]:
    """The distinct states of random play in which every seat is shown its prompt."""
    env = gym.make("GameSpiel-v0", game=game, opponent="open", rules=False)
    rng = random.Random(seed)
    seen: dict[Shown, None] = {}
    for episode in range(episodes):
        text, info = env.reset(seed=episode)
        done = False
        while not done:
            legal = tuple(info["legal_actions"])
            seen.setdefault(Shown(text, legal))
            text, _, terminated, truncated, info = env.step(rng.choice(legal))
            done = terminated or truncated
    return list(seen)


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
        model_max_length=512,
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
            max_position_embeddings=512,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def pretrain(model: Any, tokenizer: Any, games: Sequence[Sequence[Shown]], recipe: Recipe) -> float:
    """Train on prompts and random legal answers, games in equal parts; the last 100 steps' mean loss."""
    from agents.decoding import ChatCodec

    codec = ChatCodec(tokenizer)
    rng = random.Random(recipe.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    losses = []
    for step in range(recipe.steps):
        warm, done = min(1.0, (step + 1) / 100), step / recipe.steps
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * warm * (0.5 + 0.5 * math.cos(math.pi * done))
        shown = [rng.choice(games[i % len(games)]) for i in range(recipe.batch_size)]
        rows = [codec.encode_prompt(s.text) + codec.encode_action(rng.choice(s.legal)) for s in shown]
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *(codec.pad,) * (width - len(row))] for row in rows])
        labels = torch.tensor([[*row, *(-100,) * (width - len(row))] for row in rows])
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 100 == 0:
            print(f"step {step}/{recipe.steps}  loss {losses[-1]:.4f}", flush=True)
    return sum(losses[-100:]) / len(losses[-100:])


def make(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write the model, its tokenizer and how it was made into `folder`."""
    import gamespiel  # noqa: F401  # registers the environments

    games = [random_play(game, recipe.episodes_per_game, recipe.seed) for game in GAMES]
    tokenizer = make_tokenizer([shown.text for states in games for shown in states], recipe.vocab_size)
    model = make_model(recipe, tokenizer)
    loss = pretrain(model, tokenizer, games, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    lengths = {
        game: max(
            len(tokenizer(CHAT_PROBE.format(s.text), add_special_tokens=False)["input_ids"]) for s in states
        )
        for game, states in zip(GAMES, games, strict=True)
    }
    made = {
        "recipe": vars(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": round(loss, 4),
        "states": {game: len(states) for game, states in zip(GAMES, games, strict=True)},
        "longest_prompt_tokens": lengths,
    }
    (folder / "made.json").write_text(json.dumps(made, indent=2) + "\n")
    return made


CHAT_PROBE = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m gamespiel.make_tiny", description=__doc__)
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
