"""The anchors' ratings in each game: constants, which ``python -m scripts.measure_anchors`` has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gamespiel.measure.ratings import Scale

FILE = Path(__file__).with_suffix(".json")


def _read_scales() -> dict[str, Scale]:
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {game: Scale(tuple(row["anchors"]), row["ties"], row["bias"]) for game, row in rows.items()}


SCALES: Mapping[str, Scale] = _read_scales()
"""Game to the scale of its anchors, in their order; games for one player have none."""
