"""Clocks that wait for the GPU, its memory and its kernels. Only PyTorch is needed."""

from __future__ import annotations

import gc
import statistics
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

Row = dict[str, Any]
T = TypeVar("T")

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def wait() -> None:
    """Waits until the GPU has done all that was started."""
    if CUDA:
        torch.cuda.synchronize()


def clock(work: Callable[[], T]) -> tuple[float, T]:
    """Returns the seconds of a call, with all that it starts on the GPU, and its result."""
    wait()
    begun = time.perf_counter()
    result = work()
    wait()
    return time.perf_counter() - begun, result


def median_ms(work: Callable[[], Any], repetitions: int = 5, warm_up: int = 1) -> float:
    """Returns the median of wall-clock milliseconds."""
    for _ in range(warm_up):
        work()
    return round(statistics.median(clock(work)[0] for _ in range(repetitions)) * 1e3, 3)


def matrix_peak(dtype: torch.dtype, size: int = 8192 if CUDA else 2048) -> float:
    """Returns FLOPs per second of a product of large square matrices."""
    a = torch.randn(size, size, device=DEVICE).to(dtype)
    return 2 * size**3 / median_ms(lambda: a @ a) * 1e3


def attempt(work: Callable[[], Row]) -> Row:
    """Returns the row of a measurement, or its error: one measurement must not cost the others."""
    try:
        return work()
    except Exception as error:
        trace = traceback.format_exc()
        print(trace, flush=True)
        return {"error": f"{type(error).__name__}: {str(error)[:400]}", "where": trace[-2000:]}


def relative_distance(tensor: Tensor, expected: Tensor) -> float:
    tensor, expected = tensor.detach().double().cpu(), expected.detach().double().cpu()
    return float((tensor - expected).norm() / expected.norm().clamp(min=1e-30))


def to_gib(count: float) -> float:
    return round(count / 2**30, 3)


def release() -> None:
    """Gives unused memory back, and begins to look for a peak anew."""
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def read_memory() -> Row:
    """Returns the GPU's memory, with the peaks since ``release``; without a GPU there is nothing to read."""
    if not CUDA:
        return {}
    free, total = torch.cuda.mem_get_info()
    return {
        "used_gib": to_gib(total - free),
        "allocated_gib": to_gib(torch.cuda.memory_allocated()),
        "peak_allocated_gib": to_gib(torch.cuda.max_memory_allocated()),
        "peak_reserved_gib": to_gib(torch.cuda.max_memory_reserved()),
    }


def profile_kernels(work: Callable[[], Any], longest: int = 18) -> Row:
    """Returns the GPU's kernels in a call: their number, their time, and the longest by name.

    If they are busy for less than the call takes, the CPU does not start them fast enough.
    """
    from torch.profiler import ProfilerActivity, profile

    if not CUDA:
        work()
        return {}
    with profile(activities=[ProfilerActivity.CUDA], acc_events=False) as profiler:
        seconds, _ = clock(work)
    nanoseconds, count = Counter[str](), Counter[str]()
    for event in profiler.profiler.kineto_results.events():
        if "CUDA" in str(event.device_type()):
            nanoseconds[event.name()] += event.duration_ns()
            count[event.name()] += 1
    names = [
        {"name": name[:110], "ms": round(duration / 1e6, 3), "count": count[name]}
        for name, duration in nanoseconds.most_common(longest)
    ]
    busy = round(sum(nanoseconds.values()) / 1e6, 2)
    return {
        "profiled_ms": round(seconds * 1e3, 2),
        "kernels": count.total(),
        "busy_ms": busy,
        "longest": names,
    }
