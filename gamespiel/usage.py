"""The commands as messages write them, and the configuration's part of the help texts."""

import json
import sys
import textwrap
from pathlib import Path

from gamespiel.config import DEFAULT_PRESET, DEFAULT_PRESETS, Config, missing, presets, resolve, to_dict
from gamespiel.config.schema import SECTIONS, describe_type, node_of

WIDTH = 100


def command(name: str) -> str:
    """Returns how the user who started this process writes a command, "train" or "eval".

    In a checkout the commands are scripts; an installed wheel has ``gamespiel`` and ``python -m gamespiel``.
    """
    started = Path(sys.argv[0])
    if started.name in ("train.py", "eval.py"):
        return f"python {started.with_name(f'{name}.py')}"
    as_module = started.parts[-2:] == ("gamespiel", "__main__.py")
    return f"python -m gamespiel {name}" if as_module else f"gamespiel {name}"


def config_help() -> str:
    """Returns the presets, and all keys with the values of the default preset."""
    configs = {name: resolve(name) for name in presets()}
    others = "".join(
        f"With --env {name}, train uses {preset} and eval the defaults. "
        for name, preset in DEFAULT_PRESETS.items()
        if preset != DEFAULT_PRESET
    )
    paragraphs = [
        f"presets: {', '.join(map(_describe_preset, configs, configs.values()))}",
        f"configuration keys (--section.key VALUE) with the values of the preset {DEFAULT_PRESET}, which is "
        f"in force if no preset, file or run is named, nor a model to evaluate. {others}"
        "A file given with --config also starts from the defaults: gamespiel schema lists them.",
    ]
    lines = [
        line for text in paragraphs for line in [*textwrap.wrap(text, WIDTH, break_on_hyphens=False), ""]
    ]
    for section, values in to_dict(configs[DEFAULT_PRESET]).items():
        lines.append(f"  {section}: {(SECTIONS[section].__doc__ or '').strip()}")
        for name, value in values.items():
            node = node_of(section, [name])
            lines += textwrap.wrap(
                f"{node['description']}; {describe_type(node)} [{_format_inline(value)}]",
                WIDTH,
                initial_indent=f"{f'    --{section}.{name}':<38} ",
                subsequent_indent=" " * 39,
                break_on_hyphens=False,
            )
        lines.append("")
    return "\n".join(lines[:-1])


def _describe_preset(name: str, config: Config) -> str:
    """Returns a preset's name, with the keys in it that ask for a missing engine."""
    keys = ", ".join(missing(config))
    return f"{name} (not built yet: {keys})" if keys else name


def _format_inline(value: object) -> str:
    """Returns a value as one would type it."""
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)
