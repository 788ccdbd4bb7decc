"""``TRACE_TASK_PATH``: questions in the words of a file of upstream's shape, which is never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import ArgumentError

FILE = '''
from no_such_module_anywhere import load_dataset

class TraceTask:
    async def generate(self, task_id=None):
        inputs = self.sample.get("inputs", "")
        transformed = inject(self.sample)
        prompt = f"""What does it print?

```python
{transformed}
```
It reads: {inputs}{{}}"""
        return Challenge(prompt=prompt, extra={})
'''


def first(task_id: int) -> tuple[str, Any]:
    env: Any = gym.make("CodeTrace-v0").unwrapped
    return env.reset(seed=0, options={"task_id": task_id})[0], env.trace


def test_the_question_is_upstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace_task.py").write_text(FILE)
    ours, _ = first(3)
    for place in (tmp_path, tmp_path / "trace_task.py"):
        monkeypatch.setenv("TRACE_TASK_PATH", str(place))
        text, trace = first(3)
        assert text == f"What does it print?\n\n```python\n{trace.code}\n```\nIt reads: {trace.stdin}{{}}"
    monkeypatch.setenv("TRACE_TASK_PATH", "")
    assert first(3)[0] == ours


def test_a_file_without_the_question_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.py"
    other.write_text("prompt = 'no places'\n")
    wrong = ((other, "has none, and 0 others"), (tmp_path, "No such file"), ("x\0", "null byte"))
    for place, message in wrong:
        monkeypatch.setattr("os.environ", {"TRACE_TASK_PATH": str(place)})
        with pytest.raises(ArgumentError, match=rf"TRACE_TASK_PATH: .* was given, allowed: .*{message}"):
            first(3)
