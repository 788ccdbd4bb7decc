"""The site's page of each family of programs: made from the generator and the environments."""

from __future__ import annotations

import contextlib
import io
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import trace_gym  # noqa: F401  (registers the environments)
from docs.generate_games import table
from docs.generate_trace import example_level, fenced
from trace_gym.admission.measure import execute
from trace_gym.programs.builtin import CELLS, FAMILIES, LEVELS, NAMES, generate, points

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "trace_scores.json"

#: The written answers that are measured, in words.
WRITTEN = {"empty": "nothing", "echo": "the program's text literals"}

PLAY = """\
import gymnasium as gym
import trace_gym

env = gym.make("CodeTrace-v0", task_id={task_id})
observation, info = env.reset(seed=0)
print(observation)
truth = env.unwrapped.trace.truth
for reply in (truth, truth.partition("\\n")[0], ""):
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(reply)
    print(len(reply.splitlines()), "lines:", info["by_scoring"])
"""


def family_page(name: str) -> str:
    """Returns the text of one family's page."""
    index = NAMES.index(name)
    module = import_module(f"trace_gym.programs.builtin.families.{name}")
    code, printed = played(index + len(FAMILIES) * (example_level(index) - LEVELS[0]))
    parts = [
        f"# {name}",
        (module.__doc__ or "").partition("\n")[0],
        f"Task ids: those with id mod {len(FAMILIES)} = {index}, or all with `family={name!r}`. "
        f"The level is 1 + (id mod {CELLS}) // {len(FAMILIES)}.",
        "## Levels",
        "The first program of each level. A level is four "
        "[points](../trace.md#task-ids-families-and-levels).",
        level_table(index),
        "## A task",
        f"One of level {example_level(index)}. The replies are the whole output, its first line, and "
        "nothing. [Scores](../trace.md#scores) says what each scoring counts.",
        f"```python\n{code}```",
        "prints",
        fenced("text", printed),
        "## Baselines",
        baselines(name),
        "These commands play them, on drawn programs of this family:",
        f"```bash\n{commands(name)}```",
    ]
    return "\n\n".join(parts) + "\n"


def baselines(name: str) -> str:
    """Returns the table of what simple answers score in the family's tasks, as it was measured."""
    rows = {row["family"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]}
    if name not in rows:
        return f"Not measured yet: `python -m benchmarks.trace_scores --keep --families {name}` does it."
    row = rows[name]
    random, (words, low, high) = row["choices"]["random"][0], row["choices"]["words"]
    lines = [
        ["`CodeTraceChoice-v0`", "`random`: any output", f"right in {random:.1%}"],
        [
            "`CodeTraceChoice-v0`",
            "`words`: the output with the largest share of words that are in the program",
            f"right in {words:.1%} [{low:.1%}, {high:.1%}]",
        ],
    ]
    for agent, said in WRITTEN.items():
        shown = ", ".join(f"{scoring} {score:.1%}" for scoring, score in row["replies"][agent].items())
        lines.append(["`CodeTrace-v0`", f"`{agent}`: {said}", shown])
    head = f"On {row['tasks']} tasks of all levels, with a 95% interval. None of these traces the program."
    return "\n\n".join([head, table(["environment", "answer", "result"], lines)])


def played(task_id: int) -> tuple[str, str]:
    """Returns the page's example and what it prints."""
    code = PLAY.format(task_id=task_id)
    printed = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"task {task_id}", "exec"), names)
    names["env"].close()
    return code, printed.getvalue()


def level_table(index: int) -> str:
    """Returns the table of the first program of each level: its id, work and size."""
    rows = []
    for level in LEVELS:
        task_id = index + len(FAMILIES) * (level - LEVELS[0])
        program = generate(task_id)
        measured = execute(program.code, program.stdin)
        rows.append(
            [
                level,
                task_id,
                f"{measured.lines:,}",
                points(measured),
                len(measured.stdout.splitlines()),
                f"{len(program.code):,}",
            ]
        )
    return table(
        ["level", "task id", "executed lines", "points", "lines of output", "characters of text"], rows
    )


def commands(name: str) -> str:
    """Returns the commands that measure baselines on this family."""
    return "".join(
        f"python eval.py --env trace --agent {agent} --env.family {name} --num_episodes 500\n"
        for agent in ("echo", "empty", "random")
    )
