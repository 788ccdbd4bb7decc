"""The layout that replies and parsers rest on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_gym.games import find_game
from game_gym.prompts import (
    SeatView,
    render,
    render_end,
    render_turn,
    with_choices,
    without_choices,
    without_rules,
)
from game_gym.spec import load_variant
from task_gym.errors import LayoutError

KUHN = load_variant(find_game("kuhn_poker"), {"players": 2})


def test_layout_in_full() -> None:
    state = KUHN.game.new_initial_state()
    for action in (1, 2, 0):
        state.apply_action(action)
    head = (
        "Game: kuhn_poker\nYou are Player 1.\n\nCurrent State:\nYour card: K\nBetting: Player 0 pass\nPot: 2"
    )
    shown = f"{head}\n\nLegal Actions:\n  0 -> Pass\n  1 -> Bet\n\nYour choice (action ID only):"
    assert render(KUHN, state, 1, rules=False) == shown
    assert render(KUHN, state, 1) == f"# Game Rules\n{KUHN.rules}\n\n# Current Game State\n{shown}"
    # And it can be taken apart again.
    text, names = render_turn(KUHN, state, 1, True, [0, 1])
    assert without_rules(text, KUHN) == shown
    assert without_choices(shown, [0, 1], names) == head
    assert with_choices(head, [0, 1], names) == shown


def test_the_end_in_full() -> None:
    assert render_end(KUHN, 1, [1.0, -1.0], 0.25, "loss") == (
        "Game over: kuhn_poker\nYou were Player 1.\n\nReturns: 1, -1\nYour score: 0.250\nResult: loss"
    )


def test_a_seat_view_shows_what_the_environment_would() -> None:
    view = SeatView(KUHN, 0, rules=True)
    view.state = state = KUHN.game.new_initial_state()
    for action in (1, 2):
        state.apply_action(action)
    assert view.text() == render(KUHN, state, 0)
    assert view.legal_actions() == [0, 1]
    assert view.action_names() == ["Pass", "Bet"]


@given(st.text(), st.dictionaries(st.integers(0, 99), st.text(), min_size=1))
def test_the_list_is_found_whatever_state_and_names_hold(state: str, named: dict[int, str]) -> None:
    legal, names = list(named), list(named.values())
    assert without_choices(with_choices(state, legal, names), legal, names) == state
    # Also where the state itself ends like a list.
    doubled = with_choices(with_choices(state, legal, names), legal, names)
    assert without_choices(doubled, legal, names) == with_choices(state, legal, names)


def test_what_is_laid_out_otherwise_is_an_error() -> None:
    state = KUHN.game.new_initial_state()
    for action in (1, 2):
        state.apply_action(action)
    text = render(KUHN, state, 0, rules=False)
    with pytest.raises(LayoutError, match=r"begins 'Game: kuhn_poker.*allowed: .* the rules of kuhn_poker"):
        without_rules(text, KUHN)
    with pytest.raises(
        LayoutError, match=r"ends .*1 -> Bet.*allowed: .* list of legal actions, as .*1 -> Fold"
    ):
        without_choices(text, [0, 1], ["Pass", "Fold"])
