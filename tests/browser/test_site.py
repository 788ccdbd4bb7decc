"""The documentation site, read from the folder where ``make docs`` builds it: search, drawings, colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser import looks
from tests.browser.conftest import PHONE, Open
from tests.browser.looks import measure

SITE = Path(__file__).parents[2] / "build" / "site"

pytestmark = pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site: make docs builds it")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_boards_of_games_are_drawn_and_can_be_told_apart(scheme: str, opened: Open) -> None:
    page = opened(SITE / "games" / "chess.html", color_scheme=scheme)
    shade = measure(page, looks.BACKGROUND)
    assert shade < 0.1 if scheme == "dark" else shade > 0.9
    assert page.locator(".board svg").is_visible() and measure(page, looks.OUTSIDE) == []
    assert min(measure(page, looks.PIECES)) >= 3


@pytest.mark.parametrize("name", ["index", "games", "games/hex", "traces/closures", "comparisons"])
def test_a_phone_shows_pages_without_scrolling_sideways(name: str, opened: Open) -> None:
    settings: dict[str, Any] = PHONE
    page = opened(SITE / f"{name}.html", **settings)
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [390, 390]
