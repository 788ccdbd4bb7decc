"""The model card beside the adapters: hub names, and nothing of the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gamespiel.agents.runs.card import Facts, hub_name, write_card
from tests.agents.toys import make_policy

BASE = {"model_name": "Qwen/Qwen3-4B", "sha256": "0123456789abcdef", "r": 16, "lora_alpha": 32}


def written(folder: Path, **base: str) -> tuple[dict[str, object], str, str | None]:
    """Returns the card's head, its text, and the name in PEFT's configuration."""
    config = folder / "adapter_config.json"
    config.write_text(json.dumps({"r": 16, "base_model_name_or_path": "/home/me/models/mine"}))
    opponents = {"random": 1, "openai:mine@http://10.0.0.7/v1": 2, "policy:/home/me/run": 1}
    settings = {"env.game": "kuhn_poker", "lora.target_modules": ["a|b"], "env.opponent": opponents}
    metrics = {"rollout/reward": 0.58333, "train/kl_ref": 1, "time/update_seconds": 3.0, "eval/share": None}
    write_card(folder, BASE | base, step=1200, decisions=34567, facts=Facts("9.8", settings, metrics))
    text = (folder / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    settings = json.loads(config.read_text())
    assert settings.pop("r") == 16 and list(settings) == ["base_model_name_or_path"]
    assert "/home/me" not in text and "10.0.0.7" not in text
    return yaml.safe_load(head), body, settings["base_model_name_or_path"]


def test_a_model_of_the_hub(tmp_path: Path) -> None:
    head, body, name = written(tmp_path)
    assert head["base_model"] == name == "Qwen/Qwen3-4B" and head["library_name"] == "peft"
    assert 'AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-4B")' in body
    assert "of rank 16 (alpha 32) of [Qwen/Qwen3-4B](" in body
    assert "after step 1,200 of PPO and 34,567 decisions, with GameSpiel 9.8." in body
    assert '| `env.game` | "kuhn_poker" |\n| `lora.target_modules` | ["a\\|b"] |' in body
    assert '| `env.opponent` | {"random": 1, "openai:mine": 2, "policy": 1} |' in body
    assert body.endswith(
        "Metrics of step 1,200, whose episodes were played before its update:\n\n"
        "| metric | value | meaning |\n| --- | --- | --- |\n"
        "| `rollout/reward` | 0.5833 | mean reward per episode |\n"
        "| `train/kl_ref` | 1 | KL to the base model, in nats |\n"
    )


def test_nothing_is_said_that_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    write_card(tmp_path, BASE, step=0, decisions=0, facts=Facts())
    text = (tmp_path / "README.md").read_text()
    assert "after step 0 of PPO and 0 decisions.\n" in text
    assert "## Training" not in text and "| metric" not in text


def test_the_card_of_the_embedded_model_loads_it(tmp_path: Path) -> None:
    """Its Python lines are run, with the folder's name put in."""
    peft = pytest.importorskip("peft")
    adapters = make_policy(adapters=0.1).model
    adapters.save_pretrained(tmp_path)
    write_card(tmp_path, BASE | {"model_name": "tiny"}, step=1, decisions=1, facts=Facts())
    lines = (tmp_path / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(lines.replace("THIS FOLDER", str(tmp_path)), names)
    assert isinstance(names["model"], peft.PeftModel)


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
