"""The wizard: asks what no flag answers, writes the file, and prints the plan and the command.

In the file, each setting is below a comment that says why it is there.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.agents.models.memory_plan import GIB, plan
from gamespiel.agents.models.weights import ModelError
from gamespiel.config import Config, ConfigError, InvalidValueError, notices, preset_path
from gamespiel.config.schema import KEYS
from gamespiel.config.yaml_text import write_yaml
from gamespiel.configure import answers as read
from gamespiel.configure.answers import CPU, TRACES, Answers
from gamespiel.configure.pace import Pace, hour_settings
from gamespiel.configure.settings import Draft, check_opponents, draft_of, fit, start_drafts
from gamespiel.training.planning import find_card_memory, load_of, parts_table
from gamespiel.training.readiness import check_run
from gamespiel.usage import command
from task_gym.errors import TaskGymError
from task_gym.files import write_atomically

WIDTH = 100
"""The most characters of a line of the file's comments."""

QUESTIONS = (
    ("model", "tiny", f"Which model? {', '.join(read.short_names())}, a preset, OWNER/NAME of the hub, or a "
     "folder"),
    ("card", None, f"Which card? {', '.join(read.CARDS)}, or its memory in GiB"),
    ("games", "leduc_poker", "Which games? Names (gamespiel games lists them), task ids as 0-99, or traces"),
    ("opponents", "random", "Which opponent? random, mcts, mcts:100, ismcts, self, …; several are stages of "
     "a curriculum"),
    ("hours", read.NONE, f"How many hours? {read.NONE}: as many steps as the preset has"),
    ("output", "mine.yaml", "Which file is written?"),
)  # fmt: skip
"""In their order: the flag's name, the default answer (None for this machine's card), and the question."""


def find_card() -> str:
    """Returns the answer for the card of this machine: its memory in GiB, or "cpu"."""
    if importlib.util.find_spec("torch") is None:
        return CPU
    memory = find_card_memory(Config())
    return CPU if memory is None else f"{memory / GIB:.1f}"


def _read_answer(name: str, text: str, before: Mapping[str, Any], force: bool) -> Any:
    """Returns the value of an answer, which must suit the answers before it."""
    match name:
        case "model":
            return read.read_model(text)
        case "card":
            card = read.read_card(text)
            fit(start_drafts(before["model"]), card)  # raises if it does not
            return card
        case "games":
            return read.read_tasks(text)
        case "opponents":
            opponents = read.read_opponents(text)
            check_opponents(before["games"], opponents)
            return opponents
        case "hours":
            return read.read_hours(text)
    return read.read_output(text, force=force)


def configure(
    given: Mapping[str, str | None],
    *,
    ask: bool,
    defaults: bool = False,
    force: bool = False,
    console: Console | None = None,
    read_line: Callable[[str], str] | None = None,
) -> Path:
    """Writes a configuration file; returns its path.

    Args:
        given: The answers of the flags, by question; None for those that were not given.
        ask: Whether there is somebody to ask.
        defaults: Whether the defaults are the answers that no flag gives: nothing is asked.
        force: Whether a file that exists is replaced.
        console: The console to print on.
        read_line: Asks for a line, as ``input`` does; None for the terminal.

    Raises:
        ConfigError: Answers are missing, or the input ended; nothing is written.
        TaskGymError: The answer of a flag cannot be used.
    """
    console = Console(highlight=False) if console is None else console
    read_line = read_line or (lambda prompt: console.input(Text(prompt)))
    has_traces = (given["games"] or "").strip() == TRACES
    needed = [name for name, *_ in QUESTIONS if not (has_traces and name == "opponents")]
    missing = [f"--{name}" for name in needed if given[name] is None]
    if missing and not (ask or defaults):
        raise ConfigError(
            f"answers are missing, and without a terminal nobody can be asked: give {', '.join(missing)}, "
            "or --yes for their defaults"
        )
    texts: dict[str, str] = {}
    values: dict[str, Any] = {"opponents": ()}
    for name, default, question in QUESTIONS:
        text = given[name]
        if name == "opponents" and values["games"].traces:
            if text is not None:
                raise InvalidValueError(f"--{name}: {text!r} was given, and traces have none: leave it out")
            continue
        parse = partial(_read_answer, name, before=values, force=force)
        asks = text is None and ask and not defaults
        if text is None:
            text = find_card() if default is None else default
        if asks:
            _print(console, question)
            texts[name], values[name] = _ask(name, text, parse, console, read_line)
        else:
            texts[name], values[name] = text, parse(text)
    answers = Answers(*(values[name] for name, *_ in QUESTIONS))
    draft = draft_of(answers)
    settings, pace = hour_settings(draft, answers)
    draft = draft.add(settings).drop_repeats()
    check_run(draft.config())
    train = f"{command('train')} --config {shlex.quote(str(answers.output))}"
    write_atomically(answers.output, render_document(draft, texts, train))
    _show(console, draft, answers, pace, train)
    return answers.output


def _ask(
    name: str,
    default: str,
    parse: Callable[[str], Any],
    console: Console,
    read_line: Callable[[str], str],
) -> tuple[str, Any]:
    """Returns the text and the value of an answer; asks again until the answer is one."""
    while True:
        try:
            text = read_line(f"{name} [{default}]: ").strip() or default
        except EOFError:
            console.print()
            ended = "the input ended before all questions were answered; nothing is written"
            raise ConfigError(ended) from None
        try:
            return text, parse(text)
        except TaskGymError as error:
            _print(console, str(error).removeprefix(f"--{name}: "))


def _show(console: Console, draft: Draft, answers: Answers, pace: Pace | None, train: str) -> None:
    """Prints what the configuration takes, and the command that trains by it."""
    config = draft.config()
    try:
        load = load_of(config)
    except ModelError as error:
        _print(console, f"memory is not planned: {error}")
    else:
        memory = plan(load)
        console.print(parts_table(load, memory))
        if answers.card is not None:
            verdict = "fits" if memory.fits(answers.card * GIB) else "does not fit"
            _print(console, f"{verdict} a card of {answers.card:g} GiB, 10% of which stay free")
    for setting in draft.settings:
        if setting.key == "ppo.num_train_steps":
            _print(console, f"{setting.value:,} steps: {setting.reason}")
    for notice in notices(config):
        _print(console, notice)
    _print(console, f"written: {answers.output}. Train with")
    console.print(Text(f"  {train}"), soft_wrap=True)
    if pace is not None and not pace.is_measured:
        _print(console, f"or, to stop after {answers.hours:g} h whatever a step takes,")
        console.print(Text(f"  timeout --foreground -s INT {answers.hours:g}h {train}"), soft_wrap=True)


def _print(console: Console, text: str) -> None:
    """Prints a paragraph that is no markup, wrapped at words."""
    for line in textwrap.wrap(" ".join(text.split()), console.width, break_on_hyphens=False):
        console.print(Text(line), soft_wrap=True)


def render_document(draft: Draft, answers: Mapping[str, str], command: str) -> str:
    """Returns the file of a draft.

    Args:
        draft: The draft.
        answers: The answers as they were given, by question.
        command: The command that trains by the file.
    """
    texts = ", ".join(f"{name} {text}" for name, text in answers.items())
    lines = [*_comment(f"Written by gamespiel configure, from: {texts}."), *_comment(f"Train: {command}")]
    if draft.preset is None:
        lines += _comment("No preset: what is not below has the default for pretrained models.")
    else:
        purpose = _read_purpose(draft.preset)
        lines += ["", *_comment(f'The preset has every value that is not below. It says: "{purpose}."')]
        lines.append(_entry("preset", draft.preset))
    for section in KEYS:
        settings = [setting for setting in draft.settings if setting.key.startswith(f"{section}.")]
        lines += ["", f"{section}:"] if settings else []
        for setting in settings:
            lines += _comment(f"{setting.reason[0].upper()}{setting.reason[1:]}.", "  ")
            lines.append(f"  {_entry(setting.key.partition('.')[2], setting.value)}")
    return "\n".join(lines) + "\n"


def _read_purpose(preset: str) -> str:
    """Returns the first sentence of the comment below the first line of a preset's file."""
    lines = preset_path(preset).read_text(encoding="utf-8").splitlines()[1:]
    comment = " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
    return re.split(r"\.(?: |$)", comment, maxsplit=1)[0]


def _comment(text: str, indent: str = "") -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        " ".join(text.split()), WIDTH, initial_indent=start, subsequent_indent=start,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _entry(name: str, value: Any) -> str:
    """Returns a key with its value on one line: JSON is YAML too."""
    text = write_yaml({name: value}).rstrip("\n")
    is_short = "\n" not in text and not isinstance(value, list | dict)
    return text if is_short else f"{name}: {json.dumps(value, ensure_ascii=False)}"
