"""Writes what is generated of docs/, and the schema of configurations: `python -m docs.generate [--check]`.

With ``--check`` nothing is written: a file that would change is named, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from docs import (
    generate_games,
    generate_picture,
    generate_play,
    generate_play_model,
    generate_scores,
    generate_tables,
    generate_trace,
)
from gamespiel.config.schema import file_schema

ROOT = Path(__file__).parents[1]

FILES: Mapping[str, Callable[[], str]] = {
    "README.md": generate_tables.readme,
    "docs/games.md": generate_games.page,
    "docs/trace.md": generate_trace.page,
    "docs/scores.md": generate_scores.page,
    "docs/models.md": generate_tables.models,
    "docs/curriculum.md": generate_tables.curriculum,
    "docs/assets/play/games.js": generate_play.games,
    "docs/assets/play/model.js": generate_play_model.model,
    "docs/assets/decision.svg": generate_picture.picture,
    "configs/schema.json": lambda: json.dumps(file_schema(), indent=2, ensure_ascii=False) + "\n",
}
"""Paths in the repository to what returns their text."""


def find_stale(paths: Iterable[str]) -> dict[str, str]:
    """Returns the texts of the files that are not what the program makes of them now."""
    texts = {path: FILES[path]() for path in paths}
    return {path: text for path, text in texts.items() if (ROOT / path).read_text(encoding="utf-8") != text}


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the files that are not current, or only names them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args(argv).check
    stale = find_stale(FILES)
    for path, text in stale.items():
        if not is_check:
            (ROOT / path).write_text(text, encoding="utf-8")
        print(f"{path}: {'not current; run: python -m docs.generate' if is_check else 'written anew'}")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
