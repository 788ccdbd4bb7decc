"""``gamespiel play``: a person plays a game in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from rich.console import Console
from rich.text import Text

from gamespiel.config import EnvConfig
from gamespiel.errors import ConfigError
from gamespiel.kinds import declaration_of, kind_of
from gamespiel.terminal.screen import box_of, menu, position, rule, transcript

if TYPE_CHECKING:
    from gamespiel.terminal.advice import Advice, Advisor

HELP = """a number or a name: play that action
part of a name: list the actions that have it
help: this list
rules: the game's rules
moves: the actions that are legal now
quit: give up (so does the end of input)"""

GAMES = "openspiel"
"""The kind of task that can be played."""


@dataclass(frozen=True)
class Entered:
    """The meaning of a line that was typed: an action to play, or something to show."""

    action: int | None = None
    shown: Any = None
    quits: bool = False


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
    console = console or Console()
    env = _make_game(config, checkpoint, console)
    advisor = _make_advisor(checkpoint, env)
    observation, info = env.reset(seed=seed)
    console.print(_format_heading(info))
    while "result" not in info:
        advice = None if advisor is None else advisor(observation, info["legal_actions"])
        console.print(_format_turn(info))
        console.print(box_of(position(env, observation, info)))
        console.print(menu(info, None if advice is None else advice.probabilities))
        if advice is not None:
            console.print(f"the policy expects a score of {advice.value:.3f}", style="dim")
        action = _ask_action(env, info, advice, console, read or input)
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
    if config.env_type != GAMES:
        raise ConfigError(
            f"env.env_type: {config.env_type!r} was given, allowed: {GAMES!r}; "
            "gamespiel trace asks about programs"
        )
    measured = declaration_of(config).evaluation_keys(config)
    if measured != config:  # with nobody else to play, every seat would be the person's
        said = f"env.opponent = 'self' is for training: you play against {measured.opponent}"
        console.print(f"{said}; --opponent names another", markup=False)
        config = measured
    if checkpoint is not None:
        from gamespiel.environments.making import make_one_env

        return make_one_env(config)
    return kind_of(config).player.make_env(config)  # without a policy there is no need for PyTorch


def _make_advisor(checkpoint: Path | None, env: gym.Env[Any, Any]) -> Advisor | None:
    if checkpoint is None:
        return None
    from gamespiel.terminal.advice import Advisor

    return Advisor(checkpoint, env)


def _format_heading(info: Mapping[str, Any]) -> Text:
    against = f" against {info['opponent']}" if info["opponent"] != "open" else ""
    task = "" if info["task_id"] is None else f", task {info['task_id']}"
    return Text(f"{info['game']}{against}{task}, seed {info['seed']}. Type help for help.", style="bold")


def _format_turn(info: Mapping[str, Any]) -> Text:
    return rule(f"turn {info['turn'] + 1}, you are Player {info['seat']}")


def _ask_action(
    env: Any, info: Mapping[str, Any], advice: Advice | None, console: Console, read: Callable[[str], str]
) -> int | None:
    """Returns the action that the person chooses; None if the person leaves."""
    while True:
        try:
            line = read("your move> ")
        except EOFError:
            return None
        entered = understand(line, env, info, advice)
        if entered.quits:
            return None
        if entered.action is not None:
            return entered.action
        console.print(entered.shown)


def understand(line: str, env: Any, info: Mapping[str, Any], advice: Advice | None = None) -> Entered:
    """Returns the meaning of a line: a legal action by number or name, a command, or a part of a name."""
    legal, names = info["legal_actions"], info["admissible_commands"]
    probabilities = None if advice is None else advice.probabilities
    word = line.strip()
    # Ids first: the names of some games are numbers too, but the menu shows them beside the ids.
    if word.isascii() and word.isdigit() and int(word) in legal:
        return Entered(int(word))
    same = [a for a, name in zip(legal, names, strict=True) if name.strip().lower() == word.lower()]
    if word and len(same) == 1:
        return Entered(same[0])
    command = word.lower()
    if command in ("quit", "q", "exit"):
        return Entered(quits=True)
    if command in ("help", "h", "?"):
        return Entered(shown=Text(HELP))
    if command == "rules":
        return Entered(shown=Text(env.unwrapped.variant.rules))
    if command in ("", "moves"):
        return Entered(shown=menu(info, probabilities))
    if any(command in name.lower() for name in names):
        return Entered(shown=menu(info, probabilities, part=command))
    listed = ", ".join(str(action) for action in legal[:10]) + (", …" if len(legal) > 10 else "")
    return Entered(shown=Text(f"{word!r} is no legal action; legal: {listed}. Type help for help."))


def _show_transcript(env: Any, info: Mapping[str, Any], console: Console) -> None:
    history = info.get("history")
    if history is None and env.unwrapped.state is not None:
        history = env.unwrapped.state.history()
    if history is None:  # a server that does not tell
        return
    console.print(rule("transcript"))
    own = {} if info["opponent"] == "open" else {info["seat"]: f"you (Player {info['seat']})"}
    console.print(transcript(env.unwrapped.variant, history, own))
