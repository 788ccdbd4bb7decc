"""docs/comparisons.md and docs/plug-in.md: the Python blocks of a section run in order.

`make comparisons` and `make plugs` run these tests with the libraries that the two pages are about.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\nprints\n\n```text\n(.*?)```)?", re.DOTALL)

COMPARED = {
    "OpenSpiel's own environment": "open_spiel",
    "TextArena": "textarena",
    "verifiers": "verifiers.v1",
}
PLUGGED = {
    "PettingZoo": "pettingzoo",
    "RLlib": "ray",
    "Tianshou": "tianshou",
    "TorchRL": "torchrl",
    "TRL": "trl",
    "OpenEnv": "openenv",
    "verifiers": "verifiers",
}
"""Sections whose libraries are not in every environment."""

PACKAGES = {"rllib": "ray", "ray tune": "ray", "gem": "gem-llm"}
"""Libraries whose package has another name."""

PRINTED = {
    "Gymnasium": "8 (8, 3)\n",
    "Tianshou": "10\n",
    "OpenEnv": "win 0.5384615384615384\n",
    "Questions with a scorer": "[1, 2] [0.988034, 1.0]\n['prompt', 'answer', 'metadata'] 1.0\n1.0\n",
    "TorchRL": "torch.Size([20, 3])\n",
}
"""The other sections of docs/plug-in.md print nothing, except for TRL's metrics."""


def read(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def find_sections(page: str) -> dict[str, list[tuple[str, str]]]:
    """Returns the blocks of each section that has some, and what is shown below them."""
    parts = [part.partition("\n") for part in read(page).split("\n## ")[1:]]
    return {title: BLOCK.findall(text) for title, _, text in parts if "```python" in text}


def run_block(code: str, page: str, namespace: dict[str, Any]) -> str:
    """Returns what a block prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("section", COMPARED)
def test_comparisons_print_what_is_shown(section: str) -> None:
    pytest.importorskip(COMPARED[section])
    namespace: dict[str, Any] = {}
    for code, shown in find_sections("comparisons")[section]:
        assert run_block(code, "docs/comparisons.md", namespace) == shown


def test_every_block_of_comparisons_shows_what_it_prints() -> None:
    sections = find_sections("comparisons")
    assert list(sections) == list(COMPARED)
    shown = [output for blocks in sections.values() for _, output in blocks]
    assert all(shown) and len(shown) == read("comparisons").count("```python")


def test_versions_of_comparisons_are_those_that_are_pinned() -> None:
    pins = "".join(
        (ROOT / name).read_text("utf-8") for name in ("constraints/main.txt", "constraints/docs.txt")
    )
    told = re.search(
        r"They were run with ([\w-]+ [\d.]+), ([\w-]+ [\d.]+) and ([\w-]+ [\d.]+)\.", read("comparisons")
    )
    assert told is not None
    for name, version in (words.split() for words in told.groups()):
        assert f"\n{name}=={version}\n" in pins


@pytest.mark.families
@pytest.mark.parametrize(
    "section",
    [
        pytest.param(name, marks=pytest.mark.trains if name == "TRL" else pytest.mark.sample)
        for name in find_sections("plug-in")
    ],
)
def test_plug_in_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if section in PLUGGED:
        pytest.importorskip(PLUGGED[section])
    namespace: dict[str, Any] = {}
    printed = "".join(
        run_block(code, "docs/plug-in.md", namespace) for code, _ in find_sections("plug-in")[section]
    )
    assert printed == PRINTED.get(section, "") or section == "TRL"
    if section == "RLlib":
        sys.modules["ray"].shutdown()


def test_versions_of_plug_in_are_those_that_are_pinned() -> None:
    pins = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("constraints/*.txt"))
    pins = pins.lower().replace("_", "-")
    rows = re.findall(r"^\| ([\w -]+)[^|]* \| (\d[\d.]+) \|", read("plug-in"), re.MULTILINE)
    assert {name.strip() for name, _ in rows} >= {*PLUGGED, "Stable-Baselines3", "Gymnasium"}
    for name, version in rows:
        package = name.strip().lower()
        assert f"\n{PACKAGES.get(package, package)}=={version}\n" in pins, name
