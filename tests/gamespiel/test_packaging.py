"""Agreement of the set-up files."""

import configparser
import re
from pathlib import Path

import yaml

from gamespiel.agents.installed import TRAINER

ROOT = Path(__file__).parents[2]


def _declared(extra: str | None = None) -> set[str]:
    """The distributions that an extra names, or those of every installation."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    options, extras = parser["options"], parser["options.extras_require"]
    lines = options["install_requires"] if extra is None else extras[extra]
    return {_normal(re.split(r"[<>=\[]", line)[0]) for line in lines.splitlines() if line.strip()}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_to_one_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pinned = [_normal(line.split("==")[0]) for line in lines]
    assert len(pinned) == len(set(pinned))
    declared = [_declared(extra) for extra in (None, "train", "render", "dev")]
    assert set().union(*declared) - {"gamespiel"} <= set(pinned)
    assert "torch==2.13.0" in lines


def test_no_learning_library_comes_with_the_environments() -> None:
    """The packages without which ``gamespiel.agents`` refuses are in the extra "train", and only there."""
    trainer = {_normal(name) for name in TRAINER}
    assert trainer <= _declared("train") and not _declared("train") & _declared()
    # The extra's other names come with PEFT (accelerate), transformers (the next three), or are imported
    # where a run asks for them: for a GGUF file, and for weights of 4 or 8 bits.
    come = {"accelerate", "huggingface-hub", "safetensors", "tokenizers"}
    assert _declared("train") - trainer == come | {"gguf", "bitsandbytes"}


def test_versions_agree() -> None:
    import gamespiel

    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    assert parser["metadata"]["version"] == gamespiel.__version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (
        gamespiel.__version__,
        parser["metadata"]["license_expression"],
    )
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # those that the format requires
