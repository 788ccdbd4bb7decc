"""The tables of README, docs/models.md and docs/curriculum.md; the rest of these pages is written by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from docs.generate_games import table
from gamespiel.agents.models.architectures import KNOWN, architecture_of
from gamespiel.agents.models.memory_plan import Load, plan
from gamespiel.config import preset_path, presets, resolve
from gamespiel.training.planning import format_gib, load_of

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "benchmarks" / "results"


def readme() -> str:
    """Returns the text of README.md with the results of learning that are kept."""
    return fill((FOLDER.parent / "README.md").read_text(encoding="utf-8"), learning_table())


def models() -> str:
    """Returns the text of docs/models.md with the present memory plans."""
    return fill((FOLDER / "models.md").read_text(encoding="utf-8"), preset_table(), model_table())


def curriculum() -> str:
    """Returns the text of docs/curriculum.md with the results of `python -m benchmarks.promotion --keep`."""
    return fill((FOLDER / "curriculum.md").read_text(encoding="utf-8"), promotion_table())


def read_result(name: str) -> Any:
    """Returns the kept result of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def fill(text: str, *tables: str) -> str:
    """Returns ``text`` with these tables in place of those that have the same heads.

    Raises:
        ValueError: a table's head is not in the text exactly once.
    """
    for new in tables:
        head = new.partition("\n")[0]
        parts = re.split(rf"^{re.escape(head)}\n(?:\|.*\n)*", text, flags=re.MULTILINE)
        if len(parts) != 2:
            raise ValueError(f"{head!r} must be the head of one table, and is that of {len(parts) - 1}")
        text = f"{parts[0]}{new}\n{parts[1]}"
    return text


def learning_table() -> str:
    """Returns a row per game and preset: what its last policy is worth, and what learning it took."""
    rows = []
    all_runs = read_result("advantages")["rows"]  # sorted by game and preset
    for (game, preset), same in groupby(all_runs, key=itemgetter("game", "preset")):
        runs = list(same)
        decisions, _, seconds, _ = np.mean([run["points"][-1] for run in runs], axis=0)
        command = f"`train.py --preset {preset} --env.game {game}`"
        shares = [run["points"][-1][3] for run in runs]
        rows.append(_learning_row(f"`{preset}`", game, shares, decisions, seconds, command))
    runs = read_result("learning_speed")["learners"]["mlp"]["runs"]
    decisions, seconds, _ = np.mean([run["curve"][-1] for run in runs], axis=0)
    shares, command = [run["final_share"] for run in runs], "`python -m benchmarks.learning_speed`"
    rows.append(_learning_row("perceptron", "leduc_poker", shares, decisions, seconds, command))
    heads = ["model", "game, against random", "share of best response", "decisions", "minutes", "GPU"]
    return table([*heads, "command"], rows)


def _learning_row(
    model: str, game: str, shares: Sequence[float], decisions: float, seconds: float, command: str
) -> list[str]:
    spread = f" ({min(shares):.1%} … {max(shares):.1%}, {len(shares)} seeds)" if len(shares) > 1 else ""
    share = f"{np.mean(shares):.1%}{spread}"
    return [model, game, share, f"{decisions:,.0f}", f"{seconds / 60:.1f}", "not measured", command]


def preset_table() -> str:
    """Returns a row per preset for a card, by model and size of the card, with what its plan takes."""
    cards = {}
    for name in presets():
        if card := re.search(r"one GPU of (\d+) GB", preset_path(name).read_text(encoding="utf-8")):
            family, size = name.split("-")[:2]
            cards[family, float(size.removesuffix("b")), int(card[1])] = name
    rows = []
    for (*_, card), name in sorted(cards.items()):
        load = load_of(resolve(name))
        memory = plan(load)
        weight_format = "NF4" if load.bits else load.dtype
        budgets = [f"{load.tokens_per_backward:,}", f"{load.tokens_per_forward:,}"]
        sizes = [format_gib(memory.weights), format_gib(memory.peak)]
        way = "yes" if load.gradient_checkpointing else "no"
        rows.append([f"`{name}`", f"{card} GB", weight_format, way, *budgets, *sizes])
    heads = [
        "preset", "card", "weights in", "checkpointing", "tokens with gradients", "without", "weights, GiB",
        "peak, GiB",
    ]  # fmt: skip
    return table(heads, rows)


def model_table() -> str:
    """Returns the peaks of each known model with gradient checkpointing and 4,096 tokens with gradients."""
    rows = []
    for name in KNOWN:
        architecture = architecture_of(name)
        base = Load(
            architecture, tokens_per_backward=4096, tokens_per_forward=8192, gradient_checkpointing=True
        )
        loads = (base, replace(base, bits=8), replace(base, bits=4, nested=True))
        peaks = [format_gib(plan(load).peak) for load in loads]
        rows.append([f"`{name}`", f"{architecture.parameters / 1e9:.2f}", *peaks])
    return table(["model", "parameters, 10⁹", "bfloat16", "8 bits", "4 bits"], rows)


def promotion_table() -> str:
    """Returns the shares of promoted runs: a row per success rate, by rule and number of episodes."""
    rows: dict[float, list[str]] = {}
    for row in read_result("promotion")["rows"]:
        shares = [f"{row['promoted'][within][0]:.1%}" for within in ("100", "1000", "5000")]
        rows.setdefault(row["rate"], [f"{row['rate']:.2f}"]).extend(shares)
    within = ["within 100", "1,000", "5,000 episodes"]
    rules = [f"`{rule}`: {within[0]}" for rule in ("rate", "confidence")]
    return table(["success rate", rules[0], *within[1:], rules[1], *within[1:]], list(rows.values()))
