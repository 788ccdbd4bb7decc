"""``gamespiel watch``: a run's policy plays."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from rich.console import Console

from gamespiel.cli import main
from gamespiel.config import saved_config
from gamespiel.terminal.watch import watch
from tests.gamespiel.terminal.conftest import printed


def test_two_games(console: Console, finished: Path) -> None:
    waited: list[float] = []
    config = saved_config(finished).env
    infos = watch(config, finished, episodes=2, seed=4, delay=0.5, console=console, sleep=waited.append)
    assert [info["seed"] for info in infos] == [4, 5]
    assert [info["seat"] for info in infos] == [0, 1]  # a seed's parity is the seat
    again = watch(config, finished, seed=4, console=Console(quiet=True))
    assert again[0]["history"] == infos[0]["history"]
    shown = printed(console)
    assert shown.count("kuhn_poker against random, seed") == 2 and shown.count("Result: ") == 2
    turns = sum(info["turn"] for info in infos)
    assert waited == [0.5] * turns == [0.5] * len(re.findall(r"turn \d, Player", shown))
    # Each turn has two actions, one of which is marked, and a value.
    assert shown.count("→") == turns == len(re.findall(r"expects a score of -?\d\.\d{3}", shown))
    assert shown.endswith(f"2 episodes: {_counted([info['result'] for info in infos])}\n")


def _counted(results: list[str]) -> str:
    return ", ".join(f"{results.count(name)} {name}" for name in dict.fromkeys(results))


def test_greedy_takes_the_likeliest(console: Console, finished: Path) -> None:
    watch(saved_config(finished).env, finished, greedy=True, console=console)
    blocks = re.findall(r"((?:^\d .*%.*\n)+)", printed(console), re.MULTILINE)
    assert blocks and all("→" in block.splitlines()[0] for block in blocks)  # the likeliest comes first


def test_against_itself_it_plays_every_seat(console: Console, finished: Path) -> None:
    config = dataclasses.replace(saved_config(finished).env, opponent="self")
    (info,) = watch(config, finished, console=console)
    shown = printed(console)
    assert shown.startswith("opponent 'self': the policy plays every seat\n")
    assert shown.count("expects a score of") == len(info["history"]) - 2  # two cards are dealt
    assert "Player 0" in shown and "Player 1" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("watch --checkpoint RUN --episodes 0", "--episodes must be at least 1, not 0"),
        ("watch --checkpoint RUN --delay -1", "--delay must be at least 0 seconds, not -1.0"),
        ("watch --checkpoint RUN --env.decode text", "was trained with env.decode: choice"),
        ("watch --checkpoint RUN --opponent mtcs", "did you mean 'mcts'?"),
    ],
)
def test_errors(line: str, message: str, finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(finished) if word == "RUN" else word for word in line.split()]) == 2
    assert message in capsys.readouterr().err
