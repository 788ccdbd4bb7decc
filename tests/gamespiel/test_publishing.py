"""A run's model for others: the card says what the run was and how it did, and a hub gets the folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from peft import PeftModel
from transformers import AutoModelForCausalLM

from gamespiel.agents.models.loading import TINY
from gamespiel.agents.models.weights import HubError
from gamespiel.cli import main
from gamespiel.config import InvalidValueError
from gamespiel.deployment.publishing import Form, Push, find_licence, publish
from tests.agents.hubs import Hub, running
from tests.gamespiel.runs import quiet, small, train_quietly


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = train_quietly(
        small(tmp_path_factory.mktemp("run") / "run", ppo__num_train_steps="2", run__eval_games="0")
    )
    evaluation = ["eval", "--checkpoint", str(folder), "--num_episodes", "2"]
    assert main(evaluation) == 0 and main([*evaluation, "--exact"]) == 0
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running() as found:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", found.url)
        monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", found.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield found


def card_of(folder: Path) -> tuple[dict[str, object], str]:
    _, head, body = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(head), body


def test_a_dry_run_writes_the_card_of_adapters_and_sends_nothing(
    run: Path, tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    place = ["merge", str(run), "--output", str(tmp_path / "out"), "--adapters", "--push", "me/kuhn"]
    assert main([*place, "--dry_run"]) == 0
    said = capsys.readouterr().out
    size = (tmp_path / "out" / "adapter_model.safetensors").stat().st_size
    assert f"{size:,} bytes  adapter_model.safetensors" in said
    assert "4 files would be uploaded to me/kuhn" in said and hub.asked == []
    head, body = card_of(tmp_path / "out")
    assert head == {
        "license": "apache-2.0",
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "tags": ["gamespiel", "lora", "ppo", "reinforcement-learning"],
    }
    data = json.loads((run / "eval-sampled-kuhn_poker-random.json").read_text())["sampled"]["all"]
    mean, low, high = data["score"]
    row = f"| score, {data['episodes']:,} episodes | {mean:.3f} ({low:.3f} to {high:.3f}) |"
    assert row in body and "kuhn_poker against random, sampled, step-000002" in body
    share = json.loads((run / "eval-exact-kuhn_poker-random.json").read_text())["exact"]["policy"]["share"]
    assert f"| share (exact) | {share:.3f} |" in body
    assert "| `ppo.num_train_steps` | 2 |" in body and str(tmp_path) not in body
    assert 'model = PeftModel.from_pretrained(model, "me/kuhn")' in body
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")
    base = AutoModelForCausalLM.from_pretrained(TINY)
    assert PeftModel.from_pretrained(base, tmp_path / "out").peft_config["default"].r == 16


def test_a_merged_model_goes_to_a_hub(run: Path, tmp_path: Path, hub: Hub) -> None:
    publish(run, tmp_path / "out", Form(dtype="float32"), Push("me/kuhn", private=True), console=quiet())
    assert hub.made == {"me/kuhn": True}
    assert hub.tokens == {"Bearer hf_secret"}
    files = hub.files["me/kuhn"]
    assert files.keys() == {path.name for path in (tmp_path / "out").iterdir()} >= {
        "README.md", "config.json", "curves.png", "merged.json", "model.safetensors", "tokenizer.json",
    }  # fmt: skip
    assert all(content == (tmp_path / "out" / name).read_bytes() for name, content in files.items())
    head, body = card_of(tmp_path / "out")
    assert head["library_name"] == "transformers"
    assert 'model = AutoModelForCausalLM.from_pretrained("me/kuhn")' in body


@pytest.mark.parametrize("token", [True, pytest.param(False, marks=pytest.mark.families)])
def test_what_a_hub_refuses_is_named(
    token: bool, run: Path, tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = r"--push me/kuhn: the hub answers with 403"
    hub.refusal = (403, "Forbidden")
    if not token:
        monkeypatch.delenv("HF_TOKEN")
        monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
        message = "there is no token; set HF_TOKEN"
    with pytest.raises(HubError, match=message):
        publish(run, tmp_path / "out", Form(adapters=True), Push("me/kuhn"), console=quiet())
    # A refusal of the hub comes after the work, which is kept; a token is asked for before it.
    assert (tmp_path / "out" / "README.md").exists() == token


def test_what_is_refused_before_anything_is_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    out = tmp_path / "out"
    with pytest.raises(InvalidValueError, match=r"taken' is there already"):
        publish(run, taken)
    with pytest.raises(InvalidValueError, match=r"--push: 'kuhn' was given, allowed: owner/name"):
        publish(run, out, push=Push("kuhn"))
    with pytest.raises(InvalidValueError, match=r"--gguf: was given with --adapters"):
        publish(run, out, Form(adapters=True, gguf=tmp_path / "m.gguf"))
    monkeypatch.setattr("gamespiel.deployment.publishing.LICENCES", {})
    with pytest.raises(InvalidValueError, match=r"the licence of tiny is not known here; give it: --licence"):
        publish(run, out, push=Push("me/kuhn"))
    assert not out.exists()


def test_the_licence_is_the_bases_own(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert find_licence(str(tmp_path)) == {}
    card = (
        "---\nlanguage: en\nlicense: other\nlicense_name: 'own'\nlicense_link: LICENSE\n---\nlicense: mit\n"
    )
    (tmp_path / "README.md").write_text(card)
    own = {"license": "other", "license_name": "own", "license_link": "LICENSE"}
    assert find_licence(str(tmp_path)) == own
    assert find_licence("Qwen/Qwen3-4B") == {"license": "apache-2.0"}
