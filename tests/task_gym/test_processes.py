"""Processes that can be ended at any moment."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pytest

from task_gym import processes
from task_gym.caller import Caller, CallerLeftError
from task_gym.processes import OFFERED, EndedError, Nursery, Pool

pytestmark = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")


class Evaluate(NamedTuple):
    """A request for the value of an expression."""

    text: str

    def answer(self) -> Any:
        return eval(self.text)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """A nursery that starts anew whenever a test has ended it."""
    forker = Nursery((__name__,), partial(os.putenv, "PREPARED", "1"))
    yield forker
    forker.close()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def check_all_end(code: str, count: int) -> None:
    """Runs code that prints "pids" and so many processes, kills it in its work, and waits for their end."""
    asker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    with asker.stdout:
        line = next(line for line in asker.stdout if line.startswith("pids"))
    pids = [int(word) for word in line.split()[1:]]
    assert len(set(pids)) == count and all(map(is_there, pids))
    asker.kill()
    asker.wait()
    deadline = time.monotonic() + 60
    while any(map(is_there, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_there, pids))


def test_a_process_answers_and_says_what_failed(nursery: Nursery) -> None:
    process = nursery.fork()
    assert process.ask(Evaluate("6 * 7"), 10.0)[:2] == (42, "")
    assert process.ask(Evaluate("1 / 0"), 10.0)[:2] == (None, "ZeroDivisionError: division by zero")
    assert process.ask(Evaluate("__import__('os').getpid()"), 10.0)[0] == process.pid != os.getpid()
    # All have the same parent, which keeps what it prepared.
    parents = {nursery.fork().ask(Evaluate("__import__('os').getppid()"), 10.0)[0] for _ in range(3)}
    assert len(parents) == 1 and os.getpid() not in parents


def test_a_pool_that_nobody_has_any_more_lets_its_processes_go(nursery: Nursery) -> None:
    pool = Pool(nursery, 1)
    pool.ask(Evaluate("0"), 10.0, Caller())
    (idle,) = map(weakref.ref, pool.idle.values())
    del pool
    gc.collect()
    assert idle() is None


def test_the_kernel_ends_a_process_that_has_used_its_time(nursery: Nursery) -> None:
    process = nursery.fork()
    assert (
        process.ask(Evaluate("__import__('time').sleep(0.3)"), 0.1)[1] == ""
    )  # sleep takes no processor time
    with pytest.raises(EndedError) as ended:
        process.ask(Evaluate("[i for i in iter(int, 1)]"), 0.1)
    assert ended.value.is_late and ended.value.status == -signal.SIGPROF
    with pytest.raises(EndedError) as crashed:
        nursery.fork().ask(Evaluate("__import__('os')._exit(7)"), 10.0)
    assert (crashed.value.status, crashed.value.is_late) == (7, False)


def test_a_process_ends_when_its_caller_leaves(nursery: Nursery) -> None:
    process, caller = nursery.fork(), Caller()
    leaving = threading.Timer(0.2, caller.leave)
    with pytest.raises(EndedError) as ended, caller.ending(process.end):
        leaving.start()
        process.ask(Evaluate("__import__('time').sleep(3000)"), float("inf"))
    assert ended.value.status == -signal.SIGKILL
    assert not is_there(process.pid)  # it is reaped, too
    with pytest.raises(CallerLeftError), caller.ending(lambda: None):
        raise AssertionError("nothing begins for a caller that has left")
    assert nursery.fork().ask(Evaluate("1"), 10.0)[0] == 1  # others go on


def test_the_status_is_known_if_the_asker_notices_the_end_before_its_ender_goes_on(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, kill = nursery.fork(), os.kill

    def kill_slowly(pid: int, number: int) -> None:
        kill(pid, number)
        time.sleep(0.2)  # the asker reads the end of the stream meanwhile

    monkeypatch.setattr(os, "kill", kill_slowly)
    ending = threading.Timer(0.1, process.end)
    ending.start()
    with pytest.raises(EndedError) as ended:
        process.ask(Evaluate("__import__('time').sleep(3000)"), float("inf"))
    ending.join()
    assert ended.value.status == -signal.SIGKILL


def test_a_pool_asks_idle_processes_again_and_ends_the_one_unused_for_longest(nursery: Nursery) -> None:
    pool, whose = Pool(nursery, 2), Evaluate("__import__('os').getpid()")
    pids = [pool.ask(whose, 10.0, Caller(), key)[0] for key in (7, 8, 7)]
    assert pids[0] == pids[2] != pids[1] and list(pool.idle) == [8, 7]
    child = os.fork()
    if not child:
        os._exit(len(pool.idle))
    assert os.waitpid(child, 0)[1] == 0  # a fork leaves them to its parent, which alone reads their answers
    pool.ask(whose, 10.0, Caller(), 9)
    assert list(pool.idle) == [7, 9] and pids[1] in [process.pid for process in nursery.dead]
    os.kill(pids[0], signal.SIGKILL)
    assert pool.ask(whose, 10.0, Caller(), 7)[0] not in pids  # it had ended while it was idle
    assert pool.ask(Evaluate("1 / 0"), 10.0, Caller(), 9)[1] == "ZeroDivisionError: division by zero"
    assert list(pool.idle) == [7]  # one whose request failed is not asked again
    with pytest.raises(EndedError) as ended:
        pool.ask(Evaluate("__import__('os')._exit(7)"), 10.0, Caller(), 7)
    assert ended.value.status == 7 and not pool.idle
    spent = [pool.ask(Evaluate("sum(range(10**7))"), 9.0, Caller(), 7, 1000)[2] for _ in range(2)]
    assert spent[0] < 0.01 < spent[1]  # the first is new, and has a thousand times the time


def test_a_nursery_that_was_killed_is_replaced(nursery: Nursery) -> None:
    parent = nursery.fork().ask(Evaluate("__import__('os').getppid()"), 10.0)[0]
    os.kill(parent, signal.SIGKILL)
    assert nursery.fork().ask(Evaluate("2"), 10.0)[0] == 2


def test_an_interrupt_of_a_request_to_the_nursery_leaves_no_answer_for_the_next(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> bytes:
        raise KeyboardInterrupt

    requests: list[Callable[[], object]] = [nursery.fork, nursery.reap]
    for request in requests:
        process = nursery.fork()
        process.end()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Connection, "recv", interrupt)
            request()
        after = nursery.fork()
        assert after.ask(Evaluate("__import__('os').getpid()"), 10.0)[0] == after.pid


def test_the_number_of_a_process_whose_nursery_has_ended_is_not_signalled(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the number by then is a stranger."""
    old, signalled, kill = nursery.fork(), list[int](), os.kill
    monkeypatch.setattr(os, "kill", lambda pid, number: signalled.append(pid) or kill(pid, number))
    nursery.close()
    late = nursery.fork()
    old.end()
    with pytest.raises(EndedError) as ended:
        old.ask(Evaluate("1"), 10.0)
    assert ended.value.status is None and old.pid not in signalled
    # Nor is the new nursery asked about a process that it did not fork: it would wait for it.
    assert not nursery.dead and late.ask(Evaluate("2"), 10.0)[0] == 2


def test_a_process_whose_nursery_has_ended_before_it_could_follow_it_ends() -> None:
    child = os.fork()
    if not child:
        try:
            processes._end_with_parent(os.getpid())  # which is not its parent
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.launch
@pytest.mark.sample
def test_all_end_with_the_one_that_asks_even_if_it_is_killed_in_mid_search() -> None:
    code = (
        "import threading, time\n"
        "from tests.task_gym.test_processes import Evaluate, Nursery\n"
        "nursery = Nursery(('tests.task_gym.test_processes',))\n"
        "process = nursery.fork()\n"
        "parent = process.ask(Evaluate(\"__import__('os').getppid()\"), 10.0)[0]\n"
        "print('pids', parent, process.pid, flush=True)\n"
        "process.ask(Evaluate('[i for i in iter(int, 1)]'), 600.0)\n"
    )
    check_all_end(code, 2)


def test_searches_have_so_much_time() -> None:
    together, each = Caller(10.0), Caller(10.0, each=True)
    for caller in (together, each):
        caller.spend(4.0)
    assert (together.search_time(), each.search_time()) == (6.0, 10.0)
    together.spend(7.0)
    assert together.search_time() == 0.0
