"""Golden transcripts: every word of a few games of every declared game.

``python -m tests.game_gym.golden`` writes them anew. Look at the difference before keeping it: a changed
transcript is a changed environment.
"""

from __future__ import annotations

import json
from pathlib import Path

from game_gym.games import DECLARED
from tests.game_gym.play import episode, make

FOLDER = Path(__file__).parent.parent / "data" / "golden"

SEEDS = (0, 1, 7)


def path(game: str) -> Path:
    return FOLDER / f"{game}.json"


def transcript(game: str) -> str:
    """Both protocols, with rules and without, as indented JSON."""
    games = [
        {
            "seeding": seeding,
            "rules": rules,
            "seed": seed,
            "episode": episode(make(game=game, seeding=seeding, rules=rules), seed),
        }
        for seeding in ("openenv", "evaluate")
        for rules in (True, False)
        for seed in (SEEDS if not rules else SEEDS[:1])
    ]
    return json.dumps(games, ensure_ascii=False, indent=1) + "\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for game in DECLARED:
        path(game).write_text(transcript(game), encoding="utf-8")


if __name__ == "__main__":
    main()
