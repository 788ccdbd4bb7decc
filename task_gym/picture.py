"""Pictures of texts, as ``render()`` returns them in mode "rgb_array"."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from task_gym.contract import CLOSING
from task_gym.errors import MissingPackageError

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

COLUMNS, ROWS = 88, 44
"""Characters per row, and rows per picture."""

LIST_ROWS = 12
"""The most rows that a list of legal actions may have."""

# In pixels. A character of DejaVu Sans Mono is 8 wide at this size. Its lines are 17 high. A cell has 16, so
# that box drawing joins. Both sides of the picture are multiples of 16, as video encoders want them.
_FONT_SIZE, _CELL_WIDTH, _CELL_HEIGHT, _MARGIN = 14, 8, 16, 8

SHAPE = (ROWS * _CELL_HEIGHT + 2 * _MARGIN, COLUMNS * _CELL_WIDTH + 2 * _MARGIN, 3)
"""The shape of every picture: height, width, colours."""


MISSING = "render_mode 'rgb_array': the package {} is not installed; pip install 'gamespiel[render]'"


def picture(text: str) -> NDArray[np.uint8]:
    """Returns the text in black on white: uint8, shape ``SHAPE``, a new array per call."""
    cells = np.full((ROWS, COLUMNS, _CELL_HEIGHT, _CELL_WIDTH), 255, dtype=np.uint8)
    for shown, row in zip(cells, picture_rows(text), strict=False):
        for cell, character in zip(shown, row, strict=False):
            if character != " ":
                cell[:] = _drawn(character)
    height, width, colours = SHAPE
    sheet = np.full((height, width), 255, dtype=np.uint8)
    inside = sheet[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
    inside[:] = cells.swapaxes(1, 2).reshape(inside.shape)
    return np.repeat(sheet[:, :, None], colours, axis=2)


def picture_rows(text: str) -> list[str]:
    """Returns the rows of the text's picture: at most ``ROWS``, of at most ``COLUMNS`` characters each.

    Long lines are wrapped. The legal actions are set side by side, in at most ``LIST_ROWS`` rows, because
    one per line would push a board out of the picture. If there are still too many rows, the first ones are
    left out and a row "…" replaces them: state and legal actions are at the end.
    """
    if text.endswith(CLOSING):
        before, title, after = text.rpartition("\nLegal Actions:\n")
        if title:
            listed, gap, closing = after.partition("\n\n")
            text = f"{before}{title}{_side_by_side(listed)}{gap}{closing}"
    # One line is one row at least, so earlier lines cannot be seen.
    lines = text.split("\n")[-ROWS - 1 :]
    rows = [row for line in lines for row in _wrapped(line.expandtabs(4))]
    return rows if len(rows) <= ROWS else ["…", *rows[1 - ROWS :]]


def _side_by_side(listed: str) -> str:
    """Returns the lines of a list in cells of one width, as many as fit ``LIST_ROWS`` rows."""
    lines = listed.split("\n")
    width = max(map(len, lines)) + 1
    per_row = max(COLUMNS // width, 1)
    rows = [
        "".join(line.ljust(width) for line in lines[start : start + per_row]).rstrip()
        for start in range(0, len(lines), per_row)
    ]
    if len(rows) > LIST_ROWS:
        row_count = LIST_ROWS - 1
        rows[row_count:] = [f"  … {len(lines) - row_count * per_row} more"]
    return "\n".join(rows)


def _wrapped(line: str) -> list[str]:
    """Returns the line's rows; each ends after a space if it has one, else in the middle of a word."""
    rows = []
    while len(line) > COLUMNS:
        end = line.rfind(" ", 0, COLUMNS) + 1
        if not line[:end].strip():  # an indentation is no place to break
            end = COLUMNS
        rows.append(line[:end])
        line = line[end:]
    return [*rows, line]


# One character at a time: that takes a third of the time of whole rows, and each stays in its cell.
@lru_cache(maxsize=4096)
def _drawn(character: str) -> NDArray[np.uint8]:
    """Returns the character's cell: uint8, shape (height, width), 0 = black."""
    # Imported here, so that only callers who ask for a picture pay for Pillow and Matplotlib (0.2 s).
    try:
        from PIL import Image, ImageDraw
    except ModuleNotFoundError as error:
        raise MissingPackageError(MISSING.format("pillow")) from error

    cell = Image.new("L", (_CELL_WIDTH, _CELL_HEIGHT), 255)
    ImageDraw.Draw(cell).text((0, 0), character, fill=0, font=_font())
    return np.asarray(cell, dtype=np.uint8)


@cache
def _font() -> FreeTypeFont:
    """Returns DejaVu Sans Mono, which has suits, box drawing and arrows."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingPackageError(MISSING.format("matplotlib")) from error
    from PIL import ImageFont

    # From the file, not from Matplotlib's font manager, which first reads every font of the machine.
    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSansMono.ttf")
    return ImageFont.truetype(str(path), _FONT_SIZE, layout_engine=ImageFont.Layout.BASIC)
