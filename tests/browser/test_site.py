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


def test_the_search_finds_pages_without_a_server(opened: Open) -> None:
    page = opened(SITE / "index.html")
    page.locator("input.md-search__input").fill("exploitability")
    found = page.locator("a.md-search-result__link", has_text="exploitability").first
    found.click()
    page.wait_for_url(lambda url: "index.html" not in url)
    assert "exploitability" in page.locator("article").inner_text().lower()


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


@pytest.mark.parametrize("width", [1300, 700])
def test_no_block_of_code_needs_scrolling_sideways(width: int, opened: Open) -> None:
    """All pages of the guides: a block that is wider than its box has a bar at its foot."""
    pages = [path for path in SITE.glob("*.html") if path.name != "404.html"]
    assert len(pages) > 15
    page = opened(SITE / "index.html", viewport={"width": width, "height": 900})
    wide = {}
    for path in pages:
        page.goto(path.as_uri())
        found = page.evaluate(
            "[...document.querySelectorAll('pre code')].filter(c => c.scrollWidth > c.clientWidth + 1).length"
        )
        if found:
            wide[path.name] = found
    assert wide == {}
