"""The model card beside the adapters: hub names, and nothing of the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gamespiel.agents.card import hub_name, write_card

BASE = {"model_name": "Qwen/Qwen3-4B", "sha256": "0123456789abcdef", "r": 16, "lora_alpha": 32}


def written(folder: Path, **base: str) -> tuple[dict[str, object], str, str | None]:
    """Returns the card's head, its text, and the name in PEFT's configuration."""
    config = folder / "adapter_config.json"
    config.write_text(json.dumps({"r": 16, "base_model_name_or_path": "/home/me/models/mine"}))
    facts = {"env.game": "kuhn_poker", "lora.target_modules": ["a|b"]}
    write_card(folder, BASE | base, step=1200, decisions=34567, facts=facts)
    text = (folder / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    settings = json.loads(config.read_text())
    assert settings.pop("r") == 16 and list(settings) == ["base_model_name_or_path"]
    assert "/home/me" not in text
    return yaml.safe_load(head), body, settings["base_model_name_or_path"]


def test_a_model_of_the_hub(tmp_path: Path) -> None:
    head, body, name = written(tmp_path)
    assert head["base_model"] == name == "Qwen/Qwen3-4B" and head["library_name"] == "peft"
    assert 'AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-4B")' in body
    assert "of rank 16 (alpha 32) of [Qwen/Qwen3-4B](" in body
    assert "after step 1,200 of PPO and 34,567 decisions" in body
    assert '| `env.game` | "kuhn_poker" |\n| `lora.target_modules` | ["a\\|b"] |' in body


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (
            {"model_name": "/home/me/models/mine"},
            "not on the hub; the SHA-256 of its weights begins with 01",
        ),
        ({"model_name": "tiny"}, "of the small model that GameSpiel ships"),
    ],
)
def test_any_other_model(base: dict[str, str], said: str, tmp_path: Path) -> None:
    head, body, name = written(tmp_path, **base)
    assert "base_model" not in head and name is None and said in body


def test_a_folder_is_no_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models/mine").mkdir(parents=True)
    assert hub_name("models/yours") == "models/yours"
    assert hub_name("models/mine") is hub_name("./models") is hub_name("a/b/c") is hub_name("tiny") is None
