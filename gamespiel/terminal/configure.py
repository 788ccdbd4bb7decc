"""``gamespiel configure``: asks a few questions, and writes a configuration file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.config import ConfigError, InvalidValueError, from_dict, presets, resolve
from gamespiel.config.yaml_text import write_yaml
from gamespiel.environments.tree_values import find_trees
from gamespiel.report.console import make_console
from gamespiel.report.text import print_plain
from gamespiel.training.readiness import check_run
from gamespiel.usage import command
from task_gym.errors import TaskGymError, shown, unknown
from task_gym.files import write_atomically
from task_gym.opponents import SELF

TRACES = "traces"

QUESTIONS = (
    (
        "model",
        "tiny",
        "Which preset or model? {presets}; or OWNER/NAME of the hub, a folder, or a .gguf file",
    ),
    ("games", "leduc_poker", "Which games? Names (gamespiel games lists them), task ids as 0-99, or traces"),
    ("opponents", "random", "Which opponent? random, mcts:100, self, …; several are stages of a curriculum"),
    ("steps", "preset", "How many steps? A number, or preset: as many as the preset has"),
    ("output", "mine.yaml", "Which file is written?"),
)
"""In their order: the flag's name, the default answer, and the question."""

Data = dict[str, Any]
"""The content of a configuration file, by section."""


def configure(
    given: Mapping[str, str | None],
    *,
    ask: bool,
    force: bool = False,
    console: Console | None = None,
    read_line: Callable[[str], str] | None = None,
) -> Path:
    """Writes a configuration file; returns its path.

    Args:
        given: The answers of the flags, by question; None for those that were not given.
        ask: Whether what no flag answers is asked; otherwise it has its default.
        force: Whether a file that exists is replaced.
        console: The console to print on.
        read_line: Asks for a line, as ``input`` does; None for the terminal.

    Raises:
        ConfigError: The input ended; nothing is written.
        TaskGymError: The answer of a flag cannot be used, alone or with the others.
    """
    console = make_console(highlight=False) if console is None else console
    read_line = read_line or (lambda prompt: console.input(Text(prompt)))
    data: Data = {}
    output = Path()
    for name, default, question in QUESTIONS:
        asks = ask and given[name] is None and not (name == "opponents" and plays_traces(data))
        if asks:
            console.print(Text(question.format(presets=", ".join(list_presets()))))
        while True:
            text = given[name]
            if asks:
                text = _read(read_line, f"{name} [{default}]: ", console) or default
            elif text is None:
                text = "" if name == "opponents" and plays_traces(data) else default
            try:
                if name == "output":
                    output = check_output(text, force=force)
                    break
                answered = data | add_answer(data, name, text)
                if name == "opponents" and "preset" in answered:
                    answered["preset"] = choose_preset(answered)
                check_answers(answered, name)
            except TaskGymError as error:
                if not asks:
                    raise
                console.print(Text(" ".join(str(error).split())))
            else:
                data = answered
                break
    train = f"{command('train')} --config {shlex.quote(str(output))}"
    write_atomically(output, f"# Train: {train}\n{write_yaml(data)}")
    print_plain(console, f"written: {output}. What it takes, and the run:")
    for line in (f"  {train} --plan", f"  {train}"):
        console.print(Text(line), soft_wrap=True)
    return output


def plays_traces(data: Data) -> bool:
    """Tells whether the answers so far are of code tracing, which has no opponents."""
    return bool(data.get("env", {}).get("env_type") == "trace")


def add_answer(data: Data, name: str, text: str) -> Data:
    """Returns the sections that an answer changes.

    Raises:
        InvalidValueError: The text is no answer to this question.
    """
    parts = [part for part in re.split(r"[\s,]+", text) if part]
    if name == "model":
        if text in list_presets():
            return {"preset": text}
        if "/" in text or (text and Path(text).expanduser().exists()):
            return {"model": {"model_name": text}}
        others = "OWNER/NAME of the hub, a folder, or a .gguf file"
        raise InvalidValueError(f"{unknown('--model', text, list_presets())}; or {others}")
    if name == "steps":
        if text == "preset":
            return {}
        if not re.fullmatch(r"\d+(_\d+)*", text, re.ASCII):
            raise InvalidValueError(f"--steps: {shown(text)} was given, allowed: a number, or preset")
        return {"ppo": {"num_train_steps": int(text)}}
    if name == "games":
        env = choose_tasks(parts)
        if "preset" in data and resolve(data["preset"]).env.env_type == "trace":
            env = {"env_type": "openspiel"} | env
        return {"env": env}
    if plays_traces(data) and not parts:
        return {}
    if plays_traces(data):
        raise InvalidValueError(f"--opponents: {shown(text)} was given, and traces have none: leave it out")
    if not parts:
        raise InvalidValueError("--opponents: nothing was given, allowed: one, or one per stage")
    env = {"env": {**data["env"], "opponent": parts[0]}}
    if len(parts) == 1:
        return env
    return {**env, "curriculum": {"stages": [{"name": part, "opponent": part} for part in parts]}}


def check_answers(data: Data, name: str) -> None:
    """Checks a question's answer with those before it.

    Raises:
        TaskGymError: A run could not begin.
    """
    if name == "games":  # whoever plays there is asked next
        opponent = {} if plays_traces(data) else {"opponent": "random"}
        check_run(from_dict({"env": data["env"] | opponent}, "the answers"))
        return
    config = from_dict(data, "the answers")
    if name != "model":  # which alone has no tasks
        check_run(config)


def list_presets() -> list[str]:
    """Returns the presets whose tasks and opponents an answer may replace."""
    configs = {name: resolve(name) for name in presets()}
    return [
        name
        for name, config in configs.items()
        if not config.curriculum.stages and getattr(config.env, "seeds", "drawn") == "drawn"
    ]


def choose_preset(data: Data) -> str:
    """Returns the variant of a preset that is made for the tasks and the opponent, where there is one."""
    if plays_traces(data):
        suffix = "trace"
    elif data["env"]["opponent"] == SELF:
        suffix = "selfplay"
    else:
        suffix = "gae" if isinstance(find_trees(from_dict(data, "the answers")), str) else ""
    variant = f"{data['preset']}-{suffix}"
    return variant if variant in presets() else str(data["preset"])


def choose_tasks(parts: list[str]) -> Data:
    """Returns the keys that choose traces, games by name, or task ids and their ranges.

    Raises:
        InvalidValueError: There are none, or kinds of them are mixed.
    """
    from game_gym.games import TABLE

    number = r"(\d+(?:_\d+)*)"
    bounds = [re.fullmatch(f"{number}(?:-{number})?", part, re.ASCII) for part in parts]
    by_name = [part for part, bound in zip(parts, bounds, strict=True) if bound is None or part in TABLE]
    if parts == [TRACES]:
        return {"env_type": "trace"}
    if len(parts) == len(by_name) == 1:
        return {"game": parts[0]}
    if by_name == parts != [] and all(part in TABLE for part in parts):
        return {"allowed_game_indices": [TABLE.index(part) for part in parts]}
    if by_name or not parts:
        raise InvalidValueError(
            f"--games: {shown(' '.join(parts))} was given, allowed: {TRACES}, one game, several of "
            f"{', '.join(TABLE)}, or task ids and ranges as 0-99"
        )
    pairs = [(int(bound[1]), int(bound[2] or bound[1])) for bound in bounds if bound is not None]
    return {"task_ids": [low if low == high else [low, high] for low, high in pairs]}


def check_output(text: str, *, force: bool) -> Path:
    """Returns the file to write.

    Raises:
        InvalidValueError: The name has another ending, its folder is not there, or it is taken.
    """
    path = Path(text).expanduser()
    why = ""
    if path.suffix.lower() not in (".yaml", ".yml"):
        why = "allowed: a name that ends in .yaml or .yml"
    elif not path.parent.is_dir():
        why = f"and {str(path.parent)!r} is no folder"
    elif path.is_dir() or (path.exists() and not force):
        why = "which is a folder" if path.is_dir() else "which exists; --force replaces it"
    if why:
        raise InvalidValueError(f"--output: {shown(text)} was given, {why}")
    return path


def _read(read_line: Callable[[str], str], prompt: str, console: Console) -> str:
    try:
        return read_line(prompt).strip()
    except EOFError:
        console.print()
        ended = "the input ended before all questions were answered; nothing is written"
        raise ConfigError(ended) from None
