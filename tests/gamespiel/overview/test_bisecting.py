"""The first decision at which two runs part."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamespiel.cli import main
from gamespiel.config import InvalidValueError
from gamespiel.overview.bisecting import find_first_decision, play_again
from gamespiel.overview.comparing import find_parting
from gamespiel.overview.reading import read_run
from tests.gamespiel.runs import rows_of, small, train_quietly

SHORT = {"ppo__num_train_steps": "3", "run__eval_games": "0", "run__exact_every": "0"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_quietly(small(folder / "a", **SHORT))
    train_quietly(small(folder / "rate", **SHORT, ppo__learning_rate="0.02"))
    train_quietly(small(folder / "first", **SHORT, env__opponent="first"))
    return folder


def test_a_step_is_played_again_as_it_was(runs: Path) -> None:
    run = read_run(runs / "a")
    rows, files = rows_of(run.folder), sorted(run.folder.rglob("*"))
    for step in (1, 3):
        made = play_again(run, step)
        # Six episodes, of which each turn is a decision; the metric counts all that came before.
        before = rows[step - 2]["decisions"] if step > 1 else 0
        assert len(made) == rows[step - 1]["decisions"] - before
        assert {decision.episode for decision in made} == set(range(6))
        assert all("kuhn_poker" in decision.prompt for decision in made)
    assert sorted(run.folder.rglob("*")) == files and rows_of(run.folder) == rows
    with pytest.raises(InvalidValueError, match=r"--bisect: .* has no checkpoint before step 0"):
        play_again(run, 0)


def test_another_rate_makes_other_decisions_one_step_later(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = read_run(runs / "a"), read_run(runs / "rate")
    parting = find_parting(first, second)
    assert parting is not None and parting.step == 1  # the rate is in the metrics
    assert find_first_decision(first, second, 1) is None
    assert main(["compare", str(runs / "a"), str(runs / "rate"), "--bisect"]) == 0
    assert "all decisions of step 1 are equal" in " ".join(capsys.readouterr().out.split())


def test_another_opponent_is_seen_at_the_first_turn_that_differs(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = find_first_decision(read_run(runs / "a"), read_run(runs / "first"), 1)
    assert found is not None
    own, other = found
    # Seeds and the policy are the same: another prompt, or a turn that is not there.
    assert own is None or other is None or own.prompt != other.prompt
    assert main(["compare", str(runs / "a"), str(runs / "first"), "--bisect"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the first decision that differs: episode " in said and "is asked:" in said
