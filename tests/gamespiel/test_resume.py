"""Resuming: a run that was stopped in any way continues as if it had not been stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gamespiel import callbacks, training
from gamespiel.agents.models.weights import TINY, ModelError
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.cli import main
from gamespiel.config import Config, InvalidValueError, from_dict, resolve, saved_config
from gamespiel.config.resume import MAY_CHANGE, check_resumed
from gamespiel.config.schema import DOTTED
from tests.gamespiel.launches import ROUNDED, adapter_distance
from tests.gamespiel.runs import (
    ROOT,
    STAGED,
    STEPS,
    assert_same_run,
    quiet,
    rows_of,
    small,
    staged,
    steps_of,
    train_command,
    train_quietly,
)


def resume(run: Path) -> Path:
    return train_quietly(saved_config(run), resume=run)


@pytest.mark.parametrize("step", [0, 5])
def test_from_any_step_bit_for_bit(step: int, finished: Path, tmp_path: Path) -> None:
    """The state is that after a kill between the writing of later rows and of their checkpoint."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for later in checkpoint.checkpoints(run)[step + 1 :]:
        shutil.rmtree(later)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "train/kl')  # a line that the kill interrupted
    assert resume(run) == run
    assert_same_run(run, finished)


def test_ctrl_c_stops_after_the_last_whole_step(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real signal comes when the fourth step is shown: the fifth is begun, dropped and played again."""
    write = callbacks.DisplayWriter.write

    def interrupting(self: callbacks.DisplayWriter, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        if self._model.step == 4:
            signal.raise_signal(signal.SIGINT)

    console, run = quiet(), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(callbacks.DisplayWriter, "write", interrupting)
        with pytest.raises(KeyboardInterrupt):
            training.train(small(run, run__checkpoint_every="100"), console=console)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"stopped after step 4 of {STEPS}" in said and said.count("Ctrl-C once more stops at once") == 1
    assert steps_of(run) == [0, 4]
    assert rows_of(run) == rows_of(finished)[:4]
    resume(run)
    assert_same_run(run, finished)


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupting(self: callbacks.DisplayWriter, *args: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(callbacks.DisplayWriter, "write", interrupting)
    with pytest.raises(KeyboardInterrupt):
        train_quietly(small(tmp_path / "run", run__eval_games="0"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert steps_of(tmp_path / "run") == [0]  # not even the checkpoint of the first step


def test_a_resumed_run_stays_in_its_folder(finished: Path, tmp_path: Path) -> None:
    """A finished run has nothing left to do, so it stays as it is."""
    moved = tmp_path / "moved"
    shutil.copytree(finished, moved)
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
    train_quietly(small(run, model__model_name=str(here), ppo__num_train_steps="3"))
    expected = rows_of(run)
    shutil.rmtree(run / "checkpoints" / "step-000003")
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
        ([("ppo.num_train_steps", str(STEPS - 1))], "it is 12, 11 was given"),
    ],
)
def test_keys_that_decide_what_is_learned_cannot_change(
    overrides: list[tuple[str, str]], named: str, finished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InvalidValueError, match=named):
        train_quietly(asking(run, *overrides), resume=run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_every_key_that_a_resumed_run_may_change_is_one() -> None:
    assert set(MAY_CHANGE) <= set(DOTTED)


def test_a_server_may_have_moved_but_not_be_another_one() -> None:
    saved = from_dict({"env_mode": "docker", "task_id": 0})
    moved = [("env.docker_host", "ssh://a@b"), ("env.mem_limit", "2g"), ("run.env_workers", "2")]
    check_resumed(resolve(overrides=moved, base=saved), saved)
    with pytest.raises(InvalidValueError, match=r"keeps env\.image \(None, not 'mine'\)"):
        check_resumed(resolve(overrides=[("env.image", "mine")], base=saved), saved)


def test_a_finished_run_may_be_given_more_steps_and_other_token_budgets(
    finished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    budgets = [("ppo.tokens_per_forward", "500"), ("ppo.tokens_per_backward", "200")]
    more = [("ppo.num_train_steps", str(STEPS + 1)), ("run.eval_games", "0")]
    train_quietly(asking(run, *budgets, *more), resume=run)
    rows = rows_of(run)
    assert rows[:STEPS] == rows_of(finished)
    assert [row["step"] for row in rows[STEPS:]] == [STEPS + 1]
    assert saved_config(run).ppo.num_train_steps == STEPS + 1
    assert (rows[-1]["train/tokens_per_forward"], rows[-1]["train/tokens_per_backward"]) == (500, 200)


@pytest.mark.trains
def test_two_threads_add_up_in_one_order_and_change_no_more_than_rounding(tmp_path: Path) -> None:
    """Gradients of prompts that repeat are summed; in large sums, threads could race."""
    leduc = {"env__game": "leduc_poker", "ppo__batch_size": "1024", "ppo__mini_batch_size": "2048"}
    leduc |= {"ppo__num_train_steps": "2", "ppo__ppo_epochs": "1"}
    leduc |= {"run__eval_games": "0", "run__exact_every": "0"}
    whole = train_quietly(small(tmp_path / "whole", **leduc))
    runs, before = [tmp_path / "first", tmp_path / "second"], torch.get_num_threads()
    for run in runs:
        shutil.copytree(whole, run)
        train_quietly(asking(run, ("run.num_threads", "2")), resume=Path(f"{run}@1"))
        assert torch.get_num_threads() == 2
        torch.set_num_threads(before)
    assert_same_run(*runs)
    rewards = [rows_of(run)[1]["rollout/reward"] for run in (runs[0], whole)]
    assert rewards[0] == pytest.approx(rewards[1], abs=0.01)
    assert adapter_distance(runs[0], whole) < ROUNDED


def start(run: Path, until: int, **more: str) -> subprocess.Popen[str]:
    """Starts ``python train.py`` in another process; returns it when it has logged ``until`` steps."""
    process = subprocess.Popen(
        train_command(run, **more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    metrics = run / "metrics.jsonl"
    deadline = time.monotonic() + 600
    while not metrics.exists() or metrics.read_text().count("\n") < until:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.002)
    return process


@pytest.mark.launch
def test_sigint_leaves_a_checkpoint_from_which_the_command_line_goes_on(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    process = start(run, until=2, run__checkpoint_every="100")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    (first, stopped) = steps_of(run)
    assert process.returncode == 130  # 128 + SIGINT, as for a shell command that Ctrl-C ended
    assert first == 0 and 2 <= stopped < STEPS
    assert f"stopped after step {stopped} of {STEPS}" in output and "gamespiel: interrupted" in output
    assert "Traceback" not in output
    assert rows_of(run) == rows_of(finished)[:stopped]
    assert main(["train", "--resume", str(run)]) == 0
    assert_same_run(run, finished)
    capsys.readouterr()
    assert main(["eval", "--checkpoint", str(run), "--num_episodes", "5"]) == 0
    # If the run's path is long, the title wraps between any two words.
    assert "against random" in " ".join(capsys.readouterr().out.split())
    assert (run / "eval-sampled-kuhn_poker-random.json").is_file()


@pytest.mark.launch
def test_sigkill_loses_no_more_than_the_steps_since_the_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run has a curriculum, whose stages and failures go back with the checkpoint.

    As long as the process trains, another one does not go on with its run; a kill releases it at once.
    """
    run, more = tmp_path / "run", {"run__checkpoint_every": "3"}
    whole = train_quietly(staged(tmp_path / "whole", **more))
    process = start(run, until=5, **more, **{name.replace(".", "__"): text for name, text in STAGED.items()})
    process.send_signal(signal.SIGSTOP)  # or it might end before it is killed
    before = (run / "config.yaml").read_text()
    assert main(["train", "--resume", str(run), "--run.device", "cpu"]) == 2
    assert f"gamespiel: run '{run}' is in use: another run is training there" in capsys.readouterr().err
    assert process.poll() is None and (run / "config.yaml").read_text() == before
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    logged, kept = len(read_rows(run / "metrics.jsonl")), steps_of(run)[-1]
    assert kept in (3, 6, 9) and logged >= kept
    assert rows_of(run) == rows_of(whole)[:logged]
    resume(run)
    assert_same_run(run, whole)


def test_without_the_summary_how_it_began_is_unknown(finished: Path, tmp_path: Path) -> None:
    """A trained policy's measures must not be shown as the untrained one's."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "summary.json").unlink()
    resume(run)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["before"] == {} and summary["after"]["score"] > 0


@pytest.mark.launch
def test_a_curriculum_killed_at_twenty_moments_is_the_run_that_was_not(tmp_path: Path) -> None:
    """Checkpoints come every third step, so some kills fall between a promotion and its checkpoint.

    A fourth stage and a demotion make changes of the stage frequent.
    """
    names = ("first", "random", "mcts:2", "random")
    stages = [
        {"name": f"{i}", "opponent": name, "threshold": 0.5, "min_episodes": 6}
        for i, name in enumerate(names)
    ]
    settings = {
        "curriculum__stages": json.dumps(stages), "curriculum__demote": "0.45",
        "curriculum__progression_window": "6", "ppo__num_train_steps": "90", "run__checkpoint_every": "3",
        "ppo__ppo_epochs": "1",
    }  # fmt: skip
    whole, killed = train_quietly(staged(tmp_path / "whole", **settings)), tmp_path / "killed"
    arguments = [str(killed), "20", "7", json.dumps(settings)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.gamespiel.killing", *arguments],
        cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    left = json.loads(ended.stdout.splitlines()[-1])
    assert len(left) == 20
    assert any(kill["logged_stage"] != kill["stage"] for kill in left if kill["stage"] is not None)
    assert_same_run(killed, whole)
    changes = json.loads((checkpoint.find(whole) / checkpoint.SAMPLERS).read_text())["curriculum"]["events"]
    assert {event["event"] for event in changes} == {"promoted", "demoted"}


def test_an_older_checkpoint_does_not_overtake_later_ones(finished: Path) -> None:
    with pytest.raises(CheckpointError, match="step-000012 lies beside it and would be overtaken"):
        train_quietly(saved_config(finished), resume=finished / "checkpoints" / "step-000003")


def test_another_number_of_threads_plays_the_same_and_learns_the_same_to_a_millionth(tmp_path: Path) -> None:
    """Sums are added in another order from the step on at which the run goes on."""
    leduc = {"env__game": "leduc_poker", "ppo__batch_size": "64", "ppo__mini_batch_size": "100"}
    leduc |= {"ppo__num_train_steps": "4", "run__eval_games": "0", "run__exact_every": "0"}
    whole = train_quietly(small(tmp_path / "whole", **leduc))
    run, before = tmp_path / "run", torch.get_num_threads()
    shutil.copytree(whole, run)
    train_quietly(asking(run, ("run.num_threads", "2")), resume=Path(f"{run}@2"))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    for own, expected in zip(rows_of(run), rows_of(whole), strict=True):
        assert own == pytest.approx(expected, abs=1e-6, rel=1e-6), own["step"]
        drawn = ("rollout/reward", "rollout/episodes", "rollout/tokens_per_decision", "decisions")
        assert [own[name] for name in drawn] == [expected[name] for name in drawn]
    left, right = (
        load_file(checkpoint.find(folder) / "adapter" / "adapter_model.safetensors")
        for folder in (run, whole)
    )
    assert all(torch.allclose(left[name], right[name], rtol=0, atol=1e-6) for name in right)
