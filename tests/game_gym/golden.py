"""Golden transcripts: what the games of every declaration say, word for word.

``python -m tests.game_gym.golden [GAME ...]`` writes them anew, all of them or those named. Look at the
difference before keeping it: a changed transcript is a changed environment.

The small games' transcripts are whole. The others' have, for every variant and both protocols, the rules, the
first turns and the last, and a digest of all turns; one item a line.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from game_gym.games import DECLARED
from game_gym.spec import load_variant
from tests.game_gym.play import DECLARED as SMALL
from tests.game_gym.play import episode, make

FOLDER = Path(__file__).parent.parent / "data" / "golden"

SEEDS = (0, 1, 7)

#: Turns shown of a long game, before the last.
SHOWN = 3


def path(game: str) -> Path:
    return FOLDER / f"{game}.json"


def transcript(game: str) -> str:
    return whole(game) if game in SMALL else shortened(game)


def whole(game: str) -> str:
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


def shortened(game: str) -> str:
    """Every variant, a game a protocol, as JSON with one item a line."""
    spec = DECLARED[game]
    items: list[Any] = []
    for config in range(spec.variants):
        params = spec.params(config)
        items.append({"params": params, "rules": load_variant(spec, params).rules})
        for seed, seeding in enumerate(("openenv", "evaluate"), start=config):
            record = episode(make(game=game, params=params, seeding=seeding, rules=False), seed)
            for entry in record:
                del entry[-1]["action_mask"]  # legal_actions says the same, shorter
            digest = hashlib.sha256(line(record).encode()).hexdigest()
            items.append({"seeding": seeding, "seed": seed, "turns": len(record), "sha256": digest})
            items += record[:SHOWN] + record[max(SHOWN, len(record) - 1) :]
    return "[\n" + ",\n".join(line(item) for item in items) + "\n]\n"


def line(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for game in sys.argv[1:] or DECLARED:
        path(game).write_text(transcript(game), encoding="utf-8")


if __name__ == "__main__":
    main()
