"""Texts out of somebody's Python file, which is never run: an f-string, with values put in its places."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Template:
    """A text with places.

    Attributes:
        parts: (text, "") for a text, and ("", expression) for a place, as ``ast.unparse`` writes it.
    """

    parts: tuple[tuple[str, str], ...]

    def fill(self, values: Mapping[str, object]) -> str:
        """Returns the text with a value in each place, by expression."""
        return "".join(text + (str(values[place]) if place else "") for text, place in self.parts)


def read_template(file: Path, variable: str, expressions: Collection[str]) -> Template:
    """Returns the f-string that a file assigns to a variable, in whatever function.

    Args:
        file: The Python file. Nothing of it is run.
        variable: The variable's name.
        expressions: The expressions of the f-string's places, as ``ast.unparse`` writes them. Another
            f-string that is assigned to the variable is passed by.

    Raises:
        ValueError: there is no such f-string, or more than one; the message says what the file has.
        OSError: the file cannot be read.
    """
    needed = set(expressions)
    templates: list[Template] = []
    others: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.JoinedStr):
            continue
        if not any(isinstance(target, ast.Name) and target.id == variable for target in node.targets):
            continue
        template = _read(node.value)
        places = {place for _, place in template.parts if place} if template is not None else set()
        if template is not None and places == needed:
            templates.append(template)
        else:
            others.append(", ".join(sorted(places)) or "no plain expressions")
    wanted = f"one f-string that is assigned to {variable!r}, with the places {', '.join(sorted(needed))}"
    if len(templates) != 1:
        has = f"{len(templates)}" if templates else f"none, and {len(others)} others ({'; '.join(others)})"
        raise ValueError(f"{file} has {has}; needed: {wanted}")
    return templates[0]


def _read(text: ast.JoinedStr) -> Template | None:
    """Returns an f-string as a template; None if a place has a conversion or a format."""
    parts: list[tuple[str, str]] = []
    for value in text.values:
        if isinstance(value, ast.Constant):
            parts.append((str(value.value), ""))
        elif isinstance(value, ast.FormattedValue) and value.conversion == -1 and value.format_spec is None:
            parts.append(("", ast.unparse(value.value)))
        else:
            return None
    return Template(tuple(parts))
