"""How commands are written in messages, and the configuration's part of the help texts."""

import json
import sys
import textwrap
from pathlib import Path

from gamespiel.config import presets
from gamespiel.config.parse import describe
from gamespiel.config.schema import HINTS, KEYS, SECTIONS, default_of

WIDTH = 100


def command(name: str) -> str:
    """How the user who started this process writes a command, "train" or "eval".

    In a checkout the commands are scripts; an installed wheel has `gamespiel` and `python -m gamespiel`.
    """
    started = Path(sys.argv[0])
    if started.name in ("train.py", "eval.py"):
        return f"python {started.with_name(f'{name}.py')}"
    as_module = started.parts[-2:] == ("gamespiel", "__main__.py")
    return f"python -m gamespiel {name}" if as_module else f"gamespiel {name}"


def config_help() -> str:
    """All presets, and all keys with their defaults: a line or two each."""
    lines = [f"presets: {', '.join(presets())}", ""]
    lines.append(
        "configuration keys (--section.key VALUE) with their defaults, which presets and files override:"
    )
    for section, fields in KEYS.items():
        lines += ["", f"  {section}: {(SECTIONS[section].__doc__ or '').strip()}"]
        for name, field in fields.items():
            left = f"    --{section}.{name}"
            right = (
                f"{field.metadata['doc']}; {describe(HINTS[section][name])} [{_inline(default_of(field))}]"
            )
            lines += textwrap.wrap(
                right,
                WIDTH,
                initial_indent=f"{left:<38} ",
                subsequent_indent=" " * 39,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def _inline(value: object) -> str:
    """A default as one would type it."""
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)
