"""Writes the sources of the documentation site to build/docs: `python -m docs.site`.

The pages of docs/ and some others of the repository are copied, with their links rewritten. The pages of
games, of families of programs and of the reference are generated. mkdocs makes the site (`make docs`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from docs import game_facts
from docs.game_pages import game_page
from docs.reference import ROOMS, reference_page
from docs.trace_pages import family_page
from trace_gym.programs.builtin import NAMES

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "docs"

#: Pages outside docs/ to their names in the site.
OTHERS = {
    "README.md": "index.md",
    ".github/CONTRIBUTING.md": "contributing.md",
    ".github/SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}

#: Pages whose last sections, one per game or family, are pages of their own in the site: the heading above
#: these sections, and the section that lists the pages.
SPLIT = {
    "games.md": ("The games one by one", "find-a-game"),
    "trace.md": ("A program of each family", "task-ids-families-and-levels"),
}

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def site_pages() -> dict[str, str]:
    """Returns the committed pages of the site: path in the repository to path in the site."""
    names = sorted(path.name for path in (ROOT / "docs").glob("*.md") if not path.stem.endswith("_template"))
    return {**{f"docs/{name}": name for name in names}, **OTHERS}


def generated() -> dict[str, Callable[[], str]]:
    """Returns the generated pages of the site: path in the site to what makes the text."""
    pages: dict[str, Callable[[], str]] = {}
    for name in game_facts.names():
        pages[f"games/{name}.md"] = lambda name=name: game_page(name)
    for name in NAMES:
        pages[f"traces/{name}.md"] = lambda name=name: family_page(name)
    for room in ROOMS:
        pages[f"reference/{room}.md"] = lambda room=room: reference_page(room)
    return pages


def copied(path: str) -> str:
    """Returns a committed page as the site shows it.

    Args:
        path: The page's path in the repository.

    Raises:
        ValueError: a link leads to a file that does not exist.
    """
    text = (ROOT / path).read_text(encoding="utf-8")
    name = site_pages()[path]
    if name in SPLIT:
        text = text.partition(f"\n## {SPLIT[name][0]}\n")[0] + "\n"
    return "".join(
        part if is_code else LINK.sub(lambda match: _link(path, *match.groups()), part)
        for is_code, part in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yields the text in parts, each with whether it is a fenced block."""
    start = 0
    for match in FENCE.finditer(text):
        yield False, text[start : match.start()]
        yield True, match[0]
        start = match.end()
    yield False, text[start:]


def _link(page: str, mark: str, label: str, target: str) -> str:
    """Returns a repository page's link as the site's, or its label if the site lacks the target."""
    if re.match(r"[a-z]+:", target):
        return f"{mark}[{label}]({target})"
    path, _, anchor = target.partition("#")
    goal = os.path.normpath(Path(page).parent / path) if path else page
    if not (ROOT / goal).exists():
        raise ValueError(f"{page}: a link to {target!r} was given, and there is no such file")
    here = Path(site_pages()[page]).parent
    there = site_pages().get(goal) or _asset(goal)
    if there is None:
        return label
    single = _single(there, anchor)
    shown = single or (f"{there}#{anchor}" if anchor else there)
    return f"{mark}[{label}]({f'#{anchor}' if not path and not single else os.path.relpath(shown, here)})"


def _single(there: str, anchor: str) -> str | None:
    """Returns where a section of a split page is in the site; None for the sections that are still there."""
    if there not in SPLIT or not anchor:
        return None
    heading, listed = SPLIT[there]
    if heading.lower().replace(" ", "-") == anchor:
        return f"{there}#{listed}"
    if there == "games.md":
        return f"games/{anchor}.md" if anchor in game_facts.names() else None
    family = anchor.partition("-at-level-")[0]
    return f"traces/{family}.md" if family in NAMES else None


def _asset(goal: str) -> str | None:
    return f"assets/{Path(goal).name}" if Path(goal).suffix in (".png", ".svg") else None


def write() -> None:
    """Writes all pages, pictures and scripts anew."""
    shutil.rmtree(BUILD, ignore_errors=True)
    for path, name in site_pages().items():
        _write(name, copied(path))
        for _, _, target in LINK.findall((ROOT / path).read_text(encoding="utf-8")):
            goal = os.path.normpath(Path(path).parent / target)
            if (asset := _asset(goal)) and (ROOT / goal).is_file():
                (BUILD / "assets").mkdir(exist_ok=True)
                shutil.copy(ROOT / goal, BUILD / asset)
    for name, make in generated().items():
        _write(name, make())
    index = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    _write("llms.txt", re.sub(r"\]\(([\w-]+)\.md\)", r"](\1.html)", index))
    shutil.copytree(ROOT / "docs" / "assets", BUILD / "assets", dirs_exist_ok=True)
    shutil.copy(ROOT / "gamespiel" / "replay" / "viewer.js", BUILD / "assets")


def _write(name: str, text: str) -> None:
    path = BUILD / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"written to {BUILD}")
