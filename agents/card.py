"""The model card beside a checkpoint's adapters, and the name of the base model that PEFT writes there.

PEFT's own card is a form to fill in. Both name the folder that the base model was loaded from, which means
nothing on another machine: here, only names on the model hub are names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from task_gym.files import write_atomically

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def hub_name(model_name: str) -> str | None:
    """Returns a model's name if it is one on the model hub, and None for a folder, a file or ``tiny``."""
    named = HUB_NAME.fullmatch(model_name) and not model_name.startswith(".")
    return model_name if named and not Path(model_name).exists() else None


def write_card(
    folder: Path, base: Mapping[str, Any], step: int, decisions: int, facts: Mapping[str, Any]
) -> None:
    """Writes ``README.md``, and the base model's name in ``adapter_config.json``.

    Args:
        folder: The folder of the adapters, as PEFT has written it.
        base: The checkpoint's record of the base model: its ``model_name`` and, if known, ``sha256``.
        step: The number of steps of training.
        decisions: The number of decisions.
        facts: Settings by key, for a table.
    """
    name = hub_name(str(base["model_name"]))
    config = folder / "adapter_config.json"
    settings = json.loads(config.read_text(encoding="utf-8")) | {"base_model_name_or_path": name}
    write_atomically(config, json.dumps(settings, indent=2, sort_keys=True) + "\n")
    write_atomically(folder / "README.md", _card(name, base, step, decisions, facts))


def _card(
    name: str | None, base: Mapping[str, Any], step: int, decisions: int, facts: Mapping[str, Any]
) -> str:
    tags = "tags: [gamespiel, lora, ppo, reinforcement-learning]"
    rows = [f"| `{key}` | {_cell(value)} |" for key, value in facts.items()]
    table = ["", "| key | value |", "|---|---|", *rows] if rows else []
    lines = [
        "---", *([f"base_model: {name}"] if name else []), "library_name: peft",
        "pipeline_tag: text-generation", tags, "---", "",
        "# LoRA adapters trained with GameSpiel", "",
        f"Adapters of rank {base['r']} (alpha {base['lora_alpha']:g}) {_of(name, base)}, after step {step:,} "
        f"of PPO and {decisions:,} decisions.", "",
        "## Use", "",
        "```python",
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM", "",
        f'base = AutoModelForCausalLM.from_pretrained("{name or "the base model"}")',
        'model = PeftModel.from_pretrained(base, "this folder")',
        "```", "",
        "`gamespiel.load_policy(RUN)` loads a whole run's policy, with its critic and its prompts.", "",
        "## Training", "",
        "Settings other than GameSpiel's defaults:" if rows else "All settings are GameSpiel's defaults.",
        *table, "",
    ]  # fmt: skip
    return "\n".join(lines)


def _of(name: str | None, base: Mapping[str, Any]) -> str:
    if name is not None:
        return f"of [{name}](https://huggingface.co/{name})"
    if base["model_name"] == "tiny":
        return "of the small model that GameSpiel ships"
    if "sha256" in base:
        return f"of a model that is not on the hub; the SHA-256 of its weights begins with {base['sha256']}"
    return "of a model with random weights"


def _cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str).replace("|", "\\|")
