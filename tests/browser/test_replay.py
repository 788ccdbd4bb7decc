"""The replay page as a person has it: in light and dark, on a phone, with only a keyboard."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel.measure.records import Record, write_records
from gamespiel.replay.page import write_page
from tests.browser import looks
from tests.browser.conftest import PHONE, Open
from tests.browser.looks import measure
from tests.gamespiel.replay.games import record

HTML = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b>bold</b> &amp; \u2028"
LONG = "a" * 300

#: Probabilities of the first turn of tic-tac-toe. 4 is taken; 1 is as good as never.
ODDS = [0.4, 0.0001, 0.05, 0.05, 0.2999, 0.05, 0.05, 0.05, 0.05]

BOARDS = ("connect_four", "go", "hex", "othello", "chess", "checkers")
CARDS = ("leduc_poker", "kuhn_poker", "blackjack")


@pytest.fixture(scope="session")
def rows() -> list[Record]:
    """Returns an episode of each game that is drawn with pieces or cards, of 2048, a trace and a reply."""
    won = record([4, 2, 6], game="tic_tac_toe")
    won["turns"][0] |= {"probabilities": ODDS, "value": 0.625}
    cut = [record([], seed=1, game=game, max_turns=6) for game in BOARDS]
    dealt = [record([], seed=1, game=game) for game in CARDS]
    short = record([], seed=1, game="2048", max_turns=6)
    others = [*cut, *dealt, short]
    for row in others[::2]:
        row["opponent"] = "mcts:50"
    asked = record([4, 2, 6], game="tic_tac_toe") | {"player": LONG}
    for turn in asked["turns"]:
        turn |= {"answer": HTML + LONG, "probabilities": None, "value": None}
    turn = {"observation": f"print({LONG!r})", "legal_actions": [0, 1], "names": None, "action": 1,
            "answer": "1", "probabilities": [0.25, 0.75], "value": 0.5, "reward": 1.0}  # fmt: skip
    trace = record([], game="kuhn_poker") | {"env_type": "trace", "game": "code_trace", "history": None,
        "opponent": None, "turns": [turn], "final_observation": HTML, "player": HTML}  # fmt: skip
    return [won, *others, asked, trace]


@pytest.fixture(scope="session")
def file(rows: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, as the command writes it."""
    folder = tmp_path_factory.mktemp("replay")
    write_records(folder / "games.jsonl", rows)
    return write_page(folder / "games.jsonl", folder / "page.html", Console(file=io.StringIO()))


def at(page: Any) -> tuple[int, int]:
    """The episode and the position that the page shows, by its controls."""
    return int(page.locator("#episode").input_value()), int(page.locator("#slider").input_value())


def number(rows: list[Record], game: str) -> int:
    return next(i for i, row in enumerate(rows) if row["game"] == game)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("settings", [{}, PHONE], ids=["desktop", "phone"])
def test_everything_can_be_read(
    scheme: str, settings: dict[str, Any], opened: Open, file: Path, rows: list[Record]
) -> None:
    page = opened(file, color_scheme=scheme, **settings)
    shade = measure(page, looks.BACKGROUND)
    assert shade < 0.05 if scheme == "dark" else shade > 0.9
    for episode in range(len(rows)):
        for position in (0, 999):  # the first, with bars, and the last
            page.evaluate(f"location.hash = '#e={episode}&m={position}'")
            page.wait_for_function(f"document.getElementById('episode').value === '{episode}'")
            shown = measure(page, looks.TEXTS)
            assert len(shown) > 10
            # WCAG 2.2: 4.5 to 1 for texts (1.4.3), 3 to 1 for what a picture is understood by (1.4.11).
            assert [one for one in shown if one["contrast"] < 4.5 or one["size"] < 12] == []
            assert min(measure(page, looks.PIECES), default=math.inf) >= 3


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_shows_it_without_scrolling_sideways(
    width: int, opened: Open, file: Path, rows: list[Record]
) -> None:
    page = opened(file, **PHONE | {"viewport": {"width": width, "height": 844}})
    for episode in range(len(rows)):
        page.evaluate(f"location.hash = '#e={episode}&m=1'")
        page.wait_for_function(f"document.getElementById('episode').value === '{episode}'")
        # Wider than the screen, a phone's page is shown smaller: innerWidth grows with it.
        assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
        assert measure(page, looks.OUTSIDE) == []
    boxes = [control.bounding_box() for control in page.locator("select, button, input").all()]
    assert len(boxes) == 9 and all(box["height"] >= 24 and box["width"] >= 24 for box in boxes)  # WCAG 2.5.8
    page.locator("#on").tap()
    page.locator("#last").tap()
    assert at(page) == (len(rows) - 1, 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tab_reaches_every_control_and_shows_where_it_is(scheme: str, opened: Open, file: Path) -> None:
    page = opened(file, color_scheme=scheme)
    reached = []
    for _ in range(10):
        page.keyboard.press("Tab")
        reached.append(measure(page, looks.FOCUS))
    assert [one["id"] for one in reached] == [
        "by-game", "by-opponent", "by-result", "episode", "first", "back", "slider", "on", "last", "link",
    ]  # fmt: skip
    assert all(one["outline"] == "solid" and one["width"] >= 2 and one["contrast"] >= 3 for one in reached)


def test_keys_move_through_games(opened: Open, file: Path, rows: list[Record]) -> None:
    page = opened(file)
    moves = len(rows[0]["history"])
    steps = [
        ("ArrowRight", (0, 1)), ("ArrowRight", (0, 2)), ("ArrowLeft", (0, 1)), ("End", (0, moves)),
        ("ArrowRight", (0, moves)), ("Home", (0, 0)), ("ArrowLeft", (0, 0)), ("ArrowUp", (0, 0)),
        ("ArrowRight", (0, 1)), ("ArrowDown", (1, 0)), ("ArrowUp", (0, 0)),
    ]  # fmt: skip
    for key, expected in steps:
        page.keyboard.press(key)
        assert at(page) == expected, key
    page.locator("#slider").focus()
    for key, expected in (("ArrowRight", (0, 1)), ("End", (0, moves)), ("Home", (0, 0))):
        page.keyboard.press(key)
        assert at(page) == expected, f"{key} on the slider"
    for control, expected in (("on", 1), ("last", moves), ("back", moves - 1), ("first", 0)):
        page.locator(f"#{control}").press("Enter")
        assert at(page) == (0, expected), f"Enter on {control}"


def test_filters_by_keys(opened: Open, file: Path, rows: list[Record]) -> None:
    page = opened(file)
    page.keyboard.press("Tab")
    page.keyboard.type("hex")
    assert page.locator("#by-game").input_value() == "hex"
    assert at(page) == (number(rows, "hex"), 0) and page.locator("#episode option").count() == 1
    page.keyboard.press("Home")
    assert page.locator("#episode option").count() == len(rows)
    page.keyboard.press("Tab")
    page.keyboard.type("mcts")
    theirs = [i for i, row in enumerate(rows) if row["opponent"] == "mcts:50"]
    now = theirs.index(number(rows, "hex"))  # as before: hex was played against this opponent
    assert at(page) == (theirs[now], 0)
    page.locator("#first").focus()
    page.keyboard.press("ArrowDown")  # to the next episode of those that are left
    assert at(page) == (theirs[now + 1], 0)


def test_the_slider_and_the_link_to_a_move(opened: Open, file: Path) -> None:
    page = opened(file)
    page.locator("#slider").fill("3")
    assert at(page) == (0, 3) and page.locator("#move").inner_text() == "player: x(0,2)"
    board = page.locator("#board").inner_html()
    fragment = page.locator("#link").get_attribute("href")
    assert fragment == "#e=0&m=3" and page.url.endswith(fragment)
    other = opened(file, fragment)
    assert at(other) == (0, 3) and other.locator("#board").inner_html() == board
    other.locator("#by-game").select_option("chess")
    other.evaluate(f"location.hash = '{fragment}'")  # to an episode that the filter leaves out
    other.wait_for_function("document.getElementById('by-game').value === ''")
    assert at(other) == (0, 3) and other.locator("#board").inner_html() == board


def test_texts_are_shown_as_they_are(opened: Open, file: Path, rows: list[Record]) -> None:
    page = opened(file, f"#e={len(rows) - 1}&m=1")  # a script in a text would open a dialog
    assert page.locator("#about").inner_text().startswith(HTML.replace("\u2028", "").rstrip())
    assert "<b>bold</b> &amp;" in page.locator("#text").inner_text()
    asked = opened(file, f"#e={len(rows) - 2}&m=0")
    assert asked.locator("#bars p").first.inner_text().startswith("answer: </script><script>alert(1)")
    # Without probabilities, the legal actions are there, and the one that was taken is marked.
    assert asked.locator(".bar").count() == 9 and asked.locator(".bar i").count() == 0
    assert asked.locator(".bar.taken").inner_text() == "→ x(1,1)"
    for shown in (page, asked):
        assert shown.locator("img, b").count() == 0 and shown.locator("script").count() == 2
