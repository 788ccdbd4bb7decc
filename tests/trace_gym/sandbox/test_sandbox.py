"""Tests of honest programs in the sandbox: they run as in the interpreter, and results are true."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from task_gym.errors import ArgumentError
from tests.trace_gym.boxes import LIMITS
from tests.trace_gym.sandbox.honest import HONEST, INPUT
from trace_gym.sandbox import Job, Limits, Result, Sandbox, run
from trace_gym.sandbox.worker import executable

SEEDS = (0, 7, 4294967295)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SEEDS, limits=LIMITS) as runner:
        yield runner


# -- as `python FILE` does ---------------------------------------------------------------------------------


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.parametrize("name", HONEST)
def test_a_program_does_what_the_interpreter_has_it_do(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    """Checks output, errors and whether the exit code is zero against the interpreter itself."""
    (tmp_path / "program.py").write_text(HONEST[name], encoding="utf-8", newline="")
    command = [executable(), "-S", "-s", "program.py"]
    env = {"PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8:strict", "PYTHONUTF8": "1"}
    plain = subprocess.run(command, cwd=tmp_path, env=env, input=INPUT.encode(), capture_output=True)
    result = sandbox.run(HONEST[name], INPUT, hash_seed=7)
    # The interpreter shows the whole path of its program.
    assert result.stdout == plain.stdout.decode("utf-8", "replace").replace(f"{tmp_path}/", "")
    assert result.status == ("ok" if plain.returncode == 0 else "error")
    shown = plain.stderr.decode().replace(f"{tmp_path}/", "").splitlines()
    assert [line for line in result.stderr.splitlines()][-1:] == shown[-1:]
    assert bool(result.stderr) == bool(plain.stderr)


def test_a_traceback_is_the_program_s_alone(sandbox: Sandbox) -> None:
    lines = sandbox.run("def f():\n    raise ValueError('no')\nf()").stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == "ValueError: no"
    assert [line.strip().split(",")[0] for line in lines if "File" in line] == ['File "program.py"'] * 2


def test_the_hash_seed_holds(sandbox: Sandbox) -> None:
    program = "import os; print(hash('a')); print(os.environ['PYTHONHASHSEED'])"
    for seed in SEEDS:
        env = {"PYTHONHASHSEED": str(seed)}
        plain = subprocess.run([executable(), "-c", program], env=env, capture_output=True, encoding="utf-8")
        assert sandbox.run(program, hash_seed=seed).stdout == plain.stdout
    assert run(program, hash_seed=SEEDS[-1]).stdout == plain.stdout
    assert sandbox.run(program).stdout == sandbox.run(program, hash_seed=SEEDS[0]).stdout


# -- input and output --------------------------------------------------------------------------------------


def test_input_of_any_size(sandbox: Sandbox) -> None:
    """Checks an input of five million letters that is read at once, by lines, or not at all."""
    text = "0123456789abcde\n" * 312_500
    assert len(text) == 5_000_000
    assert sandbox.run("import sys; print(len(sys.stdin.read()))", text).stdout == "5000000\n"
    assert sandbox.run("import sys; print(sum(1 for _ in sys.stdin))", text).stdout == "312500\n"
    assert sandbox.run("print('not read')", text).stdout == "not read\n"
    assert sandbox.run("x = 1\n" * 20_000 + "print(x)").stdout == "1\n"


@settings(max_examples=25)
@given(text=st.text(max_size=50))
def test_text_goes_in_and_comes_out(sandbox: Sandbox, text: str) -> None:
    """Checks that input and output keep every text, line ends included. Lone surrogates are not drawn."""
    program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert sandbox.run(program, text).stdout == text
    assert sandbox.run(f"import sys; sys.stdout.write({text!r})").stdout == text


def test_a_lone_surrogate_is_the_program_s_error(sandbox: Sandbox) -> None:
    result = sandbox.run("print('\ud800')")
    assert result.status == "error" and "surrogates not allowed" in result.stderr
    assert sandbox.run("input()", "\ud800\n").status == "error"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_output_limit_is_exact(sandbox: Sandbox, stream: str) -> None:
    for length, status in ((LIMITS.output, "ok"), (LIMITS.output + 1, "output_limit")):
        result = sandbox.run(f"import sys; sys.{stream}.write('x' * {length})")
        assert (result.status, getattr(result, stream)) == (status, "x" * LIMITS.output)


def test_what_was_printed_before_the_end_is_kept(sandbox: Sandbox) -> None:
    ends = {
        "os._exit(0)": "ok",
        "os.kill(os.getpid(), 9)": "killed",
        "os.abort()": "killed",
        "1 / 0": "error",
    }
    for end, status in ends.items():
        result = sandbox.run(
            f"import os, sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)\n{end}"
        )
        assert (result.status, result.stdout) == (status, "out\n")
        assert result.stderr.startswith("err\n")


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("print(1)\0", "error"),
        ("exit()\n1 / 0", "ok"),  # ``site``, which defines these two, is left out
        ("quit(3)", "error"),
        ("x = [0] * 10**9", "error"),
        ("import ctypes; ctypes.string_at(0)", "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "killed"),
        ("import signal; signal.raise_signal(signal.SIGUSR1)", "killed"),
        ("import sys\nsys.setrecursionlimit(10**9)\nclass A: __getattr__ = lambda s, n: getattr(s, n)\nA().x",
         "killed"),
        ("import resource, signal; signal.raise_signal(signal.SIGXCPU)", "killed"),
    ],
)  # fmt: skip
def test_status(sandbox: Sandbox, program: str, status: str) -> None:
    if "getattr" in program and sys.version_info >= (3, 12):
        status = "error"  # since then the interpreter counts such recursion in C
    assert sandbox.run(program).status == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("cpu_seconds", 0), ("cpu_seconds", 0.5), ("wall_seconds", float("nan")), ("memory", 2**63)],
        *[("output", -1), ("file_size", "5"), ("processes", True), ("processes", None)],
    ],
)
def test_a_limit_is_a_positive_number(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"Limits: {name}=.* was given, allowed: a positive"):
        Limits(**{name: value})  # type: ignore[arg-type]
    assert Limits(wall_seconds=0.25).wall_seconds == 0.25


@pytest.mark.parametrize(
    "limits",
    [Limits(memory=1), Limits(output=1), Limits(file_size=1), Limits(processes=1), Limits(open_files=1),
     Limits(wall_seconds=1e-9)],
)  # fmt: skip
def test_tight_limits_are_the_program_s_trouble_alone(limits: Limits) -> None:
    with Sandbox(limits=limits) as tight:
        assert tight.run("print('x' * 5)").status in ("ok", "error", "timeout", "killed", "output_limit")


def test_open_files(sandbox: Sandbox) -> None:
    program = "held = []\nwhile True:\n    held.append(open('x', 'w'))\n"
    result = sandbox.run(program)
    assert result.status == "error" and "Too many open files" in result.stderr


def test_many_programs_come_back_in_order(sandbox: Sandbox) -> None:
    jobs = [Job(f"print({i}, hash('a'), input())", f"{i}\n", SEEDS[i % 3]) for i in range(9)]
    results = sandbox.run_many(jobs)
    assert [result.stdout.split()[0::2] for result in results] == [[str(i), str(i)] for i in range(9)]
    assert len({result.stdout.split()[1] for result in results}) == 3
    assert sandbox.run_many([]) == []
    results = sandbox.run_many([Job("1 / 0"), Job("print(1)"), Job("import os; os.abort()"), Job("print(2)")])
    assert [result.status for result in results] == ["error", "ok", "killed", "ok"]
    assert all(result.level == sandbox.level and 0 < result.seconds < 60 for result in results)


def test_programs_run_until_there_is_enough(sandbox: Sandbox) -> None:
    """Checks that results come in the order of the jobs, and that few jobs are taken ahead."""
    taken: list[int] = []
    outputs: list[str] = []

    def jobs() -> Iterator[Job]:
        for i in range(100):
            taken.append(i)
            pause = "import time; time.sleep(0.2); " if i == 0 else ""
            yield Job(f"{pause}print({i})", "", SEEDS[i % 3])

    def done(result: Result) -> bool:
        outputs.append(result.stdout)
        assert len(taken) - len(outputs) < 2 * len(SEEDS)
        return len(outputs) == 10

    sandbox.run_until(jobs(), done)
    assert outputs == [f"{i}\n" for i in range(10)]
    sandbox.run_until([], done)
    assert len(outputs) == 10


@pytest.mark.parametrize("slow", [0, 1])
def test_a_job_that_cannot_be_made_has_its_turn(sandbox: Sandbox, slow: int) -> None:
    """Checks that a job's error is raised after the results before it, and only if they are not enough."""

    def jobs() -> Iterator[Job]:
        for i in range(3):
            pause = "import time; time.sleep(0.1); " if i == slow else ""
            yield Job(f"{pause}print({i})", "", SEEDS[i % 2])
        raise ZeroDivisionError

    for enough in (1, 2, 3):
        outputs: list[str] = []

        def done(result: Result, outputs: list[str] = outputs, enough: int = enough) -> bool:
            outputs.append(result.stdout)
            return len(outputs) == enough

        sandbox.run_until(jobs(), done)
        assert outputs == [f"{i}\n" for i in range(enough)]
    outputs = []
    with pytest.raises(ZeroDivisionError):
        sandbox.run_until(jobs(), lambda result: outputs.append(result.stdout))  # type: ignore[func-returns-value]
    assert outputs == ["0\n", "1\n", "2\n"]


def test_what_still_runs_then_is_ended_and_its_worker_stays(sandbox: Sandbox) -> None:
    sandbox.run_many([Job("", "", seed) for seed in SEEDS])
    workers = {seed: worker._process.pid for seed, worker in sandbox._workers.items()}
    asleep = Job("import time; time.sleep(60)", "", SEEDS[1])
    begun = time.perf_counter()
    sandbox.run_until([Job("print(1)"), asleep, Job("print(2)")], lambda result: True)
    assert time.perf_counter() - begun < LIMITS.wall_seconds
    assert {seed: worker._process.pid for seed, worker in sandbox._workers.items()} == workers
    assert sandbox.run("print(3)", hash_seed=SEEDS[1]).stdout == "3\n"


def test_an_error_where_results_are_taken_ends_all(sandbox: Sandbox) -> None:
    def fails(result: Result) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sandbox.run_until([Job("print(1)"), Job("while True: pass", "", SEEDS[1])], fails)
    results = sandbox.run_many([Job("print(4)", "", seed) for seed in SEEDS])
    assert [result.stdout for result in results] == ["4\n"] * 3


def test_wrong_arguments_are_named(sandbox: Sandbox) -> None:
    with pytest.raises(ArgumentError, match=r"program=b'1' was given, allowed: a str"):
        sandbox.run(b"1")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"stdin=None was given, allowed: a str"):
        sandbox.run("1", None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"hash_seed=1 was given, allowed here: 0, 7, 4294967295"):
        sandbox.run("1", hash_seed=1)
    for seed in (-1, 2**32, True, "0", 0.0):
        with pytest.raises(ArgumentError, match=r"hash seed .* was given, allowed: 0 to 4294967295"):
            Sandbox((0, seed))  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="hash seed"):
            run("1", hash_seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no hash seeds were given"):
        Sandbox(())
    with pytest.raises(ArgumentError):
        sandbox.run_many([Job("open('x', 'w')"), Job(3)])  # type: ignore[arg-type]
