"""docs/plug-in.md: the Python blocks of each section run in order, as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plug-in.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
SECTIONS = {
    part.partition("\n")[0]: BLOCK.findall(part) for part in PAGE.split("\n## ")[1:] if BLOCK.search(part)
}

NEEDS = {
    "PettingZoo": "pettingzoo",
    "RLlib": "ray",
    "Tianshou": "tianshou",
    "TorchRL": "torchrl",
    "TRL": "trl",
    "OpenEnv": "openenv",
    "verifiers": "verifiers",
}
"""Libraries that are not in every environment."""

PACKAGES = {"rllib": "ray", "ray tune": "ray", "openenv": "openenv-core", "gem": "gem-llm"}
"""Libraries whose package has another name."""

PRINTED = {
    "Gymnasium": "8 (8, 3)\n",
    "Stable-Baselines3": "",
    "PettingZoo": "",
    "Tianshou": "10\n",
    "RLlib": "",
    "OpenEnv": "win 0.5384615384615384\n",
    "verifiers": "",
    "Questions with a scorer": "[1, 2] [0.988034, 1.0]\n['prompt', 'answer', 'metadata'] 1.0\n1.0\n",
    "TRL": "",
    "TorchRL": "torch.Size([20, 3])\n",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_blocks_run(
    section: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if section in NEEDS:
        pytest.importorskip(NEEDS[section])
    namespace: dict[str, Any] = {}
    for block in SECTIONS[section]:
        exec(compile(block, "docs/plug-in.md", "exec"), namespace)
    # TRL prints its metrics.
    assert capsys.readouterr().out == PRINTED[section] or section == "TRL"
    if section == "RLlib":
        sys.modules["ray"].shutdown()


def test_the_versions_are_those_that_are_pinned() -> None:
    pins = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("constraints*.txt"))
    pins = pins.lower().replace("_", "-")
    rows = re.findall(r"^\| ([\w -]+)[^|]* \| (\d[\d.]+) \|", PAGE, re.MULTILINE)
    assert {name.strip() for name, _ in rows} >= {*NEEDS, "Stable-Baselines3", "Gymnasium"}
    for name, version in rows:
        package = name.strip().lower()
        assert f"\n{PACKAGES.get(package, package)}=={version}\n" in pins, name
