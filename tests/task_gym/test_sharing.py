"""One sampler for several threads and processes, and what is said when it is gone."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from task_gym.errors import SamplerError
from task_gym.samplers import Failures, Outcome, SharedSampler, Stages, Start, share, sharing
from task_gym.wrappers import Curriculum, FailureReplay
from tests.task_gym.tasks import Tenths

TWO = [
    {"name": "easy", "task_id_range": [0, 9], "opponent": "first", "threshold": 1.0},
    {"name": "hard", "task_id_range": [50, 59], "opponent": "mcts"},
]
ROOT = Path(__file__).parents[2]


def stages(window: int = 4) -> Stages:
    return Stages(TWO, progression_window=window)


def test_it_answers_as_the_sampler_does() -> None:
    sampler, twin = stages(), stages()
    with share(sampler) as shared:
        for _ in range(3):
            starts = shared.draw(), twin.draw()
            assert starts[0] == starts[1]
            outcomes = [[Outcome(start, "g", 1.0, True, "win")] for start in starts]
            assert shared.record(outcomes[0]) == twin.record(outcomes[1])
        assert shared.draw((4, 2)) == twin.draw((4, 2))
        assert shared.stats() == twin.stats() == sampler.stats()
        assert shared.state_dict() == twin.state_dict()
        shared.load_state_dict(stages().state_dict())
        assert sampler.stats()["episodes"] == 0
        # Its errors are the sampler's, too.
        with pytest.raises(SamplerError, match=r"state: \[\] was given"):
            shared.load_state_dict({})
        with pytest.raises(SamplerError, match=r"sampler: record failed with AttributeError: 'int'"):
            shared.record([3])  # type: ignore[list-item]
        assert shared.stats()["stage"] == 0  # and it goes on


def test_after_ctrl_c_the_next_answer_is_that_of_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Connection.recv

    def interrupt(connection: Connection) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return receive(connection)
        assert connection.poll(60)  # the answer has come
        raise KeyboardInterrupt

    with share(stages()) as shared:
        shared.stats()  # the connection is there
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Connection, "recv", interrupt)
            shared.draw()
        assert shared.record([]) == []
        assert isinstance(shared.draw(), Start)


def test_a_caller_that_says_nothing_keeps_nobody_waiting() -> None:
    with share(stages()) as shared, socket.socket(socket.AF_UNIX) as silent:
        silent.connect(shared._address)
        draws: list[Any] = []
        worker = threading.Thread(target=lambda: draws.append(shared.draw()), daemon=True)
        worker.start()
        worker.join(60)
        assert draws


def draw_for_ever(shared: SharedSampler, begun: Any) -> None:
    begun.set()
    while True:
        shared.draw()


def test_workers_that_are_killed_leave_the_sampler_to_the_others() -> None:
    context = multiprocessing.get_context("fork")
    with share(stages()) as shared:
        for _ in range(3):
            begun = context.Event()
            worker = context.Process(target=draw_for_ever, args=[shared, begun])
            worker.start()
            assert begun.wait(60) and worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
        draws = shared.state_dict()["draws"]
        shared.draw()
        assert shared.state_dict()["draws"] == draws + 1


def test_threads_lose_no_draw() -> None:
    sampler = stages()
    with share(sampler) as shared:

        def draw(source: Any) -> list[Any]:
            return [source.draw().seed for _ in range(200)]

        with ThreadPoolExecutor(4) as pool:
            drawn = pool.map(draw, (shared, shared, sampler, sampler))
    twin = stages()
    assert sorted(chain(*drawn)) == sorted(twin.draw().seed for _ in range(800))  # type: ignore[type-var]


def test_after_the_block_there_is_a_clear_error() -> None:
    with share(stages()) as shared:
        other = pickle.loads(pickle.dumps(shared))
        shared.draw()
    for gone in (shared, other):
        for _ in range(2):
            with pytest.raises(SamplerError, match=r"draw was called, but the sampler is no longer shared"):
                gone.draw()


def draw_from(shared: SharedSampler, local: Stages, answers: Any) -> None:
    drawn = shared.draw()
    try:
        answers.put((os.getpid(), drawn, local.draw()))
    except SamplerError as error:
        answers.put((os.getpid(), drawn, str(error)))


def test_it_always_ends() -> None:
    # The thread that accepts callers may be at any point when the block ends.
    def open_and_close() -> None:
        for number in range(100):
            with share(stages()) as shared:
                if number % 2:
                    shared.draw()

    thread = threading.Thread(target=open_and_close, daemon=True)
    thread.start()
    thread.join(timeout=120)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "method", ["fork", pytest.param("spawn", marks=[pytest.mark.launch, pytest.mark.sample])]
)
def test_a_proxy_works_in_another_process_and_a_local_sampler_refuses_it(method: str) -> None:
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    with share(stages()) as shared:
        first = shared.draw()  # this process's connection is not the worker's
        worker = context.Process(target=draw_from, args=[shared, stages(), answers])  # type: ignore[attr-defined]
        worker.start()
        process, second, refusal = answers.get(timeout=60)
        worker.join()
        third = shared.draw()
    assert refusal == (
        f"sampler: a Stages of process {os.getpid()} was used in process {process}, allowed: the process "
        "that made it; share(sampler) returns one for all"
    )
    twin = stages()
    assert [first, second, third] == [twin.draw() for _ in range(3)]


def test_a_killed_owner_gives_a_clear_error(tmp_path: Path) -> None:
    script = """
        import multiprocessing, os, pickle, sys, time
        from task_gym.samplers import Stages, share
        with share(Stages([{"name": "only"}])) as shared:
            # A worker that outlives its parent, and inherits what the parent has open.
            context = multiprocessing.get_context("fork")
            context.Process(target=time.sleep, args=[10]).start()
            with open(sys.argv[1] + ".partial", "wb") as file:
                pickle.dump(shared, file)
            os.rename(sys.argv[1] + ".partial", sys.argv[1])
            time.sleep(60)
    """
    path = tmp_path / "shared"
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), str(path)], cwd=ROOT)
    try:
        while not path.exists():
            assert owner.poll() is None
            time.sleep(0.01)
        shared = pickle.loads(path.read_bytes())
        assert shared.draw().seed is not None
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    with pytest.raises(SamplerError, match=r"no longer shared: the process that shared it ended"):
        shared.draw()
    with pytest.raises(SamplerError, match=r"no longer shared"):
        pickle.loads(pickle.dumps(shared)).draw()


def test_gymnasiums_processes_share_one() -> None:
    mine, failures = stages(window=20), Failures()
    with share(mine) as one, share(failures) as two:
        makes = [lambda: FailureReplay(Curriculum(Tenths(), one), two)] * 3
        with closing(gym.vector.AsyncVectorEnv(makes, shared_memory=False)) as vector:
            vector.reset()
            # Twelve episodes in each of three: a step of play, one of reset.
            stage = [vector.step([10, 10, 10])[4]["curriculum"]["stage"].tolist() for _ in range(24)]
    # The twentieth of 36 successes promotes, and every worker sees it.
    assert (mine.stats()["stage"], mine.stats()["episodes"]) == (1, 36)
    assert stage[-1] == [1, 1, 1] and stage[0] == [0, 0, 0]
    assert failures.stats()["episodes"] == 36


def test_callers_that_cannot_be_accepted_keep_no_core_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def accept(listener: Any) -> Any:
        tries.append(None)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(sharing.Listener, "accept", accept)
    with share(stages()):
        time.sleep(0.35)
    # One try per tenth of a second, with room for a slow machine; without a pause there are thousands.
    assert 1 <= len(tries) <= 20
