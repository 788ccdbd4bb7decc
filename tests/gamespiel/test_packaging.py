"""Agreement of the set-up files."""

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _declared() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = parser["options"]["install_requires"] + parser["options.extras_require"]["dev"]
    return [re.split(r"[<>=\[]", line)[0].strip() for line in lines.splitlines() if line.strip()]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_to_one_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pinned = [_normal(line.split("==")[0]) for line in lines]
    assert len(pinned) == len(set(pinned))
    assert {_normal(name) for name in _declared()} <= set(pinned)
    assert "torch==2.13.0" in lines


def test_version_is_said_once() -> None:
    import gamespiel

    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    assert parser["metadata"]["version"] == gamespiel.__version__
