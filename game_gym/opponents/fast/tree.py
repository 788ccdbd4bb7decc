"""OpenSpiel's Monte-Carlo tree search, compiled together with a game's rules.

It is the algorithm of OpenSpiel's C++ ``MCTSBot`` with its ``RandomRolloutEvaluator``: UCT, a shuffled
expansion of a state that is seen for the second time, outcomes of chance drawn anew by each simulation,
proven values, and the final choice by proof, visits and reward. So with the same budget it plays as well.
Only its random numbers are others.

The tree lives as long as a call, and has at most ``MOST_NODES`` nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib import import_module
from math import inf, log, sqrt
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast import rules as rules_file
from game_gym.opponents.fast.rules import CHANCE, ENDED, draw_below

Search = Callable[..., int]
"""(state, simulations, rollouts, uct_c, noise) -> action; a seat is to move"""

MOST_NODES = 1 << 22
"""A tree has no more, which take some 140 MB. A leaf then stays one, and its rollouts still count."""

_UNKNOWN = inf
"""A node's outcome that nothing has proved: no return of a game is as high."""

# -- for each game, whose rules ``_bind`` puts in the place of these names ---------------------------------

STATE = ACTIONS = PLAYER = 0
legal: Any = None
draw: Any = None
apply: Any = None
result: Any = None


@njit(cache=True, nogil=True)
def utility(state):  # type: ignore[no-untyped-def]
    """Returns the greatest return of most games."""
    return 1.0


def _roll_out(start, rollouts, work, actions, noise):  # type: ignore[no-untyped-def]
    """Returns the first seat's mean return of random play."""
    total = 0.0
    for _ in range(rollouts):
        work[:] = start
        while work[PLAYER] != ENDED:
            apply(work, draw(work, actions, noise))
        total += result(work)
    return total / rollouts


def _search(start, simulations, rollouts, uct_c, noise):  # type: ignore[no-untyped-def]
    """Returns the action that was proved best, or visited most."""
    room = min(1 + ACTIONS * (1 + simulations // 8), MOST_NODES)
    action = np.empty(room, dtype=np.int32)
    first, children = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
    mover = np.empty(room, dtype=np.int8)  # the seat that chose the node's action, or CHANCE
    visits, reward = np.zeros(room, dtype=np.int32), np.zeros(room)
    outcome = np.full(room, _UNKNOWN)  # the first seat's, if it is proved
    path = np.empty(min(simulations, MOST_NODES) + 1, dtype=np.int32)
    actions = np.empty(ACTIONS, dtype=np.int32)
    state, work = np.empty(STATE, dtype=np.int64), np.empty(STATE, dtype=np.int64)
    nodes, root_seat, most = 1, start[PLAYER], utility(start)
    mover[0] = root_seat
    for _ in range(simulations):
        state[:] = start
        node, depth, path[0] = 0, 0, 0
        while state[PLAYER] != ENDED and visits[node] > 0:
            seat = state[PLAYER]
            if children[node] == 0:
                count = legal(state, actions)
                if nodes + count > MOST_NODES:
                    break
                _shuffle(actions, count, noise)
                if nodes + count > room:
                    room = min(max(2 * room, nodes + count), MOST_NODES)
                    action, mover = _grow(action, room), _grow(mover, room)
                    first, children = _grow(first, room), _grow(children, room)
                    visits, reward = _grow(visits, room), _grow(reward, room)
                    outcome = _grow(outcome, room)
                first[node], children[node] = nodes, count
                end = nodes + count
                action[nodes:end], mover[nodes:end] = actions[:count], seat
                first[nodes:end], children[nodes:end], visits[nodes:end] = 0, 0, 0
                reward[nodes:end], outcome[nodes:end] = 0.0, _UNKNOWN
                nodes = end
            chosen = first[node]
            if seat == CHANCE:
                drawn = draw(state, actions, noise)
                while action[chosen] != drawn:
                    chosen += 1
            else:
                chosen = _descend(node, seat, uct_c, first, children, visits, reward, outcome)
            apply(state, action[chosen])
            node = chosen
            depth += 1
            path[depth] = node
        if state[PLAYER] == ENDED:
            value, solved = result(state), True
            outcome[node] = value
        else:
            value, solved = _roll_out(state, rollouts, work, actions, noise), False  # type: ignore[no-untyped-call]
        for node in path[depth::-1]:
            # Nothing reads the rewards of chance's outcomes.
            reward[node] += value if mover[node] == 0 else -value
            visits[node] += 1
            if solved and children[node] > 0:
                solved = _prove(node, first, children, mover, outcome, most)
        if outcome[0] != _UNKNOWN or children[0] == 1:
            break
    return action[_decide(root_seat, first, children, visits, reward, outcome)]


# -- for all games -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _grow(numbers, room):  # type: ignore[no-untyped-def]
    """Returns an array of more numbers, that begins with the given ones."""
    grown = np.empty(room, dtype=numbers.dtype)
    grown[: len(numbers)] = numbers
    return grown


@njit(cache=True, nogil=True)
def _shuffle(actions, count, noise):  # type: ignore[no-untyped-def]
    """Puts the first ``count`` actions into an order that is drawn."""
    for place in range(count - 1, 0, -1):
        other = draw_below(noise, place + 1)
        actions[place], actions[other] = actions[other], actions[place]


@njit(cache=True, nogil=True)
def _descend(node, seat, uct_c, first, children, visits, reward, outcome):  # type: ignore[no-untyped-def]
    """Returns the child of the greatest upper bound (UCT); the first of equal ones."""
    best, chosen = -inf, first[node]
    sign = 1.0 if seat == 0 else -1.0
    scale = log(visits[node])
    for child in range(first[node], first[node] + children[node]):
        if outcome[child] != _UNKNOWN:
            value = sign * outcome[child]
        elif visits[child] == 0:
            value = inf
        else:
            value = reward[child] / visits[child] + uct_c * sqrt(scale / visits[child])
        if value > best:
            best, chosen = value, child
    return chosen


@njit(cache=True, nogil=True)
def _decide(seat, first, children, visits, reward, outcome):  # type: ignore[no-untyped-def]
    """Returns the root's child with the best proven outcome, then the most visits, then the most reward."""
    sign = 1.0 if seat == 0 else -1.0
    chosen = first[0]
    for child in range(first[0] + 1, first[0] + children[0]):
        ours = 0.0 if outcome[child] == _UNKNOWN else sign * outcome[child]
        theirs = 0.0 if outcome[chosen] == _UNKNOWN else sign * outcome[chosen]
        if (ours, visits[child], reward[child]) > (theirs, visits[chosen], reward[chosen]):
            chosen = child
    return chosen


@njit(cache=True, nogil=True)
def _prove(node, first, children, mover, outcome, most):  # type: ignore[no-untyped-def]
    """Gives a node the outcome that its children prove.

    For a seat that is the greatest return, or the best of all. For chance it is the one that all have.
    """
    begin, end = first[node], first[node] + children[node]
    if mover[begin] == CHANCE:
        for child in range(begin, end):
            if outcome[child] == _UNKNOWN or outcome[child] != outcome[begin]:
                return False
        outcome[node] = outcome[begin]
        return True
    sign = 1.0 if mover[begin] == 0 else -1.0
    best, all_proved = -inf, True
    for child in range(begin, end):
        if outcome[child] == _UNKNOWN:
            all_proved = False
        elif sign * outcome[child] > best:
            best = sign * outcome[child]
    if best == most or (all_proved and best > -inf):
        outcome[node] = sign * best
        return True
    return False


@cache
def load_search(name: str) -> tuple[ModuleType, Search]:
    """Returns a game's compiled rules, and the search in them.

    The first process on a machine compiles them, for 10 to 40 seconds. Later ones read Numba's cache.

    Raises:
        ImportError: Numba is not installed.
        RuntimeError: Numba finds no folder for its cache.
    """
    rules = import_module(f"game_gym.opponents.fast.{name}")
    scope = {**globals(), **{word: getattr(rules, word) for word in _RULES}}
    scope["utility"] = getattr(rules, "utility", utility)
    functions: tuple[Any, ...] = (_roll_out, _search)
    for function in functions:
        scope[function.__name__] = _bind(function, scope, f"{name}_{_digest(str(rules.__file__))}")
    return rules, scope[_search.__name__]


_RULES = ("STATE", "ACTIONS", "PLAYER", "legal", "draw", "apply", "result")


def _bind(function: FunctionType, scope: dict[str, Any], label: str) -> Any:
    """Compiles a function whose global names are those of ``scope``.

    A closure over a game's rules would be compiled by every process, because Numba finds no closure over
    compiled functions in its cache. There, the label keeps games and versions apart.
    """
    bound = FunctionType(function.__code__, scope, function.__name__)
    bound.__qualname__ = f"{function.__name__}_{label}"
    bound.__module__ = __name__
    return njit(cache=True, nogil=True)(bound)


def _digest(file: str) -> str:
    """Returns a digest of all that a search is compiled from: Numba itself looks at one file only."""
    hasher = blake2b(digest_size=6)
    for part in (file, __file__, rules_file.__file__):
        hasher.update(Path(part).read_bytes())
    return hasher.hexdigest()
