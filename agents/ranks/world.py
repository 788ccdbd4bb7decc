"""Several ranks, over torch.distributed: objects over gloo, gradients over NCCL or gloo."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from gamespiel.agents import transfer
from gamespiel.agents.launch import Launch
from gamespiel.agents.ranks import RankFailedError, RankLostError, Ranks, RanksDifferError, RanksError
from task_gym.errors import TaskGymError
from task_gym.remote.loop import AbandonedWaitError

T = TypeVar("T")

TIME_LIMIT = timedelta(hours=24)
"""The longest wait for another rank: a round of long games or an evaluation can take hours.

It is no way to notice a death. A process that dies closes its connections, which ends all waits at once; a
machine that vanishes is noticed by ``torchrun``.
"""

BEGIN_LIMIT = timedelta(minutes=30)
"""The longest wait for all ranks to be there, after each has loaded its libraries."""

LOOK_EVERY = 1.0
"""Seconds between two looks, while a rank waits, at whether another one has failed."""

_FAILED, _STOP = "failed", "stop"
_MADE = itertools.count()  # the groups of this process; the others make theirs in the same order
_LONGEST_PAUSE = 0.01


@dataclass(frozen=True)
class _Failure:
    """An error of one rank, on its way to the others."""

    rank: int
    error: Exception

    def __reduce__(self) -> tuple[Any, ...]:
        """Sends errors of other libraries as their text: not all of them come back from a pickle."""
        error = self.error
        if not isinstance(error, TaskGymError | AbandonedWaitError):
            error = RankFailedError(f"rank {self.rank} failed: {type(error).__name__}: {error}")
        return _Failure, (self.rank, error)


class World(Ranks):
    """The ranks of one ``torchrun``, which live and end together.

    Args:
        launch: What the launcher says of this process.
        device: The model's device: a GPU has gradients summed over NCCL, the CPU over gloo.

    Raises:
        RankLostError: not all of them came.
    """

    def __init__(self, launch: Launch, device: torch.device) -> None:
        super().__init__(launch)
        self._sums_on_gpu = device.type == "cuda"
        if self._sums_on_gpu and device.index is not None:  # or it is the only rank of its machine
            torch.cuda.set_device(device)
        try:
            store, _, _ = next(rendezvous("env://", timeout=BEGIN_LIMIT))
            #: Worlds may share a store, and the words of an earlier one must not be heard.
            self._store: Any = PrefixStore(f"gamespiel/{launch.restarts}/{next(_MADE)}", store)
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if self._sums_on_gpu else "gloo",
                store=PrefixStore("groups", self._store),
                rank=self.rank,
                world_size=self.size,
                timeout=TIME_LIMIT,
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise RankLostError(
                f"rank {self.rank} of {self.size} did not find the others: {error}; GLOO_SOCKET_IFNAME names "
                "the network interface if there are several"
            ) from error
        self._parameters: list[nn.Parameter] = []
        self._flat = torch.zeros(0)
        self._looked = self._heard = 0.0
        self._stop_heard = False

    def take_share(self, items: Sequence[T]) -> Sequence[T]:
        return items[self.rank :: self.size]

    # -- objects -------------------------------------------------------------------------------------------

    def gather(self, value: T) -> list[T]:
        sent = torch.frombuffer(bytearray(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        self._exchange(lambda: dist.all_gather(sizes, torch.tensor([len(sent)]), async_op=True))
        lengths = [int(size) for size in sizes]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(sent)] = sent
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        self._exchange(lambda: dist.all_gather(parts, padded, async_op=True))
        # This rank's own comes back from its pickle too, so that all ranks hold the same.
        return [pickle.loads(each.numpy()[:n].data) for each, n in zip(parts, lengths, strict=True)]

    def share_work(self, work: Callable[[], T]) -> list[T]:
        outcome, failed = self._try(work)
        outcomes = self.gather(outcome)
        if failed is not None:
            raise failed
        for each in outcomes:
            if isinstance(each, _Failure):
                raise each.error
        return outcomes  # type: ignore[return-value]  # no failure among them

    def lead(self, work: Callable[[], T]) -> T:
        payload, failed = b"", None
        if self.leads:
            outcome, failed = self._try(work)
            payload = pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
        size = torch.tensor([len(payload)])
        self._exchange(lambda: dist.broadcast(size, 0, async_op=True))
        sent = torch.zeros(int(size), dtype=torch.uint8)
        if self.leads:
            sent.copy_(torch.frombuffer(bytearray(payload), dtype=torch.uint8))
        self._exchange(lambda: dist.broadcast(sent, 0, async_op=True))
        if failed is not None:
            raise failed
        leader_outcome = outcome if self.leads else pickle.loads(sent.numpy().data)
        if isinstance(leader_outcome, _Failure):
            raise leader_outcome.error
        return leader_outcome

    def _try(self, work: Callable[[], T]) -> tuple[T | _Failure, Exception | None]:
        """Returns what ``work`` returned, or its error as others are sent it, and as it is."""
        try:
            return work(), None
        except Exception as error:
            return _Failure(self.rank, error), error

    def agree(self, flag: bool) -> bool:
        flags = torch.tensor([int(flag)])
        self._exchange(lambda: dist.all_reduce(flags, dist.ReduceOp.MAX, async_op=True))
        return bool(flags)

    def total(self, number: int) -> int:
        return sum(self.gather(number))

    def require_same(self, what: str, value: bytes) -> None:
        digests = self.gather(hashlib.blake2b(value, digest_size=16).hexdigest())
        if len(set(digests)) > 1:
            listed = ", ".join(f"rank {rank}: {digest}" for rank, digest in enumerate(digests))
            raise RanksDifferError(
                f"ranks differ in {what}, and must not: {listed}. They learn one policy, so nothing of this "
                "step was saved; the processors, GPUs and versions of all ranks must be alike"
            )

    # -- tensors -------------------------------------------------------------------------------------------

    def join(self, parts: Sequence[Tensor], device: torch.device | str) -> Tensor:
        local_parts = transfer.read(*parts)
        every = [part for rank_parts in self.gather(local_parts) for part in rank_parts]
        return transfer.send(torch.cat(every or [torch.zeros(0)]), device)

    def reserve(self, parameters: Iterable[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        places = sum(parameter.numel() for parameter in self._parameters) + len(self._parameters)
        self._flat = torch.zeros(places, dtype=torch.float32, device=self._parameters[0].device)

    def add_gradients(self) -> None:
        """Sums all gradients at once: one message of a size that a network is fast at.

        A rank without a gradient adds 0. Behind the gradients is how many ranks have one, because an
        optimizer moves a parameter whose gradient is 0, and leaves one alone that has none.
        """
        sizes = [parameter.numel() for parameter in self._parameters]
        *slices, present = self._flat.split([*sizes, len(sizes)])
        self._flat.zero_()
        for parameter, flat_grad in zip(self._parameters, slices, strict=True):
            if parameter.grad is not None:
                flat_grad.copy_(parameter.grad.reshape(-1))
        flags = [float(parameter.grad is not None) for parameter in self._parameters]
        present.copy_(torch.tensor(flags))
        self._exchange(lambda: dist.all_reduce(self._flat, async_op=True))
        for parameter, flat_grad, count in zip(self._parameters, slices, present.tolist(), strict=True):
            if count:
                parameter.grad = torch.empty_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad.copy_(flat_grad.view_as(parameter))

    # -- one word, which is no exchange --------------------------------------------------------------------

    def ask_stop(self) -> None:
        if not self._stop_heard:
            self._stop_heard = True
            with suppress(RuntimeError):  # the others end, too, if the store has gone
                self._store.set(_STOP, "1")

    @property
    def is_stop_asked(self) -> bool:
        now = time.monotonic()
        if not self._stop_heard and now - self._heard >= LOOK_EVERY / 2:
            self._heard = now
            self._stop_heard = self._is_posted(_STOP)
        return self._stop_heard

    def lead_once(self, key: str, work: Callable[[], T]) -> T:
        if not self.leads:
            return self._read_post(key)
        try:
            outcome = work()
        except Exception as error:
            self._store.set(f"posts/{key}", pickle.dumps(_Failure(self.rank, error)))
            raise
        self._store.set(f"posts/{key}", pickle.dumps(outcome))
        return outcome

    def withdraw(self, key: str) -> None:
        with suppress(RuntimeError):
            self._store.delete_key(f"posts/{key}")

    def _read_post(self, key: str) -> Any:
        """Returns what the first rank found, and waits for it."""
        begun, place = time.monotonic(), f"posts/{key}"
        try:
            while not self._store.check([place]):
                self._look_around()
                if time.monotonic() - begun > TIME_LIMIT.total_seconds():
                    raise RankLostError(f"rank {self.rank} waited {TIME_LIMIT} for {key!r}")
                time.sleep(_LONGEST_PAUSE)
            posted = self._store.get(place)
        except RuntimeError as error:  # the store has gone, and nobody else would say so
            raise RankLostError(
                f"rank {self.rank} has lost the first rank, or the connection to it, while it waited for "
                f"{key!r}: {error!s:.200}"
            ) from error
        self.seconds += time.monotonic() - begun
        outcome = pickle.loads(posted)
        if isinstance(outcome, _Failure):
            raise outcome.error
        return outcome

    def fail(self, error: BaseException) -> None:
        """Leaves the group because of an error, and tells the others, so that they need not find out."""
        with suppress(RuntimeError):
            if not self._store.check([_FAILED]):
                self._store.set(_FAILED, f"rank {self.rank} failed: {type(error).__name__}: {error}")
        if not self._sums_on_gpu:  # NCCL might wait for a sum that never comes
            self.close()

    def close(self) -> None:
        """Leaves the group."""
        with suppress(RuntimeError, ValueError):
            dist.destroy_process_group()

    # -- waiting -------------------------------------------------------------------------------------------

    def _exchange(self, begin: Callable[[], Any]) -> None:
        """Begins an exchange, and waits for its end in Python, so that signals are heard meanwhile.

        Raises:
            RankLostError: another rank has gone.
            RankFailedError: another rank has said that it failed.
        """
        begun, pause = time.monotonic(), 5e-5
        try:
            work = begin()
            while not work.is_completed():
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                if not work.is_completed():  # or a rank that ended after it would count as failed in it
                    self._look_around()
            work.wait()
        except RanksError:
            raise
        except RuntimeError as error:
            self._raise_failure()
            raise RankLostError(
                f"rank {self.rank} has lost another rank, or the connection to it: {error!s:.200}"
            ) from error
        self.seconds += time.monotonic() - begun

    def _look_around(self) -> None:
        self.while_waiting()
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._is_posted(_FAILED):
            raise RankFailedError(self._store.get(_FAILED).decode(errors="replace"))

    def _is_posted(self, key: str) -> bool:
        try:
            return bool(self._store.check([key]))
        except RuntimeError:  # the store has gone, and with it its rank
            return False
