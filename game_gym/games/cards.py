"""Words that the games of cards share."""

from __future__ import annotations

from collections.abc import Sequence

Play = tuple[int, str]
"""A card played: (seat, card name)."""

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


def name_seat(seat: int, viewer: int) -> str:
    """Returns a seat's name for its viewer: "you", or "P" and its number."""
    return "you" if seat == viewer else f"P{seat}"


def tell_plays(plays: Sequence[Play], viewer: int) -> str:
    """Returns cards in the order of play, as "P1 2C, you 4C"; "none" before the first."""
    return ", ".join(f"{name_seat(seat, viewer)} {card}" for seat, card in plays) or "none"


def tell_tricks(done: Sequence[Sequence[Play]], takers: Sequence[int], viewer: int) -> list[str]:
    """Returns a line per finished trick: its cards and who took it."""
    return [
        f"Trick {number}: {tell_plays(plays, viewer)}; taken by {name_seat(taker, viewer)}"
        for number, (plays, taker) in enumerate(zip(done, takers, strict=True), 1)
    ]
