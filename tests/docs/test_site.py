"""The documentation site's pages are generated from what they describe, and their links lead somewhere."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs import hooks, site
from docs.game_pages import budget, game_page, limits, picture, played, score
from docs.reference import ROOMS
from docs.site import copied, generated, site_pages
from docs.trace_pages import family_page
from game_gym.games import DECLARED
from trace_gym.programs.builtin import NAMES

QUICK = ["games/leduc_poker.md", "games/hex.md", "traces/closures.md"]
PLAYED = [name for name in generated() if not name.startswith("reference/")]


def test_there_is_a_page_per_game_family_and_room() -> None:
    expected = {f"games/{name}.md" for name in DECLARED} | {f"traces/{name}.md" for name in NAMES}
    assert set(generated()) == expected | {f"reference/{room}.md" for room in ROOMS}
    assert set(site_pages().values()) & set(generated()) == set()


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(n, marks=pytest.mark.families) for n in PLAYED if n not in QUICK)]
)
def test_the_examples_print_what_is_shown(name: str) -> None:
    examples = re.findall(
        r"```python\n(.*?)```\n\nprints\n\n(`{3,})text\n(.*?)\n\2", generated()[name](), re.S
    )
    assert len(examples) == 1
    for code, _, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), {})
        assert printed.getvalue().rstrip("\n") == shown


def test_a_games_page_has_all_its_parts() -> None:
    text = game_page("leduc_poker")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [
        "Rules", "Parameters", "Spaces", "An observation", "A game", "Score", "Search", "Baselines",
    ]  # fmt: skip
    assert "Task id 2 × 100,000,000 + c; every c is the same game." in text
    assert "| tensor | information state tensor of shape (30,) |" in text
    assert "| `random` | 0.51 [0.48, 0.54] | 45% [36%, 55%] |" in text
    # A game without task ids and baselines, and one without a drawing.
    kuhn = game_page("kuhn_poker")
    assert "The game has no task ids." in kuhn and "Not measured yet" in kuhn
    assert 'class="board"' not in game_page("bridge")


def test_scores_and_searches_in_words() -> None:
    # Returns -13 … 13, 0 … 20,480; hearts has four seats; euchre, clobber and 2048 as their rules say.
    assert "score = (return + 13) / 26" in score("leduc_poker")
    assert "score = return / 20480" in score("2048")
    assert "score = 1 − (seats with a higher return) / 3" in score("hearts")
    assert budget("2048") == "None: the game has one seat."
    assert budget("goofspiel") == "None: no search can play the game."
    assert "mcts 1000 × 50" in budget("hex")


def test_limits_are_those_of_the_page_of_all_games() -> None:
    heading, said = limits("chess")
    assert heading == "## Limits"
    assert said == "**chess** white is seat 1, as in OpenSpiel, so seat 1 moves first."
    assert limits("tic_tac_toe") == []


def test_the_picture_is_the_middle_of_the_game() -> None:
    _, _, variant, history = played("tic_tac_toe")
    caption, drawing = picture("tic_tac_toe", variant, history)
    middle = (len(history) + 1) // 2
    assert f"after {middle} of {len(history)} moves" in caption
    (data,) = re.findall(r'data-board="([^"]*)"', drawing)
    rows = json.loads(html.unescape(data))["rows"]
    assert sum(sign in "xo" for sign in "".join(rows)) == middle


def test_a_familys_page_has_its_levels_and_ids() -> None:
    text = family_page("closures")
    # closures is family 5: level 1 begins at id 5, and level 10 at 5 + 9 * 16 = 149.
    assert "id mod 16 = 5" in text
    assert [row.split(" | ")[1] for row in re.findall(r"^\| (\d+ \| \d+) ", text, re.M)] == [
        str(5 + 16 * level) for level in range(10)
    ]
    assert "{'affine': 1.0, 'exact': 1.0, 'lines': 1.0}" in text


def test_pages_are_copied_with_links_of_the_site() -> None:
    home = copied("README.md")
    assert "[docs/games.md](games.md)" in home and "[CONTRIBUTING.md](contributing.md)" in home
    assert "](assets/learning_speed.png)" in home
    games = copied("docs/games.md")
    assert "[The games one by one](games.md#find-a-game)" in games
    assert "[hex](games/hex.md)" in games and "### hex" not in games and "## Other games" in games
    assert "traces/closures.md" in copied("docs/trace.md")
    for path in site_pages():
        copied(path)  # which raises if a link leads nowhere


def test_links_are_the_sites_and_code_is_copied_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A link to a file that the site lacks is its label."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "own.py").touch()
    monkeypatch.setattr(site, "ROOT", tmp_path)
    code = "````text\n```\n[a](nowhere.md)\n```\n````\n"
    page = tmp_path / "README.md"
    page.write_text(f"[a](#b)\n[`own.py`](own.py) [x](https://a.b/c)\n{code}")
    assert copied("README.md") == f"[a](#b)\n`own.py` [x](https://a.b/c)\n{code}"
    page.write_text("[x](gone.md)")
    with pytest.raises(ValueError, match=r"README\.md: a link to 'gone\.md'"):
        copied("README.md")


def test_folders_in_the_navigation_are_filled(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    for name in ("hex", "go"):
        (tmp_path / "games" / f"{name}.md").touch()
    config: dict[str, Any] = {
        "docs_dir": str(tmp_path),
        "nav": [{"Home": "index.md"}, {"Games": ["games.md", {"One by one": ["games/"]}]}],
    }
    assert hooks.on_config(config)["nav"] == [
        {"Home": "index.md"},
        {"Games": ["games.md", {"One by one": ["games/go.md", "games/hex.md"]}]},
    ]
