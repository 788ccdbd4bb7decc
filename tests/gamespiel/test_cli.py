"""The command line: the arguments that it passes on, its errors, and how its threads wait."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from gamespiel import torch_environ
from gamespiel.cli import COMMANDS, main
from gamespiel.config import Config, from_dict, presets, resolve, save
from gamespiel.config.schema import KEYS, file_schema
from gamespiel.measure.options import EvalOptions
from gamespiel.stopping import Stopped
from gamespiel.usage import command
from task_gym.errors import OpponentError

ROOT = Path(__file__).parents[2]
Calls = list[Any]
Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Replaces the modules that do the work; returns the list of their calls."""
    call_list: Calls = []
    training, evaluation = (
        types.ModuleType("gamespiel.training.run"),
        types.ModuleType("gamespiel.measure.evaluation"),
    )
    training.train = lambda config, resume=None: call_list.append((config, resume))  # type: ignore[attr-defined]
    evaluation.evaluate = call_list.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gamespiel.training.run", training)
    monkeypatch.setitem(sys.modules, "gamespiel.measure.evaluation", evaluation)
    return call_list


def test_train_is_of_the_tiny_preset_with_overrides(calls: Calls) -> None:
    assert main(["train"]) == 0
    options = ["--seed", "3", "--output_dir", "x", "--game", "kuhn_poker", "--opponent", "mcts:9"]
    assert main(["train", "--ppo.learning_rate", "2e-5", *options, "--run.init_from=a=b"]) == 0
    expected = [
        ("ppo.learning_rate", "2e-5"), ("run.seed", "3"), ("run.output_dir", "x"), ("env.game", "kuhn_poker"),
        ("env.opponent", "mcts:9"), ("run.init_from", "a=b"),
    ]  # fmt: skip
    assert calls == [(resolve("tiny"), None), (resolve("tiny", overrides=expected), None)]
    assert (calls[1][0].run.seed, calls[1][0].env.task_id) == (3, None)


def test_eval_of_a_checkpoint_and_of_an_agent(calls: Calls, tmp_path: Path) -> None:
    save(from_dict({"game": "leduc_poker", "gamma": 0.5}), tmp_path / "config.yaml")
    options = ["--checkpoint", str(tmp_path), "--opponent", "mcts:10", "--exact", "--env.rules=false"]
    assert main(["eval", *options, "--output", "result.json"]) == 0
    main(["eval", "--agent", "mcts:100", "--num_episodes", "20", "--seed", "4", "--greedy"])
    config = from_dict({"game": "leduc_poker", "gamma": 0.5, "opponent": "mcts:10", "rules": False})
    assert calls == [
        EvalOptions(config, checkpoint=tmp_path, exact=True, output=Path("result.json")),
        EvalOptions(
            resolve("tiny", overrides=[("run.seed", "4")]), agent="mcts:100", num_episodes=20, greedy=True
        ),
    ]


def test_resume_and_from_take_the_runs_own_config(calls: Calls, tmp_path: Path) -> None:
    """``--from`` has a folder of its own."""
    save(from_dict({"gamma": 0.5, "seed": 9, "output_dir": "old"}), tmp_path / "config.yaml")
    (tmp_path / "mine.json").write_text('{"output_dir": "of a file"}')
    for flag in ("--resume", "--resume_from"):
        main(["train", flag, str(tmp_path), "--ppo.num_train_steps", "7"])
    main(["train", "--from", str(tmp_path), "--env.game", "kuhn_poker", "--seed", "1"])
    main(["train", "--from", str(tmp_path), "--output_dir", "new"])
    main(["train", "--from", str(tmp_path), "--config", str(tmp_path / "mine.json")])
    resumed = from_dict({"gamma": 0.5, "seed": 9, "output_dir": "old", "num_train_steps": 7})
    start = {"gamma": 0.5, "init_from": str(tmp_path)}
    assert calls[:2] == [(resumed, tmp_path)] * 2
    assert calls[2:] == [
        (from_dict(start | {"game": "kuhn_poker", "seed": 1}), None),
        (from_dict(start | {"seed": 9, "output_dir": "new"}), None),
        (from_dict(start | {"seed": 9, "output_dir": "of a file"}), None),
    ]


def test_another_model_trains_with_the_defaults_on_the_presets_tasks(calls: Calls, capsys: Capsys) -> None:
    """The learning rate of tiny, 0.004, would destroy a pretrained model."""
    assert main(["train", "--model.model_name", "some/model", "--ppo.batch_size", "16"]) == 0
    expected = from_dict({"model_name": "some/model", "batch_size": 16, "task_id": 200000000})
    assert calls == [(expected, None)] and expected.ppo.learning_rate == 1e-5
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "configuration: defaults for pretrained models, tasks of preset tiny, "
        "--model.model_name, --ppo.batch_size"
    )
    assert "some/model takes the defaults: " in lines[-1]
    assert "ppo.learning_rate 1e-05, " in lines[-1] and "batch_size 8" not in lines[-1]
    # With another choice of tasks, with a preset, and with tiny itself; an evaluation gets no preset either.
    calls.clear()
    for more in (["--env.game", "hex"], ["--env", "trace"], ["--preset", "tiny"]):
        main(["train", "--model.model_name", "some/model", *more])
    main(["train", "--model.model_name", "tiny"])
    main(["eval", "--model.model_name", "some/model", "--env.game", "hex"])
    hexed, traced, named, tiny, evaluated = calls
    assert hexed == (from_dict({"model_name": "some/model", "game": "hex"}), None)
    assert evaluated.config == hexed[0]
    assert (traced[0].env.family, traced[0].env.task_ids) == ("classes", ((0, 479999),))
    assert traced[0].ppo.learning_rate == 1e-5
    assert named[0].ppo.learning_rate == 4e-3 and tiny == (resolve("tiny"), None)


PLAYERS = "--agent must be random, first, or mcts or ismcts, also with :SIMS[xROLLOUTS]; or openai:MODEL@URL"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train --learning_rate 1", "unknown option '--learning_rate'; did you mean '--ppo.learning_rate'?"),
        ("train --ppo.gamma", "option --ppo.gamma needs a value"),
        ("train --ppo.gamma --seed 3", "option --ppo.gamma needs a value"),
        ("train --ppo.gamma -1", "--ppo.gamma must be above 0 and at most 1, not -1.0"),
        ("train --resume /no/such", "no such run or checkpoint folder: '/no/such'"),
        (
            "eval",
            "who is evaluated? give --checkpoint RUN, --agent NAME, or a model with --model.model_name NAME",
        ),
        ("train --from . --preset tiny", "--preset cannot go with --from: the run's own configuration holds"),
        ("eval --agent oracle", f"{PLAYERS}, not 'oracle'; oracle goes with --env trace"),
        (
            "eval --env trace --agent mcts",
            "--agent must be oracle, empty, echo (replies), or random, first (choices); or "
            "openai:MODEL@URL with --env trace, not 'mcts'",
        ),
        ("eval --agent first --num_episodes 0", "--num_episodes must be at least 1, not 0"),
        ("eval --agent first --output a.txt", "--output must end in .json, not 'a.txt'"),
        ("train --help gama", "unknown section or key 'gama'; did you mean 'ppo.gamma'?"),
        ("schema --ppo.gamma 1", "unknown option '--ppo.gamma'; allowed: -h, --help, --version"),
        ("", f"no command was given; allowed: {', '.join(COMMANDS)}"),
        ("trian", f"unknown command 'trian'; did you mean 'train'? allowed: {', '.join(COMMANDS)}"),
        ("train tiny", "unknown argument 'tiny'; did you mean '--preset tiny'?"),
        ("play kuhn_poker", "unknown argument 'kuhn_poker'; did you mean '--game kuhn_poker'?"),
        ("train quickly", "unknown argument 'quickly'; what is given has an option before it, as --seed 1"),
        ("train --steps 5", "unknown option '--steps'; did you mean '--ppo.num_train_steps'?"),
    ],
)
def test_errors_are_one_line_and_status_2(line: str, message: str, calls: Calls, capsys: Capsys) -> None:
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"gamespiel: {message}\n")
    assert calls == []


def test_errors_of_the_work_itself(calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """A named error or one of a file is one line; any other error is a defect and keeps its traceback."""

    def fail(error: BaseException) -> int:
        def train(config: Config, resume: Path | None = None) -> None:
            raise error

        monkeypatch.setattr(sys.modules["gamespiel.training.run"], "train", train)
        return main(["train"])

    assert fail(OpponentError("unknown\nopponent")) == 2
    assert capsys.readouterr().err == "gamespiel: unknown opponent\n"
    assert fail(OSError(errno.ENOSPC, "No space left on device", "run/metrics.jsonl")) == 2
    assert capsys.readouterr().err == "gamespiel: 'run/metrics.jsonl': No space left on device\n"
    assert (fail(KeyboardInterrupt()), fail(Stopped(signal.SIGTERM))) == (130, 143)
    assert capsys.readouterr().err == "gamespiel: interrupted\ngamespiel: stopped by SIGTERM\n"
    with pytest.raises(RuntimeError, match="defect"):
        fail(RuntimeError("defect"))
    for code in (errno.ECONNREFUSED, errno.EPIPE):  # of a server, or of a worker's pipe
        with pytest.raises(OSError, match="not of a file"):
            fail(OSError(code, "not of a file"))


def read_help(line: str, capsys: Capsys) -> str:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(line.split())
    return capsys.readouterr().out


def test_help_names_every_command_preset_and_key(capsys: Capsys) -> None:
    listed = [line.split()[0] for line in read_help("--help", capsys).splitlines() if line.startswith("  ")]
    assert set(COMMANDS) <= set(listed)
    words = " ".join(read_help("train --help", capsys).split())
    assert f"presets: {', '.join(presets())} configuration" in words  # none is marked as not built
    for section, keys in KEYS.items():
        text = read_help(f"eval --help {section}", capsys)
        assert re.findall(r"^  --(\S+)$", text, re.MULTILINE) == [f"{section}.{key}" for key in keys]
        assert max(map(len, text.splitlines())) <= 80
    for line in ("--help gamma", "train --help ppo.gamma", "schema -h gamma"):
        assert read_help(line, capsys).startswith("  --ppo.gamma\n      discount; a number [1.0]\n")


def test_hints_name_the_command_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for started, expected in (
        ("../game/train.py", "python ../game/eval.py"),
        ("/usr/bin/gamespiel", "gamespiel eval"),
        ("/lib/gamespiel/__main__.py", "python -m gamespiel eval"),
        ("", "gamespiel eval"),
    ):
        monkeypatch.setattr("sys.argv", [started])
        assert command("eval") == expected


@pytest.mark.launch
@pytest.mark.sample
def test_output_in_another_encoding_and_without_a_reader() -> None:
    """The schema has the sign "×", which ASCII lacks; and a pipe without a reader fails at the first byte."""
    schema = [sys.executable, "-m", "gamespiel", "schema"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(schema, env=ascii_only, capture_output=True, check=True)
    assert json.loads(done.stdout.decode("ascii")) == file_schema()
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(schema, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, b"")


# -- what PyTorch reads when it is imported -----------------------------------------------------------------


def prepare(cores: int, others: float | None, environ: dict[str, str], patch: pytest.MonkeyPatch) -> Any:
    """Returns the environment that a command makes, with 2 of so many cores, beside so many threads."""
    patch.setattr(torch_environ, "count_running", lambda: others)
    patch.setattr(torch_environ, "count_cores", lambda: 2)
    patch.setattr(os, "cpu_count", lambda: cores)
    patch.setattr(os, "environ", environ)
    with pytest.raises(SystemExit):
        main(["--version"])
    return environ


def test_pages_are_large_and_threads_spin_if_cores_are_free_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container has 2 of 16 cores: 14 threads beside it leave them free, and 15 do not."""
    file = tmp_path / "loadavg"  # whose fourth field counts the reader too
    for text, running in (
        ("0.50 0.40 0.30 3/210 4711\n", 2),
        ("", None),
        ("0.5 0.4 0.3 many/210 4711", None),
    ):
        file.write_text(text)
        assert torch_environ.count_running(file) == running
    assert torch_environ.count_running(tmp_path / "absent") is None
    pages = {"THP_MEM_ALLOC_ENABLE": "1"}
    passive = pages | {"OMP_WAIT_POLICY": "PASSIVE"}
    for cores, others in ((2, 0), (2, 0.2), (16, 14)):
        assert prepare(cores, others, {}, monkeypatch) == passive | {"GOMP_SPINCOUNT": "20000"}
    for cores, busy in ((2, 0.6), (2, None), (16, 15)):
        assert prepare(cores, busy, {}, monkeypatch) == passive
    for environ in ({"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}):
        assert prepare(2, 0, dict(environ), monkeypatch) == environ | pages
    small = {"THP_MEM_ALLOC_ENABLE": "0"}
    assert prepare(2, None, dict(small), monkeypatch) == passive | small


@pytest.mark.parametrize("script", ["train.py", "eval.py"])
def test_outside_the_environment_it_says_how_to_enter(script: str) -> None:
    """-S leaves out what is installed."""
    result = subprocess.run(
        [sys.executable, "-S", "-E", ROOT / script], capture_output=True, text=True, cwd="/", check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "gymnasium is not installed here; run: make setup && . .venv/bin/activate\n"


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("line", "layers"),
    [
        ("train", "preset tiny"),
        ("train --env trace", "preset tiny-trace, --env.env_type"),
        ("train --seed 1 --ppo.gamma 1 --ppo.gamma=0.9", "preset tiny, --run.seed, --ppo.gamma"),
        ("train --config b.yaml a.json --config b.yaml", "defaults, b.yaml, a.json, b.yaml"),
        ("train --preset qwen3-4b --config a.json", "preset qwen3-4b, a.json"),
        ("train --from run --seed 1", "of run, --run.seed, --run.init_from"),
        ("eval --checkpoint run --opponent mcts", "of run, --env.opponent"),
        ("eval --env trace --agent first", "defaults, --env.env_type"),
        # A named model gets no preset: tiny would leave the rules out of its prompts.
        ("eval --model.model_name x --env.game hex", "defaults, --model.model_name, --env.game"),
        ("eval --model.model_name tiny --env.game hex", "preset tiny, --model.model_name, --env.game"),
        ("eval --preset qwen3-4b --env.game hex", "preset qwen3-4b, --env.game"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_line_names_the_layers_in_force(line: str, layers: str, capsys: Capsys) -> None:
    Path("run").mkdir()
    save(Config(), Path("run/config.yaml"))
    Path("a.json").write_text("{}")
    Path("b.yaml").write_text("")
    assert main(line.split()) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"configuration: {layers}"
