"""Declarations: what is described is what the game is."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import gymnasium as gym
import pyspiel
import pytest

from game_gym import games
from game_gym.games import DECLARED, find_game, register_game
from game_gym.games.generic import describe
from game_gym.prompts import render
from game_gym.score import forfeit_returns, outcome, seat_score
from game_gym.spec import Budget, GameSpec, load_variant
from game_gym.task import TaskSet
from task_gym.errors import EpisodeError, GameError
from tests.game_gym.play import episode, load, make, reach, turns
from tests.game_gym.test_conformance import play_games

PHANTOM, DICE = DECLARED["phantom_ttt"].allowed, DECLARED["liars_dice"].allowed
GOOFSPIEL = {"num_cards": 4, "points_order": "random"}

# Small enough that random play meets the same information state often, with other things hidden from it.
HIDING: list[tuple[str, dict[str, Any]]] = [
    *((name, {"players": players}) for name in ("leduc_poker", "kuhn_poker") for players in (2, 3, 4)),
    *(("goofspiel", {**GOOFSPIEL, "imp_info": True, "players": players}) for players in (2, 3)),
    *(("liars_dice", {"numdice": 1, "bidding_rule": rule}) for rule in DICE["bidding_rule"]),
    *(
        ("phantom_ttt", {"obstype": obstype, "gameversion": version})
        for obstype, version in product(PHANTOM["obstype"], PHANTOM["gameversion"])
    ),
]


@pytest.mark.parametrize(("name", "params"), [*HIDING, ("tic_tac_toe", {}), ("goofspiel", GOOFSPIEL)])
def test_description_depends_on_the_information_state_alone_and_carries_it(name: str, params: Any) -> None:
    variant = load_variant(find_game(name), params)
    seen: dict[str, str] = {}
    told: dict[str, str] = {}
    truths: dict[str, set[str]] = {}
    for state in turns(variant.game, 500):
        together = state.is_simultaneous_node()
        for seat in range(variant.players) if together else [state.current_player()]:
            # In tic_tac_toe, where all is open, the board is the state and the order of moves is not.
            shown = state.observation_string if name == "tic_tac_toe" else state.information_state_string
            key, text = f"{seat} {shown(seat)}", render(variant, state, seat, rules=False)
            assert seen.setdefault(key, text) == text
            told[key] = f"{seat} {variant.spec.describe(state, seat)}"
            truths.setdefault(key, set()).add(str(state.history()))
    assert len(set(seen.values())) == len(set(told.values())) == len(seen)
    # The hidden part did vary.
    assert (name, params) not in HIDING or sum(len(histories) > 1 for histories in truths.values()) > 10


# Upstream's table: how often parameters repeat, parameters of config id 1, simulations and rollouts.
UPSTREAM: dict[str, tuple[int, dict[str, Any], tuple[int, int] | None]] = {
    "goofspiel": (5, {"players": 2, "num_cards": 10, "points_order": "random"}, None),
    "liars_dice": (1, {"players": 2, "numdice": 5}, (3000, 200)),
    "leduc_poker": (1, {"players": 2}, (3000, 200)),
    "gin_rummy": (9, {"hand_size": 7, "knock_card": 9}, (500, 10)),
    "othello": (1, {}, (1000, 20)),
    "backgammon": (1, {}, (600, 15)),
    "hex": (4, {"board_size": 7}, (1000, 50)),
    "clobber": (3, {"rows": 6, "columns": 6}, (1500, 100)),
    "hearts": (8, {"pass_cards": True, "jd_bonus": False, "avoid_all_tricks_bonus": False}, (500, 50)),
    "euchre": (4, {"allow_lone_defender": True, "stick_the_dealer": False}, (1000, 100)),
    "dots_and_boxes": (3, {"num_rows": 4, "num_cols": 4}, (1200, 100)),
    "go": (2, {"board_size": 7, "komi": 7.5}, (300, 30)),
    "chess": (1, {}, (200, 20)),
    "checkers": (1, {}, (500, 50)),
    "quoridor": (4, {"board_size": 7, "wall_count": 10}, (800, 80)),
    "blackjack": (1, {}, None),
    "phantom_ttt": (2, {"obstype": "reveal-numturns"}, (3000, 150)),
    "2048": (1, {}, None),
    "solitaire": (1, {}, None),
    "bridge": (3, {"dealer_vul": True, "non_dealer_vul": False}, (200, 30)),  # our choice
    "amazons": (3, {"board_size": 8}, (200, 20)),
    "oware": (3, {"num_seeds_per_house": 3}, (300, 30)),
}


@pytest.mark.parametrize("name", games.TABLE)
def test_variants_and_budgets_are_upstreams(name: str) -> None:
    assert list(UPSTREAM) == list(games.TABLE)  # its order is that of the task ids
    spec = DECLARED[name]
    period, params, budget = UPSTREAM[name]
    counts = spec.budget and (spec.budget.simulations, spec.budget.rollouts)
    assert (spec.variants, spec.params(1), counts) == (period, params, budget)
    variants = [load_variant(spec, spec.params(config)) for config in range(2 * period)]
    assert variants[:period] == variants[period:] and len(set(variants)) == period


@pytest.mark.parametrize(
    ("game", "params", "words"),
    [
        ("2048", {"max_tile": 64}, ["256 moves"]),
        (
            "dots_and_boxes",
            {"num_rows": 5, "num_cols": 5, "utility_margin": True},
            ["on 5 rows and 5 columns", "minus the opponent's"],
        ),
        ("leduc_poker", {"players": 3}, ["8 cards: ranks J < Q < K < A"]),
        ("gin_rummy", {"oklahoma": True}, ["first upcard (with"]),
        ("goofspiel", {"num_cards": 6, "players": 3, "imp_info": False}, ["for 3 players", "bids are shown"]),
        ("goofspiel", {"num_cards": 6, "players": 4, "imp_info": True}, ["for 4 players", "secret"]),
    ],
)
def test_rules_follow_the_parameters(game: str, params: dict[str, Any], words: list[str]) -> None:
    rules = load(game, **params).rules
    assert rules == rules.strip() and [word for word in words if word not in rules] == []


@pytest.mark.parametrize(
    ("params", "moves", "seat", "lines"),
    [
        # As Black has just taken b1 and c1: if White takes a1, the stones are those of two moves ago.
        ({"board_size": 5, "komi": 7.5}, ("B b2", "W a2", "B c2", "W b1", "B d1", "W c1", "B a1"), 1,
         {4: " 2 O X X . .", 5: " 1 X . . X .", 6: "   a b c d e",
          7: "Moves (7 of 50, black first): b2 a2 c2 b1 d1 c1 a1", 8: "Repeating: b1", -1: "Repeating: b1"}),
        # A large board has room for its labels.
        ({"board_size": 19}, ("B t19",), 1,
         {1: "19 " + ". " * 18 + "X", 20: "   " + " ".join("abcdefghjklmnopqrst")}),
    ],
)  # fmt: skip
def test_lines_of_go(
    params: dict[str, Any], moves: tuple[str, ...], seat: int, lines: dict[int, str]
) -> None:
    variant = load("go", **params)
    shown = variant.spec.describe(reach(variant, moves), seat).split("\n")
    assert {number: shown[number] for number in lines} == lines


# -- scores, results and forfeits, by hand -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returns", "zero_sum", "low", "high", "scores"),
    [
        ([5, -5], True, -13, 13, [18 / 26, 8 / 26]),  # the recorded leduc game: 0.692307692
        ([30], False, 0, 120, [0.25]),
        ([7], False, 7, 7, [0.5]),  # no range to scale by
        ([130], False, 0, 120, [1]),  # bounds that are none: 2048 can pay more than it states
        ([3, 2], False, 0, 9, [1, 0]),
        ([2, 2], False, 0, 9, [0.5, 0.5]),
        ([4, 9, 1, 6], False, 0, 9, [1 / 3, 1, 0, 2 / 3]),
        ([4, 4, 1], False, 0, 9, [1, 1, 0]),  # nobody ahead of either
    ],
)
def test_scores(returns: list[float], zero_sum: bool, low: float, high: float, scores: list[float]) -> None:
    assert [seat_score(returns, s, zero_sum, low, high) for s in range(len(returns))] == pytest.approx(scores)


@pytest.mark.parametrize(
    ("returns", "seat", "score", "result"),
    [
        ([1, -1], 0, 1, "win"),
        ([1, -1], 1, 0, "loss"),
        ([0, 0], 1, 0.5, "draw"),
        ([3, 3, 0], 0, 1, "draw"),
        ([5], 0, 0.6, "win"),
        ([5], 0, 0.5, "draw"),
        ([5], 0, 0.1, "loss"),
    ],
)
def test_results(returns: list[float], seat: int, score: float, result: str) -> None:
    assert outcome(returns, seat, score) == result


def test_a_forfeit_is_the_least_return() -> None:
    assert forfeit_returns([2, 5], 1, False, 0) == [2, 0]
    assert forfeit_returns([2], 0, False, -1) == [-1]


# -- games that somebody else declares -----------------------------------------------------------------------


@pytest.fixture
def declared() -> Iterator[None]:
    """Declarations that last for a test, which needs a game without one."""
    before = dict(DECLARED)
    DECLARED.pop("connect_four", None)
    yield
    DECLARED.clear()
    DECLARED.update(before)


def connect_four(budget: Budget | None = None) -> GameSpec:
    return GameSpec(
        name="connect_four",
        rules=lambda params: "FOUR IN A ROW WIN.",
        describe=lambda state, seat: f"You play {'xo'[seat]}.\n{state}".rstrip(),
        budget=budget,
    )


def test_rules_and_description_are_the_declarations(declared: None) -> None:
    before, _ = gym.make("GameSpiel-v0", game="connect_four").reset(seed=7)
    assert "FOUR IN A ROW WIN." not in before  # an undeclared game is described in OpenSpiel's words
    register_game(connect_four(Budget(simulations=20, rollouts=1)))
    env = gym.make("GameSpiel-v0", game="connect_four", opponent="mcts")
    observation, info = env.reset(seed=7)  # seat 7 mod 2
    assert "# Game Rules\nFOUR IN A ROW WIN.\n" in observation
    assert "Current State:\nYou play o.\n.......\n" in observation
    assert info["admissible_commands"] == [f"o{column}" for column in range(7)]
    assert episode(env.unwrapped, 7)[-1][-1]["result"] in ("win", "draw", "loss")


def test_the_same_again_changes_nothing_and_others_are_refused(declared: None) -> None:
    spec = connect_four()
    register_game(spec)
    register_game(spec)
    for taken in (connect_four(), GameSpec("chess", lambda params: "", lambda state, seat: "")):
        with pytest.raises(GameError, match="which is declared already"):
            register_game(taken)
    assert games.find_game("connect_four") is spec
    with pytest.raises(GameError, match=r"'conect_four' was given.*did you mean 'connect_four'"):
        register_game(GameSpec("conect_four", lambda params: "", lambda state, seat: ""))


def test_texts_are_texts(declared: None) -> None:
    """A describe without a return would show None to every player."""
    register_game(GameSpec("connect_four", lambda params: "Drop.", lambda state, seat: None))  # type: ignore[arg-type,return-value]
    env = gym.make("GameSpiel-v0", game="connect_four")
    with pytest.raises(GameError, match="'connect_four': its describe returned None, allowed: a text"):
        env.reset(seed=0)
    register_game(GameSpec("nim", lambda params: None, lambda state, seat: ""))  # type: ignore[arg-type,return-value]
    with pytest.raises(GameError, match="'nim': its rules returned None, allowed: a text"):
        gym.make("GameSpiel-v0", game="nim")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rules", "Take a stick.", "'nim': rules: 'Take a stick.' was given, needed: a function"),
        ("show", "x", "'nim': show: 'x' was given, needed: a function of a state .* or None$"),
        ("name", 3, "GameSpec: name: 3 was given, needed: a text"),
        ("allowed", [("players", (2,))], r"'nim': allowed: \[.* was given, needed: parameters"),
        ("allowed", {"pile_sizes": "1;2"}, r"\{'pile_sizes': '1;2'\} was given, needed: .* a tuple"),
        ("budget", (100, 1), r"budget: \(100, 1\) was given, needed: Budget\("),
    ],
)
def test_a_field_of_another_type_is_refused_when_the_declaration_is_made(
    field: str, value: object, message: str
) -> None:
    right = {"name": "nim", "rules": lambda params: "", "describe": lambda state, seat: ""}
    with pytest.raises(GameError, match=message):
        GameSpec(**{**right, field: value})  # type: ignore[arg-type]


# -- games without a declaration -----------------------------------------------------------------------------


# Open and hidden, chance, simultaneous moves, pay by move, one to four seats, with and without strings.
SOME = [
    ("breakthrough", {"rows": 6, "columns": 6}),
    ("pig", {"players": 3}),
    ("catch", {}),
    ("first_sealed_auction", {}),
    ("hanabi", {"players": 2}),
    ("matrix_rps", {}),
    ("oshi_zumo", {"coins": 10}),
    ("matching_pennies_3p", {}),
    ("universal_poker", {}),
    ("misere", {"game": {"name": "tic_tac_toe"}}),
    ("turn_based_simultaneous_game", {"game": {"name": "goofspiel", "num_cards": 4}}),
]


@pytest.mark.parametrize(("name", "params"), SOME)
def test_it_is_played_as_any_other(
    name: str, params: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    env = make(game=name, params=params)
    play_games(env, 2)
    play_games(make(game=name, params=params, opponent="open", rules=False), 1)
    assert capfd.readouterr() == ("", "")
    assert pickle.loads(pickle.dumps(env)).reset(seed=3)[0] == env.reset(seed=3)[0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if number % 9 == 0 else pytest.mark.families)
        for number, name in enumerate(name for name in pyspiel.registered_names() if name not in DECLARED)
    ],
)
def test_every_game_is_played_or_refused_by_name(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        env = make(game=name, rules=False)
    except GameError as error:
        assert name in str(error)
    else:
        rng, over, turns = random.Random(0), False, 0
        text, info = env.reset(seed=0)
        while not over and turns < 300:
            assert info["legal_actions"] and text in env.observation_space
            text, _, over, _, info = env.step(rng.choice(info["legal_actions"]))
            turns += 1
    assert capfd.readouterr() == ("", "")


def test_descriptions_hold_what_the_seat_knows() -> None:
    # Everything is open: the position, and the information state where there is one.
    state = reach(load("connect_four"), [3])
    assert describe(state, 1) == f"{state.observation_string(1).strip()}\n{state.information_state_string(1)}"
    state = reach(load("breakthrough"), [])
    assert describe(state, 0) == state.observation_string(0).strip()
    # Something is hidden: the information state, which recalls everything.
    state = reach(load("dark_hex"), [])
    assert describe(state, 0) == state.information_state_string(0).strip("\n")
    # Or, without one, the observation.
    state = reach(load("hanabi"), [])
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    assert describe(state, 0) == state.observation_string(0).strip("\n")
    # A description shows nothing that is hidden from the seat.
    texts = {describe(reach(load("universal_poker"), [0, other]), 0) for other in (1, 5, 12, 23)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("mfg_crowd_modelling", {}, "'mfg_crowd_modelling' was given, a mean-field game"),
        ("tarok", {}, "'tarok' was given, which draws its own chance"),
        ("crossword", {}, "'crossword' was given, which does not number its actions"),
        ("misere", {}, "misere parameters: {} was given, .* Missing parameter game"),
        ("mnk", {"m": 0}, "mnk parameters: {'m': 0} was given, which leave no actions"),
        ("pig", {"horizon": "3"}, "pig parameter 'horizon': '3' was given, allowed: .* int"),
        ("pig", {"players": 99}, "'players': 99 was given, allowed: 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ("breakthrough", {"rows": 0}, "{'rows': 0} was given, which OpenSpiel refuses"),
    ],
)
def test_what_cannot_be_played_is_a_named_error(
    name: str, params: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(GameError, match=message):
        TaskSet(game=name, params=params)
    assert capfd.readouterr() == ("", "")


def test_a_game_that_is_over_before_the_first_turn() -> None:
    # One stone: Player 0 takes it and loses, since who takes the last one loses (misère).
    env = make(game="nim", params={"pile_sizes": "1"}, render_mode="ansi")
    text, info = env.reset(seed=0)
    assert info["legal_actions"] and "result" not in info
    for seed in (1, 3):
        text, info = env.reset(seed=seed)
        assert (info["seat"], info["turn"], info["legal_actions"]) == (1, 0, [])
        assert not info["action_mask"].any() and not env.action_masks().any()
        assert (info["score"], info["result"], info["returns"]) == (1, "win", [-1, 1])
        assert info["upstream_reward"] == 1 and info["success"] and len(info["history"]) == 1
        assert text.startswith("Game over: nim\nYou were Player 1.\n")
        twin = pickle.loads(pickle.dumps(env))
        assert twin.render() == env.render() and twin.state.history() == info["history"]
        # One step, whatever its action, says it again: to vector environments a reset is never an end.
        for other in (env, twin, pickle.loads(pickle.dumps(twin))):
            assert other.step(99)[:4] == (text, 1, True, False)
            with pytest.raises(EpisodeError, match="before the end"):
                pickle.loads(pickle.dumps(other)).step(0)
    assert env.reset(seed=2)[1]["legal_actions"]


@pytest.mark.trains
@pytest.mark.sample
def test_a_game_of_oware_that_never_ends_is_a_fault() -> None:
    """OpenSpiel refuses oware's 1001st move. Players who capture as little as they can get there."""
    env = make(game="oware", params={"num_seeds_per_house": 5}, opponent="open", rules=False)
    env.reset(seed=0)
    rng = random.Random(0)
    for _ in range(1000):
        children = [(env.state.child(action), action) for action in env.state.legal_actions()]
        going_on = [(child, action) for child, action in children if not child.is_terminal()]
        _, action = min(going_on, key=lambda pair: (count_captured(pair[0]), rng.random()))
        *_, terminated, truncated, info = env.step(action)
        assert not (terminated or truncated)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0, False, True)
    assert (info["result"], info["score"], len(info["history"])) == ("fault", None, 1000)
    assert "Result: fault" in text


def count_captured(state: Any) -> int:
    return sum(int(count) for count in state.observation_string(0).split("|")[1].split())
