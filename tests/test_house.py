"""The markers of tests and the Makefile agree."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_a_test_may_need_is_left_out_of_the_short_tests() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    declared = {line.partition(":")[0] for line in settings["tool:pytest"]["markers"].split("\n") if line}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (needs,) = re.findall(r"^NEEDS := (.*)$", makefile, re.MULTILINE)
    assert {*needs.split(" or "), "sample"} == declared
