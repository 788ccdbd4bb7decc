"""A run that was stopped in any way continues as if not; one that diverges goes back, with half the rate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.models.weights import TINY, ModelError
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.update import Update
from gamespiel.config import Config, InvalidValueError, from_dict, resolve, saved_config
from gamespiel.config.schema import DOTTED
from gamespiel.measure.records import read_records
from gamespiel.training.readiness import MAY_CHANGE, check_resumed
from tests.gamespiel.runs import (
    STEPS,
    assert_same_run,
    go_back,
    resume,
    rows_of,
    small,
    steps_of,
    train_aloud,
    train_quietly,
)

pytestmark = [pytest.mark.trains, pytest.mark.sample]


@pytest.mark.parametrize("step", [0, 5])
def test_from_any_step_bit_for_bit(step: int, finished: Path, tmp_path: Path) -> None:
    """The state is that after a kill between the writing of later rows and of their checkpoint."""
    run = go_back(finished, tmp_path / "run", step)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "train/kl')  # a line that the kill interrupted
    assert resume(run) == run
    assert_same_run(run, finished)


def test_a_resumed_run_stays_in_its_folder(finished: Path, tmp_path: Path) -> None:
    """A finished run has nothing left to do, so it stays as it is."""
    moved = shutil.copytree(finished, tmp_path / "moved")
    resume(moved)  # its configuration still names the old folder
    assert_same_run(moved, finished)
    assert saved_config(moved).run.output_dir == str(moved)
    elsewhere = small(tmp_path / "elsewhere")
    with pytest.raises(InvalidValueError, match=r"elsewhere'.*a resumed run stays in"):
        train_quietly(elsewhere, resume=moved)
    assert not (tmp_path / "elsewhere").exists()


def test_a_model_whose_folder_has_moved(tmp_path: Path) -> None:
    """The weights' content says that they are the same."""
    here, there, run = tmp_path / "here", tmp_path / "there", tmp_path / "run"
    shutil.copytree(TINY, here)
    train_quietly(small(run, model__model_name=str(here), ppo__num_train_steps="2"))
    expected = rows_of(run)
    shutil.rmtree(run / "checkpoints" / "step-000002")
    here.rename(there)
    gone = r"here' is not a folder.*\. If the run's model is elsewhere now, .* --model\.model_name NAME"
    with pytest.raises(ModelError, match=gone):
        resume(run)
    train_quietly(asking(run, ("model.model_name", str(there))), resume=run)
    assert rows_of(run) == expected
    assert saved_config(run).model.model_name == str(there)


def asking(finished: Path, *overrides: tuple[str, str]) -> Config:
    return resolve(overrides=overrides, base=saved_config(finished))


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([("env.game", "leduc_poker")], r"env\.game \('kuhn_poker', not 'leduc_poker'\);"),
        ([("ppo.gamma", "0.5"), ("lora.r", "8")], r"lora\.r \(16, not 8\), ppo\.gamma \(1\.0, not 0\.5\);"),
        ([("ppo.num_train_steps", str(STEPS - 1))], "11 was given, and the run goes on after step 12"),
    ],
)
def test_keys_that_decide_what_is_learned_cannot_change(
    overrides: list[tuple[str, str]], named: str, finished: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InvalidValueError, match=named):
        train_quietly(asking(run, *overrides), resume=run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_server_may_have_moved_but_not_be_another_one() -> None:
    assert set(MAY_CHANGE) <= set(DOTTED)
    saved = from_dict({"env_mode": "docker", "task_id": 0})
    moved = [("env.docker_host", "ssh://a@b"), ("env.mem_limit", "2g"), ("run.env_workers", "2")]
    check_resumed(resolve(overrides=moved, base=saved), saved, 0)
    with pytest.raises(InvalidValueError, match=r"keeps env\.image \(None, not 'mine'\)"):
        check_resumed(resolve(overrides=[("env.image", "mine")], base=saved), saved, 0)


def test_a_finished_run_may_be_given_more_or_fewer_steps_and_other_token_budgets(
    finished: Path, tmp_path: Path
) -> None:
    """Its games from before and after training are kept."""
    run = shutil.copytree(finished, tmp_path / "run")
    assert [row["step"] for row in read_records(run)] == [0] * 6 + [STEPS] * 6
    budgets = [("ppo.tokens_per_forward", "500"), ("ppo.tokens_per_backward", "200")]
    more = ("ppo.num_train_steps", str(STEPS + 1))
    train_quietly(asking(run, *budgets, more), resume=run)
    assert [row["step"] for row in read_records(run)] == [0] * 6 + [STEPS + 1] * 6
    rows = rows_of(run)
    assert rows[:STEPS] == rows_of(finished)
    assert [row["step"] for row in rows[STEPS:]] == [STEPS + 1]
    assert saved_config(run).ppo.num_train_steps == STEPS + 1
    assert (rows[-1]["train/tokens_per_forward"], rows[-1]["train/tokens_per_backward"]) == (500, 200)
    fewer = asking(run, ("ppo.num_train_steps", "6"), ("run.eval_games", "0"), ("run.exact_every", "0"))
    train_quietly(fewer, resume=f"{run}@4")
    assert steps_of(run) == list(range(7)) and [row["step"] for row in rows_of(run)] == list(range(1, 7))


def test_a_resumed_run_has_as_many_threads_as_before(finished: Path, tmp_path: Path) -> None:
    """Its checkpoint had one. Another number is said."""
    assert saved_config(finished).run.num_threads == 1
    run = shutil.copytree(finished, tmp_path / "run")
    said = "the checkpoint had threads=1 and this run has 2: it goes on, but not bit for bit"
    for asked, threads in (("2", 2), ("null", 1)):
        torch.set_num_threads(2)
        shown = train_aloud(asking(run, ("run.num_threads", asked)), resume=run)[1]
        assert torch.get_num_threads() == threads and (said in shown) == (threads == 2)
        torch.set_num_threads(1)


def test_without_the_summary_how_it_began_is_unknown(finished: Path, tmp_path: Path) -> None:
    """A trained policy's measures must not be shown as the untrained one's."""
    run = shutil.copytree(finished, tmp_path / "run")
    (run / "summary.json").unlink()
    resume(run)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["before"] == {} and summary["after"]["score"] > 0


def test_an_older_checkpoint_does_not_overtake_later_ones(finished: Path) -> None:
    advice = r"step-000012 lies beside it and would be overtaken; .*@3, which moves the later ones aside"
    with pytest.raises(CheckpointError, match=advice):
        train_quietly(saved_config(finished), resume=finished / "checkpoints" / "step-000003")


# -- divergence --------------------------------------------------------------------------------------------


RATE = resolve("tiny").ppo.learning_rate
SHORT = 8
UNMEASURED = {"ppo__num_train_steps": str(SHORT), "run__eval_games": "0", "run__exact_every": "0"}


def list_rates() -> Any:
    """Returns the rates of the steps: the preset's falls to 0 linearly, and is halved from step 4 on."""
    rates = [RATE * (SHORT - step) / SHORT for step in range(SHORT)]
    return pytest.approx([*rates[:4], *(rate / 2 for rate in rates[4:])])


def losses_break(monkeypatch: pytest.MonkeyPatch, first: int, above: float) -> None:
    """Makes the loss NaN from step ``first`` on, at learning rates above ``above``."""
    loss = Update.sum_terms

    def instead(self: Update, *args: Any) -> Any:
        broken = self.step >= first and self.optimizer.param_groups[0]["lr"] > above
        return loss(self, *args) * (torch.nan if broken else 1.0)

    monkeypatch.setattr(Update, "sum_terms", instead)


def test_back_to_the_checkpoint_with_half_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates per step: the third that fails is step 6's first, and the last checkpoint is after step 4.

    The rate of steps 5 and 6 is 4/8 and 3/8 of the preset's, so half of it is below 0.3. A kill changes
    nothing if it comes when the checkpoint's state is written, and metrics are not cut yet.
    """
    losses_break(monkeypatch, first=4, above=0.3 * RATE)
    run, text = train_aloud(small(tmp_path / "run", run__checkpoint_every="2", **UNMEASURED))
    struck = tmp_path / "struck"
    assert "step 5: an update whose loss or gradient is not finite was skipped" in text
    said = "step 6: the loss or the gradient of 3 updates in a row is not finite: back to the checkpoint"
    assert f"{said} after step 4, with 0.5 of the learning rate" in text
    rows = rows_of(run)
    assert [row["step"] for row in rows] == list(range(1, SHORT + 1))
    assert [row["train/learning_rate"] for row in rows] == list_rates()
    assert sum(row["train/skipped_updates"] for row in rows) == 0  # those that failed were cut off
    state = json.loads((checkpoint.find(run) / "state.json").read_text())
    assert state["backoff"] == {"rate_factor": 0.5, "step": 5, "halvings": 1}

    def kill(*args: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="killed"):
        patch.setattr(checkpoint, "remove_after", kill)
        train_quietly(small(struck, run__checkpoint_every="2", **UNMEASURED))
    assert_same_run(resume(struck), run)


def test_weights_that_are_useless_in_play_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 5 makes weights so large that activations overflow.

    Their checkpoint is removed, and step 5 is made again from step 4.
    """
    update = Update.run

    def ruinous(self: Update) -> Any:
        means = update(self)
        actor = self.optimizer.param_groups[0]
        if self.step == 4 and actor["lr"] > 0.4 * RATE:
            with torch.no_grad():
                actor["params"][1].fill_(3e38)
        return means

    monkeypatch.setattr(Update, "run", ruinous)
    run, text = train_aloud(small(tmp_path / "run", **UNMEASURED))
    assert "step 6: the model's logits are not finite" in text and "the checkpoint after step 4" in text
    assert [row["train/learning_rate"] for row in rows_of(run)] == list_rates()
    assert steps_of(run) == list(range(SHORT + 1))
    for folder in checkpoint.checkpoints(run):
        weights = load_file(folder / "adapter" / "adapter_model.safetensors")
        assert all((value.abs() < 1e20).all() for value in weights.values())


def test_it_gives_up_after_five_halvings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses_break(monkeypatch, first=2, above=0.0)
    run = tmp_path / "run"
    with pytest.raises(DivergedError, match=r"after each of 5 halvings .*ppo\.learning_rate"):
        train_quietly(small(run, **UNMEASURED))
    state = json.loads((checkpoint.find(run) / "state.json").read_text())
    assert state["backoff"] == {"rate_factor": 1 / 32, "step": 3, "halvings": 5}


def test_a_base_that_is_useless_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def useless(self: LLMPPO, *args: object) -> bool:
        raise DivergedError("step 1: the model's logits are not finite", self.step, in_play=True)

    monkeypatch.setattr(LLMPPO, "collect_rollouts", useless)
    with pytest.raises(DivergedError, match=r"not finite, and there is no checkpoint"):
        train_quietly(small(tmp_path / "run", **UNMEASURED))
