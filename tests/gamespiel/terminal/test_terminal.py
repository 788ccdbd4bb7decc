"""Commands for a person at a terminal: ``gamespiel games``, ``play`` and ``watch``."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import gymnasium as gym
import pytest
from rich.console import Console

import trace_gym  # noqa: F401  (registers CodeTrace-v0)
from game_gym.games import DECLARED, TABLE
from gamespiel.cli import main
from gamespiel.config import resolve, saved_config
from gamespiel.config.sections import EnvConfig
from gamespiel.terminal.play import play, understand
from gamespiel.terminal.watch import watch
from tests.consoles import quiet, read_console

Capsys = pytest.CaptureFixture[str]

WIDTH = 60
"""Columns of the terminal."""


@pytest.fixture
def console() -> Console:
    return quiet(WIDTH)


def read_output(console: Console) -> str:
    """Returns what was printed, after a check of what is true of everything printed there."""
    text = read_console(console)
    assert "\x1b" not in text  # no colours where nobody sees them
    assert max(map(len, text.splitlines())) <= WIDTH
    return text


def type_lines(lines: Iterable[str]) -> Callable[[str], str]:
    """Returns a reader of these lines, and then of the end of input."""
    rest = iter(lines)

    def read(prompt: str) -> str:
        for line in rest:
            return line
        raise EOFError

    return read


def test_games_are_listed_as_json(capsys: Capsys) -> None:
    assert main(["games", "--json"]) == 0
    games = {game["game"]: game for game in json.loads(capsys.readouterr().out)}
    assert list(games)[: len(TABLE)] == list(TABLE)
    assert games["go"] == {
        "game": "go",
        "first_task_id": 1_100_000_000,
        "players": 2,
        "perfect_information": True,
        "chance": False,
        "simultaneous": False,
        "actions": [26, 50],  # 5 x 5 and 7 x 7 fields, and a pass
        "moves_at_most": [50, 98],  # twice the fields
        "variants": [DECLARED["go"].params(0), DECLARED["go"].params(1)],
        "parameters": {name: list(values) for name, values in DECLARED["go"].allowed.items()},
        "budget": [300, 30],
    }
    assert games["tic_tac_toe"]["first_task_id"] is None and games["2048"]["budget"] is None
    assert games["goofspiel"]["simultaneous"] and games["goofspiel"]["chance"]


# -- play --------------------------------------------------------------------------------------------------


def env_of(**keys: str) -> EnvConfig:
    return resolve(overrides=[(f"env.{key}", value) for key, value in keys.items()]).env


def test_a_game_to_the_end(console: Console) -> None:
    # In tic_tac_toe the opponent "first" takes the lowest free cell. Seat 0 takes 4, 2 and 6: a diagonal.
    config = env_of(game="tic_tac_toe", opponent="first")
    info = play(config, seed=0, console=console, read=type_lines(["4", "2", "6"]))
    assert (info["result"], info["history"]) == ("win", [4, 0, 2, 1, 6])
    shown = read_output(console)
    assert shown.startswith("tic_tac_toe against first, seed 0. Type help for help.\n")
    assert re.findall(r"turn (\d), you are Player (\d)", shown) == [("1", "0"), ("2", "0"), ("3", "0")]
    assert "Result: win" in shown
    _, table = shown.split("── transcript")
    rows = [line.split("  ") for line in table.splitlines() if line[:1].isdigit()]
    players = [[part.strip() for part in row if part.strip()][1] for row in rows]
    assert players == ["you (Player 0)", "Player 1", "you (Player 0)", "Player 1", "you (Player 0)"]
    # At the end of input the game is given up, and the moves so far are shown.
    play(config, seed=0, console=console, read=type_lines(["4"]))
    shown = read_output(console).rpartition("transcript")
    assert "given up" in shown[0] and len([line for line in shown[2].splitlines() if line[:1].isdigit()]) == 2


def test_names_commands_and_mistakes(console: Console) -> None:
    lines = ["help", "rules", "rais", "7", "fold", "call", "quit"]
    # Seed 1 plays seat 1: Player 0 calls, so that there is nothing to fold.
    info = play(env_of(game="leduc_poker", opponent="first"), seed=1, console=console, read=type_lines(lines))
    shown = read_output(console)
    assert "part of a name: list the actions that have it" in shown
    assert shown.count("2  Raise") == 3  # the menus of two turns, and that of "rais"
    assert "Leduc poker for 2 players." in shown  # the rules
    assert "'7' is no legal action; legal: 1, 2." in shown and "'fold' is no legal action" in shown
    assert "given up" in shown and "result" not in info
    play(env_of(game="goofspiel"), seed=3, console=console, read=type_lines(["4"]))
    assert "[P1]Bid: 5" in read_output(console)  # brackets are no markup
    play(env_of(game="amazons"), seed=0, console=console, read=type_lines(["moves"]))
    assert "given up" in read_output(console)


def test_opponents_of_the_configuration(console: Console) -> None:
    mixed = env_of(game="kuhn_poker", opponent="{random: 0.5, first: 0.5}")
    met = {play(mixed, seed=seed, console=console, read=type_lines("00"))["opponent"] for seed in range(12)}
    assert met == {"random", "first"}
    alone = env_of(game="kuhn_poker", opponent="self")
    assert play(alone, seed=0, console=console, read=type_lines("00"))["opponent"] == "random"
    assert "you play against random" in " ".join(read_output(console).split())


def test_lines_are_understood_as_legal_actions() -> None:
    env = gym.make("GameSpiel-v0", game="leduc_poker", opponent="first")
    _, info = env.reset(seed=0)  # the first turn of Leduc poker: call or raise
    lines = {"1": 1, " Raise ": 2, "raise": 2, "quit": None}
    assert {line: understand(line, env, info) for line in lines} == lines
    assert not any(isinstance(understand(line, env, info), int | None) for line in ("0", "²", "1.0"))
    alike = {**info, "legal_actions": [3, 4], "admissible_commands": ["Pass", "pass"]}
    assert not isinstance(understand("pass", env, alike), int)  # a name of two actions is not guessed
    assert understand("4", env, alike) == 4


@pytest.mark.trains
@pytest.mark.sample
def test_a_policy_shows_probabilities_and_its_value(console: Console, finished: Path) -> None:
    config = saved_config(finished).env
    play(config, seed=0, checkpoint=finished, console=console, read=type_lines(["Pass", "Pass"]))
    shown = read_output(console)
    assert "kuhn_poker against random" in shown
    first = shown.split("turn 2")[0]
    shares = [float(share) for share in re.findall(r"([\d.]+)%", first)[:2]]
    assert sum(shares) == pytest.approx(100, abs=0.11) and shares == sorted(shares, reverse=True)
    assert re.search(r"the policy expects a score of -?\d\.\d{3}", shown)


# -- watch -------------------------------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.sample
def test_two_games(console: Console, finished: Path) -> None:
    waited: list[float] = []
    config = saved_config(finished).env
    infos = watch(config, finished, episodes=2, seed=4, delay=0.5, console=console, sleep=waited.append)
    assert [info["seed"] for info in infos] == [4, 5]
    assert [info["seat"] for info in infos] == [0, 1]  # a seed's parity is the seat
    again = watch(config, finished, seed=4, console=Console(quiet=True))
    assert again[0]["history"] == infos[0]["history"]
    shown = read_output(console)
    assert shown.count("kuhn_poker against random, seed") == 2 and shown.count("Result: ") == 2
    turns = sum(info["turn"] for info in infos)
    assert waited == [0.5] * turns == [0.5] * len(re.findall(r"turn \d, Player", shown))
    # Each turn has two actions, one of which is marked, and a value.
    assert shown.count("→") == turns == len(re.findall(r"expects a score of -?\d\.\d{3}", shown))
    results = [info["result"] for info in infos]
    counts = ", ".join(f"{results.count(name)} {name}" for name in dict.fromkeys(results))
    assert shown.endswith(f"2 episodes: {counts}\n")


@pytest.mark.trains
@pytest.mark.sample
def test_greedy_takes_the_likeliest(console: Console, finished: Path) -> None:
    watch(saved_config(finished).env, finished, greedy=True, console=console)
    blocks = re.findall(r"((?:^\d .*%.*\n)+)", read_output(console), re.MULTILINE)
    assert blocks and all("→" in block.splitlines()[0] for block in blocks)  # the likeliest comes first


@pytest.mark.trains
@pytest.mark.sample
def test_against_itself_it_plays_every_seat(console: Console, finished: Path) -> None:
    config = dataclasses.replace(saved_config(finished).env, opponent="self")
    (info,) = watch(config, finished, console=console)
    shown = read_output(console)
    assert shown.startswith("opponent 'self': the policy plays every seat\n")
    assert shown.count("expects a score of") == len(info["history"]) - 2  # two cards are dealt
    assert "Player 0" in shown and "Player 1" in shown


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("play", "what is played? give --game NAME, --task_id N or --checkpoint RUN"),
        ("play --game leduc", "did you mean 'leduc_poker'?"),
        ("play --game hex --opponent mtcs", "did you mean 'mcts'?"),
        ("play --env.env_type trace --task_id 1", "env.env_type: 'trace' was given, allowed: 'openspiel'"),
    ],
)
def test_wrong_commands_are_refused(line: str, message: str, capsys: Capsys) -> None:
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.trains
@pytest.mark.sample
def test_wrong_commands_about_a_run_are_refused(finished: Path, capsys: Capsys) -> None:
    for line, message in (
        ("watch --checkpoint RUN --episodes 0", "--episodes must be at least 1, not 0"),
        ("watch --checkpoint RUN --delay -1", "--delay must be at least 0 seconds, not -1.0"),
        ("watch --checkpoint RUN --env.decode text", "was trained with env.decode: choice"),
        ("export RUN --output rows.json", "--output must end in .jsonl, not 'rows.json'"),
        (
            "export RUN --output r.jsonl --result won",
            "--result must be one of win, draw, loss, cut, not 'won'",
        ),
    ):
        assert main([str(finished) if word == "RUN" else word for word in line.split()]) == 2
        assert message in capsys.readouterr().err
