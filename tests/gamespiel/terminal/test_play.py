"""``gamespiel play``: what a person types, and what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium as gym
import pytest
from rich.console import Console

from gamespiel.cli import main
from gamespiel.config import resolve, saved_config
from gamespiel.config.sections import EnvConfig
from gamespiel.terminal.play import play, understand
from tests.gamespiel.terminal.conftest import printed, typed


def env_of(**keys: str) -> EnvConfig:
    return resolve(overrides=[(f"env.{key}", value) for key, value in keys.items()]).env


def test_a_game_to_the_end(console: Console) -> None:
    # In tic_tac_toe the opponent "first" takes the lowest free cell. Seat 0 takes 4, 2 and 6: a diagonal.
    config = env_of(game="tic_tac_toe", opponent="first")
    info = play(config, seed=0, console=console, read=typed(["4", "2", "6"]))
    assert (info["result"], info["history"]) == ("win", [4, 0, 2, 1, 6])
    shown = printed(console)
    assert shown.startswith("tic_tac_toe against first, seed 0. Type help for help.\n")
    assert re.findall(r"turn (\d), you are Player (\d)", shown) == [("1", "0"), ("2", "0"), ("3", "0")]
    assert "Result: win" in shown
    _, table = shown.split("── transcript")
    rows = [line.split("  ") for line in table.splitlines() if line[:1].isdigit()]
    players = [[part.strip() for part in row if part.strip()][1] for row in rows]
    assert players == ["you (Player 0)", "Player 1", "you (Player 0)", "Player 1", "you (Player 0)"]
    # At the end of input the game is given up, and the moves so far are shown.
    play(config, seed=0, console=console, read=typed(["4"]))
    shown = printed(console).rpartition("transcript")
    assert "given up" in shown[0] and len([line for line in shown[2].splitlines() if line[:1].isdigit()]) == 2


def test_names_commands_and_mistakes(console: Console) -> None:
    lines = ["help", "rules", "rais", "7", "fold", "call", "quit"]
    # Seed 1 plays seat 1: Player 0 calls, so that there is nothing to fold.
    info = play(env_of(game="leduc_poker", opponent="first"), seed=1, console=console, read=typed(lines))
    shown = printed(console)
    assert "part of a name: list the actions that have it" in shown
    assert shown.count("2  Raise") == 3  # the menus of two turns, and that of "rais"
    assert "Leduc poker for 2 players." in shown  # the rules
    assert "'7' is no legal action; legal: 1, 2." in shown and "'fold' is no legal action" in shown
    assert "given up" in shown and "result" not in info
    play(env_of(game="goofspiel"), seed=3, console=console, read=typed(["4"]))
    assert "[P1]Bid: 5" in printed(console)  # brackets are no markup
    play(env_of(game="amazons"), seed=0, console=console, read=typed(["moves"]))
    assert "given up" in printed(console)


def test_opponents_of_the_configuration(console: Console) -> None:
    mixed = env_of(game="kuhn_poker", opponent="{random: 0.5, first: 0.5}")
    met = {play(mixed, seed=seed, console=console, read=typed("00"))["opponent"] for seed in range(12)}
    assert met == {"random", "first"}
    alone = env_of(game="kuhn_poker", opponent="self")
    assert play(alone, seed=0, console=console, read=typed("00"))["opponent"] == "random"
    assert "you play against random" in " ".join(printed(console).split())


def test_lines_are_understood_as_legal_actions() -> None:
    env = gym.make("GameSpiel-v0", game="leduc_poker", opponent="first")
    _, info = env.reset(seed=0)  # the first turn of Leduc poker: call or raise
    lines = {"1": 1, " Raise ": 2, "raise": 2, "0": None, "²": None, "1.0": None}
    assert {line: understand(line, env, info).action for line in lines} == lines
    alike = {**info, "legal_actions": [3, 4], "admissible_commands": ["Pass", "pass"]}
    assert understand("pass", env, alike).action is None  # a name of two actions is not guessed
    assert understand("4", env, alike).action == 4


def test_a_policy_shows_probabilities_and_its_value(console: Console, finished: Path) -> None:
    config = saved_config(finished).env
    play(config, seed=0, checkpoint=finished, console=console, read=typed(["Pass", "Pass"]))
    shown = printed(console)
    assert "kuhn_poker against random" in shown
    first = shown.split("turn 2")[0]
    shares = [float(share) for share in re.findall(r"([\d.]+)%", first)[:2]]
    assert sum(shares) == pytest.approx(100, abs=0.11) and shares == sorted(shares, reverse=True)
    assert re.search(r"the policy expects a score of -?\d\.\d{3}", shown)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("play", "what is played? give --game NAME, --task_id N or --checkpoint RUN"),
        ("play --game leduc", "did you mean 'leduc_poker'?"),
        ("play --game hex --opponent mtcs", "did you mean 'mcts'?"),
        ("play --env.env_type trace --task_id 1", "gamespiel trace asks about programs"),
        ("play --checkpoint /no/such", "no such run or checkpoint folder: '/no/such'"),
        ("play --gme hex", "unknown option '--gme'; did you mean '--game'?"),
    ],
)
def test_errors(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err
