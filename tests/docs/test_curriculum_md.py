"""The table of promotions in docs/curriculum.md is the benchmark's."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/curriculum.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks/results/promotion.json").read_text(encoding="utf-8"))


def test_the_table_is_the_benchmarks() -> None:
    found = re.findall(r"^\| (0\.\d\d) \| (.*) \|$", PAGE, re.MULTILINE)
    assert [rate for rate, _ in found] == ["0.60", "0.65", "0.70", "0.75", "0.80"]
    for rate, cells in found:
        rows = [row for row in RESULTS["rows"] if row["rate"] == float(rate)]
        assert [row["rule"] for row in rows] == ["rate", "confidence"]
        shares = [row["promoted"][within][0] for row in rows for within in ("100", "1000", "5000")]
        assert cells.split(" | ") == [f"{share:.1%}" for share in shares]
