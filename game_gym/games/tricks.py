"""Words that the trick-taking games share."""

from __future__ import annotations

from collections.abc import Sequence

#: A card played: (seat, card name).
Play = tuple[int, str]


def name_seat(seat: int, viewer: int) -> str:
    """A seat as its viewer reads it: "you", or "P" and its number."""
    return "you" if seat == viewer else f"P{seat}"


def tell_plays(plays: Sequence[Play], viewer: int) -> str:
    """Cards in the order of play, as "P1 2C, you 4C"; "none" before the first."""
    return ", ".join(f"{name_seat(seat, viewer)} {card}" for seat, card in plays) or "none"


def tell_tricks(done: Sequence[Sequence[Play]], takers: Sequence[int], viewer: int) -> list[str]:
    """A line a finished trick: its cards and who took it."""
    return [
        f"Trick {number}: {tell_plays(plays, viewer)}; taken by {name_seat(taker, viewer)}"
        for number, (plays, taker) in enumerate(zip(done, takers, strict=True), 1)
    ]
