"""The layout that replies and parsers rest on."""

import pytest

from game_gym.games import find_game
from game_gym.prompts import SeatView, render, render_end
from game_gym.spec import load_variant
from tests.game_gym.play import DECLARED, make

KUHN = load_variant(find_game("kuhn_poker"), {"players": 2})


def test_layout_in_full() -> None:
    state = KUHN.game.new_initial_state()
    for action in (1, 2, 0):
        state.apply_action(action)
    shown = (
        "Game: kuhn_poker\nYou are Player 1.\n\n"
        "Current State:\nYour card: K\nBetting: Player 0 pass\nPot: 2\n\n"
        "Legal Actions:\n  0 -> Pass\n  1 -> Bet\n\nYour choice (action ID only):"
    )
    assert render(KUHN, state, 1, rules=False) == shown
    assert render(KUHN, state, 1) == f"# Game Rules\n{KUHN.rules}\n\n# Current Game State\n{shown}"


def test_the_end_in_full() -> None:
    assert render_end(KUHN, 1, [1.0, -1.0], 0.25, "loss") == (
        "Game over: kuhn_poker\nYou were Player 1.\n\nReturns: 1, -1\nYour score: 0.250\nResult: loss"
    )


@pytest.mark.parametrize("game", DECLARED)
@pytest.mark.parametrize("rules", [True, False])
def test_the_block_of_actions_can_be_parsed_back(game: str, rules: bool) -> None:
    env = make(game=game, rules=rules)
    for seed in range(20):
        text, info = env.reset(seed=seed)
        lines = text.split("\n")
        assert f"Game: {game}" in lines
        assert f"You are Player {info['seat']}." in lines
        start = lines.index("Legal Actions:") + 1
        end = next(i for i, line in enumerate(lines) if line.startswith("Your choice"))
        pairs = [line.strip().split(" -> ", 1) for line in lines[start : end - 1]]
        assert [int(action) for action, _ in pairs] == info["legal_actions"]
        assert [name for _, name in pairs] == info["admissible_commands"]
        assert end == len(lines) - 1
        assert ("# Game Rules" in lines) == rules


def test_a_seat_view_shows_what_the_environment_would() -> None:
    view = SeatView(KUHN, 0, rules=True)
    view.state = state = KUHN.game.new_initial_state()
    for action in (1, 2):
        state.apply_action(action)
    assert view.text() == render(KUHN, state, 0)
    assert view.legal_actions() == [0, 1]
    assert view.action_names() == ["Pass", "Bet"]
