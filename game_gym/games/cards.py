"""Words that the small poker games share."""

from __future__ import annotations

from collections.abc import Sequence

# Lowest first. The names are ours: OpenSpiel numbers its cards.
_RANKS = {3: "JQK", 4: "JQKA", 5: "TJQKA"}


def ranks(players: int) -> str:
    """Returns the letters of the ranks, lowest first: one more than there are players."""
    return _RANKS[players + 1]


def bet_words(speakers: Sequence[int], moves: Sequence[int], words: Sequence[str], seat: int) -> str:
    """Returns a betting round for a seat, as "Player 0 raise, you call"; "none" before the first move."""
    said = [
        f"{'you' if speaker == seat else f'Player {speaker}'} {words[move]}"
        for speaker, move in zip(speakers, moves, strict=True)
    ]
    return ", ".join(said) or "none"
