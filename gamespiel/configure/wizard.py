"""The wizard: asks what no flag answers, writes the file, and prints the plan and the command.

In the file, each setting is below a comment that says why it is there.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.agents.models.memory_plan import GIB, plan
from gamespiel.agents.models.weights import ModelError
from gamespiel.config import Config, ConfigError, InvalidValueError, notices
from gamespiel.config.schema import KEYS
from gamespiel.config.yaml_text import write_yaml
from gamespiel.configure import answers as read
from gamespiel.configure.answers import Answers, ModelAnswer
from gamespiel.configure.pace import Pace, hour_settings
from gamespiel.configure.settings import Draft, check_opponents, draft_of, fit, start_drafts
from gamespiel.report.tables import parts_table
from gamespiel.training.planning import find_card_memory, load_of
from gamespiel.training.readiness import check_run
from gamespiel.usage import command
from task_gym.errors import TaskGymError
from task_gym.files import write_atomically

Read = Callable[[str], str]
"""Asks for a line, as ``input`` does."""

WIDTH = 100
"""The most characters of a line of the file's comments."""


@dataclass(frozen=True)
class Question:
    """A question of the wizard.

    Attributes:
        name: Its name, which is its flag's too.
        text: The question.
        default: Its default answer.
        parse: The answer's text, and the answers before it by name, to its value.
    """

    name: str
    text: str
    default: Callable[[], str]
    parse: Callable[[str, Mapping[str, Any]], Any]


def list_questions(force: bool) -> tuple[Question, ...]:
    """Returns the questions in their order."""
    models = ", ".join(read.short_names())
    return (
        Question(
            "model",
            f"Which model? {models}, a preset, OWNER/NAME of the hub, or a folder",
            lambda: "tiny",
            lambda text, before: read.read_model(text),
        ),
        Question(
            "card",
            f"Which card? {', '.join(read.CARDS)}, or its memory in GiB",
            find_card,
            lambda text, before: _fit_card(read.read_card(text), before["model"]),
        ),
        Question(
            "games",
            "Which games? Names (gamespiel games lists them), task ids as 0-99, or traces",
            lambda: "leduc_poker",
            lambda text, before: read.read_tasks(text),
        ),
        Question(
            "opponents",
            "Which opponent? random, mcts, mcts:100, ismcts, self, …; several are stages of a curriculum",
            lambda: "random",
            lambda text, before: _check_opponents(read.read_opponents(text), before["games"]),
        ),
        Question(
            "hours",
            f"How many hours? {read.NONE}: as many steps as the preset has",
            lambda: read.NONE,
            lambda text, before: read.read_hours(text),
        ),
        Question(
            "output",
            "Which file is written?",
            lambda: "mine.yaml",
            lambda text, before: read.read_output(text, force=force),
        ),
    )


def find_card() -> str:
    """Returns the answer for the card of this machine: its memory in GiB, or "cpu"."""
    if importlib.util.find_spec("torch") is None:
        return read.CPU
    found = find_card_memory(Config())
    return read.CPU if found is None else f"{found / GIB:.1f}"


def _fit_card(card: float | None, model: ModelAnswer) -> float | None:
    fit(start_drafts(model), card)  # raises if it does not
    return card


def _check_opponents(opponents: tuple[str, ...], tasks: read.TaskAnswer) -> tuple[str, ...]:
    check_opponents(tasks, opponents)
    return opponents


def configure(
    given: Mapping[str, str | None],
    *,
    ask: bool,
    defaults: bool = False,
    force: bool = False,
    console: Console | None = None,
    read_line: Read | None = None,
) -> Path:
    """Writes a configuration file; returns its path.

    Args:
        given: The answers of the flags, by question; None for those that were not given.
        ask: Whether there is somebody to ask.
        defaults: Whether the defaults are the answers that no flag gives: nothing is asked.
        force: Whether a file that exists is replaced.
        console: The console to print on.
        read_line: Asks for a line; None for the terminal.

    Raises:
        ConfigError: Answers are missing, or the input ended; nothing is written.
        TaskGymError: The answer of a flag cannot be used.
    """
    console = Console(highlight=False) if console is None else console
    read_line = read_line or (lambda prompt: console.input(Text(prompt)))
    texts: dict[str, str] = {}
    values: dict[str, Any] = {"opponents": ()}
    questions = list_questions(force)
    if not (ask or defaults):
        _require_all(given, questions)
    for question in questions:
        name, text = question.name, given[question.name]
        if name == "opponents" and values["games"].traces:
            if text is not None:
                raise InvalidValueError(
                    f"--opponents: {text!r} was given, and traces have none: leave it out"
                )
        elif text is None and ask and not defaults:
            texts[name], values[name] = _ask(question, values, console, read_line)
        else:
            texts[name] = question.default() if text is None else text
            values[name] = question.parse(texts[name], values)
    answers = Answers(*(values[question.name] for question in questions))
    draft = draft_of(answers)
    settings, pace = hour_settings(draft, answers)
    draft = draft.add(settings).drop_repeats()
    config = draft.config()
    check_run(config)
    train = f"{command('train')} --config {shlex.quote(str(answers.output))}"
    write_atomically(answers.output, render_document(draft, texts, train))
    _show(console, draft, answers, pace, train)
    return answers.output


def _require_all(given: Mapping[str, str | None], questions: tuple[Question, ...]) -> None:
    """Raises unless every question has the answer of a flag; traces need no opponents."""
    traces = (given["games"] or "").strip() == read.TRACES
    missing = [
        f"--{question.name}"
        for question in questions
        if given[question.name] is None and not (traces and question.name == "opponents")
    ]
    if missing:
        raise ConfigError(
            f"answers are missing, and without a terminal nobody can be asked: give {', '.join(missing)}, "
            "or --yes for their defaults"
        )


def _ask(question: Question, before: Mapping[str, Any], console: Console, read_line: Read) -> tuple[str, Any]:
    """Returns the text and the value of an answer; asks again until the answer is one."""
    default = question.default()
    _print(console, question.text)
    while True:
        try:
            text = read_line(f"{question.name} [{default}]: ").strip() or default
        except EOFError:
            console.print()
            raise ConfigError(
                "the input ended before all questions were answered; nothing is written"
            ) from None
        try:
            return text, question.parse(text, before)
        except TaskGymError as error:
            _print(console, str(error).removeprefix(f"--{question.name}: "))


def _show(console: Console, draft: Draft, answers: Answers, pace: Pace | None, train: str) -> None:
    """Prints what the configuration takes, and the command that trains by it."""
    config = draft.config()
    try:
        load = load_of(config)
    except ModelError as error:
        _print(console, f"memory is not planned: {error}")
    else:
        made = plan(load)
        console.print(parts_table(load, made))
        if answers.card is not None:
            verdict = "fits" if made.fits(answers.card * GIB) else "does not fit"
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
        lines += ["", *_comment(f'The preset has every value that is not below. It says: "{draft.reason}."')]
        lines.append(_entry("preset", draft.preset))
    for section in KEYS:
        settings = [setting for setting in draft.settings if setting.key.startswith(f"{section}.")]
        lines += ["", f"{section}:"] if settings else []
        for setting in settings:
            lines += _comment(f"{setting.reason[0].upper()}{setting.reason[1:]}.", "  ")
            lines.append(f"  {_entry(setting.key.partition('.')[2], setting.value)}")
    return "\n".join(lines) + "\n"


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
