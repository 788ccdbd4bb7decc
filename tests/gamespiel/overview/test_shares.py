"""Success by game, opponent and stage, counted from a run's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from gamespiel.config import Config
from gamespiel.overview.curves import Group, draw_groups
from gamespiel.overview.reading import Run
from gamespiel.overview.shares import draw_shares, find_shares
from task_gym.stats import wilson


def row(step: int, stage: str | None = None, **groups: tuple[int, int]) -> dict[str, Any]:
    """A row in which a game or an opponent has successes of episodes."""
    found: dict[str, Any] = {"step": step}
    for name, (won, played) in groups.items():
        kind, _, name = name.partition("_")
        found |= {
            f"rollout/{kind}/{name}/episodes": played,
            f"rollout/{kind}/{name}/success": won / played,
            f"rollout/{kind}/{name}/reward": 0.0,
        }
    games = [value for key, value in groups.items() if key.startswith("game_")]
    won, played = (sum(column) for column in zip(*games, strict=True))
    found |= {"rollout/episodes": played, "rollout/success": won / played, "rollout/reward": 0.0}
    return found if stage is None else found | {"curriculum/name": stage}


def run(*rows: dict[str, Any]) -> Run:
    return Run(Path("a"), Config(), list(rows), {}, 0.0)


def test_games_early_and_late() -> None:
    rows = [row(step, game_hex=(step, 12), game_go=(1, 3)) for step in range(1, 11)]
    (shares,) = find_shares([run(*rows)])
    assert shares.title == "success by game"
    # A fifth of ten steps is two: 1 + 2 of 24 at first, 9 + 10 of 24 at last.
    assert shares.early == {"go": wilson(2, 6), "hex": wilson(3, 24)}
    assert shares.late["hex"] == wilson(19, 24)
    # Several seeds are counted together; there is one game only.
    rows = [row(1, game_hex=(1, 2), against_random=(1, 2), against_mcts=(0, 1))]
    (shares,) = find_shares([run(*rows), run(*rows)])
    assert shares.title == "success by opponent"
    assert shares.late == {"random": wilson(2, 4), "mcts": wilson(0, 2)}


def test_stages_of_all_steps() -> None:
    rows = [
        row(1, "first", game_hex=(0, 2)),
        row(2, "first", game_hex=(2, 2)),
        row(3, "last", game_hex=(1, 4)),
    ]
    (shares,) = find_shares([run(*rows)])
    assert shares.early == {} and shares.late == {"first": wilson(2, 4), "last": wilson(1, 4)}


def test_a_game_that_comes_late_has_no_early_mark() -> None:
    rows = [row(1, game_hex=(0, 2)), *(row(step, game_hex=(1, 2), game_go=(1, 2)) for step in range(2, 6))]
    (shares,) = find_shares([run(*rows)])
    assert list(shares.early) == ["hex"] and set(shares.late) == {"hex", "go"}
    axes = Figure().subplots()
    draw_shares(axes, shares, "#000000")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["hex", "go"]
    assert len(axes.lines) == 2 * 3  # an interval and a mark of each share
    many: dict[str, Any] = {f"game_{'x' * 100}{place:02}": (1, 2) for place in range(31)}
    (shares,) = find_shares([run(row(1, **many))])
    axes = Figure().subplots()
    draw_shares(axes, shares, "#000000")
    assert len(axes.get_yticklabels()) == 24  # at most


def test_panels_stand_below_the_curves() -> None:
    rows = [row(step, f"s{step}", game_hex=(1, 2), game_go=(1, 2)) for step in (1, 2)]
    axes = draw_groups([Group("a", [run(*rows)])]).axes
    assert [one.get_title(loc="left") for one in axes[8:]] == [
        "success by game, first fifth of the steps (hollow) and last",
        "success by stage, all of its steps",
    ]
    alone = [row(step, game_hex=(1, 2), against_random=(1, 2)) for step in (1, 2)]
    assert list(find_shares([run(*alone)])) == []  # one game against one opponent
    assert len(draw_groups([Group("a", [run(*alone)])]).axes) == 8
