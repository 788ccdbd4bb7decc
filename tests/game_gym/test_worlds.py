"""Worlds agree with what the seat knows, and so does the honest search that draws them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from game_gym.games import DECLARED, find_game
from game_gym.opponents import ismcts
from game_gym.opponents.ismcts import draw_world, has_worlds
from game_gym.spec import State, Variant, load_quietly
from task_gym.opponents import make_opponent
from tests.game_gym.gin_rummy_play import KNOCK, choose_melds, three_melds_of_three
from tests.game_gym.play import load, make, reach, see, turns

#: Variants with worlds: bridge's are in a test of their own, since each takes a good part of a second.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *[("kuhn_poker", {"players": players}) for players in (2, 3, 4)],
    *[("leduc_poker", {"players": players}) for players in (2, 3, 4)],
    *[("hearts", DECLARED["hearts"].params(config)) for config in range(8)],
    ("hearts", {"can_lead_any_club": True, "no_pts_on_first_trick": False, "must_break_hearts": False}),
    *[("gin_rummy", DECLARED["gin_rummy"].params(config)) for config in range(9)],
    ("universal_poker", {}),
    ("bargaining", {}),
]
FIRST = dict(reversed(VARIANTS))
CASES = [
    pytest.param(name, params, marks=[] if FIRST[name] is params else pytest.mark.families)
    for name, params in VARIANTS
]


def knowledge(state: State, seat: int) -> tuple[Any, ...]:
    """Everything that OpenSpiel and the declaration tell the seat."""
    kind = state.get_game().get_type()
    return (
        state.current_player(),
        state.legal_actions(),
        kind.provides_information_state_string and state.information_state_string(seat),
        kind.provides_observation_string and state.observation_string(seat),
        find_game(kind.short_name).describe(state, seat),
    )


@pytest.mark.parametrize(("name", "params"), CASES)
def test_a_world_is_one_the_seat_may_be_in(name: str, params: dict[str, Any]) -> None:
    game = load(name, **params).game
    assert has_worlds(game)
    rng = random.Random(0)
    for state in turns(game, {"gin_rummy": 2, "hearts": 6}.get(name, 40)):
        seat = state.current_player()
        known = knowledge(state, seat)
        for _ in range(2):
            assert knowledge(draw_world(state, seat, rng.random), seat) == known


@pytest.mark.parametrize(("name", "params"), [case for case in CASES if case.values[0] != "gin_rummy"])
def test_states_that_look_alike_have_the_same_worlds(name: str, params: dict[str, Any]) -> None:
    # A world is itself a state that the seat cannot tell from the true one: equal random numbers draw the
    # same from both, so the draw does not look at the rest.
    game = load(name, **params).game
    moved = 0
    for turn, state in enumerate(turns(game, {"hearts": 4}.get(name, 30))):
        seat = state.current_player()
        other = draw_world(state, seat, random.Random(turn + 999).random)
        moved += other.history() != state.history()
        one, two = (draw_world(start, seat, random.Random(turn).random) for start in (state, other))
        assert one.history() == two.history()
    assert moved > 5


def test_gin_rummy_after_the_knock() -> None:
    game = load("gin_rummy", hand_size=7, knock_card=10).game
    phases, rng = set(), random.Random(0)
    for state in turns(game, 12, lambda state, _: choose_melds(state, rng)):
        phases.add(state.current_phase().name)
        seat = state.current_player()
        assert knowledge(draw_world(state, seat, rng.random), seat) == knowledge(state, seat)
    assert phases == {"FIRST_UPCARD", "DRAW", "DISCARD", "KNOCK", "LAYOFF"}


def test_gin_rummy_draws_every_unseen_card_equally_often() -> None:
    # There equal random numbers draw different worlds, so the law is looked at: whatever the other really
    # holds, each card that the seat cannot place is in the other's hand as often.
    game = load("gin_rummy", hand_size=7, knock_card=10).game
    state = next(state for state in turns(game, 1) if state.known_cards()[1 - state.current_player()])
    seat = state.current_player()
    other, draws = 1 - seat, 2000
    held = set(state.hands()[other])
    open_cards = set(state.known_cards()[other])
    assert open_cards < held
    placed = open_cards | set(state.hands()[seat]) | set(state.discard_pile()) | {state.upcard()}
    unseen = set(range(52)) - placed
    rng = random.Random(0)
    seen: Counter[int] = Counter()
    for _ in range(draws):
        hand = set(draw_world(state, seat, rng.random).hands()[other])
        assert open_cards <= hand and len(hand) == len(held)
        seen.update(hand - open_cards)
    assert set(seen) == unseen
    share = (len(held) - len(open_cards)) / len(unseen)
    # Five standard deviations of a binomial count: one card in a million would stray that far by chance.
    margin = 5 * (draws * share * (1 - share)) ** 0.5
    assert all(abs(count - draws * share) < margin for count in seen.values())


@pytest.mark.families
@pytest.mark.sample
def test_bridge_deals_the_other_hands_anew() -> None:
    state = next(turns(load("bridge").game, 1))
    state.apply_action(state.legal_actions()[3])
    seat = state.current_player()
    assert has_worlds(state.get_game())
    worlds = [draw_world(state, seat, random.Random(draw).random) for draw in range(2)]
    for world in worlds:
        assert knowledge(world, seat) == knowledge(state, seat)
        assert world.history()[seat:52:4] != world.history()[(seat + 1) % 4 : 52 : 4]
        assert all(
            set(world.history()[other:52:4]) != set(state.history()[other:52:4])
            for other in range(4)
            if other != seat
        )
    # And from the first world the second is drawn as from the truth.
    again = draw_world(worlds[0], seat, random.Random(1).random)
    assert again.history() == worlds[1].history()


THREE = {"numPlayers": 3, "stack": "1200 1200 1200", "blind": "50 100 0", "firstPlayer": "1 1 1 1"}


@pytest.mark.parametrize(
    ("name", "params"),
    # A chance of ending early, and a third player: OpenSpiel's draw plays nonsense, or ends the process.
    [("bargaining", {"prob_end": 0.1}), ("universal_poker", THREE)],
)
def test_parameters_without_worlds(name: str, params: dict[str, Any]) -> None:
    assert has_worlds(load_quietly(name, {}))
    assert not has_worlds(load_quietly(name, params))


# -- the honest search: it plays, it repeats itself, and it does not look ------------------------------------

LEDUC = load("leduc_poker", players=2)
KUHN = load("kuhn_poker", players=2)

# Actions of kuhn: a pass that faces a bet is a fold.
FOLD, BET = 0, 1


def answer(variant: Variant, state: State, opponent: str, seed: int) -> int:
    """The opponent's move for the seat to move, from a fresh start."""
    bot = make_opponent(opponent, variant.game, variant.spec, state.current_player())
    bot.restart(seed)
    return bot.act(see(variant, state))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        pytest.param(name, params, marks=[] if name in ("kuhn_poker", "bargaining") else pytest.mark.families)
        for name, params in VARIANTS
    ],
)
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
            answer(KUHN, reach(KUHN, [0, 1]), opponent, 0)
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


def moves_in(sets: list[list[State]], opponent: str) -> list[set[int]]:
    """The moves in information sets of leduc: several, if they depend on which state is the true one."""
    return [{answer(LEDUC, state, opponent, seed) for state in states} for seed, states in enumerate(sets)]


# An address is one game: the same seeds make the same moves for good.
RECORDED = (
    "11022012121001102012021022222221112112211112222211112022210222222110012222101112122110122221112222121111"
)


def test_it_plays_the_same_whatever_the_hidden_card_is() -> None:
    # Leduc has 936 information sets; with a card or two seen, 5 or 4 cards may be the other player's.
    every = information_sets(LEDUC)
    assert len(every) == 936 and {len(states) for states in every} == {4, 5}
    moves = moves_in(every[::9], "ismcts:25")
    assert {len(answers) for answers in moves} == {1}
    assert "".join(str(move) for answers in moves for move in answers) == RECORDED
    # The budget is not too small for it: the search that reads the card plays by it.
    assert sum(len(answers) > 1 for answers in moves_in(every[::9], "mcts:25x4")) > 20


def test_a_world_that_gives_itself_away_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The seat holds the queen, and the world has it hold the king.
    monkeypatch.setattr(ismcts, "draw_world", lambda state, seat, uniform: reach(KUHN, [0, 2, FOLD]))
    with pytest.raises(RuntimeError, match=r"world.*seat 1"):
        answer(KUHN, reach(KUHN, [0, 1, FOLD]), "ismcts:5", 0)


def test_what_is_clear_is_seen() -> None:
    # Facing a bet, the jack (0) loses and the king (2) wins in every world, whichever the other card is.
    for seed in range(5):
        for other, card, move in ((1, 0, FOLD), (2, 0, FOLD), (0, 2, BET), (1, 2, BET)):
            assert answer(KUHN, reach(KUHN, [other, card, BET]), "ismcts:60", seed) == move


def test_play_that_is_left_without_a_move_ends_there() -> None:
    """Nine cards that are three melds of three: after gin's knock OpenSpiel knows no move and no end."""
    variant = load("gin_rummy", hand_size=8, knock_card=10)
    state = three_melds_of_three(variant.game)
    assert answer(variant, state, "ismcts:40", 0) in state.legal_actions()
    state.apply_action(KNOCK)
    assert state.legal_actions() == [] and not state.is_terminal()
