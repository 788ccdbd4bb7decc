"""The page of games against the model: rules and probabilities are Python's, and a game can be played."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generate_play import GAMES, tree_of
from game_gym.prompts import render
from game_gym.spec import State
from game_gym.walk import find_position_key, walk_histories
from tests.browser import looks
from tests.browser.conftest import PHONE, Open
from tests.browser.looks import measure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "play.md"
SITE = ROOT / "build" / "site" / "play.html"
PYTHON = ROOT / ".venv" / "bin" / "python"

RULES = """([name, histories]) => histories.map((history) => {
  const game = gameOf(name), node = history.reduce((at, action) => game.next(at, action), 0);
  const mover = game.mover(node);
  return {
    mover, legal: game.legal(node),
    outcomes: mover === "c" ? game.outcomes(node) : null,
    returns: mover === "t" ? [game.returns(node, 0), game.returns(node, 1)] : null,
    prompt: typeof mover === "number" ? game.prompt(node) : null,
  };
})"""
"""Returns what the page's rules say after each history."""

PROBABILITIES = """([name, first, last]) => {
  const game = gameOf(name), found = [];
  for (let state = first; state < last; state++) {
    const { actions, untrained, trained } = askModels(name, game, game.states.indexOf(state));
    found.push({ actions, prompt: game.prompt(game.states.indexOf(state)), untrained, trained });
  }
  return found;
}"""
"""Returns both models' probabilities in information states by number."""


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's own part, without the site around it."""
    (inside,) = re.findall(r'^<div id="play">.*?^(?!<)', PAGE.read_text(encoding="utf-8"), re.S | re.M)
    docs = (ROOT / "docs").as_uri()
    html = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Play</title><base href="{docs}/">'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="assets/site.css">'
        f'<body style="background: #fff">{inside}'
    )
    path = tmp_path_factory.mktemp("play") / "play.html"
    path.write_text(html, encoding="utf-8")
    return path


def list_positions(game: str) -> Iterator[tuple[list[int], State]]:
    """Yields a history of each position, and the state there."""
    variant = tree_of(game).variant
    histories: dict[int, list[int]] = {}
    for visit in walk_histories(variant, None, find_position_key(variant, None)):
        if visit.is_new:
            before = histories[visit.parent] if visit.parent >= 0 else None
            histories[visit.node] = [] if before is None else [*before, visit.action]
            yield histories[visit.node], visit.state


def facts(game: str, state: State) -> dict[str, Any]:
    """Returns the facts that OpenSpiel and the environment know of a state, in the form of ``RULES``."""
    chance, over = state.is_chance_node(), state.is_terminal()
    mover = state.current_player()
    return {
        "mover": "c" if chance else "t" if over else mover,
        "legal": state.legal_actions(),
        "outcomes": [probability for _, probability in state.chance_outcomes()] if chance else None,
        "returns": state.returns() if over else None,
        "prompt": None if chance or over else render(tree_of(game).variant, state, mover, rules=False),
    }


@pytest.mark.parametrize("game, count", [("kuhn_poker", 58), ("leduc_poker", 9457), ("tic_tac_toe", 5478)])
def test_rules_and_prompts_are_those_of_the_environment(
    game: str, count: int, opened: Open, file: Path
) -> None:
    histories, states = zip(*list_positions(game), strict=True)
    assert len(histories) == count  # docs/lab-notes.md has these numbers
    said = opened(file).evaluate(RULES, [game, list(histories)])
    assert said == [facts(game, state) for state in states]


@pytest.fixture(scope="session")
def policy_probabilities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The policy's probabilities, from the environment that has PyTorch: this one need not."""
    if not PYTHON.is_file():
        pytest.skip("no environment with the policy: make setup")
    path = tmp_path_factory.mktemp("play") / "probabilities.json"
    command = [PYTHON, "-m", "docs.play_trained", "--probabilities", path]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    probabilities: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return probabilities


@pytest.mark.parametrize("game", GAMES)
def test_probabilities_are_the_policys_in_every_information_state(
    game: str, opened: Open, file: Path, policy_probabilities: dict[str, Any]
) -> None:
    states = tree_of(game).states
    page, said = opened(file), []
    for first in range(0, len(states), 500):  # a script of minutes would look as if the page hung
        said += page.evaluate(PROBABILITIES, [game, first, min(first + 500, len(states))])
    assert [(one["prompt"], tuple(one["actions"])) for one in said] == [(s.text, s.legal) for s in states]
    largest = {
        model: max(
            abs(a - b)
            for one, row in zip(said, policy_probabilities[game][model], strict=True)
            for a, b in zip(one[model], row, strict=True)
        )
        for model in ("untrained", "trained")
    }
    assert max(largest.values()) < 1e-5


def play_to_the_end(page: Any, press: Any) -> int:
    """Chooses the first move at each turn; returns the number of turns."""
    turns = 0
    while page.locator("#play-area .odds button").count():
        press(page.locator("#play-area .odds button").first)
        turns += 1
    return turns


@pytest.mark.parametrize("game, most", [("kuhn_poker", 2), ("leduc_poker", 4), ("tic_tac_toe", 5)])
@pytest.mark.parametrize("seat", ["0", "1"])
def test_a_game_is_played_by_clicks_on_a_phone(
    game: str, most: int, seat: str, opened: Open, file: Path
) -> None:
    settings = PHONE | {"viewport": {"width": 375, "height": 800}}
    page = opened(file, **settings)
    page.locator("#play-game").select_option(game)
    page.locator("#play-seat").select_option(seat)
    page.locator("#play-against").select_option("untrained")
    assert f"You are Player {seat}." in page.locator("#play-area > details pre").text_content()
    shares = page.locator("#play-area > .odds td:nth-child(3)").all_inner_texts()
    assert sum(float(share.strip("%")) for share in shares) == pytest.approx(100, abs=0.1 * len(shares))
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    assert 1 <= play_to_the_end(page, lambda button: button.tap()) <= most
    assert "Your return: " in page.locator("#play-status").inner_text()
    for summary in page.locator("#play-log > li > details > summary").all():  # all that can be opened is
        summary.tap()
    for summary in page.locator("#play-log details details summary").all():
        summary.tap()
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    page.locator("#play-new").tap()
    assert page.locator("#play-area .odds button").count()
    assert "Your return: " not in page.locator("#play-status").inner_text()


def test_the_models_card_is_hidden_until_the_end(opened: Open, file: Path) -> None:
    page = opened(file)
    page.locator("#play-game").select_option("kuhn_poker")
    page.locator("#play-seat").select_option("1")
    assert page.locator("#play-log li").count() == 1 and not page.locator("#play-log details").count()
    play_to_the_end(page, lambda button: button.click())
    assert "Your card: " in page.locator("#play-log details pre").first.text_content()
    page.locator("#play-game").select_option("tic_tac_toe")  # in which nothing is hidden
    assert page.locator("#play-log details").count()


def test_a_game_is_played_by_keys(opened: Open, file: Path) -> None:
    page = opened(file)
    page.locator("#play-game").focus()
    page.keyboard.type("tic")
    for expected in ("play-seat", "play-against", "play-new"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == expected
    page.keyboard.press("Tab")
    for _ in range(5):  # the focus goes to the next turn's first move, and in the end to the next game
        if page.evaluate("document.activeElement.id") == "play-new":
            break
        assert page.evaluate("document.activeElement.dataset.action")
        look = measure(page, looks.FOCUS)
        assert look["outline"] == "solid" and look["width"] >= 2 and look["contrast"] >= 3
        page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "play-new"
    assert "Your return: " in page.locator("#play-status").inner_text()


@pytest.mark.skipif(not SITE.is_file(), reason="no site: make docs builds it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_the_site_can_be_read(scheme: str, opened: Open) -> None:
    settings = PHONE | {"viewport": {"width": 375, "height": 800}, "color_scheme": scheme}
    page = opened(SITE, **settings)
    page.locator("#play-game").select_option("leduc_poker")
    page.locator("#play-area > details > summary").click()
    shade = measure(page, looks.BACKGROUND)
    assert shade < 0.1 if scheme == "dark" else shade > 0.9
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    page.evaluate("document.querySelector('article').replaceChildren(document.getElementById('play'))")
    page.evaluate("document.querySelectorAll('[class^=md-]:not(:has(#play))').forEach((one) => one.remove())")
    shown = measure(page, looks.TEXTS)
    assert "It is your turn." in [one["text"] for one in shown]
    assert [one for one in shown if one["contrast"] < 4.5 or one["size"] < 12] == []
