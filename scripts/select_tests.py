"""Prints the test files of a room, or of a change: ``make test ROOM=trace_gym`` and ``make test CHANGED=1``.

A room's tests are its own and those that import more of it than errors and constants. A change's tests are
those that changed, and those that import a changed module or a module that imports one, through helpers in
``tests/`` too. Imports inside functions count. A changed file that is no module changes the modules and tests
that contain its name.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(
    r"""^[ \t]* (?: from [ ]+ (?P<dots> \.*) (?P<origin> [\w.]*) [ ]+ import [ ]+ (?P<names> \([^)]*\) | .*)
    | import [ ]+ (?P<modules> .*))""",
    re.MULTILINE | re.VERBOSE,
)
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
        selected |= select_room(options.room, sources)
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
    # Those that load models first, for one half of the processes: to load transformers takes seconds in each.
    print(
        *sorted(selected, key=lambda file: (not file.startswith(("tests/agents", "tests/gamespiel")), file))
    )
    return 0


def select_room(name: str, sources: Mapping[str, str]) -> set[str]:
    """Returns a room's test files, and those that import more of it than errors and constants."""
    room = {file for file in sources if file.startswith((f"{name}/", f"tests/{name}/"))}
    room.discard(f"{name}/errors.py")  # which other rooms' tests name to await them
    imports = find_all_imports(sources, constants=False)
    return {file for file in sources if is_test(file) and (file in room or imports[file] & room)}


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
    return {file for file in reached if is_test(file)}


def is_test(file: str) -> bool:
    return file.startswith("tests/") and Path(file).name.startswith("test_")


def find_all_imports(sources: Mapping[str, str], *, constants: bool = True) -> dict[str, set[str]]:
    modules = {module_name(file): file for file in sources}
    return {file: set(find_imports(file, text, modules, constants)) for file, text in sources.items()}


def find_imports(file: str, text: str, modules: Mapping[str, str], constants: bool) -> Iterator[str]:
    """Yields the repository's files that a file imports, anywhere in its code."""
    package = module_name(file).split(".")
    if not file.endswith("__init__.py"):
        package.pop()
    for statement in IMPORT.finditer(text):
        names = re.findall(r"[\w.]+", re.sub("#.*", "", statement["names"] or statement["modules"]))
        if statement["names"]:
            if not constants and all(name.isupper() or name == "as" for name in names):
                continue
            base = package[: len(package) - len(statement["dots"]) + 1] if statement["dots"] else []
            origin = ".".join([*base, *filter(None, [statement["origin"]])])
            names = [origin, *(f"{origin}.{name}" for name in names)]
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
