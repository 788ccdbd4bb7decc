"""Injection of debug prints into programs. The prints show variables while the program runs.

A debug print is ``print('__DBG_N__', ...)`` with one to three names bound at that point. It shows the
``repr`` of an int, float, str, bool or None, and the type's name for other values. N counts from 0 in the
order of the text.
"""

from __future__ import annotations

from task_gym.errors import check_choice
from trace_gym.inject.affine import inject_affine
from trace_gym.inject.prints import strip_debug
from trace_gym.inject.safe import inject_safe

__all__ = ["MOST", "STYLES", "inject", "strip_debug"]

_INJECTORS = {"safe": inject_safe, "affine": inject_affine}

STYLES = tuple(_INJECTORS)

MOST = 6
"""Default of the most debug prints in a program."""


def inject(code: str, seed: int, style: str = "safe", most: int = MOST) -> str:
    """Returns a program with debug prints in it, drawn from the seed.

    Args:
        code: The program's text.
        seed: Any int; the task id, to reproduce affinetes.
        style: "safe" inserts lines and changes neither the program's text nor its other output. It inserts
            nothing if ``hazards.hazard`` gives a reason. "affine" is affinetes' own injection, with
            ``ast.unparse`` of the running Python.
        most: Debug prints, at most.

    Raises:
        ArgumentError: the style is unknown.
        ProgramError: the program does not parse. Style "affine" raises it only if Python cannot read the
            text or the program is nested too deeply.
    """
    check_choice("style", style, STYLES)
    return _INJECTORS[style](code, seed, most)
