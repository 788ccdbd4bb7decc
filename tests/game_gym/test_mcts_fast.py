"""The compiled search: OpenSpiel's algorithm, addressed by seed and move, and its errors."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from numba import config, njit
from numba.core.caching import CacheImpl, IndexDataCacheFile

from game_gym.games import DECLARED
from game_gym.opponents.fast import chess, othello, tree
from game_gym.opponents.fast.rules import CHANCE, ENDED, draw_below, make_noise
from game_gym.opponents.mcts_fast import GAMES, _name_cache
from game_gym.spec import Variant
from task_gym.errors import OpponentError
from task_gym.opponents import make_opponent
from tests.game_gym.fast_rules import walk
from tests.game_gym.play import load, make, see

pytestmark = pytest.mark.numba

OTHELLO = load("othello")


def play(moves: int, seed: int) -> pyspiel.State:
    """Returns a state of othello after some random moves."""
    return next(islice(walk(OTHELLO.game, seed), moves, None))


def find_narrow(variant: Variant) -> pyspiel.State:
    """Returns a state in the middle of a game with few actions, each of which a short search visits."""
    states = [
        state.clone()
        for state in walk(variant.game, 5)
        if state.current_player() >= 0 and 4 <= len(state.legal_actions()) <= 8
    ]
    return states[len(states) // 2]


def choices(opponent: str, variant: Variant, state: pyspiel.State, searches: int) -> Counter[int]:
    """Returns how often each action was chosen, each time with another seed."""
    bot = make_opponent(opponent, variant.game, variant.spec, state.current_player())
    counts: Counter[int] = Counter()
    for seed in range(searches):
        bot.restart(10 * seed)
        counts[bot.act(see(variant, state))] += 1
    return counts


@pytest.mark.parametrize("name", GAMES)
def test_it_chooses_as_openspiels_search_does(name: str) -> None:
    """A search's choice is random, and its distribution shows the algorithm. It is that of ``mcts``."""
    variant = load(name, **DECLARED[name].params(0))
    state = find_narrow(variant)
    theirs, ours = (choices(f"{search}:16x2", variant, state, 150) for search in ("mcts", "mcts-fast"))
    # Pearson's statistic for two samples of a size; actions that are rarely chosen count as one.
    rare = {action for action in theirs | ours if theirs[action] + ours[action] < 20}
    cells = [(theirs[action], ours[action]) for action in theirs | ours if action not in rare]
    cells.append((sum(theirs[action] for action in rare), sum(ours[action] for action in rare)))
    statistic = sum((one - other) ** 2 / (one + other) for one, other in cells if one + other)
    freedom = sum(1 for one, other in cells if one + other) - 1
    assert freedom >= 1
    # Three and a half standard deviations above the mean of its distribution, which is nearly normal.
    assert statistic < freedom + 3.5 * (2 * max(freedom, 4)) ** 0.5


def best_result(state: pyspiel.State) -> float:
    """Returns the first seat's return under best play."""
    if state.is_terminal():
        return float(state.returns()[0])
    results = [best_result(state.child(action)) for action in state.legal_actions()]
    return max(results) if state.current_player() == 0 else min(results)


@pytest.mark.parametrize("seed", range(8))
def test_a_game_that_it_can_finish_is_played_perfectly(seed: int) -> None:
    state = play(54, seed)
    bot = make_opponent("mcts-fast:20000", OTHELLO.game, OTHELLO.spec, state.current_player())
    bot.restart(0)
    after = state.child(bot.act(see(OTHELLO, state)))
    assert best_result(after) == best_result(state)


def test_a_move_follows_from_seed_and_number_alone() -> None:
    state = play(10, seed=2)
    later = play(20, seed=2)

    def act(seed: int) -> int:
        bot = make_opponent("mcts-fast:30x2", OTHELLO.game, OTHELLO.spec, 0)
        bot.restart(seed)
        bot.act(see(OTHELLO, later))  # searching another state changes nothing
        return int(bot.act(see(OTHELLO, state.clone())))

    one_by_one = [act(seed) for seed in range(20)]
    assert len(set(one_by_one)) > 1
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(act, range(20))) == one_by_one


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Returns where Numba has its cache in ``NUMBA_CACHE_DIR``, which is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        patch.chdir(tmp_path)
        config.reload_config()
        yield tmp_path / CacheImpl._locator_classes[0].get_suitable_cache_subpath(tree.__file__)
    config.reload_config()


def test_a_place_without_a_cache_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(tree, "load_search", refuse)
    with pytest.raises(OpponentError, match="NUMBA_CACHE_DIR names one"):
        make(game="othello", opponent="mcts-fast")
    folder.rmdir()
    folder.touch()  # Numba would take another one
    with pytest.raises(OpponentError, match=rf"NUMBA_CACHE_DIR='.*' takes no files .*{folder.name}"):
        make(game="othello", opponent="mcts-fast")
    monkeypatch.setenv("NUMBA_CACHE_DIR", f"{__file__}/cache")
    with pytest.raises(OpponentError, match=r"NUMBA_CACHE_DIR='.*/cache' takes no files"):
        make(game="othello", opponent="mcts-fast")
    Path(".numba_config.yaml").write_text("disable_jit: 1")
    with pytest.raises(OpponentError, match="NUMBA_DISABLE_JIT=1, or disable_jit"):
        make(game="othello", opponent="mcts-fast")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "EOFError"),  # as after a full disk
        (b"\x80\xff", "ValueError"),
        (b"cno_module\nname\n.", "ModuleNotFoundError"),
        (b"Vtext\n0.", "UnpicklingError|IndexError"),
        (None, "IsADirectoryError"),
    ],
)
@pytest.mark.parametrize("game", ["chess", "othello"])
def test_a_damaged_cache_is_named(
    game: str, content: bytes | None, cause: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = rules, first = tree.load_search.__wrapped__(game)
    if game == "chess":  # its states are read by a compiled function, before the first search
        first = njit(cache=True)(chess._replay.py_func)
        monkeypatch.setattr(rules, "_replay", first)
    monkeypatch.setattr(tree, "load_search", lambda name: loaded)
    index = Path(first._cache._cache_file._index_path)
    assert index.parent == folder
    if content is None:
        index.mkdir()
    else:
        index.write_bytes(content)
    message = f"cache in '{folder}' cannot be read or written \\(({cause}): .*remove that folder"
    with pytest.raises(OpponentError, match=message):
        make(game=game, opponent="mcts-fast:2x1").reset(seed=0, options={"seat": 1})


def test_a_cache_that_takes_no_more_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(ENOSPC, "No space left on device")

    function: Any = njit(cache=True)(lambda: 1)
    monkeypatch.setattr(IndexDataCacheFile, "save", refuse)
    with pytest.raises(OpponentError, match=r"written .*No space left"), _name_cache(function):
        function()


def test_other_errors_are_no_cache_s() -> None:
    with pytest.raises(MemoryError), _name_cache(None):
        raise MemoryError


def test_a_full_tree_is_searched_on() -> None:
    """With room for the root's children alone, a search compares the means of their rollouts."""
    scope = {**vars(tree), **{word: getattr(othello, word) for word in tree._RULES}, "MOST_NODES": 12}
    for function in (tree._roll_out, tree._search):
        scope[function.__name__] = tree._bind(function, scope, "full")
    state = play(57, seed=3)
    legal = state.legal_actions()
    assert 2 <= len(legal) <= 11
    chosen = scope["_search"](othello.read(state), 2000, 1, 1.414, make_noise(1))
    # At three empty squares random play is nearly best play, and no better return is missed.
    assert best_result(state.child(chosen)) == best_result(state)


# -- the search at chance, in a game that is small enough to know its best moves -----------------------------


# One seat chooses among three actions, and chance among two outcomes:
# what they pay to the seat, and how often in eight the first comes.
PAYS = {
    "the better mean": ([(-1, 2), (-2, 2), (-3, 2)], [2, 4, 4], 0),
    "the greatest return is proved through chance": ([(3, 3), (1, 1), (2, 2)], [1, 4, 7], 0),
    "a win that is not the greatest ends no search": ([(1, 1), (2, 2), (1, 1)], [4, 4, 4], 1),
    "proof goes before a mean": ([(3, -3), (1, 1), (0, 0)], [7, 4, 4], 1),
    "what is probable counts": ([(3, -3), (-3, 3), (3, -3)], [1, 1, 4], 1),
}


STATE = 11
"""The seat to move, chance or the end; what was chosen or is paid; six returns; three chances in eight."""

ACTIONS = 3
PLAYER = 0


@njit
def legal(state: Any, actions: Any) -> Any:
    count = 2 if state[0] == CHANCE else 3
    for action in range(count):
        actions[action] = action
    return 0 if state[0] == ENDED else count


@njit
def draw(state: Any, actions: Any, noise: Any) -> Any:
    if state[0] == CHANCE:
        return np.int64(0 if draw_below(noise, 8) < state[8 + state[1]] else 1)
    return draw_below(noise, 3)


@njit
def apply(state: Any, action: Any) -> Any:
    if state[0] == CHANCE:
        state[1] = state[2 + 2 * state[1] + action]
        state[0] = ENDED
    else:
        state[0], state[1] = CHANCE, action


@njit
def result(state: Any) -> Any:
    return 1.0 * state[1]


@njit
def utility(state: Any) -> Any:
    return 3.0


@pytest.fixture(scope="module")
def search() -> Any:
    """Returns the search in this file's game."""
    name = "toy"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, f"game_gym.opponents.fast.{name}", sys.modules[__name__])
        return tree.load_search(name)[1]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", PAYS)
def test_the_best_move_is_found(search: Any, name: str, seat: int) -> None:
    pays, chances, best = PAYS[name]
    sign = 1 if seat == 0 else -1
    state = np.array([seat, 0, *(sign * pay for pair in pays for pay in pair), *chances], dtype=np.int64)
    for seed in range(20):
        assert search(state, 2000, 1, 1.414, make_noise(seed)) == best
