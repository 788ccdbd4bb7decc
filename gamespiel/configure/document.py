"""The text of the file: the preset, and each setting below a comment that says why it is there."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from gamespiel.config.schema import KEYS
from gamespiel.config.yaml_text import write_yaml
from gamespiel.configure.settings import Draft

WIDTH = 100


def render_document(draft: Draft, answers: Mapping[str, str], command: str) -> str:
    """Returns the file of a draft.

    Args:
        draft: The draft.
        answers: The answers as they were given, by question.
        command: The command that trains by the file.
    """
    given = ", ".join(f"{name} {text}" for name, text in answers.items())
    lines = [*_comment(f"Written by gamespiel configure, from: {given}."), *_comment(f"Train: {command}")]
    if draft.preset is None:
        lines += _comment("No preset: what is not below has the default for pretrained models.")
    else:
        lines += ["", *_comment(f'The preset has every value that is not below. It says: "{draft.reason}."')]
        lines.append(_entry("preset", draft.preset))
    for section in KEYS:
        own = [one for one in draft.settings if one.key.startswith(f"{section}.")]
        lines += ["", f"{section}:"] if own else []
        for setting in own:
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
    if isinstance(value, list | dict):
        return f"{name}: {json.dumps(value, ensure_ascii=False)}"
    text = write_yaml({name: value}).rstrip("\n")
    return text if "\n" not in text else f"{name}: {json.dumps(value, ensure_ascii=False)}"
