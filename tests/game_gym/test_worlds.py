"""Worlds agree with what the seat knows, and with nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyspiel
import pytest

from game_gym.games import DECLARED, find_game
from game_gym.spec import State, load_quietly, load_variant
from game_gym.worlds import DRAWN, draw_world, has_worlds

_UPCARD, _STOCK, _PASS, _KNOCK = 52, 53, 54, 55

Choose = Callable[[State, list[int]], int]

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

#: OpenSpiel draws these too, and keeps what the seat cannot see: cards that nobody was dealt, the dealer's
#: discard, the other's offer.
KEEP_TOO_MUCH = {"euchre", "oh_hell", "colored_trails"}


def turns(game: Any, games: int, choose: Choose | None = None) -> Iterator[State]:
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


def knock_soon(state: State, legal: list[int]) -> int:
    """Gin: draw from the stock, throw what leaves the least deadwood, and knock as soon as one may."""
    if _KNOCK in legal:
        return _KNOCK
    if set(legal) <= {_UPCARD, _STOCK, _PASS}:
        return legal[-1]
    seat = state.current_player()
    return min(legal, key=lambda action: state.child(action).deadwood()[seat])


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


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_a_world_is_one_the_seat_may_be_in(name: str, params: dict[str, Any]) -> None:
    game = load_variant(find_game(name), params).game
    assert has_worlds(game)
    rng = random.Random(0)
    for state in turns(game, {"gin_rummy": 2, "hearts": 6}.get(name, 40)):
        seat = state.current_player()
        known = knowledge(state, seat)
        for _ in range(2):
            assert knowledge(draw_world(state, seat, rng.random), seat) == known


@pytest.mark.parametrize(("name", "params"), [variant for variant in VARIANTS if variant[0] != "gin_rummy"])
def test_states_that_look_alike_have_the_same_worlds(name: str, params: dict[str, Any]) -> None:
    # A world is itself a state that the seat cannot tell from the true one: equal random numbers draw the
    # same from both, so the draw does not look at the rest.
    game = load_variant(find_game(name), params).game
    moved = 0
    for turn, state in enumerate(turns(game, {"hearts": 4}.get(name, 30))):
        seat = state.current_player()
        other = draw_world(state, seat, random.Random(turn + 999).random)
        moved += other.history() != state.history()
        one, two = (draw_world(start, seat, random.Random(turn).random) for start in (state, other))
        assert one.history() == two.history()
    assert moved > 5


def test_gin_rummy_after_the_knock() -> None:
    game = load_variant(find_game("gin_rummy"), {"hand_size": 7, "knock_card": 10}).game
    phases, rng = set(), random.Random(0)
    for state in turns(game, 12, knock_soon):
        phases.add(state.current_phase().name)
        seat = state.current_player()
        assert knowledge(draw_world(state, seat, rng.random), seat) == knowledge(state, seat)
    assert phases == {"FIRST_UPCARD", "DRAW", "DISCARD", "KNOCK", "LAYOFF"}


def test_gin_rummy_draws_every_unseen_card_equally_often() -> None:
    # There equal random numbers draw different worlds, so the law is looked at: whatever the other really
    # holds, each card that the seat cannot place is in the other's hand as often.
    game = load_variant(find_game("gin_rummy"), {"hand_size": 7, "knock_card": 10}).game
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


def test_bridge_deals_the_other_hands_anew() -> None:
    state = next(turns(load_variant(find_game("bridge"), {}).game, 1))
    state.apply_action(state.legal_actions()[3])
    seat = state.current_player()
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


def drawn_by_openspiel() -> Iterator[str]:
    """Games of hidden information, of two seats or more that move in turn, whose worlds OpenSpiel draws."""
    for kind in pyspiel.registered_games():
        if (
            kind.information != pyspiel.GameType.Information.IMPERFECT_INFORMATION
            or kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL
            or not kind.default_loadable
            or kind.max_num_players < 2
        ):
            continue
        game = pyspiel.load_game(kind.short_name)
        try:
            state = next(turns(game, 1))
            state.resample_from_infostate(state.current_player(), random.Random(0).random)
        except RuntimeError:
            continue
        yield kind.short_name


def test_the_table_of_worlds_agrees_with_openspiel(capfd: pytest.CaptureFixture[str]) -> None:
    assert set(drawn_by_openspiel()) == set(DRAWN) | KEEP_TOO_MUCH
    capfd.readouterr()  # OpenSpiel prints each refusal
    declared = {name for name in DECLARED if has_worlds(load_variant(find_game(name), {}).game)}
    assert declared == {"bridge", "gin_rummy", "hearts", "kuhn_poker", "leduc_poker"}
