"""Other labels, tensors and returns in place of what a game shows and pays."""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pyspiel
import pytest
from gymnasium.utils.env_checker import data_equivalence

from game_gym.games import DECLARED
from game_gym.task import CONFIGS
from game_gym.wrappers import RawReturns, ShuffledActions, TensorObservation
from game_gym.wrappers.layouts import shuffled_labels
from task_gym.errors import ArgumentError, GameError, IllegalActionError
from tests.game_gym.play import episode, make, pick, wrapped
from tests.game_gym.test_conformance import COMMON

# -- ShuffledActions: another name for the same game in each episode -----------------------------------------


shuffle = functools.partial(wrapped, ShuffledActions)


def test_labels_are_the_same_on_every_machine() -> None:
    labels = {0: [3, 1, 5, 4, 0, 2], 7: [0, 3, 1, 5, 2, 4], 2**31: [0, 2, 5, 3, 1, 4]}
    assert {seed: shuffled_labels(seed, 6).tolist() for seed in labels} == labels


@pytest.mark.parametrize(
    "arguments",
    [
        {"game": "leduc_poker"},
        {"game": "tic_tac_toe", "opponent": "open", "max_turns": 5, "rules": False},
        {"game": "goofspiel", "params": {"num_cards": 8, "points_order": "random", "players": 2}},
        {"game": "2048", "reward": "upstream", "max_turns": 40},
        {"game": "matrix_rps"},
    ],
)
def test_it_is_the_same_game_under_other_ids(arguments: dict[str, Any]) -> None:
    base, env = make(**arguments), shuffle(**arguments)
    for seed in range(3):
        labels = shuffled_labels(seed, base.action_space.n).tolist()
        theirs, ours = base.reset(seed=seed), env.reset(seed=seed)
        for turn in itertools.count():
            text, info = relabel(theirs[0], theirs[-1], labels)
            assert data_equivalence(ours, (text, *theirs[1:-1], info), exact=True)
            if "result" in info:
                break
            action = pick(theirs[-1]["legal_actions"], turn, seed)
            theirs, ours = base.step(action), env.step(labels[action])


def relabel(text: str, info: dict[str, Any], labels: list[int]) -> tuple[str, dict[str, Any]]:
    """Returns a turn's text and info with labels for ids."""
    names = dict(zip(info["legal_actions"], info["admissible_commands"], strict=True))
    pairs = sorted((labels[action], name) for action, name in names.items())
    if pairs:
        state = text.rpartition("\n\nLegal Actions:\n")[0]
        lines = "\n".join(f"  {label} -> {name}" for label, name in pairs)
        text = f"{state}\n\nLegal Actions:\n{lines}\n\nYour choice (action ID only):"
    legal, shown = [label for label, _ in pairs], [name for _, name in pairs]
    mask = np.zeros_like(info["action_mask"])
    mask[legal] = 1
    return text, info | {"action_mask": mask, "legal_actions": legal, "admissible_commands": shown}


def test_an_address_has_the_same_labels_whatever_else_may_be_drawn() -> None:
    alone = shuffle(task_id=200_000_000)
    among = shuffle(task_ids=[200_000_000, (600_000_000, 600_000_003)])
    for seed in range(5):
        text, info = alone.reset(seed=seed)
        again, wide = among.reset(seed=seed, options={"task_id": 200_000_000})
        assert again == text and wide["legal_actions"] == info["legal_actions"]
        # Hex has 121 actions, leduc 3.
        assert wide["action_mask"].tolist() == info["action_mask"].tolist() + [0] * 118
        _, reward, *_ = among.step(50)  # beyond leduc's ids: never legal
        assert reward == -0.01


def test_illegal_actions_are_told_in_labels() -> None:
    env = shuffle(game="leduc_poker")
    for seed in range(0, 20, 2):  # seat 0, where folding (id 0) is illegal at first
        text, info = env.reset(seed=seed)
        fold = shuffled_labels(seed, 3)[0]
        legal = sorted({0, 1, 2} - {fold})
        for wrong in (fold, -1, 3, 10**30):
            again, reward, terminated, _, info = env.step(wrong)
            message = f"action: {wrong} was given, legal: {legal[0]}, {legal[1]}"
            assert info["error"] == {"type": "invalid_action", "message": message}
            assert (again, reward, info["legal_actions"]) == (text, -0.01, legal)
            env.step(legal[0])  # ends the strikes
            env.reset(seed=seed)
        # The forfeit's message is about the position that was given up.
        for _ in range(3):
            *_, terminated, _, info = env.step(fold)
        assert terminated and info["legal_actions"] == []
        assert info["error"]["message"].endswith(f"legal: {legal[0]}, {legal[1]}")
    env = shuffle(game="leduc_poker", illegal="raise")
    env.reset(seed=18)
    with pytest.raises(IllegalActionError, match=rf" {fold} was .* {legal[0]}, {legal[1]}$"):
        env.step(fold)
    assert env.step(legal[0])[-1]["turn"] == 1
    with pytest.raises(ArgumentError, match=r"'x'.*whole number"):
        env.step("x")


def test_names_that_begin_with_ids_begin_with_labels() -> None:
    base, env = make(game="backgammon"), shuffle(game="backgammon")
    _, original = base.reset(seed=1)
    _, info = env.reset(seed=1)
    labels = shuffled_labels(1, base.action_space.n)
    moves = {
        int(labels[action]): name.split(" - ", 1)[1]
        for action, name in zip(original["legal_actions"], original["admissible_commands"], strict=True)
    }
    assert len(moves) > 5
    assert info["admissible_commands"] == [f"{label} - {moves[label]}" for label in info["legal_actions"]]


# -- TensorObservation: OpenSpiel's tensor in place of the text ----------------------------------------------


tensors = functools.partial(wrapped, TensorObservation)


def test_the_information_state_is_preferred_and_open_games_show_the_position() -> None:
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    assert len(state.information_state_tensor(0)) == 30 and len(state.observation_tensor(0)) == 16
    assert tensors(game="leduc_poker").observation_space.shape == (30,)
    env = TensorObservation(gym.make("GameSpiel-v0", game="tic_tac_toe", opponent="open"), flat=False)
    tensor, _ = env.reset(seed=0)
    assert tensor.shape == env.observation_space.shape == (3, 3, 3)
    # Planes of empty cells, of noughts and of crosses; Player 0 plays crosses.
    assert tensor[0].all() and not tensor[1:].any()
    tensor, *_ = env.step(4)
    assert tensor[0].sum() == 8 and tensor[2, 1, 1] == 1 and not tensor[1].any()
    assert tensors(game="tic_tac_toe", opponent="open").observation_space.shape == (27,)


#: The declared games with an information state tensor.
INFORMED = {
    "leduc_poker", "kuhn_poker", "phantom_ttt", "bridge", "goofspiel", "liars_dice", "hearts", "euchre"
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in COMMON else pytest.mark.families) for name in DECLARED]
)
def test_every_declared_game(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    env = tensors(game=name, params=DECLARED[name].params(0), opponent="open", rules=False)
    kind = "information_state_tensor" if name in INFORMED else "observation_tensor"
    rng = random.Random(0)
    tensor, info = env.reset(seed=0)
    over = "result" in info
    while not over:
        assert tensor in env.observation_space
        assert tensor.tolist() == getattr(env.unwrapped.state, kind)(info["seat"])
        tensor, _, over, _, info = env.step(rng.choice(info["legal_actions"]))
    assert tensor in env.observation_space and not tensor.any()
    assert info["text"].startswith("Game over")
    assert capfd.readouterr() == ("", "")


def test_a_cut_shows_its_position_and_a_forfeit_none() -> None:
    env = tensors(game="tic_tac_toe", max_turns=2)
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    tensor, _, _, truncated, info = env.step(info["legal_actions"][-1])
    assert truncated and tensor.tolist() == env.unwrapped.state.observation_tensor(0)
    env.reset(seed=0)
    for _ in range(3):
        tensor, _, terminated, *_ = env.step(99)
    assert terminated and not tensor.any()


def test_variants_must_have_a_tensor_and_one_shape() -> None:
    hexes = 6 * CONFIGS
    assert tensors(task_ids=[hexes, hexes + 4]).observation_space.shape == (9 * 5 * 5,)  # 5x5 both
    with pytest.raises(ArgumentError, match=r"hex\(.*\(9, 5, 5\), hex\(.*\(9, 7, 7\); allowed: .* the same"):
        tensors(task_ids=[(hexes, hexes + 1)])
    # Oware's variants differ in seeds and not in shape.
    owares = 21 * CONFIGS
    assert tensors(task_ids=[(owares, owares + 2)]).observation_space.shape == (14,)
    with pytest.raises(GameError, match="'morpion_solitaire' was given, for which OpenSpiel has no tensor"):
        tensors(game="morpion_solitaire")


# -- RawReturns: the game's own return at the end ------------------------------------------------------------


raw = functools.partial(wrapped, RawReturns)


@pytest.mark.parametrize(
    "arguments",
    [
        {"game": "leduc_poker"},
        {"game": "kuhn_poker", "opponent": "open"},
        {"game": "2048", "reward": "upstream"},  # pays move by move
        {"game": "hearts", "rules": False},
        {"game": "blackjack"},
    ],
)
def test_an_episodes_return_is_the_games(arguments: dict[str, Any]) -> None:
    for seed in range(1 if arguments["game"] == "2048" else 6):
        record = episode(raw(**arguments), seed)
        *_, info = record[-1]
        rewards = [entry[1] for entry in record[1:]]
        assert rewards == [0.0] * (len(rewards) - 1) + [info["returns"][info["seat"]]]
        assert all(isinstance(reward, float) for reward in rewards)
        # Nothing else differs.
        plain = episode(make(**arguments), seed)
        assert [(*entry[:1], *entry[2:]) for entry in record] == [(*e[:1], *e[2:]) for e in plain]


def test_the_seat_that_moved_last_is_paid() -> None:
    env = raw(game="kuhn_poker", opponent="open", illegal="forfeit")
    env.reset(seed=0)
    assert env.step(0)[1] == 0
    _, reward, *_, info = env.step(9)  # seat 1 gives the game up: 2 chips are the most that can be lost
    assert info["seat"] == 1 and reward == pytest.approx(-2.01)


def test_a_cut_pays_nothing() -> None:
    record = episode(raw(game="2048", max_turns=9, reward="upstream"), 0)
    *_, info = record[-1]
    assert info["result"] == "cut" and info["returns"][0] > 0
    assert [entry[1] for entry in record[1:]] == [0.0] * 9
