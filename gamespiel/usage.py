"""The commands as messages write them, and what the help says of the configuration."""

import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from gamespiel.config import DEFAULT_PRESET, DEFAULT_PRESETS, presets, resolve, to_dict
from gamespiel.config.schema import DOTTED, KEYS, SECTION_OF, SECTIONS, describe_type, node_of
from gamespiel.errors import unknown_name_error

WIDTH = 79


def command(name: str) -> str:
    """Returns how the user who started this process writes a command, "train" or "eval".

    In a checkout the commands are scripts; an installed wheel has ``gamespiel`` and ``python -m gamespiel``.
    """
    started = Path(sys.argv[0])
    if started.name in ("train.py", "eval.py"):
        return f"python {started.with_name(f'{name}.py')}"
    as_module = started.parts[-2:] == ("gamespiel", "__main__.py")
    return f"python -m gamespiel {name}" if as_module else f"gamespiel {name}"


def overview() -> str:
    """Returns the names of the presets and of the sections, with how a key is given."""
    names = list(presets())
    return "\n".join(
        [
            *textwrap.wrap(f"presets: {', '.join(names)}", WIDTH, break_on_hyphens=False),
            "",
            "configuration, --SECTION.KEY VALUE; --help SECTION lists its keys:",
            *(f"  {section:10}  {(cls.__doc__ or '').strip()}" for section, cls in SECTIONS.items()),
        ]
    )


def explain(name: str) -> str:
    """Returns the help of a section, of a key, or of a key with its section.

    Raises:
        UnknownKeyError: there is neither such a section nor such a key.
    """
    if name in SECTIONS:
        return (
            f"{name}: {(SECTIONS[name].__doc__ or '').strip()}\n{_in_force()}\n{_list_keys(name, KEYS[name])}"
        )
    key = name.rpartition(".")[2]
    section = SECTION_OF.get(key, "")
    if name not in (key, f"{section}.{key}") or not section:
        raise unknown_name_error("section or key", name, [*SECTIONS, *DOTTED])
    return f"{_list_keys(section, [key])}{_in_force()}"


def _in_force() -> str:
    others = "".join(
        f"With --env {name}, train uses {preset} and eval the defaults. "
        for name, preset in DEFAULT_PRESETS.items()
        if preset != DEFAULT_PRESET
    )
    text = (
        f"In brackets: the values of the preset {DEFAULT_PRESET}, which is in force if no preset, file or "
        f"run is named, nor a model to evaluate. {others}"
        "A file given with --config starts from the defaults: gamespiel schema lists them."
    )
    return "".join(f"{line}\n" for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False))


def _list_keys(section: str, names: Iterable[str]) -> str:
    """Returns what keys do, with their types and the values of the default preset."""
    values = to_dict(resolve(DEFAULT_PRESET))[section]
    lines = []
    for name in names:
        node = node_of(section, [name])
        text = f"{node['description']}; {describe_type(node)} [{_format_inline(values[name])}]"
        lines.append(f"  --{section}.{name}")
        lines += textwrap.wrap(
            text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False
        )
    return "".join(f"{line}\n" for line in lines)


def _format_inline(value: object) -> str:
    """Returns a value as one would type it."""
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)
