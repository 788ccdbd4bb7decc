"""``gamespiel train --plan``: the memory that a configuration takes, before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gamespiel.agents.models.architectures import architecture_of
from gamespiel.agents.models.memory_plan import (
    GIB,
    KEPT,
    LOGITS_LEARNED_FROM,
    SPARE,
    WIDTHS,
    Load,
    MemoryPlan,
    count_trained_parameters,
    plan,
)
from gamespiel.config import Config, InvalidValueError, presets, resolve
from gamespiel.kinds import kind_of
from gamespiel.report.console import make_console
from gamespiel.report.tables import Grid
from gamespiel.report.text import print_plain
from task_gym.errors import nearest

CARDS = (12, 16, 24, 80)
"""GiB of common cards, planned for if none is named or found."""

NODES = {"id": 2, "name": 8}
"""By ``env.answer``, places per turn where an action branches: a number of two digits has two.

An update also reads the end of the turn.
"""

REFERENCE_BATCH = 256
"""Turns that the reference scores together in float32; see ``gamespiel.agents.update``."""

OWN_TOKENS = 64
"""Tokens that a prompt has for itself, beyond what it shares: they limit how many fit into a forward."""


def show(config: Config, card: str, console: Console | None = None) -> None:
    """Prints the plan of a configuration, and which presets fit.

    Args:
        config: The configuration.
        card: The card's memory in GiB, or "" for the one that torch finds, else for ``CARDS``.
        console: The console to print on; the terminal's if left out.

    Raises:
        InvalidValueError: ``card`` is not a number above 0, or ``run.device`` names none.
        ModelError: the model's architecture is not known on this machine.
    """
    console = make_console(highlight=False) if console is None else console
    cards = _list_cards(config, card)
    load = load_of(config)
    memory = plan(load)
    name = config.model.model_name
    total, trained = load.architecture.parameters, count_trained_parameters(load)
    where = "a GPU" if load.on_gpu else "the CPU"
    print_plain(console, f"{name}: {total:,} parameters, {trained:,} trained, on {where}\n")
    console.print(parts_table(load, memory))
    console.print(
        f"checkpoint: {format_gib(memory.on_disk)} GiB on disk, {format_gib(memory.kept_on_disk)} with the "
        f"{load.keep_checkpoints} that are kept\n",
        soft_wrap=True,
    )
    if not load.on_gpu:
        console.print(
            "On the CPU, glibc keeps memory that was freed: peaks of 1.6 times this sum were measured, and "
            "of 2.5 times with gradient checkpointing. MALLOC_MMAP_THRESHOLD_=65536 in the environment "
            "prevents that.\n",
            soft_wrap=True,
        )
    if load.backward_budget:
        console.print(
            f"ppo.tokens_per_backward is {load.backward_budget:,}. An optimizer step has "
            f"{_count_turns(config):,} turns of at most {_turn_tokens(config):,} tokens, so its forwards "
            f"have {load.tokens_per_backward:,} at most.\n",
            soft_wrap=True,
        )
    loads = {name: load_of(resolve(name)) for name in presets()}
    plans = {} if load in loads.values() else {"as configured": memory}
    plans |= {name: plan(load) for name, load in loads.items()}
    table = Grid("preset", ("peak", *(f"{card:g} GiB" for card in cards)), padding=1)
    for name, memory in plans.items():
        fits = ["fits" if memory.fits(card * GIB) else "-" for card in cards]
        table.add_row(name, format_gib(memory.peak), *fits)
    console.print(table)
    console.print(
        "peak: GiB, with forwards as large as the token budgets allow; prompts that share or repeat more "
        f"need less. A card fits if {SPARE:.0%} of it stays free.",
        soft_wrap=True,
    )


def parts_table(load: Load, memory: MemoryPlan) -> Grid:
    """Returns a table with a row per part of a plan, in GiB; sums are after their parts."""
    budget = f" of {load.backward_budget:,}" if load.backward_budget else ""
    update = f"update, {load.tokens_per_backward:,}{budget} tokens"
    play = f"play, {load.tokens_per_forward:,} tokens"
    used, other = "with gradient checkpointing", "without gradient checkpointing"
    if not load.gradient_checkpointing:
        used, other = other, used
    unused = memory.activations_plain if load.gradient_checkpointing else memory.activations_checkpointed
    always = [
        (f"weights ({f'{load.bits} bits' if load.bits else load.dtype})", memory.weights),
        ("adapters and value head (float32)", memory.adapters),
        ("their gradients", memory.gradients),
        ("optimizer (two moments of each)", memory.optimizer),
        *([("CUDA itself, an estimate", memory.context)] if memory.context else []),
        ("always", memory.always),
    ]
    updating = [
        (f"{update}: activations {used}", memory.activations),
        (f"({other}", unused),
        ("  temporary, on the way back", memory.backward),
        (f"  logits and head, {load.rows_backward:,} positions", memory.head),
        ("while updating", memory.updating),
    ]
    playing = [
        (f"{play}: cached keys and values", memory.cache),
        ("  temporary, in a layer", memory.sampling),
        (f"  logits and head, {load.rows_forward:,} positions", memory.sampling_head),
        ("while playing", memory.playing),
    ]
    table = Grid("memory", ("GiB",))
    for rows in (always, updating, playing, [("peak", memory.peak)]):
        for name, size in rows:
            amount, is_sum = format_gib(size), (name, size) == rows[-1]
            if name.startswith("("):
                table.add_row(Text(f"  {name}: {amount})", style="dim"), "")
            else:
                table.add_row(Text(name, style="bold" if is_sum else ""), amount, end_section=is_sum)
    return table


def format_gib(size: int) -> str:
    """Returns bytes in GiB, with as many digits as a plan deserves."""
    return f"{size / GIB:.2f}" if size >= GIB / 200 or not size else "<0.01"


def _count_turns(config: Config) -> int:
    """Returns the turns of an optimizer step."""
    ppo = config.ppo
    if ppo.num_minibatches:
        return ppo.batch_size  # an episode has about as many turns as a pass has optimizer steps
    return ppo.mini_batch_size * ppo.gradient_accumulation_steps


def _turn_tokens(config: Config) -> int:
    """Returns the tokens of a long turn: its prompt, and its reply if that is text."""
    prompt = kind_of(config.env).prompt_tokens(config.env)
    return prompt + config.ppo.max_new_tokens if config.env.decode == "text" else prompt


def load_of(config: Config) -> Load:
    """Returns the memory load of a configuration's training, on a GPU unless it names the CPU.

    Raises:
        ModelError: the model's architecture is not known on this machine.
        InvalidValueError: it has no such module, or is saved in a type that has to be named another one.
    """
    model, ppo = config.model, config.ppo
    architecture = architecture_of(model.model_name)
    bits = 4 if model.use_4bit else 8 if model.use_8bit else None
    on_gpu = config.run.device != "cpu"
    dtype: str = model.dtype
    if dtype == "auto":
        dtype = "bfloat16" if bits else architecture.dtype if on_gpu else "float32"
    if dtype not in WIDTHS:
        raise InvalidValueError(
            f"{model.model_name} is saved in {dtype}; set model.dtype to one of {', '.join(WIDTHS)}"
        )
    targets = tuple(name.rsplit(".", 1)[-1] for name in config.lora.target_modules)
    for name in targets:
        if name not in architecture.linears:
            raise InvalidValueError(
                f"lora.target_modules: {name!r} was given, the model has: {', '.join(architecture.linears)}"
                f"{nearest(name, architecture.linears)}"
            )
    turns, prompt_tokens = _count_turns(config), _turn_tokens(config)
    scored = max(turns, REFERENCE_BATCH) if dtype == "float32" else turns
    kind, tokens_kept = kind_of(config.env), 0
    if kind.uses_conversations(config.env) and model.reading != "padded":
        tokens_kept = min(KEPT * ppo.tokens_per_forward, ppo.batch_size * kind.prompt_tokens(config.env))
    nodes = NODES[config.env.answer]
    rows = max(nodes * scored, ppo.tokens_per_forward // OWN_TOKENS)
    if config.env.decode == "text":  # each token of a reply is read, and has logits, made in parts
        nodes = ppo.max_new_tokens
        rows = 1 + LOGITS_LEARNED_FROM // architecture.vocabulary
    return Load(
        architecture=architecture,
        dtype=dtype,
        bits=bits,
        nested=model.use_nested_quant,
        rank=config.lora.r,
        targets=targets,
        tokens_per_backward=min(ppo.tokens_per_backward, turns * prompt_tokens),
        backward_budget=ppo.tokens_per_backward if ppo.tokens_per_backward > turns * prompt_tokens else 0,
        tokens_per_forward=ppo.tokens_per_forward,
        gradient_checkpointing=model.gradient_checkpointing,
        rows_backward=(nodes + 1) * min(turns, 1 + ppo.tokens_per_backward // OWN_TOKENS),
        rows_forward=rows,
        prompt_tokens=prompt_tokens,
        tokens_kept=tokens_kept,
        keep_checkpoints=config.run.keep_checkpoints,
        on_gpu=on_gpu,
    )


def _list_cards(config: Config, card: str) -> Sequence[float]:
    """Returns the cards to plan for, in GiB: without a size that of ``run.device``, if there is any GPU.

    Raises:
        InvalidValueError: the size is none, or ``run.device`` names no device or none that is there.
    """
    if card:
        try:
            size = float(card)
        except ValueError:
            size = 0.0
        if not 0 < size < float("inf"):
            raise InvalidValueError(f"--plan takes the GiB of a card, a number above 0, not {card!r}")
        return [size]

    import torch

    from gamespiel.assembly import device_of, named_device

    if named_device(config.run.device).type == "cpu" or not torch.cuda.is_available():
        return CARDS
    return [round(torch.cuda.get_device_properties(device_of(config)).total_memory / GIB, 1)]
