"""Chat templates, rendered within limits of time and memory: programs that come with a model's files.

Jinja's sandbox keeps a template from the machine, but not from looping or growing without end. So a template
other than the embedded model's is rendered in a process of its own, whose limits the kernel keeps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from task_gym.caller import Caller
from task_gym.errors import TaskGymError
from task_gym.processes import OFFERED, EndedError, Nursery, Pool

SECONDS = 10.0
"""Processor time of one rendering, the template's compilation included."""

MEMORY = 512 << 20
"""Bytes that a rendering may take."""

MOST = 32 << 20
"""The most characters of a rendered text."""

LONGEST = 1 << 20
"""The most characters of a template."""

_MODULE = "transformers.utils.chat_template_utils"
_pool = Pool(Nursery((__name__, _MODULE)), 1)
_lock = threading.Lock()  # all renderings together take no more than one may


class TemplateFailure(TaskGymError):
    """A template that fails, or that takes more than it may; the message is the reason."""


class _Rendering(NamedTuple):
    """A request for a rendered conversation."""

    template: str
    messages: list[dict[str, str]]
    settings: dict[str, Any]

    def answer(self) -> tuple[str, str]:
        """Returns the text, or why there is none; called in the other process."""
        _limit_memory()
        try:
            text = _render(self.template, self.messages, self.settings)
        except MemoryError:
            return "", f"it takes more than {MEMORY >> 20} MiB of memory"
        except Exception as error:
            return "", str(error) or type(error).__name__
        return (text, "") if len(text) <= MOST else ("", f"it writes more than {MOST:,} characters")


def render(template: str, messages: Sequence[Mapping[str, str]], settings: Mapping[str, Any]) -> str:
    """Returns a conversation as a template writes it.

    Args:
        template: The template.
        messages: The conversation.
        settings: What else the template knows, such as special tokens.

    Raises:
        TemplateFailure: it fails, or takes more time or memory than it may.
    """
    if len(template) > LONGEST:
        raise TemplateFailure(f"it has {len(template):,} characters, allowed: at most {LONGEST:,}")
    said = [{name: str(text) for name, text in message.items()} for message in messages]
    if not OFFERED or template == _own_template():
        try:
            return _render(template, said, dict(settings))
        except Exception as error:
            raise TemplateFailure(str(error) or type(error).__name__) from error
    text, failure = _ask(_Rendering(template, said, dict(settings)))
    if failure:
        raise TemplateFailure(failure)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TemplateFailure("it writes half a surrogate pair, which is no character") from error
    return text


def _ask(rendering: _Rendering) -> tuple[str, str]:
    """Returns what a process answers: the text, or why there is none."""
    try:
        with _lock:
            answer, failure, _ = _pool.ask(rendering, SECONDS, Caller())
    except (EndedError, OSError) as error:
        late = isinstance(error, EndedError) and error.is_late
        return "", f"it takes more than {SECONDS:g} s" if late else f"its process has ended: {error}"
    return answer or ("", failure)


def _render(template: str, messages: list[dict[str, str]], settings: dict[str, Any]) -> str:
    """Returns what transformers' ``apply_chat_template`` does with ``tokenize=False``."""
    from transformers.utils.chat_template_utils import render_jinja_template

    rendering: Any = render_jinja_template(conversations=[messages], chat_template=template, **settings)
    text: str = rendering[0][0]
    return text


@lru_cache(maxsize=1)
def _own_template() -> str:
    """Returns the embedded model's template, which is ours."""
    return (Path(__file__).parents[1] / "tiny" / "chat_template.jinja").read_text(encoding="utf-8")


_limited = False


def _limit_memory() -> None:
    """Has the kernel refuse this process more memory, beyond what it has."""
    global _limited
    if _limited:
        return
    import resource

    used = 0
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status", encoding="ascii") as lines:
            used = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
    most = used + MEMORY
    for limit in (resource.RLIMIT_DATA, resource.RLIMIT_CORE):
        value = most if limit == resource.RLIMIT_DATA else 0
        resource.setrlimit(limit, (value, value))
    _limited = True


def _unlock() -> None:
    """Makes the lock anew, in a fork: a thread that it has not may hold it."""
    global _lock
    _lock = threading.Lock()


if OFFERED:
    os.register_at_fork(after_in_child=_unlock)
