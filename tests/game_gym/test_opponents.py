"""The opponents that come with the games."""

from __future__ import annotations

import math
import pickle
import sys
from collections import Counter
from math import inf
from typing import Any

import gymnasium as gym
import pytest

import game_gym
import game_gym.opponents
from game_gym.games import DECLARED
from game_gym.opponents import mcts_fast
from game_gym.opponents.costs import FAST_SHARES, estimate_move
from game_gym.spec import load_variant
from game_gym.wrappers import MixedOpponents
from task_gym import opponents
from task_gym.errors import ArgumentError, OpponentError, OptionError
from task_gym.opponents import make_opponent
from task_gym.samplers import Failures, Stages
from task_gym.wrappers import Curriculum, FailureReplay
from tests.game_gym.play import episode, finish, load, make, reach, see

TIC_TAC_TOE = load("tic_tac_toe")


@pytest.mark.parametrize("name", ["mcts", "mcts:300", "mcts:50x4", "mcts-python:60x3"])
def test_search_takes_a_win_and_stops_one(name: str) -> None:
    # With o at 3 and 6, 2 completes x's row at once. With o at 4, o has no win of its own, and x threatens 2.
    for seat, moves in ((0, [0, 3, 1, 6]), (1, [0, 4, 1])):
        bot = make_opponent(name, TIC_TAC_TOE.game, TIC_TAC_TOE.spec, seat)
        bot.restart(1)
        assert bot.act(see(TIC_TAC_TOE, reach(TIC_TAC_TOE, moves))) == 2


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


@pytest.mark.parametrize(
    "search",
    ["mcts:1", "mcts-python:4x0", "ismcts:many"]
    + [f"mcts:{text}" for text in ("1x1", "5x", "x5", "5x5x5", "-5", "5.0", "٥", "9" * 10)],
)
def test_a_budget_that_cannot_be_read_is_refused_where_random_would_play(search: str) -> None:
    name, _, argument = search.partition(":")
    said = f"'{argument}'.*{name}:SIMSxROLLOUTS with whole numbers of at least 2, 1 and of at most 9 digits"
    with pytest.raises(OpponentError, match=said):
        make(task_id=0, opponent=search)
    with pytest.raises(OptionError, match=said):
        make(task_id=0).reset(options={"opponent": search})


@pytest.mark.parametrize(
    ("game", "opponent", "message"),
    [
        ("tic_tac_toe", "mcts:1x5", "'1x5'.*mcts:SIMSxROLLOUTS"),
        # Rules that are not compiled.
        ("hex", "mcts-fast", "'hex'.*'mcts'"),
        ("goofspiel", "mcts-fast", "'goofspiel'.*simultaneous"),
        ("othello", "mcts-fats", "'mcts-fast"),
        # All but one seat are still to be named, and nobody says how long to search.
        ("connect_four", "mcts-python", "budget"),
        # The honest search.
        ("chess", "ismcts", "'chess'.*nothing is hidden.*'mcts'"),
        ("liars_dice", "ismcts:5", "'liars_dice'.*does not draw.*'mcts' .*'hearts'"),
        ("euchre", "ismcts:5", "'euchre'.*does not draw"),
        ("leduc_poker", "ismcts:1", "ismcts:SIMSxROLLOUTS"),
        ("universal_poker", "ismcts", "budget.*'ismcts:SIMS'"),
        ("cribbage", "ismcts:5", "move by move"),
    ],
)
def test_refusals(game: str, opponent: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OpponentError, match=message):
        make(game=game, opponent=opponent)
    assert capfd.readouterr() == ("", "")


def test_compiled_searches_need_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("game_gym.opponents.fast")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(game_gym.opponents, "fast", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(OpponentError, match=r"Numba.*gamespiel\[fast\]"):
        make(game="othello", opponent="mcts-fast")


@pytest.mark.parametrize("opponent", ["random", "mcts:4x1", "mcts-python:4x1", "ismcts:4"])
@pytest.mark.parametrize("seeding", ["openenv", "evaluate"])
def test_the_greatest_seed_is_played(opponent: str, seeding: str) -> None:
    # The protocols' additions still fit 32 bits, and OpenSpiel's signed seeds take them.
    for seed in (2**31 - 1, 2**31, 2**32 - 201):
        env = make(game="kuhn_poker", params={"players": 4}, opponent=opponent, seeding=seeding)
        assert episode(env, seed)[-1][-1]["seed"] == seed


# -- what a search's move is estimated to cost, from names and budgets alone ---------------------------------


@pytest.mark.parametrize(
    ("game", "params", "opponent", "seconds"),
    [
        ("othello", {}, "mcts", 3.8),
        ("othello", {}, "mcts:100x10", 0.19),  # 1,000 of 20,000 rollouts
        ("othello", {}, "mcts:9000x90", 3.8),  # no more than was measured
        ("othello", {}, "mcts-fast:100x10", 0.19 * 0.024),
        ("clobber", {}, "mcts-fast", 0.293),  # its rules are not compiled, which is no error here
        ("othello", {}, "random", 0.0),
        ("hex", {"board_size": 7}, "mcts", 0.464),
        ("hex", {"board_size": 8}, "mcts", 0.464),  # that of the next smaller board
        ("hex", {"board_size": 4}, "mcts", 0.0),  # smaller than all that were measured
        ("liars_dice", {"numdice": 2}, "mcts", 0.0019),
        ("goofspiel", {}, "mcts", 0.0),  # all move at once, and "random" plays
        ("solitaire", {}, "mcts", 0.0),  # nobody else plays
        ("breakthrough", {}, "mcts:100x10", 0.001),  # undeclared: 1,000 rollouts of a microsecond
    ],
)
def test_estimates(game: str, params: dict[str, Any], opponent: str, seconds: float) -> None:
    assert estimate_move(opponent, load(game, **params)) == pytest.approx(seconds)


def test_every_declared_search_was_measured() -> None:
    assert set(FAST_SHARES) == set(mcts_fast.GAMES)
    assert all(0 < share < 1 for share in FAST_SHARES.values())
    for name, spec in DECLARED.items():
        variant = load_variant(spec, spec.params(0))
        assert (spec.budget is None) == (estimate_move("mcts", variant) == 0.0), name


def test_a_mean_over_games_and_opponents(registries: None) -> None:
    """Task ids 4 and 12 times 10^8 are othello and chess, 3.8 s and 5 s; a quarter is searched."""
    env = make(task_ids=[400000000, 1200000000])
    assert env.unwrapped.search_seconds == 0.0
    MixedOpponents(env, {"random": 3, "mcts": 1})
    assert env.unwrapped.search_seconds == pytest.approx((3.8 + 5.0) / 2 / 4)
    # A search of a user is taken to be dear.
    opponents.register_opponent("deep", opponents.find_opponent("first").factory, searches=True)
    assert make(game="chess", opponent="deep").search_seconds == inf


# -- several opponents with weights: the seed decides who plays ----------------------------------------------


WEIGHTS = {"random": 0.5, "first": 0.3}


def mix(weights: Any = WEIGHTS, **arguments: Any) -> MixedOpponents:
    return MixedOpponents(gym.make("GameSpiel-v0", **({"game": "kuhn_poker"} | arguments)), weights)


def test_shares_are_the_weights() -> None:
    """0.5 and 0.3 are five eighths and three eighths: of 4,000 seeds 2,500 within four deviations."""
    env, seeds = mix(), range(4000)
    played = Counter(env.reset(seed=seed)[1]["opponent"] for seed in seeds)
    assert set(played) == set(WEIGHTS)
    assert abs(played["random"] - 2500) < 4 * math.sqrt(4000 * 5 / 8 * 3 / 8)


def test_a_seed_is_one_opponent_and_the_same_game_as_without() -> None:
    one, other = mix(), mix()
    other.reset(seed=99)
    for seed in range(20):
        text, info = one.reset(seed=seed)
        assert other.reset(seed=seed)[1]["opponent"] == info["opponent"]
        alone = gym.make("GameSpiel-v0", game="kuhn_poker", opponent=info["opponent"])
        assert alone.reset(seed=seed)[0] == text


def test_it_waits_if_one_of_them_does(registries: None) -> None:
    """Whoever comes first: else the episodes of a slow opponent would be played one after the other."""
    first = opponents.find_opponent("first").factory
    opponents.register_opponent("slow", lambda seating: first(seating), waits=True)
    assert mix({"random": 1, "slow": 1}).unwrapped.waits
    assert not mix().unwrapped.waits


class Copies(gym.Wrapper[Any, Any, Any, Any]):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        return self.env.reset(seed=seed, options=dict(options or {}))


def test_samplers_outside_hear_of_every_episode() -> None:
    """Also if a wrapper in between copies the options, which the curriculum has chosen."""
    game, weights = gym.make("GameSpiel-v0", game="kuhn_poker"), {"random": 1, "first": 1}
    stages, failures = Stages([{"name": "only"}]), Failures(failure_replay_prob=0.5)
    env = Curriculum(Copies(FailureReplay(MixedOpponents(game, weights), failures)), stages)
    infos = [finish(env, env.reset()[1]["legal_actions"])[-1][-1] for _ in range(60)]
    assert {info["opponent"] for info in infos} == set(weights)
    replays = sum(info["replay"]["replayed"] for info in infos)
    assert failures.stats()["episodes"] == 60 and failures.stats()["replays"] == replays > 5
    assert stages.stats()["episodes"] == 60 - replays


@pytest.mark.parametrize("inner", [Curriculum, FailureReplay])
def test_samplers_inside_are_refused(inner: Any) -> None:
    """They would take the mixture's choice for the caller's, and count nothing."""
    sampler = Stages([{"name": "only"}]) if inner is Curriculum else Failures()
    with pytest.raises(ArgumentError, match=f"MixedOpponents: {inner.__name__} was given inside; allowed"):
        MixedOpponents(inner(gym.make("GameSpiel-v0", game="kuhn_poker"), sampler), WEIGHTS)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (None, ArgumentError, r"opponents: None was given, allowed: a mapping of names to weights"),
        ({}, ArgumentError, r"opponents: \{\} was given, allowed: a mapping of names to weights"),
        ({"random": 0}, ArgumentError, r"opponents: 'random': 0 was given, allowed: numbers above 0"),
        ({"random": math.nan}, ArgumentError, r"'random': nan was given"),
        ({"randm": 1}, OpponentError, r"'randm' was given, .*did you mean 'random'"),
        ({"random": 1, "mcts:0": 1}, OpponentError, r"'0' was given"),
    ],
)
def test_what_is_no_mixture(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mix(weights)
