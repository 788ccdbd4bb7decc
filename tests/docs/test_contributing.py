"""CONTRIBUTING.md names only what exists: paths, modules, names in files, and commands."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
COMMANDS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)[0].splitlines()

#: Names that a reader replaces by their own.
PLACEHOLDER = "NAME"


def test_paths_exist() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", TEXT)
    # A path has a slash or a suffix, and no blanks or parentheses.
    named = [code for code in CODE if re.fullmatch(r"[\w.-]+/[\w./-]*|[\w-]+\.(md|txt|py|cfg)", code)]
    ignored = [code for code in named if code.startswith("rollout/") or code.startswith("train/")]
    assert ignored == [f"rollout/{PLACEHOLDER}", f"train/{PLACEHOLDER}"]
    paths = [path for path in [*linked, *named] if path not in ignored and PLACEHOLDER not in path]
    assert len(paths) > 40
    # A file of every package, and one that each run writes.
    inside = {"__init__.py"}
    assert [path for path in paths if path not in inside and not (ROOT / path).exists()] == []


def test_modules_exist() -> None:
    modules = [code.split()[2] for code in CODE if code.startswith("python -m ")]
    assert len(set(modules)) > 5
    missing = [name for name in modules if PLACEHOLDER not in name and find_spec(name) is None]
    assert missing == []


def test_names_are_in_the_files_that_it_says() -> None:
    said = re.findall(r"`([A-Z_]{3,})`(?: or `([A-Z_]+)`)? (?:in|of)\s+`([\w/.]+)`", TEXT)
    assert len(said) >= 6
    for *names, path in said:
        source = (ROOT / path).read_text(encoding="utf-8")
        for name in filter(None, names):
            assert re.search(rf"^{name}\b.*=", source, re.MULTILINE), f"{name} in {path}"
    source = (ROOT / "game_gym/games/__init__.py").read_text(encoding="utf-8")
    assert "TABLE: " in source and "`TABLE` is frozen" in TEXT
    assert "def parse(" in (ROOT / "benchmarks/ending.py").read_text(encoding="utf-8")
    assert "def machine(" in (ROOT / "benchmarks/machine.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", COMMANDS)
def test_make_knows_the_commands(line: str) -> None:
    command = line.partition("#")[0].strip()
    assert command.startswith("make ")
    subprocess.run(f"{command} --dry-run", shell=True, cwd=ROOT, check=True, capture_output=True)


def test_every_generated_file_has_its_command_and_its_test() -> None:
    rows = re.findall(r"^\| `([\w/.]+)` \| `([^`]+)`[^|]*\| (?:`([\w/.]+)`)? *\|$", TEXT, re.MULTILINE)
    assert len(rows) == 10
    for _, command, test in rows:
        module = command.split()[2] if command.startswith("python -m ") else "gamespiel"
        if not test:
            assert module == f"benchmarks.{PLACEHOLDER}"
            continue
        # The test looks at the result of the command: it imports its module, or names the command.
        source = (ROOT / test).read_text(encoding="utf-8")
        package, _, name = module.rpartition(".")
        assert re.search(rf"from {package} import .*\b{name}\b|from {module} import|{module} ", source), test


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 140
