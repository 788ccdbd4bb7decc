"""The opponents that come with the games."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import game_gym.opponents
from game_gym.games import find_game
from game_gym.opponents.mcts import read_budget
from game_gym.opponents.mcts_python import UpstreamRollouts
from game_gym.prompts import SeatView
from game_gym.spec import Budget, GameSpec, Variant, load_variant
from task_gym.errors import OpponentError, OptionError
from task_gym.opponents import Seating, make_opponent
from task_gym.seeding import Stream
from tests.game_gym.play import episode, make

TIC_TAC_TOE = load_variant(find_game("tic_tac_toe"), {})


def view(actions: list[int], seat: int) -> SeatView:
    shown = SeatView(TIC_TAC_TOE, seat, rules=False)
    shown.state = TIC_TAC_TOE.game.new_initial_state()
    for action in actions:
        shown.state.apply_action(action)
    return shown


def build(name: str, seat: int = 0, spec: GameSpec = TIC_TAC_TOE.spec, game: Any = TIC_TAC_TOE.game) -> Any:
    return make_opponent(name, game, spec, seat)


def test_random_is_upstreams_stream() -> None:
    bot = build("random", seat=1)
    for seed in (0, 5):
        bot.restart(seed)
        legal = [0, 1, 2, 3, 5, 6, 7, 8]
        expected = np.random.RandomState(seed + 2)
        assert [bot.act(view([4], 1)) for _ in range(30)] == [expected.choice(legal) for _ in range(30)]


def test_first_plays_the_lowest_id() -> None:
    bot = build("first")
    bot.restart(3)
    assert bot.act(view([0, 1], 0)) == 2


@pytest.mark.parametrize("name", ["mcts", "mcts:300", "mcts:50x4", "mcts-python:60x3"])
def test_search_takes_a_win_and_stops_one(name: str) -> None:
    bot = build(name)
    bot.restart(1)
    # x at 0 and 1, o at 3 and 6: 2 completes the row at once.
    assert bot.act(view([0, 3, 1, 6], 0)) == 2
    other = build(name, seat=1)
    other.restart(1)
    # x threatens 0-1-2, and o has no win of its own.
    assert other.act(view([0, 4, 1], 1)) == 2


@pytest.mark.parametrize(
    ("argument", "budget"),
    [("", Budget(3000, 200)), ("100", Budget(100, 1)), ("100x7", Budget(100, 7))],
)
def test_budgets(argument: str, budget: Budget) -> None:
    spec = find_game("leduc_poker")
    game = load_variant(spec, {"players": 2}).game
    assert read_budget(Seating(game, spec, 0, argument), "mcts") == budget


@pytest.mark.parametrize("argument", ["1", "1x5", "5x0", "100x", "many"])
def test_bad_budgets_are_named(argument: str) -> None:
    with pytest.raises(OpponentError, match=f"'{argument}'.*mcts:SIMSxROLLOUTS"):
        build(f"mcts:{argument}")


def bare(name: str) -> Variant:
    spec = GameSpec(name, lambda _: "", lambda state, seat: "", lambda config: {}, 1, {}, None)
    return Variant(spec, {})


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ("goofspiel", "simultaneous.*'random'"),
        ("2048", "move by move"),
        ("connect_four", "budget"),
    ],
)
@pytest.mark.parametrize("name", ["mcts", "mcts-python"])
def test_games_that_cannot_be_searched_are_named(game: str, message: str, name: str) -> None:
    variant = bare(game)
    with pytest.raises(OpponentError, match=f"'{name}' .*'{game}'.*{message}"):
        build(name, spec=variant.spec, game=variant.game)


SEARCHES = ("mcts", "mcts:4x1", "mcts-python:4", "ismcts:4")


@pytest.mark.parametrize("search", SEARCHES)
def test_random_plays_for_a_search_where_moves_are_simultaneous(search: str) -> None:
    # Byte for byte, and info says who played: "random", which was not asked for.
    for game, seeding in (("goofspiel", "openenv"), ("matrix_rps", "evaluate")):
        ours = make(game=game, seeding=seeding, opponent=search)
        randoms = make(game=game, seeding=seeding, opponent="random")
        for seed in range(2):
            played = episode(ours, seed)
            assert played == episode(randoms, seed)
            assert {turn[-1]["opponent"] for turn in played} == {"random"}


def test_the_address_keeps_the_search_that_was_asked_for() -> None:
    # Task 0 is goofspiel, 200000000 leduc: the search plays the one and not the other.
    env = make(task_ids=[0, 200_000_000], opponent="mcts:8x1")
    for task_id, playing in ((0, "random"), (200_000_000, "mcts:8x1")):
        _, info = env.reset(seed=5, options={"task_id": task_id})
        assert info["opponent"] == playing
        twin = pickle.loads(pickle.dumps(env))
        assert twin.step(info["legal_actions"][0])[-1]["opponent"] == playing
        assert twin.reset(seed=5, options={"task_id": 200_000_000})[1]["opponent"] == "mcts:8x1"
    _, info = env.reset(seed=5, options={"task_id": 0, "opponent": "mcts-python:4"})
    assert info["opponent"] == "random"
    assert env.reset(seed=5, options={"task_id": 0, "opponent": "first"})[1]["opponent"] == "first"
    assert env.reset(seed=5, options={"task_id": 0, "opponent": "open"})[1]["opponent"] == "open"


@pytest.mark.parametrize("search", ["mcts:1", "mcts-python:4x0", "ismcts:many"])
def test_a_budget_that_cannot_be_read_is_refused_where_random_would_play(search: str) -> None:
    name, _, argument = search.partition(":")
    with pytest.raises(OpponentError, match=f"'{argument}'.*{name}:SIMSxROLLOUTS"):
        make(task_id=0, opponent=search)
    with pytest.raises(OptionError, match=f"'{argument}'.*{name}:SIMSxROLLOUTS"):
        make(task_id=0).reset(options={"opponent": search})


@pytest.mark.parametrize(
    ("game", "opponent", "message"),
    [
        ("hex", "mcts-fast", "'hex'.*'mcts'"),
        ("clobber", "mcts-fast:5", "'clobber'.*'mcts'"),
        ("goofspiel", "mcts-fast", "'goofspiel'.*simultaneous"),
        ("othello", "mcts-fats", "'mcts-fast"),
    ],
)
def test_compiled_searches_are_refused_where_rules_are_not_compiled(
    game: str, opponent: str, message: str
) -> None:
    with pytest.raises((OpponentError, ValueError), match=message):
        make(game=game, opponent=opponent)


def test_compiled_searches_need_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("game_gym.opponents.fast")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(game_gym.opponents, "fast", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(OpponentError, match=r"Numba.*gamespiel\[fast\]"):
        make(game="othello", opponent="mcts-fast")


def test_rollouts_average_returns() -> None:
    state = TIC_TAC_TOE.game.new_initial_state()
    # x x o / o o x / . . x with o to move: 6 wins for o; 7 leaves x the last cell and a draw.
    for action in (0, 3, 1, 4, 8, 2, 5):
        state.apply_action(action)
    # One draw of two a rollout (the last cell is no choice), so o wins as often as a 0 is drawn.
    won = 64 - int(np.random.RandomState(1).randint(0, 2, size=64).sum())
    rollouts = UpstreamRollouts(64, Stream(1))
    assert rollouts.evaluate(state).tolist() == [-won / 64, won / 64]
    assert rollouts.prior(state) == [(6, 0.5), (7, 0.5)]


def test_mcts_python_is_upstreams_search_built_plainly() -> None:
    from open_spiel.python.algorithms import mcts

    class Plain:
        """Upstream's evaluator as it is described, with ``choice`` itself."""

        def __init__(self, random_state: np.random.RandomState) -> None:
            self.random_state = random_state

        def evaluate(self, state: Any) -> Any:
            ends = []
            for _ in range(3):
                working = state.clone()
                while not working.is_terminal() and working.legal_actions():
                    working.apply_action(self.random_state.choice(working.legal_actions()))
                ends.append(working.returns())
            return np.mean(ends, axis=0)

        def prior(self, state: Any) -> Any:
            return [(action, 1 / len(state.legal_actions())) for action in state.legal_actions()]

    variant = load_variant(find_game("leduc_poker"), {"players": 2})
    ours = make_opponent("mcts-python:25x3", variant.game, variant.spec, 0)
    shown = SeatView(variant, 0, rules=False)
    seen = set()
    for root in range(40):
        # Upstream's seeds: rollouts root + 3, search root + 4. Two moves, so that the streams run on.
        evaluator, search = Plain(np.random.RandomState(root + 3)), np.random.RandomState(root + 4)
        theirs = mcts.MCTSBot(variant.game, 1.414, 25, evaluator, random_state=search)
        ours.restart(root)
        for actions in ((0, 3), (0, 3, 1, 2)):
            shown.state = variant.game.new_initial_state()
            for action in actions:
                shown.state.apply_action(action)
            move = ours.act(shown)
            assert move == theirs.step(shown.state)
            seen.add((actions, move))
    assert len(seen) > 2  # the seed decides


@pytest.mark.parametrize("opponent", ["random", "mcts:4x1", "mcts-python:4x1", "ismcts:4"])
@pytest.mark.parametrize("seeding", ["openenv", "evaluate"])
def test_the_greatest_seed_is_played(opponent: str, seeding: str) -> None:
    # What the protocols add still fits 32 bits, and OpenSpiel's signed seeds take it.
    for seed in (2**31 - 1, 2**31, 2**32 - 201):
        env = make(game="kuhn_poker", params={"players": 4}, opponent=opponent, seeding=seeding)
        assert episode(env, seed)[-1][-1]["seed"] == seed


def test_mcts_reads_the_true_state() -> None:
    # Searching from the deal is what the docstring warns of: it folds or not by the card it may not see.
    variant = load_variant(find_game("kuhn_poker"), {"players": 2})
    bot = make_opponent("mcts:200x5", variant.game, variant.spec, 1)
    answers = []
    for deal in ((0, 1), (2, 1)):  # seat 1 holds the queen; seat 0 the jack or the king, and bets
        shown = SeatView(variant, 1, rules=False)
        shown.state = variant.game.new_initial_state()
        for action in (*deal, 1):
            shown.state.apply_action(action)
        bot.restart(0)
        answers.append(bot.act(shown))
    assert answers == [1, 0]
