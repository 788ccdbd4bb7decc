"""Exact evaluation of a policy, without sampling, in games that are small enough to enumerate.

The policy is asked once, for every information state of both seats; OpenSpiel's exact algorithms do the rest.
The games have two seats, alternating moves and at most ``MAX_STATES`` histories (kuhn_poker has 58,
leduc_poker 9,457, liars_dice with a die each 294,883; tic_tac_toe has 549,946 and is refused).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from game_gym.conversation import show_conversation
from game_gym.prompts import render
from game_gym.spec import State, Variant
from game_gym.task import TaskSet
from task_gym.errors import ArgumentError, SizeError, check_choice
from task_gym.wrappers.common import ask_for_name

MAX_STATES = 300_000
"""The most histories (nodes of the game tree, chance and terminal ones included) that a game may have."""

PROBES = 15
"""Random games that estimate a game's size before its histories are counted; odd, for a majority."""

MARGIN = 20
"""A game is refused uncounted if most probes find it more than this many times too large.

A probe's estimate is right in the mean, so at most one of 20 probes is 20 times too high. The probability
that eight of 15 are is below 1e-6. Since the probes are the same everywhere, so is their answer.
"""

Policy = Callable[[Sequence[str], Sequence[Sequence[int]]], Sequence[NDArray[np.float64]]]
"""(texts, legal) to one float64 array of probabilities per text, aligned with its legal actions."""

TOLERANCE = 1e-6
"""The largest distance from 1 of the sum of a policy's probabilities."""

_Tabular = dict[str, list[tuple[int, float]]]
"""A policy for OpenSpiel's algorithms: information state to (action, probability) pairs."""


@dataclass(frozen=True, slots=True)
class InformationState:
    """A situation as its player knows it.

    Attributes:
        key: OpenSpiel's information state string.
        seat: The seat to move.
        text: The observation.
        legal: Legal action ids, ascending.
    """

    key: str
    seat: int
    text: str
    legal: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Exact values, in returns; every pair is by seat (0, 1).

    Attributes:
        game: OpenSpiel name.
        opponent: The opponent on the other seat.
        values: Expected return of the policy from each seat.
        best: Expected return of a best response to the opponent from each seat.
        share: (values[0] + values[1]) / (best[0] + best[1]), the share of best response; NaN if the best
            response earns nothing.
        self_value: Expected return of seat 0 when the policy plays both seats.
        exploitability: Half of what best responses to it gain, both seats together (NashConv / 2).
        information_states: Number of information states that the policy was asked about.
    """

    game: str
    opponent: str
    values: tuple[float, float]
    best: tuple[float, float]
    share: float
    self_value: float
    exploitability: float
    information_states: int


def find_variant(
    task_id: int | None = None,
    game: str | None = None,
    params: dict[str, Any] | None = None,
    allow_files: bool = False,
) -> Variant:
    """Returns the game of a task id or of a name with parameters, as the environment's arguments have it."""
    return TaskSet(task_id=task_id, game=game, params=params, allow_files=allow_files).variants[0]


def information_states(
    variant: Variant,
    rules: bool = True,
    most: int | None = None,
    conversation: str | None = None,
    *,
    list_actions: bool = True,
    named: bool = False,
) -> tuple[InformationState, ...]:
    """Returns every information state in which a seat is to move, each once.

    Args:
        variant: The game.
        rules: Whether the texts begin with the rules.
        most: The most histories that the game may have, None for ``MAX_STATES``.
        conversation: None for texts that are complete in themselves, or the protocol, "openenv" or
            "evaluate", in whose layout they are ``task_gym.wrappers.ConversationText``. A seat recalls all
            that it saw and did, so an information state has one conversation.
        list_actions: Whether the texts list the legal actions.
        named: Whether the texts ask for names, and are ``task_gym.wrappers.NamedText``; without a
            conversation only.

    Returns:
        The states in the order of a depth-first walk, which is the same everywhere.

    Raises:
        SizeError: the game has other than two seats, simultaneous moves, no names of information states, or
            more than ``most`` histories.
    """
    states: dict[tuple[int, str], InformationState] = {}
    for state in _histories(variant, most):
        if state.is_terminal() or state.is_chance_node():
            continue
        seat = state.current_player()
        key = state.information_state_string(seat)
        if (seat, key) not in states:
            legal = tuple(state.legal_actions())
            if conversation is None:
                text = render(variant, state, seat, rules, list_actions)
                if named:
                    text = ask_for_name(text, variant.choices(state, seat, legal)[0])
            else:
                earlier = _list_turns(state, seat, states)
                text = show_conversation(variant, state, seat, earlier, protocol=conversation, rules=rules)
            states[seat, key] = InformationState(key, seat, text, legal)
    return tuple(states.values())


def _list_turns(
    state: State, seat: int, states: dict[tuple[int, str], InformationState]
) -> list[tuple[str, str]]:
    """Returns a seat's earlier questions and answers: those of the states on the way, which were found."""
    past, turns = state.get_game().new_initial_state(), []
    for player, action in ((pair.player, pair.action) for pair in state.full_history()):
        if player == seat:
            asked = states[seat, past.information_state_string(seat)]
            turns.append((str(asked.text), str(action)))
        past.apply_action(action)
    return turns


def check_size(variant: Variant, most: int | None = None) -> None:
    """Raises SizeError, within about a second, if a game cannot be evaluated exactly.

    Args:
        variant: The game.
        most: The most histories that it may have, None for ``MAX_STATES``.

    Raises:
        SizeError: as ``information_states`` does.
    """
    for _ in _histories(variant, most):
        pass


def _histories(variant: Variant, most: int | None = None) -> Iterator[State]:
    """Yields every history of a game as a state, in the order of a depth-first walk.

    Raises:
        SizeError: the game is of another kind, or has more than ``most`` histories.
    """
    _check_kind(variant)
    most = MAX_STATES if most is None else most
    too_large = SizeError(
        f"{variant.spec.name} was given, which has more than {most:,} histories (episodes of "
        f"up to {variant.game.max_game_length()} moves among "
        f"{variant.game.num_distinct_actions()} actions); "
        "allowed: games of at most so many, as leduc_poker with 9,457 and kuhn_poker with 58"
    )
    if _is_far_larger(variant, most):
        raise too_large
    visited = 0
    waiting: list[State] = [variant.game.new_initial_state()]
    while waiting:
        state = waiting.pop()
        visited += 1
        if visited > most:
            raise too_large
        yield state
        if not state.is_terminal():
            waiting.extend(state.child(action) for action in reversed(state.legal_actions()))


def _is_far_larger(variant: Variant, most: int) -> bool:
    """Returns whether a game has many times more histories than ``most``, judged by a few random games.

    A random game's estimate of their number is 1 + b₁ + b₁b₂ + …, where bᵢ is the number of its i-th move's
    alternatives (Knuth 1975, "Estimating the efficiency of backtrack programs"). It only grows along the
    game, so in a large game a few moves are enough.
    """
    generator, too_large = random.Random(0), 0
    for _ in range(PROBES):
        state: State = variant.game.new_initial_state()
        width = estimate = 1
        while estimate <= MARGIN * most and not state.is_terminal():
            legal = state.legal_actions()
            width *= len(legal)
            estimate += width
            state.apply_action(generator.choice(legal))
        too_large += estimate > MARGIN * most
    return too_large > PROBES // 2


def evaluate(
    variant: Variant,
    policy: Policy,
    opponent: str = "random",
    rules: bool = True,
    conversation: str | None = None,
    *,
    list_actions: bool = True,
    named: bool = False,
) -> ExactResult:
    """Returns the policy's exact value against an opponent, the best response's, and its exploitability.

    Args:
        variant: The game; see ``find_variant``.
        policy: Called once, with each distinct observation and its legal actions.
        opponent: "random" (uniform over legal actions) or "first" (the lowest legal id).
        rules: Whether the observations begin with the rules.
        conversation: As in ``information_states``.
        list_actions: As in ``information_states``.
        named: As in ``information_states``.

    Raises:
        ArgumentError: the opponent is no fixed policy, or the answers are no probabilities.
        SizeError: the game cannot be enumerated.
    """
    check_choice("opponent", opponent, tuple(OPPONENTS))
    states = information_states(
        variant, rules, conversation=conversation, list_actions=list_actions, named=named
    )
    return evaluate_table(variant, states, tabulate(states, policy, conversation is not None), opponent)


def evaluate_table(
    variant: Variant, states: Sequence[InformationState], table: Sequence[Sequence[float]], opponent: str
) -> ExactResult:
    """Returns what ``evaluate`` does, of a policy that was asked before.

    Args:
        variant: The game.
        states: Its information states.
        table: The policy's probabilities in each of them, as ``tabulate`` returns them.
        opponent: One of ``OPPONENTS``.
    """
    policies = split_by_seat(states, table)
    opponents = split_by_seat(states, [OPPONENTS[opponent](len(state.legal)) for state in states])
    values = (
        _returns(variant, policies[0], opponents[1])[0],
        _returns(variant, opponents[0], policies[1])[1],
    )
    best = (_best_response(variant, 0, opponents[1]), _best_response(variant, 1, opponents[0]))
    total = best[0] + best[1]
    itself = _returns(variant, policies[0], policies[1])
    gained = _best_response(variant, 0, policies[1]) + _best_response(variant, 1, policies[0]) - sum(itself)
    return ExactResult(
        game=variant.spec.name,
        opponent=opponent,
        values=values,
        best=best,
        share=(values[0] + values[1]) / total if total else float("nan"),
        self_value=itself[0],
        exploitability=gained / 2,
        information_states=len(states),
    )


def split_by_seat(states: Sequence[InformationState], table: Sequence[Sequence[float]]) -> list[_Tabular]:
    """Returns a table of probabilities as one policy per seat for OpenSpiel's algorithms."""
    policies: list[_Tabular] = [{}, {}]
    for state, probabilities in zip(states, table, strict=True):
        policies[state.seat][state.key] = list(zip(state.legal, probabilities, strict=True))
    return policies


def find_best_values(
    variant: Variant, states: Sequence[InformationState], table: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """Returns the expected returns of best responses to a policy, from seat 0 and from seat 1.

    Args:
        variant: The game.
        states: Its information states.
        table: The policy's probabilities in each of them, as ``tabulate`` returns them.
    """
    policies = split_by_seat(states, table)
    return _best_response(variant, 0, policies[1]), _best_response(variant, 1, policies[0])


def tabulate(states: Sequence[InformationState], policy: Policy, conversing: bool) -> list[list[float]]:
    """Returns a policy's probabilities of the legal actions in each information state.

    Args:
        states: The states.
        policy: Called once, with each distinct observation and its legal actions.
        conversing: Whether the texts end conversations: equal texts may then end different ones.

    Raises:
        ArgumentError: the answers are no probabilities.
    """
    asked = {_key_of(state, conversing): state for state in states}
    answers = policy([state.text for state in asked.values()], [list(s.legal) for s in asked.values()])
    if len(answers) != len(asked):
        raise ArgumentError(f"policy: {len(answers)} answers were given, allowed: {len(asked)}, one a text")
    rows = zip(asked.items(), answers, strict=True)
    answered = {key: _checked(answer, state.legal) for (key, state), answer in rows}
    return [answered[_key_of(state, conversing)] for state in states]


def _key_of(state: InformationState, conversing: bool) -> Hashable:
    """Returns what a policy can tell of a state."""
    return (state.seat, state.key) if conversing else (state.text, state.legal)


def uniform(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Returns the probabilities of the policy that plays every legal action equally often."""
    return [np.full(len(actions), 1 / len(actions)) for actions in legal]


def greedy(policy: Policy) -> Policy:
    """Returns the policy that always plays the likeliest action of ``policy``, the first of equals."""

    def likeliest(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
        return [np.eye(len(answer))[int(np.argmax(answer))] for answer in policy(texts, legal)]

    return likeliest


OPPONENTS: dict[str, Callable[[int], list[float]]] = {
    "random": lambda count: [1 / count] * count,
    "first": lambda count: [1.0] + [0.0] * (count - 1),
}
"""Opponents that are fixed policies: number of legal actions to probabilities."""


def _check_kind(variant: Variant) -> None:
    kind = variant.game.get_type()
    sequential = kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    if variant.players != 2 or not sequential:
        raise SizeError(
            f"{variant.spec.name} was given, with {variant.players} seats and "
            f"{'alternating' if sequential else 'simultaneous'} moves; allowed: two seats, alternating moves"
        )
    if not kind.provides_information_state_string:
        raise SizeError(
            f"{variant.spec.name} was given, whose information states OpenSpiel does not name; allowed: "
            "games of which it does, as kuhn_poker and leduc_poker"
        )


def _checked(answer: Any, legal: tuple[int, ...]) -> list[float]:
    """Returns probabilities as a list that sums to 1, or raises ArgumentError."""
    probabilities = np.asarray(answer, dtype=np.float64)
    good = probabilities.shape == (len(legal),) and bool(np.all(probabilities >= 0))
    if not good or abs(float(probabilities.sum()) - 1) > TOLERANCE:
        raise ArgumentError(
            f"policy: {answer!r} was given for legal actions {list(legal)}, allowed: {len(legal)} "
            "probabilities of at least 0 that sum to 1"
        )
    rescaled: list[float] = (probabilities / probabilities.sum()).tolist()
    return rescaled


def _returns(variant: Variant, first: _Tabular, second: _Tabular) -> tuple[float, float]:
    """Returns the seats' expected returns, with one policy per seat."""
    policies = [pyspiel.TabularPolicy(first), pyspiel.TabularPolicy(second)]
    # Depth -1 is to the end. True has policies looked up by information state.
    values = pyspiel.expected_returns(variant.game.new_initial_state(), policies, -1, True)
    return float(values[0]), float(values[1])


def _best_response(variant: Variant, seat: int, opponent: _Tabular) -> float:
    """Returns the expected return of a best response of ``seat`` to a policy on the other seat."""
    solver = pyspiel.TabularBestResponse(variant.game, seat, opponent)
    return float(solver.value_from_state(variant.game.new_initial_state()))
