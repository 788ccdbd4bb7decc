"""A program whose output a model behind an endpoint predicts, by the rules of upstream's ``evaluate``."""

from __future__ import annotations

import time
from typing import Any

from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import Chat, EndpointError
from gamespiel.endpoints.completion import Usage
from task_gym.remote.protocol import REFUSED_ARGUMENTS
from trace_gym.envs.text import CodeTraceEnv

TIMEOUT = EPISODE_S["trace"]
"""Seconds that an answer may take."""


def ask_trace(
    chat: Chat, env: CodeTraceEnv, task_id: int, seed: int, timeout: float = TIMEOUT
) -> dict[str, Any]:
    """Asks for a program's output; returns what upstream's ``evaluate`` returns.

    An empty reply is None in the conversation, and has score 0.

    Args:
        chat: The model.
        env: The environment that asks and scores.
        task_id: The task.
        seed: The seed of the model's draws. The program does not depend on it.
        timeout: Seconds that the answer may take.
    """
    began = time.monotonic()
    prompt, asked = env.reset(seed=seed, options={"task_id": task_id})
    text, usage, error, kind, score = None, Usage(), "", "llm_failure", 0.0
    info: dict[str, Any] = {}
    try:
        text, usage = chat.request_reply([{"role": "user", "content": prompt}], seed, began + timeout)
    except TimeoutError:
        error, kind = f"there was no answer after {timeout:g} s", "timeout"
    except EndpointError as failure:
        error, kind = str(failure), chat.classify_failure(failure)
    if text:  # upstream compares no empty reply
        _, _, _, _, info = env.step(text)
        score = float(info["score"])
    result = _describe_trace(prompt, asked, text, score) | {"time_taken": time.monotonic() - began}
    result["extra"] |= {
        "task_id": task_id,
        "seed": seed,
        "usage": usage.to_dict() if usage.requests else None,
        "by_scoring": info.get("by_scoring"),
    }
    return result | {"error": error, "error_type": kind} if error else result


def describe_refused_trace(env: CodeTraceEnv, task_id: int, seed: Any, error: str) -> dict[str, Any]:
    """Returns what upstream's ``evaluate`` returns of a program that no model can be asked about.

    Args:
        env: The environment that asks.
        task_id: The task.
        seed: The seed, as it was given.
        error: Why no model can be asked.
    """
    prompt, info = env.reset(seed=0, options={"task_id": task_id})
    result = _describe_trace(prompt, info, None, 0.0)
    result["extra"] |= {"task_id": task_id, "seed": seed, "usage": None, "by_scoring": None}
    return result | {"error": error, "error_type": REFUSED_ARGUMENTS}


def _describe_trace(prompt: str, asked: dict[str, Any], reply: str | None, score: float) -> dict[str, Any]:
    return {
        "task_name": "Trace",
        "score": score,
        "success": score > 0,
        "time_taken": 0.0,
        "extra": {
            "conversation": [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": reply or None},
            ],
            "test_result": "1/1" if score > 0 else "0/1",
            "dataset_index": asked["row"],
            "family": asked["family"],
            "level": asked["level"],
        },
    }
