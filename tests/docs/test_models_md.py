"""docs/models.md: its numbers are the plan's, and what it names is there."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from gamespiel import planning
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.memory_plan import Load, plan
from gamespiel.cli import main
from gamespiel.config import preset_path, resolve
from gamespiel.config.schema import DOTTED
from gamespiel.report.plan import format_gib
from tests.gamespiel.test_presets import CARD

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def preset_rows() -> list[str]:
    rows = []
    for name, card in sorted(CARD.items(), key=lambda row: (row[0].split("b-")[0].removesuffix("b"), row[1])):
        load = planning.load_of(resolve(name))
        made = plan(load)
        kept = "NF4" if load.bits else load.dtype
        way = "yes" if load.gradient_checkpointing else "no"
        budgets = f"{load.tokens_per_backward:,} | {load.tokens_per_forward:,}"
        sizes = f"{format_gib(made.weights)} | {format_gib(made.peak)}"
        rows.append(f"| `{name}` | {card} GB | {kept} | {way} | {budgets} | {sizes} |")
    return rows


def model_rows() -> list[str]:
    """Peaks of each known model with gradient checkpointing and 4,096 tokens with gradients."""
    rows = []
    for name in KNOWN:
        architecture = planning.architecture_of(name)
        base = Load(
            architecture, tokens_per_backward=4096, tokens_per_forward=8192, gradient_checkpointing=True
        )
        peaks = [plan(base), plan(replace(base, bits=8)), plan(replace(base, bits=4, nested=True))]
        shown = " | ".join(format_gib(made.peak) for made in peaks)
        rows.append(f"| `{name}` | {architecture.parameters / 1e9:.2f} | {shown} |")
    return rows


@pytest.mark.parametrize("rows", [preset_rows, model_rows])
def test_tables_are_current(rows: object) -> None:
    """If this fails, these are the rows to write."""
    text = PAGE.read_text(encoding="utf-8").splitlines()
    assert callable(rows)
    assert [row for row in rows() if row not in text] == []


def test_keys_commands_and_links(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    keys = re.findall(r"`((?:model|ppo|run|env|lora)\.(?!safetensors)\w+)", text)
    assert keys and [key for key in keys if key not in DOTTED] == []
    assert [path for path in re.findall(r"\]\(([\w./-]+)\)", text) if not (PAGE.parent / path).exists()] == []
    for name in CARD:
        assert preset_path(name).is_file() and f"`{name}`" in text
    lines = [
        line.split("#")[0]
        for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    plans = [shlex.split(line)[2:] for line in lines if "--plan" in line]
    assert len(plans) >= 3
    for arguments in plans:
        assert main(["train", *arguments]) == 0
    assert capsys.readouterr().out.count("peak") >= 2 * len(plans)
