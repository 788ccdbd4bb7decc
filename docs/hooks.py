"""A hook of mkdocs: folders in the navigation."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Puts the pages of a folder in the place of each entry of the navigation that ends in "/"."""
    config["nav"] = [_filled(entry, Path(config["docs_dir"])) for entry in config["nav"]]
    return config


def _filled(entry: Any, folder: Path) -> Any:
    if isinstance(entry, str):
        return entry
    ((title, inside),) = entry.items()
    if not isinstance(inside, list):
        return entry
    pages = []
    for each in inside:
        if isinstance(each, str) and each.endswith("/"):
            pages += [f"{each}{path.name}" for path in sorted((folder / each).glob("*.md"))]
        else:
            pages.append(_filled(each, folder))
    return {title: pages}
