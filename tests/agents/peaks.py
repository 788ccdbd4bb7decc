"""Measures peaks of memory of updates and of play, each model in a process of its own.

``python -m tests.agents.peaks CASE ...`` prints a line of JSON per case: the peak of each mode in bytes
beyond those of the imports, with the model and its optimizer. A case is ``NAME,DTYPE,BITS,TOKENS,MODE ...``.
A mode is "plain" or "checkpointed", an update without or with gradient checkpointing, or "play", a sampled
token and its continuation. The processes are forks of one that has imported everything.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import initialization

from gamespiel.agents.engines import Budgets, Engine, make_engine
from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.loading import ModelSettings, load_base
from gamespiel.agents.models.optimizer import ScaledAdamW

SHARED, OWN = 128, 128
"""Tokens that all prompts begin with, and tokens of each."""


def main(cases: list[str]) -> None:
    draw_little()
    for use_4bit in (False, True):
        adapted(ModelSettings(use_4bit=use_4bit))  # which imports all; autograd begins in the forks alone
    for case in cases:
        child = os.fork()
        if not child:
            status = 1
            try:
                name, dtype, bits, tokens, modes = case.split(",")
                print(json.dumps(peaks(name, dtype, bits, int(tokens), modes.split())), flush=True)
                status = 0
            finally:
                os._exit(status)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"no peaks of {case}")


def peaks(name: str, dtype: str, bits: str, tokens: int, modes: list[str]) -> dict[str, int]:
    """Returns the peak of each mode, in bytes."""
    small_update(dtype, bits == "4")  # the pages of libraries are no model's memory
    before = resident("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(KNOWN[name]))
        model = adapted(
            ModelSettings(
                folder,
                dtype=dtype,
                random_weights=True,
                use_4bit=bits == "4",
                use_8bit=bits == "8",
                use_nested_quant=True,
            )
        )
    optimizer = optimizer_of(model)
    draw = torch.randint(1, 1000, ((tokens - SHARED) // OWN + 1, OWN)).tolist()
    prompts = [(*draw[0][:SHARED], *own) for own in draw[1:]]
    found = {}
    for mode in modes:
        engine = make_engine(model, "shared", Budgets(tokens), gradient_checkpointing=mode == "checkpointed")
        update(engine, optimizer, [(1, 2, 3)])  # its state and the gradients are there from now on
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again
        if mode == "play":
            play(engine, prompts)
        else:
            update(engine, optimizer, prompts)
        found[mode] = resident("VmHWM") - before
    return found


def adapted(settings: ModelSettings) -> Any:
    return add_adapters(load_base(settings, "cpu", 0), LoraSettings(), 0)


def optimizer_of(model: Any) -> ScaledAdamW:
    return ScaledAdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)


def small_update(dtype: str, use_4bit: bool) -> None:
    """Makes an update of the embedded model, which needs what a larger one needs, besides its own memory."""
    model = adapted(ModelSettings(dtype=dtype, use_4bit=use_4bit))
    update(make_engine(model, "shared"), optimizer_of(model), [(1, 2, 3), (1, 2, 4)])


def update(engine: Engine, optimizer: ScaledAdamW, prompts: list[tuple[int, ...]]) -> None:
    optimizer.zero_grad(set_to_none=True)
    hidden = engine.read(prompts, list(range(len(prompts))), [len(prompt) - 1 for prompt in prompts])
    logits = engine.logits(hidden)
    logits.gather(1, torch.arange(4).repeat(len(prompts), 1)).log_softmax(-1)[:, 0].sum().backward()
    optimizer.step()


@torch.no_grad()
def play(engine: Engine, prompts: list[tuple[int, ...]]) -> None:
    """Reads prompts, then a further token of each."""
    last, prefix = engine.prefill(prompts, cache=True)
    further = engine.extend(prefix, list(range(len(prompts))), [(7,)] * len(prompts))
    for hidden in (last, further):
        engine.logits(hidden).logsumexp(-1)


def draw_little() -> None:
    """Makes weights of a million random numbers, again and again: drawing all takes longer than an update.

    Memory does not depend on them. But if all were alike, gradients would be denormal, and much slower.
    """
    drawn = torch.randn(1 << 20) / 50

    def fill(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        for part in tensor.detach().view(-1).split(len(drawn)):
            part.copy_(drawn[: len(part)])
        return tensor

    for name in ("normal_", "uniform_", "kaiming_uniform_", "trunc_normal_"):
        initialization.TORCH_INIT_FUNCTIONS[name] = fill
        setattr(torch.nn.init, name, fill)


def resident(field: str) -> int:
    """Returns a line of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    main(sys.argv[1:])
