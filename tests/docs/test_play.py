"""The page of games against the model: its trained models are those of its commands and figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import play_trained
from docs.generate_play import tree_of
from game_gym.exact import evaluate_table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_trained_models_are_those_of_the_commands() -> None:
    page = (DOCS / "play.md").read_text(encoding="utf-8").replace("\\\n", " ")
    written = [" ".join(line.split()) for line in re.findall(r"^python train.*$", page, re.MULTILINE)]
    assert [run["command"] for run in play_trained.read_script().values()] == written
    assert list(play_trained.COMMANDS.values()) == written
    # A visitor loads all of it.
    assert sum(path.stat().st_size for path in (DOCS / "assets" / "play").iterdir()) < 2_000_000


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        pytest.param("leduc_poker", marks=[pytest.mark.families, pytest.mark.sample]),
        pytest.param("tic_tac_toe", marks=pytest.mark.trains),
    ],
)
def test_the_trained_models_have_the_figures_that_the_page_shows(game: str) -> None:
    run = play_trained.read_script()[game]
    tables = play_trained.list_probabilities(game, run)
    for name, model in (("untrained", "untrained"), ("policy", "trained")):
        exact = evaluate_table(tree_of(game), tables[model], "random")
        figures = run[name]["share"], run[name]["exploitability"]
        assert (exact.share, exact.exploitability) == pytest.approx(figures, abs=1e-4)
