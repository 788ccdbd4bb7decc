"""The honest search: it plays, it repeats itself, it is strong, and it does not look."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_gym.exact import evaluate
from game_gym.games import DECLARED, find_game
from game_gym.opponents import ismcts
from game_gym.opponents.ismcts import _Arm, _chance, _play_out
from game_gym.prompts import SeatView, render
from game_gym.spec import State, Variant, load_variant
from game_gym.worlds import DRAWN, draw_world
from task_gym.errors import OpponentError
from task_gym.opponents import make_opponent
from tests.game_gym.gin_rummy_play import KNOCK, three_melds_of_three
from tests.game_gym.play import episode, make, plain
from tests.game_gym.test_worlds import VARIANTS, turns

ROOT = Path(__file__).parent.parent.parent
LEDUC = load_variant(find_game("leduc_poker"), {"players": 2})
KUHN = load_variant(find_game("kuhn_poker"), {"players": 2})

# Actions of kuhn and leduc.
PASS, BET = 0, 1


def position(variant: Variant, actions: list[int]) -> State:
    state = variant.game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def answer(variant: Variant, state: State, opponent: str, seed: int) -> int:
    """The opponent's move for the seat to move, from a fresh start."""
    view = SeatView(variant, state.current_player(), rules=False)
    view.state = state
    bot = make_opponent(opponent, variant.game, variant.spec, view.seat)
    bot.restart(seed)
    return bot.act(view)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_games_are_played_to_the_end(
    name: str, params: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    env, rng = make(game=name, params=params, opponent="ismcts:5", rules=False), random.Random(0)
    for seed in range(1 if name in ("gin_rummy", "hearts") else 3):
        _, info = env.reset(seed=seed)
        assert info["opponent"] == "ismcts:5"
        over = "result" in info
        while not over:
            _, _, over, truncated, info = env.step(rng.choice(info["legal_actions"]))
            assert not truncated
        assert env.state.is_terminal()
    assert capfd.readouterr() == ("", "")


def test_bridge_is_played() -> None:
    # Two worlds a call, each a good part of a second.
    env = make(game="bridge", opponent="ismcts:2", rules=False)
    _, info = env.reset(seed=3)  # seat 3: three calls come before
    assert len(env.state.history()) == 52 + 3 and info["legal_actions"]


def test_the_declared_budget_is_the_default() -> None:
    # Each simulation draws one world; kuhn declares 1000.
    drawn = []

    def counted(state: State, seat: int, uniform: Any) -> State:
        drawn.append(seat)
        return draw_world(state, seat, uniform)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ismcts, "draw_world", counted)
        for opponent, simulations in (("ismcts", 1000), ("ismcts:7", 7), ("ismcts:9x3", 9)):
            drawn.clear()
            answer(KUHN, position(KUHN, [0, 1]), opponent, 0)
            assert drawn == [0] * simulations


def information_sets(variant: Variant) -> list[list[State]]:
    """All states of a small game in which someone is to move, by what the one to move knows."""
    sets: dict[str, list[State]] = {}

    def visit(state: State) -> None:
        if state.is_terminal():
            return
        if not state.is_chance_node():
            seat = state.current_player()
            sets.setdefault(f"{seat} {state.information_state_string(seat)}", []).append(state)
        for action in state.legal_actions():
            visit(state.child(action))

    visit(variant.game.new_initial_state())
    return [sets[information] for information in sorted(sets)]


def moves_apart(sets: list[list[State]], opponent: str) -> int:
    """In how many information sets of leduc the move depends on which state is the true one."""
    answers = [{answer(LEDUC, state, opponent, seed) for state in states} for seed, states in enumerate(sets)]
    return sum(len(moves) > 1 for moves in answers)


def test_it_plays_the_same_whatever_the_hidden_card_is() -> None:
    # Leduc has 936 information sets; with a card or two seen, 5 or 4 cards may be the other player's.
    every = information_sets(LEDUC)
    assert len(every) == 936 and {len(states) for states in every} == {4, 5}
    sets = every[::9]
    assert moves_apart(sets, "ismcts:25") == 0
    # The budget is not too small for it: the search that reads the card plays by it.
    assert moves_apart(sets, "mcts:25x4") > 20


@pytest.mark.parametrize(
    ("name", "params"),
    # Here equal random numbers draw equal worlds; gin_rummy's draws are looked at in test_worlds.py.
    [
        ("kuhn_poker", {"players": 3}),
        ("leduc_poker", {"players": 3}),
        ("hearts", {}),
        ("universal_poker", {}),
        ("bargaining", {}),
    ],
)
def test_states_that_look_alike_are_played_alike(name: str, params: dict[str, Any]) -> None:
    variant = load_variant(find_game(name), params)
    compared = 0
    for turn, state in enumerate(turns(variant.game, 1 if name == "hearts" else 12)):
        other = draw_world(state, state.current_player(), random.Random(turn).random)
        compared += other.history() != state.history()
        moves = {answer(variant, start, "ismcts:10", turn) for start in (state, other)}
        assert len(moves) == 1
    assert compared > 5


def test_a_world_that_gives_itself_away_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The seat holds the queen, and the world has it hold the king.
    monkeypatch.setattr(ismcts, "draw_world", lambda state, seat, uniform: position(KUHN, [0, 2, PASS]))
    with pytest.raises(RuntimeError, match="the world that was drawn is not one that seat 1 may be in"):
        answer(KUHN, position(KUHN, [0, 1, PASS]), "ismcts:5", 0)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_clear_is_seen(seed: int) -> None:
    # Facing a bet, the jack (0) loses and the king (2) wins in every world, whichever the other card is.
    for other in (1, 2):
        assert answer(KUHN, position(KUHN, [other, 0, BET]), "ismcts:60", seed) == PASS
    for other in (0, 1):
        assert answer(KUHN, position(KUHN, [other, 2, BET]), "ismcts:60", seed) == BET


def test_it_beats_random_play() -> None:
    # Exact, for the moves that one seed makes in all 936 information sets: random play gains nothing from
    # itself, both seats together, and this gains most of what a best response does.
    moves = {}
    for states in information_sets(LEDUC):
        text = render(LEDUC, states[0], states[0].current_player())
        moves[text] = answer(LEDUC, states[0], "ismcts:50x10", seed=0)

    def policy(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[Any]:
        pairs = zip(texts, legal, strict=True)
        return [np.array([float(action == moves[text]) for action in actions]) for text, actions in pairs]

    assert evaluate(LEDUC, policy).share > 0.7


def digest() -> str:
    """A hash of games of several kinds."""
    played = [
        episode(make(game=game, params=params, seeding=seeding, opponent="ismcts:20x2"), seed)
        for game, params in (("leduc_poker", {}), ("kuhn_poker", {"players": 3}), ("bargaining", {}))
        for seeding in ("openenv", "evaluate")
        for seed in (0, 2**32 - 201)
    ]
    return hashlib.sha256(json.dumps(played).encode()).hexdigest()


def test_two_processes_play_the_same_bytes() -> None:
    script = "from tests.game_gym.test_ismcts import digest; print(digest())"
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert seen == {digest()}


def test_the_seed_decides_and_nothing_is_left_of_earlier_episodes() -> None:
    env = make(game="leduc_poker", opponent="ismcts:6")
    records = [episode(env, seed, {"opponent": "ismcts:6"}) for seed in range(6)]
    assert [episode(env, seed) for seed in reversed(range(6))] == records[::-1]
    state = position(LEDUC, [2, 3])
    assert len({answer(LEDUC, state, "ismcts:6", seed) for seed in range(9)}) > 1


def test_a_copy_made_in_mid_game_continues_identically() -> None:
    env = make(game="leduc_poker", opponent="ismcts:10x2")
    for seed in range(6):
        _, info = env.reset(seed=seed)
        *_, over, _, info = env.step(info["legal_actions"][-1])
        twin = pickle.loads(pickle.dumps(env))
        while not over:
            action = info["legal_actions"][0]
            *record, info = env.step(action)
            *again, copied = twin.step(action)
            assert again == record and plain(copied) == plain(info)
            over = record[2]


OPEN_GAMES = [
    name
    for name, spec in DECLARED.items()
    if spec.budget is not None and name not in (*DRAWN, "euchre", "liars_dice", "phantom_ttt")
]


@pytest.mark.parametrize("name", OPEN_GAMES)
def test_open_games_are_left_to_mcts(name: str) -> None:
    message = f"'ismcts' was given for '{name}', where nothing is hidden; allowed there: 'mcts'"
    with pytest.raises(OpponentError, match=message):
        make(game=name, opponent="ismcts")


@pytest.mark.parametrize("name", ["liars_dice", "phantom_ttt", "euchre"])
def test_games_without_worlds_are_named(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    message = f"given for '{name}' with .*does not draw what is hidden.*'mcts' .which looks.*'hearts'"
    with pytest.raises(OpponentError, match=message):
        make(game=name, opponent="ismcts:5")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("game", "opponent", "message"),
    [
        ("leduc_poker", "ismcts:1", "allowed: ismcts:SIMS or ismcts:SIMSxROLLOUTS"),
        ("universal_poker", "ismcts", "which declares no budget; allowed: 'ismcts:SIMS'"),
        ("cribbage", "ismcts:5", "which pays move by move"),
        ("phantom_go", "ismcts", "does not draw what is hidden"),
    ],
)
def test_other_refusals(game: str, opponent: str, message: str) -> None:
    with pytest.raises(OpponentError, match=message):
        make(game=game, opponent=opponent)


def test_one_move_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ismcts, "draw_world", None)
    state = next(state for state in turns(LEDUC.game, 9) if len(state.legal_actions()) > 1)
    with pytest.raises(TypeError):
        answer(LEDUC, state, "ismcts:2", 0)
    hearts = load_variant(find_game("hearts"), {})
    state = next(state for state in turns(hearts.game, 9) if len(state.legal_actions()) == 1)
    assert [answer(hearts, state, "ismcts:2", 0)] == state.legal_actions()


def test_the_bound() -> None:
    # Chosen 4 of the 16 times it was on offer, 6 in all: 6/4 + 2 sqrt(ln 16 / 4), and ln 16 = 4 ln 2.
    arm = _Arm()
    arm.visits, arm.offered, arm.total = 4, 16, 6.0
    assert arm.bound(2.0) == pytest.approx(1.5 + 2 * sqrt(log(2)))
    assert arm.rank() == (4, 1.5)


def test_rollouts_play_at_random() -> None:
    # Against the tree's own sum: in kuhn every move is one of two, and every deal as likely.
    def value(state: State) -> float:
        if state.is_terminal():
            return float(state.returns()[0])
        below = [value(state.child(action)) for action in state.legal_actions()]
        return sum(below) / len(below)

    start = KUHN.game.new_initial_state()
    rng = random.Random(0)
    ends = [_play_out(start.clone(), rng)[0] for _ in range(4000)]
    # Returns lie in [-2, 2]: a standard error of at most 2 / sqrt(4000) = 0.032.
    assert sum(ends) / len(ends) == pytest.approx(value(start), abs=0.1)


def test_chance_is_taken_by_its_probabilities() -> None:
    # 2048 puts down a 4 once in ten times.
    state = load_variant(find_game("2048"), {}).game.new_initial_state()
    likely = dict(state.chance_outcomes())
    rare = {action for action, probability in likely.items() if probability < max(likely.values()) / 2}
    assert sum(likely[action] for action in rare) == pytest.approx(0.1)
    rng = random.Random(0)
    drawn = sum(_chance(state, rng) in rare for _ in range(2000))
    # Five standard deviations of a binomial count around 200: 5 sqrt(2000 * 0.1 * 0.9) = 67.
    assert abs(drawn - 200) < 67


def test_play_that_is_left_without_a_move_ends_there() -> None:
    """Nine cards that are three melds of three: after gin's knock OpenSpiel knows no move and no end."""
    variant = load_variant(find_game("gin_rummy"), {"hand_size": 8, "knock_card": 10})
    state = three_melds_of_three(variant.game)
    assert answer(variant, state, "ismcts:40", 0) in state.legal_actions()
    state.apply_action(KNOCK)
    assert state.legal_actions() == [] and not state.is_terminal()
    assert _play_out(state.clone(), random.Random(0)) == [0.0, 0.0]
