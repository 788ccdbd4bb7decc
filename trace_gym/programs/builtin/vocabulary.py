"""Words for names and texts in programs: all are lower case and can be names of variables.

They are in ``vocabulary.txt``. Their order decides the programs.
"""

from __future__ import annotations

from pathlib import Path

_BLOCKS = Path(__file__).with_suffix(".txt").read_text(encoding="ascii").split("\n\n")
_LISTS = {name: tuple(words) for name, *words in map(str.split, _BLOCKS)}

PEOPLE, GOODS, FRUITS, ANIMALS = (_LISTS[name] for name in ("PEOPLE", "GOODS", "FRUITS", "ANIMALS"))
CITIES, COLOURS, ROBOTS, COURSES = (_LISTS[name] for name in ("CITIES", "COLOURS", "ROBOTS", "COURSES"))
TEAMS, PLANTS, SHIPS, TASKS = (_LISTS[name] for name in ("TEAMS", "PLANTS", "SHIPS", "TASKS"))
NOUNS, ADJECTIVES = _LISTS["NOUNS"], _LISTS["ADJECTIVES"]
THEMES = (ADJECTIVES, ANIMALS, CITIES, COLOURS, FRUITS, NOUNS, PLANTS, PEOPLE, GOODS, COURSES)


def up_to(pool: tuple[str, ...], letters: int) -> list[str]:
    """Returns the words of at most ``letters`` letters.

    The limit grows until there are ten words, or all words of a smaller pool.
    """
    words: list[str] = []
    while len(words) < min(10, len(pool)):
        words = [word for word in pool if len(word) <= letters]
        letters += 1
    return words
