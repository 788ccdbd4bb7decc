"""The tables of a memory plan: its parts, and the cards that presets fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from gamespiel.agents.models.memory_plan import GIB, SPARE, Load, MemoryPlan
from gamespiel.report.grid import Grid

FIT_NOTE = (
    "peak: GiB, with forwards as large as the token budgets allow; prompts that share or repeat more need "
    f"less. A card fits if {SPARE:.0%} of it stays free."
)
"""Printed below ``fit_table``."""

CPU_NOTE = (
    "On the CPU, glibc keeps memory that was freed: peaks of 1.6 times this sum were measured, and of 2.5 "
    "times with gradient checkpointing. MALLOC_MMAP_THRESHOLD_=65536 in the environment prevents that."
)
"""Printed if the plan is for the CPU."""


def part_rows(load: Load, made: MemoryPlan) -> list[tuple[str, int]]:
    """Returns a plan's parts in words, in bytes; sums are after their parts."""
    budget = f" of {load.backward_budget:,}" if load.backward_budget else ""
    update = f"update, {load.tokens_per_backward:,}{budget} tokens"
    play = f"play, {load.tokens_per_forward:,} tokens"
    used, other = "with gradient checkpointing", "without gradient checkpointing"
    if not load.gradient_checkpointing:
        used, other = other, used
    unused = made.activations_plain if load.gradient_checkpointing else made.activations_checkpointed
    return [
        (f"weights ({f'{load.bits} bits' if load.bits else load.dtype})", made.weights),
        ("adapters and value head (float32)", made.adapters),
        ("their gradients", made.gradients),
        ("optimizer (two moments of each)", made.optimizer),
        *([("captured forwards", made.graphs)] if made.graphs else []),
        *([("CUDA itself, an estimate", made.context)] if made.context else []),
        ("always", made.always),
        (f"{update}: activations {used}", made.activations),
        (f"({other}", unused),
        ("  temporary, on the way back", made.backward),
        (f"  logits and head, {load.rows_backward:,} positions", made.head),
        ("while updating", made.updating),
        (f"{play}: cached keys and values", made.cache),
        ("  temporary, in a layer", made.sampling),
        (f"  logits and head, {load.rows_forward:,} positions", made.sampling_head),
        ("while playing", made.playing),
        ("peak", made.peak),
    ]


SUMS = ("always", "while updating", "while playing", "peak")


def parts_table(load: Load, made: MemoryPlan) -> Grid:
    """Returns a table with a row per part, in GiB."""
    table = Grid("memory", ("GiB",))
    for name, size in part_rows(load, made):
        amount = format_gib(size)
        if name.startswith("("):
            table.add_row(Text(f"  {name}: {amount})", style="dim"), "")
        else:
            table.add_row(Text(name, style="bold" if name in SUMS else ""), amount, end_section=name in SUMS)
    return table


def fit_table(plans: Mapping[str, MemoryPlan], cards: Sequence[float]) -> Grid:
    """Returns a table with a row per configuration: its peak, and whether it fits cards of so many GiB."""
    table = Grid("preset", ("peak", *(f"{card:g} GiB" for card in cards)), padding=1)
    for name, made in plans.items():
        fits = ["fits" if made.fits(card * GIB) else "-" for card in cards]
        table.add_row(name, format_gib(made.peak), *fits)
    return table


def format_gib(size: int) -> str:
    """Returns bytes in GiB, with as many digits as a plan deserves."""
    return f"{size / GIB:.2f}" if size >= GIB / 200 or not size else "<0.01"
