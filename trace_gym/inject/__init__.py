"""Debug prints put into programs, which show variables on the way.

A print is ``print('__DBG_N__', ...)`` with one to three names bound at that point, each shown by its ``repr``
if it is an int, float, str, bool or None, and by the name of its type otherwise. N counts from 0, in the
order in which the prints stand in the text.
"""

from __future__ import annotations

from task_gym.errors import ArgumentError, check_choice
from trace_gym.inject.affine import inject_affine
from trace_gym.inject.hazards import hazard
from trace_gym.inject.prints import strip_debug, unchanged
from trace_gym.inject.safe import inject_safe
from trace_gym.source import Source

__all__ = ["MOST", "STYLES", "inject", "refusal", "strip_debug", "unchanged"]

STYLES = ("safe", "affine")

#: Prints in a program, at most, if nothing else is asked for.
MOST = 6


def inject(source: str, seed: int, style: str = "safe", most: int = MOST) -> str:
    """A program with debug prints in it, drawn from the seed.

    Args:
        source: The program.
        seed: Any int; the task id, where affinetes is to be followed.
        style: "safe" inserts lines that leave the program's text and its other output as they are, and none
            where :func:`refusal` gives a reason. "affine" is affinetes' own injection to the letter, with
            ``ast.unparse`` of the running Python.
        most: Prints, at most.

    Raises:
        ArgumentError: An unknown style, or a ``most`` below 0.
        ProgramError: The program does not parse (in style "affine", only one nested too deeply).
    """
    check_choice("style", style, STYLES)
    if most < 0:
        raise ArgumentError(f"most: {most!r} was given, allowed: 0 and more")
    return inject_affine(source, seed, most) if style == "affine" else inject_safe(source, seed, most)


def refusal(source: str) -> str | None:
    """Why style "safe" puts no print anywhere in a program, in words; None where it is free to.

    Raises:
        ProgramError: The program does not parse.
    """
    return hazard(Source(source))
