"""Episodes with models behind endpoints, several at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")

SOON = 5.0
"""Most seconds for which Ctrl-C waits for the threads. One that is in an opponent's search ends after it."""


def play_at_once(
    episodes: Sequence[T],
    play: Callable[[T], None],
    stop: Callable[[], None],
    most: int,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Plays episodes, so many at once.

    Args:
        episodes: The episodes.
        play: Plays one, in a thread.
        stop: Gives up all that are under way: ``play`` raises.
        most: The most at once.
        on_end: Called after each.

    Raises:
        Exception: the first that ``play`` raised; the episodes under way were played to their end first.
        KeyboardInterrupt: Ctrl-C; those under way were given up.
    """
    waiting, running = list(reversed(episodes)), set[Future[None]]()
    stopped, failed = threading.Event(), None
    #: The episodes that threads play. ``running`` may lack one: Ctrl-C can come right after its submission.
    under_way: list[T] = []

    def play_one(episode: T) -> None:
        under_way.append(episode)
        try:
            if not stopped.is_set():
                play(episode)
        finally:
            under_way.remove(episode)

    threads = ThreadPoolExecutor(most, thread_name_prefix="gamespiel.endpoints")
    try:
        while (waiting and failed is None) or running:
            while waiting and failed is None and len(running) < most:
                running.add(threads.submit(play_one, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                failed = failed or future.exception()
                on_end()
    except BaseException:
        stopped.set()
        end = time.monotonic() + SOON
        while under_way and time.monotonic() < end:
            stop()  # once is not enough: a thread may have been on its way to a request
            time.sleep(0.05)
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    if failed is not None:
        raise failed
