"""Games that somebody else declares."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from game_gym import games
from game_gym.games import DECLARED, register_game
from game_gym.spec import Budget, GameSpec
from task_gym.errors import GameError, OpponentError
from tests.game_gym.play import episode


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    before = dict(DECLARED)
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


def test_rules_and_description_are_the_declarations() -> None:
    before, _ = gym.make("GameSpiel-v0", game="connect_four").reset(seed=7)
    assert "FOUR IN A ROW WIN." not in before  # an undeclared game is described in OpenSpiel's words
    register_game(connect_four(Budget(simulations=20, rollouts=1)))
    env = gym.make("GameSpiel-v0", game="connect_four", opponent="mcts")
    check_env(env.unwrapped, skip_render_check=True)
    observation, info = env.reset(seed=7)  # seat 7 mod 2
    assert "# Game Rules\nFOUR IN A ROW WIN.\n" in observation
    assert "Current State:\nYou play o.\n.......\n" in observation
    assert info["admissible_commands"] == [f"o{column}" for column in range(7)]
    assert episode(env.unwrapped, 7)[-1][-1]["result"] in ("win", "draw", "loss")


def test_the_same_again_changes_nothing_and_others_are_refused() -> None:
    spec = connect_four()
    register_game(spec)
    register_game(spec)
    for taken in (connect_four(), GameSpec("chess", lambda params: "", lambda state, seat: "")):
        with pytest.raises(GameError, match="which is declared already"):
            register_game(taken)
    assert games.find_game("connect_four") is spec
    with pytest.raises(GameError, match=r"'conect_four' was given.*did you mean 'connect_four'"):
        register_game(GameSpec("conect_four", lambda params: "", lambda state, seat: ""))


def test_texts_are_texts() -> None:
    """A describe without a return would show None to every player."""
    register_game(GameSpec("connect_four", lambda params: "Drop.", lambda state, seat: None))  # type: ignore[arg-type,return-value]
    env = gym.make("GameSpiel-v0", game="connect_four")
    with pytest.raises(GameError, match="'connect_four': its describe returned None, allowed: a text"):
        env.reset(seed=0)
    register_game(GameSpec("nim", lambda params: None, lambda state, seat: ""))  # type: ignore[arg-type,return-value]
    with pytest.raises(GameError, match="'nim': its rules returned None, allowed: a text"):
        gym.make("GameSpiel-v0", game="nim")


def test_what_is_left_out() -> None:
    """No parameters may be given, and a search needs a budget in its name."""
    register_game(connect_four())
    with pytest.raises(GameError, match="parameter of connect_four: 'rows' was given, allowed: nothing"):
        gym.make("GameSpiel-v0", game="connect_four", params={"rows": 5})
    with pytest.raises(OpponentError, match="which declares no budget"):
        gym.make("GameSpiel-v0", game="connect_four", opponent="mcts")
    gym.make("GameSpiel-v0", game="connect_four", opponent="mcts:5").reset(seed=0)


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("rules", "Take a stick.", "'nim': rules: 'Take a stick.' was given, needed: a function"),
        ("describe", None, "'nim': describe: None was given, needed: a function of a state"),
        ("params", {}, r"'nim': params: \{\} was given, needed: a function of a task's config id"),
        ("show", "x", "'nim': show: 'x' was given, needed: a function of a state .* or None$"),
        ("name", 3, "GameSpec: name: 3 was given, needed: a text"),
        ("allowed", [("players", (2,))], r"'nim': allowed: \[.* was given, needed: parameters"),
        ("allowed", {"pile_sizes": "1;2"}, r"\{'pile_sizes': '1;2'\} was given, needed: .* a tuple"),
        ("budget", (100, 1), r"budget: \(100, 1\) was given, needed: Budget\("),
    ],
)
def test_a_field_of_another_type_is_refused_when_the_declaration_is_made(
    field: str, given: object, message: str
) -> None:
    right = {"name": "nim", "rules": lambda params: "", "describe": lambda state, seat: ""}
    with pytest.raises(GameError, match=message):
        GameSpec(**{**right, field: given})  # type: ignore[arg-type]
