"""The console of the commands, on which what a stranger wrote is characters, which no terminal obeys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from task_gym.visible import show_controls


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None and not segment.text.isprintable():
                yield Segment(show_controls(segment.text), segment.style)
            else:
                yield segment


def make_console(**options: Any) -> Console:
    """Returns a console that shows control characters as escapes, whoever wrote them.

    Rich has laid out its lines by then: what shows such texts in boxes escapes them first.

    Args:
        **options: As ``rich.console.Console`` takes them.
    """
    return _Console(**{"tab_size": 4, **options})
