"""Tables for terminals of any width: the names in the first column stay, and last columns go."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text


class Grid(Table):
    """A table that leaves out its last columns where they do not fit, and then says which.

    Args:
        first: The first column's heading; its cells are folded where they do not fit, and never cut.
        columns: The other columns' headings.
        title: The title; None for none.
        padding: Spaces between columns, beside the one that is always there.
        least: Characters of the first column that stay on a line, if its cells have as many.
    """

    def __init__(
        self,
        first: str,
        columns: Sequence[str],
        title: str | None = None,
        padding: int = 0,
        least: int = 8,
    ) -> None:
        super().__init__(
            title=None if title is None else Text(title), title_justify="left", box=box.SIMPLE_HEAD,
            show_edge=False, padding=(0, padding, 0, 0), pad_edge=False,
        )  # fmt: skip
        self._least = least
        self.add_column(first, overflow="fold")
        for name in columns:
            self.add_column(name, justify="right", no_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [cell for cell in self.columns[0].cells if isinstance(cell, str | Text)]
        self.columns[0].min_width = min(self._least, max(len(str(cell)) for cell in cells))
        columns, left_out = self.columns, list[str]()
        while len(self.columns) > 2 and self._measure_least(console, options) > options.max_width:
            left_out.insert(0, " ".join(str(self.columns[-1].header).split()))
            self.columns = self.columns[:-1]
        try:
            yield from super().__rich_console__(console, options)
        finally:
            self.columns = columns
        if left_out:
            yield Text(f"left out at {options.max_width} columns: {', '.join(left_out)}", style="dim")

    def _measure_least(self, console: Console, options: ConsoleOptions) -> int:
        first, *others = self.columns
        unlimited = options.update_width(1000)
        widths = [self._measure_column(console, unlimited, column).maximum for column in others]
        # A column has its padding on the right, which the last one does without.
        return (first.min_width or 0) + self.padding[1] + sum(widths) + self._extra_width
