"""``gamespiel train --plan``: what it prints, for which card, and its errors."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gamespiel.agents.models.loading import TINY
from gamespiel.agents.models.memory_plan import GIB, cache
from gamespiel.agents.scoring import scorer
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, presets, resolve, save
from gamespiel.training import planning
from tests.consoles import quiet, read_console

ROOT = Path(__file__).parents[2]


def plan(preset: str, card: str = "", **overrides: str) -> str:
    """Returns what is printed, with single spaces."""
    console = quiet(100)
    pairs = [(name.replace("__", "."), value) for name, value in overrides.items()]
    planning.show(resolve(preset, overrides=pairs), card, console)
    return "\n".join(" ".join(line.split()) for line in read_console(console).splitlines())


@pytest.fixture(autouse=True)
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_qwen2_5_3b_in_4_bits() -> None:
    """Weights: 2,774,532,096 linear ones of 4.127 bits, and 311,406,592 others of 16, are 1.91 GiB."""
    text = plan("qwen2.5-3b-12gb")
    assert "Qwen/Qwen2.5-3B-Instruct: 3,085,938,688 parameters, 29,935,617 trained, on a GPU\n" in text
    assert "\nweights (4 bits) 1.91\n" in text
    assert "\noptimizer (two moments of each) 0.22\n" in text
    assert "\nupdate, 8,192 tokens: activations with gradient checkpointing 2." in text
    assert "\n(without gradient checkpointing: 38." in text  # 36 layers of 8,192 tokens of 140,584 bytes
    assert "\ncheckpoint: 0.33 GiB on disk, 1.34 with the 3 that are kept\n" in text
    assert "\npreset peak 12 GiB 16 GiB 24 GiB 80 GiB\n" in text
    assert "as configured" not in text  # it is a preset's own row


def test_a_card_by_its_size() -> None:
    text = plan("qwen3-4b", "12", ppo__tokens_per_backward="1024")
    rows = dict(line.split(" ", 1) for line in text.splitlines() if line.split(" ")[0] in presets())
    assert set(rows) == set(presets())
    assert rows["qwen3-4b-12gb"].endswith("fits") and rows["qwen3-4b-80gb"].endswith("-")
    assert "\npreset peak 12 GiB\nas configured " in text.replace("─", "").replace("\n\n", "\n")


def test_the_card_that_torch_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU plans for any; one with GPUs has to have the one that is named."""
    monkeypatch.setattr(planning, "presets", lambda: ("tiny",))
    any_card = "\npreset peak 12 GiB 16 GiB 24 GiB 80 GiB\n"
    assert any_card in plan("tiny", run__device="cuda:7")
    card = SimpleNamespace(total_memory=int(22.06 * GIB))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    assert "\npreset peak 22.1 GiB\n" in plan("tiny")
    assert "\npreset peak 22.1 GiB\n" in plan("tiny", run__device="cuda:1")
    assert any_card in plan("tiny", run__device="cpu")
    with pytest.raises(InvalidValueError, match=r"run\.device is 'cuda:7', but torch finds 2 GPU here"):
        plan("tiny", run__device="cuda:7")


def test_the_cpu_has_no_context_and_computes_in_float32() -> None:
    text = plan("smollm2-135m", model__dtype="auto", run__device="cpu")
    assert "135M-Instruct: 134,515,008 parameters, 4,885,057 trained, on the CPU\n" in text
    assert "weights (float32) 0.50\n" in text and "CUDA" not in text and "glibc keeps" in text
    assert "weights (bfloat16) 0.25\n" in plan("smollm2-135m", model__dtype="auto")


def test_few_turns_take_less_than_the_budget() -> None:
    """An optimizer step of qwen3-4b has 2 × 8 turns of at most 512 tokens: 8,192, the preset's own budget."""
    text = plan("qwen3-4b", "24", ppo__tokens_per_backward="16384")
    assert "update, 8,192 of 16,384 tokens" in text and "\nas configured 12.81 " in text
    assert "ppo.tokens_per_backward is 16,384. An optimizer step has 16 turns of at most 512 tokens" in text
    text = plan("qwen3-4b", "24", ppo__tokens_per_backward="16384", ppo__mini_batch_size="8")
    assert "update, 16,384 tokens" in text and "An optimizer step" not in text


def test_modules_and_types_that_cannot_be_planned(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"'q_pro' was given, .*did you mean 'q_proj'\?"):
        plan("tiny", lora__target_modules="[q_pro]")
    config = json.loads((TINY / "config.json").read_text()) | {"dtype": "float8_e4m3fn"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidValueError, match=r"saved in float8_e4m3fn; set model.dtype to one of float32"):
        plan("tiny", model__model_name=str(tmp_path))


def test_the_option_plans_instead_of_training(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model has the defaults: with tiny's budget of a million tokens, it would take 224 GiB."""
    monkeypatch.setitem(sys.modules, "gamespiel.training.run", None)  # its import would fail
    assert main(["train", "--plan", "--preset", "qwen3-4b", "--ppo.tokens_per_backward", "1024"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("configuration: preset qwen3-4b, --ppo.tokens_per_backward\nQwen/Qwen3-4B: ")
    assert main(["train", "--plan", "24", "--model.model_name", "Qwen/Qwen3-4B"]) == 0
    said = capsys.readouterr().out
    assert "\nupdate, 4,096 tokens: " in said and "--preset qwen3-4b or --preset qwen3-4b-12gb" in said
    for card in ("few", "0", "nan", "inf"):
        assert main(["train", "--plan", card]) == 2
        assert f"not '{card}'" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--env.opponent", "open"], "training needs an opponent to play against"),
        (["--env.game", "kuhn_pokr"], "'kuhn_pokr'"),
        (["--env.game", "blackjack", "--env.opponent", "self"], "blackjack has one seat"),
        (["--env.game", "hearts", "--env.opponent", "self"], "hearts has returns that do not sum to zero; "),
        (["--run.device", "gpu"], "run.device must be auto, cpu, cuda or cuda:N, not 'gpu'"),
        (["--output_dir", "old"], "run.output_dir 'old' already holds a run"),
        (["--run.init_from", "empty"], "checkpoint: 'empty' was given, which holds none"),
        (["--resume", "old"], "checkpoint: 'old' was given, which holds none"),
        (
            ["--curriculum.success_scores", "{kuhn_pokr: 0.2}", "--curriculum.failure_replay_prob", "0.5"],
            "'kuhn_pokr'",
        ),
    ],
)
def test_a_plan_is_refused_as_the_run_would_be(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    Path("old").mkdir()
    save(resolve("tiny"), "old/config.yaml")
    assert main(["train", "--plan", "12", *options]) == 2
    planned = capsys.readouterr()
    assert message in planned.err and "peak" not in planned.out
    assert main(["train", *options]) == 2
    assert capsys.readouterr().err == planned.err


def test_constants_that_agree() -> None:
    assert planning.REFERENCE_BATCH == scorer.PREPARED_AT_ONCE


def test_conversations_keep_keys_and_values_between_turns() -> None:
    """At most twice a forward's tokens, and no more than the batch's conversations have.

    Qwen3-4B keeps 2 x 2 x 1,024 bytes per token in each of 36 layers.
    """
    talk = {"env.conversation": "true", "env.context_tokens": "4096", "env.task_id": "200000000"}
    for batch, tokens in (("64", 2 * 16_384), ("2", 2 * 4096)):
        overrides = talk | {"ppo.batch_size": batch, "ppo.tokens_per_forward": "16384"}
        load = planning.load_of(resolve("qwen3-4b", overrides=overrides.items()))
        assert load.tokens_kept == tokens
        assert cache(load) - cache(replace(load, tokens_kept=0)) == tokens * 4096 * 36
    padded = talk | {"model.reading": "padded"}
    assert planning.load_of(resolve("qwen3-4b", overrides=padded.items())).tokens_kept == 0
    assert planning.load_of(resolve("qwen3-4b")).tokens_kept == 0
