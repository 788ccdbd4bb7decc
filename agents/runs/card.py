"""The model card beside a checkpoint's adapters, and the name of the base model that PEFT writes there.

PEFT's own card is a form to fill in. Both name the folder that the base model was loaded from, which means
nothing on another machine: here, only names on the model hub are names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from task_gym.files import read_file, write_atomically

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")

MEASURES = {
    "rollout/reward": "mean reward per episode",
    "rollout/success": "share of episodes with success",
    "rollout/legal_mass": "probability of legal answers without the mask",
    "train/kl_ref": "KL to the base model, in nats",
    "eval/share": "share of best response, before the step",
    "eval/exploitability": "exploitability, before the step",
}
"""The metrics of a card, in this order, and what they mean."""


@dataclass(frozen=True)
class Facts:
    """Facts about a run that its checkpoints do not have.

    Attributes:
        version: The version of GameSpiel; "" if unknown.
        settings: Settings by key that are not the defaults; None if unknown.
        metrics: The metrics of the checkpoint's step, by name.
        use: What loads more than the adapters.
    """

    version: str = ""
    settings: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    use: str = (
        "With the whole run's folder, `gamespiel.load_policy(RUN)` loads the policy, with its critic and its "
        "prompts."
    )


def hub_name(model_name: str) -> str | None:
    """Returns a model's name if it is one on the model hub, and None for a folder, a file or ``tiny``."""
    named = HUB_NAME.fullmatch(model_name) and not model_name.startswith(".")
    return model_name if named and not Path(model_name).exists() else None


def write_card(folder: Path, base: Mapping[str, Any], step: int, decisions: int, facts: Facts) -> None:
    """Writes ``README.md``, and the base model's name in ``adapter_config.json``.

    Args:
        folder: The folder of the adapters, as PEFT has written it.
        base: The checkpoint's record of the base model: its ``model_name`` and, if known, ``sha256``.
        step: The number of steps of training.
        decisions: The number of decisions.
        facts: What else is known of the run.
    """
    name = hub_name(str(base["model_name"]))
    config = folder / "adapter_config.json"
    settings = json.loads(read_file(config)) | {"base_model_name_or_path": name}
    write_atomically(config, json.dumps(settings, indent=2, sort_keys=True) + "\n")
    write_atomically(folder / "README.md", _render_card(name, base, step, decisions, facts))


def _render_card(name: str | None, base: Mapping[str, Any], step: int, decisions: int, facts: Facts) -> str:
    tags = "tags: [gamespiel, lora, ppo, reinforcement-learning]"
    measured = [
        (f"`{key}`", f"{facts.metrics[key]:.4g}", words)
        for key, words in MEASURES.items()
        if isinstance(facts.metrics.get(key), int | float)
    ]
    version = f", with GameSpiel {facts.version}" if facts.version else ""
    settings = [(f"`{key}`", render_cell(value)) for key, value in (facts.settings or {}).items()]
    lines = [
        "---", *([f"base_model: {name}"] if name else []), "library_name: peft",
        "pipeline_tag: text-generation", tags, "---", "",
        "# LoRA adapters trained with GameSpiel", "",
        f"Adapters of rank {base['r']} (alpha {base['lora_alpha']:g}) {link_to(name, base)}, after step "
        f"{step:,} of PPO and {decisions:,} decisions{version}.", "",
        "## Use", "",
        f"{facts.use} This folder alone is for PEFT:", "",
        "```python",
        *_render_loading(name, base), "```", "",
    ]  # fmt: skip
    if facts.settings is not None:
        said = "Settings other than GameSpiel's defaults:" if settings else "All settings are the defaults."
        lines += ["## Training", "", said, *render_table(("key", "value"), settings), ""]
    if measured:
        lines += [
            f"Metrics of step {step:,}, whose episodes were played before its update:",
            *render_table(("metric", "value", "meaning"), measured), "",
        ]  # fmt: skip
    return "\n".join(lines)


def _render_loading(name: str | None, base: Mapping[str, Any]) -> list[str]:
    """Returns the lines of Python that load the model with its adapters."""
    tiny = base["model_name"] == "tiny"
    place = "TINY" if tiny else json.dumps(name or "FOLDER OF THE BASE MODEL")
    return [
        *(["from gamespiel.agents.models.loading import TINY"] if tiny else []),
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM",
        "",
        f"base = AutoModelForCausalLM.from_pretrained({place})",
        'model = PeftModel.from_pretrained(base, "THIS FOLDER")',
    ]


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a Markdown table after an empty line; nothing without rows."""
    if not rows:
        return []
    return ["", *(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))]


def link_to(name: str | None, base: Mapping[str, Any]) -> str:
    """Returns "of" a base model and where it is."""
    if name is not None:
        return f"of [{name}](https://huggingface.co/{name})"
    if base["model_name"] == "tiny":
        return "of the small model that GameSpiel ships"
    if "sha256" in base:
        return f"of a model that is not on the hub; the SHA-256 of its weights begins with {base['sha256']}"
    return "of a model with random weights"


def render_cell(value: Any) -> str:
    """Returns a setting as a cell of a Markdown table, without places on this machine."""
    return json.dumps(_make_portable(value), ensure_ascii=False, default=str).replace("|", "\\|")


def _make_portable(value: Any) -> Any:
    """Returns plain data without places: a path's last part, and an opponent without its address or path."""
    if isinstance(value, Mapping):
        return {_make_portable(key): _make_portable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_portable(item) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith("policy:"):
        return "policy"
    if value.startswith("openai:"):
        return value.partition("@")[0]
    return Path(value).name if value.startswith(("/", "~")) else value
