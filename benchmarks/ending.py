"""How a benchmark ends: its results as one line of JSON, in a file and on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def end(results: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the results to a file, whose folder is made where there is none, print them and return them as
    they are read back: lists for tuples, texts for keys.

    Raises:
        ValueError: a number among them that JSON has not, as NaN.
    """
    text = json.dumps(results, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(text)
    return dict(json.loads(text))
