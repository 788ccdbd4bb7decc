"""A third kind of task is one file: every command finds it with no other file changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = """
import contextlib, io, json, sys
from gamespiel.cli import main

def run(line):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(line.split())
        except SystemExit as stop:
            status = stop.code
    return status, " ".join(out.getvalue().split()), err.getvalue().strip()

print(json.dumps({line: run(line) for line in json.load(sys.stdin)}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package ``gamespiel``: links to its files, and beside the kinds one more."""
    kinds = tmp_path / "gamespiel" / "kinds"
    kinds.mkdir(parents=True)
    for folder in (Path("gamespiel"), Path("gamespiel", "kinds")):
        for path in (ROOT / folder).iterdir():
            if path.name not in ("kinds", "__pycache__"):
                (tmp_path / folder / path.name).symlink_to(path)
    (kinds / "duels.py").symlink_to(Path(__file__).with_name("duels.py"))
    return tmp_path


def results(package: Path, lines: list[str]) -> dict[str, tuple[int, str, str]]:
    """Returns the status, output and errors of each command, all run by one process."""
    path = os.pathsep.join([str(package), str(ROOT)])
    process = subprocess.run(
        [sys.executable, "-P", "-c", COMMANDS],
        input=json.dumps(lines), capture_output=True, text=True, check=True, cwd=package,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    found: dict[str, tuple[int, str, str]] = json.loads(process.stdout)
    return found


REFUSED = {
    # Keys of one kind choose no tasks of another, in either direction.
    "train --env duel --env.game hex": "env.game = 'hex' chooses games, and env.env_type is 'duel': "
    "leave it out, or set env.env_type to 'openspiel'",
    "train --env trace --env.round 1": "env.round = 1 chooses duels, and env.env_type is 'trace': "
    "leave it out, or set env.env_type to 'duel'",
    # The kind's declarations of its keys.
    "train --env duel --env.table small --env.task_id 3": "only one key may choose the duels, "
    "not env.task_id and env.table",
    "train --env duel --env.round 1": "env.round needs env.table",
    "train --env duel --env.table smal": "--env.table must be one of 'small', 'large' or null, not 'smal'",
    "eval --env duel --agent high --env.rival open": "evaluation needs a rival",
    "train --env duel --env.rival open": "training needs a rival",
    # Its name and its baselines'.
    "train --env duek": "--env.env_type must be one of 'duel', 'openspiel', 'trace', not 'duek'; "
    "did you mean 'duel'?",
    "eval --env duel --agent mcts": "--agent must be low or high with --env duel, not 'mcts'",
    "eval --env duel --agent low --exact": "--exact is for games small enough to enumerate, not for duels",
}
EVAL = "eval --env duel --env.table large --opponent mcts --agent high --num_episodes 4 --output out.json"
TRAIN = (
    "train --env duel --env.table small --output_dir run --run.device cpu --run.eval_games 2 "
    "--ppo.num_train_steps 1 --ppo.batch_size 4"
)


@pytest.mark.launch
def test_every_command_finds_it(package: Path) -> None:
    found = results(package, [*REFUSED, "eval --help", "schema", EVAL, TRAIN])
    assert {line: found[line][2].removeprefix("gamespiel: ") for line in REFUSED} == REFUSED
    assert {found[line][0] for line in REFUSED} == {2}

    shown = found["eval --help"][1]
    assert "duel or openspiel or trace, the same as --env.env_type" in shown
    assert "with --env duel: low or high; with --env openspiel: random, first" in shown
    assert "--env.rival duels: who plays the other seats; text [first]" in shown
    assert "kind of task: duels or games or traces" in shown
    keys = json.loads(found["schema"][1])["$defs"]["EnvConfig"]["properties"]
    assert keys["table"]["default"] is None and keys["env_type"]["default"] == "openspiel"

    status, printed, error = found[EVAL]
    assert status == 0, error
    assert "env.opponent = 'mcts' has no effect on duels." in printed
    assert "playing 4 duels" in printed and "high on the large table: 4 duels" in printed
    written = json.loads((package / "out.json").read_text())
    assert written["games"] == ["duel"]
    assert (written["env"]["table"], written["env"]["rival"]) == ("large", "first")
    assert written["sampled"]["all"]["episodes"] == 4

    status, printed, error = found[TRAIN]
    assert status == 0, error
    assert "before training: playing 2 duels" in printed
    assert len((package / "run" / "metrics.jsonl").read_text().splitlines()) == 1
