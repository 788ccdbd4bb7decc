"""Headless Chromium, driven by Playwright: ``make browser``. Without Playwright, its tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.get_chromium import NAMES

#: A container's root has no sandbox, and a test no network that the browser could report to.
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 3,
    "is_mobile": True,
    "has_touch": True,
}

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Yields the browser."""
    api = pytest.importorskip("playwright.sync_api", reason="the tests in a browser: make browser")
    place = next(filter(None, map(shutil.which, NAMES)), None)
    assert place, "there is no Chromium: make browser installs Debian's, if it is root"
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Open]:
    """Yields a function that opens a file in a page of its own.

    In the end it raises if a page has reported an error or asked for anything but files.
    """
    contexts: list[Any] = []
    faults: list[str] = []

    def show(file: Path, fragment: str = "", **settings: Any) -> Any:
        contexts.append(chromium.new_context(**settings))
        contexts[-1].on(
            "request", lambda request: request.url.startswith("file:") or faults.append(request.url)
        )
        page = contexts[-1].new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and faults.append(said.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.goto(f"{file.resolve().as_uri()}{fragment}")
        return page

    yield show
    for context in contexts:
        context.close()
    assert not faults
