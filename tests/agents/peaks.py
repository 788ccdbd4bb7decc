"""Measures peaks of memory of updates and of play, in a process that does nothing else.

``python -m tests.agents.peaks`` prints a line of JSON: the peak of each mode in bytes beyond those of the
imports, with the model and its optimizer. The modes "plain" and "checkpointed" are updates without and with
gradient checkpointing; "play" is a sampled token and its continuation.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from gamespiel.agents.engines import Budgets, Engine, make_engine
from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.loading import ModelSettings, load_base
from gamespiel.agents.models.optimizer import ScaledAdamW

NAME, LAYERS = "HuggingFaceTB/SmolLM2-135M-Instruct", 8
SHARED, OWN, ROWS = 128, 128, 3
"""Tokens that all prompts begin with, tokens of each, and prompts."""


def main() -> None:
    # The pages of libraries are no model's memory.
    model, optimizer = load(ModelSettings())
    update(make_engine(model, "shared"), optimizer, [(1, 2, 3), (1, 2, 4)])
    before = resident("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        config = KNOWN[NAME] | {"num_hidden_layers": LAYERS}
        (Path(folder) / "config.json").write_text(json.dumps(config))
        model, optimizer = load(ModelSettings(folder, dtype="float32", random_weights=True))
    draw = torch.randint(1, 1000, (ROWS + 1, OWN)).tolist()
    prompts = [(*draw[0][:SHARED], *own) for own in draw[1:]]
    peaks = {}
    for mode in ("plain", "checkpointed", "play"):
        checkpointed = mode == "checkpointed"
        engine = make_engine(model, "shared", Budgets(10**6), gradient_checkpointing=checkpointed)
        update(engine, optimizer, [(1, 2, 3)])  # its state and the gradients are there from now on
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again
        if mode == "play":
            play(engine, prompts)
        else:
            update(engine, optimizer, prompts)
        peaks[mode] = resident("VmHWM") - before
    print(json.dumps(peaks))


def load(settings: ModelSettings) -> tuple[Any, ScaledAdamW]:
    model = add_adapters(load_base(settings, "cpu", 0), LoraSettings(), 0)
    return model, ScaledAdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)


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


def resident(field: str) -> int:
    """Returns a line of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    main()
