"""Playing episodes in tests: one fixed rule for the agent, one record of what happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

import game_gym  # noqa: F401  (registers the environments)
from game_gym.games import find_game
from game_gym.prompts import SeatView
from game_gym.spec import State, Variant, load_variant

DECLARED = ("leduc_poker", "kuhn_poker", "tic_tac_toe")
LEDUC = 200_000_000

#: The info's keys at every turn, and those that the end adds.
ALWAYS = {
    *("action_mask", "legal_actions", "admissible_commands"),
    *("task_id", "seed", "game", "seat", "opponent", "turn", "upstream_reward"),
}
AT_THE_END = {"score", "scores", "success", "returns", "result", "history"}


def make(**arguments: Any) -> Any:
    """A bare GameSpiel-v0."""
    return gym.make("GameSpiel-v0", **arguments).unwrapped


def wrapped(wrapper: Any, **arguments: Any) -> Any:
    """A wrapper around a GameSpiel-v0."""
    return wrapper(gym.make("GameSpiel-v0", **arguments))


def load(game: str, **params: Any) -> Variant:
    return load_variant(find_game(game), params)


def reach(variant: Variant, moves: Iterable[int | str]) -> State:
    """The state after moves: actions, or what OpenSpiel calls them."""
    state = variant.game.new_initial_state()
    for move in moves:
        if isinstance(move, str):
            names = {state.action_to_string(state.current_player(), a): a for a in state.legal_actions()}
            move = names[move]
        state.apply_action(move)
    return state


def see(variant: Variant, state: State) -> SeatView:
    """Returns the view of the seat to move, with which an opponent is asked."""
    view = SeatView(variant, state.current_player(), rules=False)
    view.state = state
    return view


def turns(game: Any, games: int, choose: Callable[[State, list[int]], int] | None = None) -> Iterator[State]:
    """The states of random games in which somebody is to move; each is played on after it was used."""
    for seed in range(games):
        state, rng = game.new_initial_state(), random.Random(seed)
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(outcomes, probabilities)[0])
                continue
            legal = state.legal_actions()
            if not legal:
                break
            yield state
            state.apply_action(choose(state, legal) if choose else rng.choice(legal))


class Fixed:
    """An opponent that returns one thing, whatever is legal."""

    answer: Any = 99

    def __init__(self, seating: Any) -> None: ...

    def restart(self, seed: int) -> None: ...

    def act(self, view: Any) -> Any:
        return self.answer


def pick(legal: list[int], turn: int, seed: int) -> int:
    """The agent's rule in the recorded games."""
    return legal[(7 * turn + seed) % len(legal)]


def episode(
    env: Any, seed: int, options: dict[str, Any] | None = None, longest: int | None = None
) -> list[tuple[Any, ...]]:
    """Play one episode by the rule, or ``longest`` turns of it; all it showed, as plain data to compare."""
    text, info = env.reset(seed=seed, options=options)
    return [(text, opening(info)), *finish(env, info["legal_actions"], seed, longest)]


def finish(env: Any, legal: list[int], seed: int = 3, longest: int | None = None) -> list[Any]:
    """Play on by the rule from a turn with these legal actions; what was returned, as plain data."""
    record, over = [], not legal  # a game may be over before the first turn
    while not over and len(record) != longest:
        text, reward, terminated, truncated, info = env.step(pick(legal, len(record), seed))
        record.append((text, reward, terminated, truncated, plain(info)))
        legal, over = info["legal_actions"], terminated or truncated
    return record


def plain(info: dict[str, Any]) -> dict[str, Any]:
    """An info with its arrays as lists."""
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in info.items()}


def opening(info: dict[str, Any]) -> dict[str, Any]:
    """An info after a reset, without what says that upstream has paid nothing: recorded games lack it."""
    plain_info = plain(info)
    if "result" not in plain_info:
        assert plain_info.pop("upstream_reward") == 0.0
    return plain_info
