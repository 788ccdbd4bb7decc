"""Prints the test files of a room, or of a change: ``make test ROOM=trace_gym`` and ``make test CHANGED=1``.

A room's tests are its own and those that import more of it than its errors. A change's tests are those that
changed, and those that import a changed module or a module that imports one. Imports through helpers in
``tests/`` and inside functions count. A changed file that is no module changes the modules and tests that
contain its name.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("task_gym", "game_gym", "trace_gym", "agents", "gamespiel")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--room", choices=ROOMS)
    parser.add_argument("--changed", metavar="COMMIT", help="what differs from COMMIT; 1: from HEAD")
    options = parser.parse_args(argv)
    files = git("ls-files", "--cached", "--others", "--exclude-standard", "--", "*.py")
    sources = {file: (ROOT / file).read_text() for file in files if (ROOT / file).is_file()}
    selected: set[str] = set()
    if options.room:
        selected |= select_tests(find_room(options.room, sources), sources)
    if options.changed:
        commit = "HEAD" if options.changed == "1" else options.changed
        try:
            changed = {
                *git("diff", "--name-only", commit),
                *git("ls-files", "--others", "--exclude-standard"),
            }
        except subprocess.CalledProcessError:
            parser.error(
                f"--changed: {options.changed!r} was given, allowed: 1, or a commit of this repository"
            )
        sources |= {
            file: "" for file in changed if file.endswith(".py") and file not in sources
        }  # is deleted
        selected |= select_tests(find_importers(changed, sources), sources)
    selected = {file for file in selected if (ROOT / file).is_file()}
    if not selected:
        print("nothing that a test imports has changed", file=sys.stderr)
        return 1
    print(*sorted(selected))
    return 0


def find_room(name: str, sources: Mapping[str, str]) -> set[str]:
    """Returns a room's modules and tests, but for its errors, which other rooms' tests name to await them."""
    room = (f"{name}/", f"tests/{name}/")
    return {file for file in sources if file.startswith(room)} - {f"{name}/errors.py"}


def find_importers(changed: set[str], sources: Mapping[str, str]) -> set[str]:
    """Returns changed files, and the modules that import one or contain the name of one that is no module."""
    others = {Path(file) for file in changed if file not in sources}
    names = {path.name if path.suffix else str(path) for path in others}
    changed = changed | {file for file, text in sources.items() if any(name in text for name in names)}
    imports = find_all_imports(sources)
    return changed | {file for file in sources if not file.startswith("tests/") and imports[file] & changed}


def select_tests(reached: set[str], sources: Mapping[str, str]) -> set[str]:
    """Returns the test files among some files, and those that import one."""
    imports = find_all_imports(sources)
    tests = {file for file in sources if file.startswith("tests/")}
    growing = True
    while growing:  # through helpers, whose tests import them
        further = {file for file in tests - reached if imports[file] & reached}
        growing = bool(further)
        reached = reached | further
    return {file for file in tests & reached if Path(file).name.startswith("test_")}


def find_all_imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    modules = {module_name(file): file for file in sources}
    return {file: set(find_imports(file, text, modules)) for file, text in sources.items()}


def find_imports(file: str, text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yields the repository's files that a file imports, anywhere in its code."""
    package = module_name(file).split(".")
    if not file.endswith("__init__.py"):
        package.pop()
    for node in walk_statements(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            origin = base if node.level else node.module or ""
            names = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
        yield from (modules[name] for name in names if name in modules)


def walk_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements of a module, those within others too. Most nodes are of expressions."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, block, ()):
            yield child
            yield from walk_statements(child)


def module_name(file: str) -> str:
    """Returns the dotted name of a file; the folder ``agents`` is the package ``gamespiel.agents``."""
    parts = Path(file).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(("gamespiel", *parts) if parts[0] == "agents" else parts)


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
