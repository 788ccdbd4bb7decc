"""``gamespiel play``: a person plays a game in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from game_gym.transcript import CHANCE, moves
from gamespiel.config import EnvConfig
from gamespiel.errors import ConfigError
from gamespiel.kinds import kind_of
from gamespiel.measure.records import GAME_KIND
from gamespiel.report.console import make_console
from gamespiel.terminal.screen import box_of, menu, position, rule

HELP = """a number or a name: play that action
part of a name: list the actions that have it
help: this list
rules: the game's rules
moves: the actions that are legal now
quit: give up (so does the end of input)"""

Advise = Callable[[str, Sequence[int]], tuple[Sequence[float], float]]
"""Takes an observation and its legal actions; returns their probabilities, and the score that is expected."""


def play(
    config: EnvConfig,
    *,
    seed: int | None = None,
    checkpoint: Path | None = None,
    console: Console | None = None,
    read: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Plays one game with a person, and prints its transcript; returns the last info.

    Args:
        config: The game and the opponent.
        seed: The seed of the game; None draws one.
        checkpoint: A run whose policy shows probabilities and a value before each choice.
        console: The console to print on.
        read: Asks for a line, as ``input`` does; None for ``input``.

    Raises:
        TaskGymError: the game cannot be played as asked.
    """
    console = console or make_console()
    env = _make_game(config, checkpoint, console)
    advise = None if checkpoint is None else _load_advisor(checkpoint, env)
    observation, info = env.reset(seed=seed)
    against = f" against {info['opponent']}" if info["opponent"] != "open" else ""
    task = "" if info["task_id"] is None else f", task {info['task_id']}"
    heading = f"{info['game']}{against}{task}, seed {info['seed']}. Type help for help."
    console.print(Text(heading, style="bold"))
    while "result" not in info:
        console.print(rule(f"turn {info['turn'] + 1}, you are Player {info['seat']}"))
        console.print(box_of(position(env, observation, info)))
        probabilities, value = (None, None) if advise is None else advise(observation, info["legal_actions"])
        console.print(menu(info, probabilities))
        if value is not None:
            console.print(f"the policy expects a score of {value:.3f}", style="dim")
        action = _ask_action(env, info, probabilities, console, read or input)
        if action is None:
            console.print("given up")
            _show_transcript(env, info, console)
            return info
        observation, _, _, _, info = env.step(action)
    console.print(rule("end"))
    console.print(box_of(observation))
    _show_transcript(env, info, console)
    return info


def _make_game(config: EnvConfig, checkpoint: Path | None, console: Console) -> gym.Env[Any, Any]:
    if config.env_type != GAME_KIND:
        raise ConfigError(f"env.env_type: {config.env_type!r} was given, allowed: {GAME_KIND!r}")
    measured = kind_of(config).evaluation_keys(config)
    if measured != config:  # with nobody else to play, every seat would be the person's
        notice = f"env.opponent = 'self' is for training: you play against {measured.opponent}"
        console.print(f"{notice}; --opponent names another", markup=False)
        config = measured
    if checkpoint is not None:
        from gamespiel.environments.making import make_one_env

        return make_one_env(config)
    return kind_of(config).make_env(config)  # without a policy there is no need for PyTorch


def _load_advisor(run: Path, env: gym.Env[Any, Any]) -> Advise:
    """Returns a run's policy as one that is asked about a position at a time.

    Raises:
        TaskGymError: there is no such run, or its policy writes replies, which have no probabilities.
    """
    import torch

    from gamespiel.assembly import load_policy

    policy = load_policy(run, env)
    if not policy.answers.masked:
        raise ConfigError(
            f"--checkpoint {run} writes replies as text (env.decode: text), which give legal actions no "
            "probabilities: gamespiel watch shows its replies"
        )

    def advise(observation: str, legal: Sequence[int]) -> tuple[Sequence[float], float]:
        with torch.no_grad():
            (probabilities,) = policy.distribution([observation], [list(legal)])
            return probabilities.tolist(), float(policy.predict_values([observation])[0, 0])

    return advise


def _ask_action(
    env: Any,
    info: Mapping[str, Any],
    probabilities: Sequence[float] | None,
    console: Console,
    read: Callable[[str], str],
) -> int | None:
    """Returns the action that the person chooses; None if the person leaves."""
    while True:
        try:
            line = read("your move> ")
        except EOFError:
            return None
        answer = understand(line, env, info, probabilities)
        if answer is None or isinstance(answer, int):
            return answer
        console.print(answer)


def understand(
    line: str, env: Any, info: Mapping[str, Any], probabilities: Sequence[float] | None = None
) -> int | RenderableType | None:
    """Returns the legal action that a line names, or what to show of a command; None if the person leaves."""
    legal, names = info["legal_actions"], info["admissible_commands"]
    word = line.strip()
    # Ids first: the names of some games are numbers too, but the menu shows them beside the ids.
    if word.isascii() and word.isdigit() and int(word) in legal:
        return int(word)
    same = [a for a, name in zip(legal, names, strict=True) if name.strip().lower() == word.lower()]
    if word and len(same) == 1:
        return int(same[0])
    command = word.lower()
    if command in ("quit", "q", "exit"):
        return None
    if command in ("help", "h", "?"):
        return Text(HELP)
    if command == "rules":
        return Text(env.unwrapped.variant.rules)
    if command in ("", "moves"):
        return menu(info, probabilities)
    if any(command in name.lower() for name in names):
        return menu(info, probabilities, part=command)
    listed = ", ".join(str(action) for action in legal[:10]) + (", …" if len(legal) > 10 else "")
    return Text(f"{word!r} is no legal action; legal: {listed}. Type help for help.")


def _show_transcript(env: Any, info: Mapping[str, Any], console: Console) -> None:
    history = info.get("history")
    if history is None and env.unwrapped.state is not None:
        history = env.unwrapped.state.history()
    if history is None:  # a server that does not tell
        return
    console.print(rule("transcript"))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("player", no_wrap=True)
    table.add_column("move", overflow="fold")
    person = None if info["opponent"] == "open" else info["seat"]
    for number, move in enumerate(moves(env.unwrapped.variant, history), 1):
        player = "chance" if move.player == CHANCE else f"Player {move.player}"
        table.add_row(
            str(number), Text(f"you ({player})" if move.player == person else player), Text(move.name)
        )
    console.print(table)
