"""Prints the test files of a room, or of a change: ``make test ROOM=trace_gym`` and ``make test CHANGED=1``.

A test file is selected if it changed, or if it imports a changed module or a module that imports one,
itself or through helpers in ``tests/``. Imports inside functions count. A room is all of its modules and
tests. A changed file that is no module changes the modules and tests that contain its name.
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
    changed: set[str] = set()
    if options.room:
        changed |= {
            file for file in sources if file.startswith((f"{options.room}/", f"tests/{options.room}/"))
        }
    if options.changed:
        commit = "HEAD" if options.changed == "1" else options.changed
        changed |= {*git("diff", "--name-only", commit), *git("ls-files", "--others", "--exclude-standard")}
    selected = select_tests(changed, sources)
    if not selected:
        print("no test imports what changed", file=sys.stderr)
        return 1
    print(*selected)
    return 0


def select_tests(changed: set[str], sources: Mapping[str, str]) -> list[str]:
    """Returns the test files for changed files, out of the texts of all Python files by their paths."""
    modules = {module_name(file): file for file in sources}
    imports = {file: set(find_imports(file, text, modules)) for file, text in sources.items()}
    for name in {Path(file).name for file in changed if file not in sources}:
        changed = changed | {file for file, text in sources.items() if name in text}
    reached = changed | {
        file for file, targets in imports.items() if not file.startswith("tests/") and targets & changed
    }
    tests = {file for file in sources if file.startswith("tests/")}
    growing = True
    while growing:  # through helpers, whose tests import them
        further = {file for file in tests - reached if imports[file] & reached}
        growing = bool(further)
        reached |= further
    return sorted(file for file in tests & reached if Path(file).name.startswith("test_"))


def find_imports(file: str, text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yields the repository's files that a file imports, anywhere in its code."""
    package = module_name(file).split(".")
    if not file.endswith("__init__.py"):
        package.pop()
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            origin = base if node.level else node.module or ""
            names = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
        yield from (modules[name] for name in names if name in modules)


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
