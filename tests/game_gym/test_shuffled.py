"""ShuffledActions: another name for the same game in each episode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import game_gym  # noqa: F401  (registers the environments)
from game_gym.wrappers import ShuffledActions
from game_gym.wrappers.shuffled import shuffled_labels
from task_gym.errors import ArgumentError, IllegalActionError
from task_gym.seeding import SEED_LIMIT
from task_gym.wrappers import TokenObservation
from tests.game_gym.play import make, pick, plain


def build(**arguments: Any) -> ShuffledActions:
    return ShuffledActions(gym.make("GameSpiel-v0", **arguments))


@given(st.integers(0, SEED_LIMIT - 1), st.integers(1, 5000))
def test_labels_are_a_permutation_that_follows_from_the_arguments(seed: int, actions: int) -> None:
    labels = shuffled_labels(seed, actions)
    assert sorted(labels) == list(range(actions))
    assert np.array_equal(labels, shuffled_labels(seed, actions))


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
    base, env = make(**arguments), build(**arguments)
    for seed in range(3):
        labels = shuffled_labels(seed, base.action_space.n).tolist()
        shown, known = env.reset(seed=seed), base.reset(seed=seed)
        compare(env, base, labels, (*shown, 0), (*known, 0))
        over, turns = "result" in known[1], 0
        while not over:
            action = pick(known[1]["legal_actions"], turns, seed)
            *theirs, info = base.step(action)
            *ours, relabelled = env.step(labels[action])
            compare(env, base, labels, (ours[0], relabelled, *ours[1:]), (theirs[0], info, *theirs[1:]))
            known, over, turns = (theirs[0], info), theirs[2] or theirs[3], turns + 1


def compare(
    env: ShuffledActions, base: Any, labels: list[int], ours: tuple[Any, ...], theirs: tuple[Any, ...]
) -> None:
    """The turn of ``env`` is that of ``base`` with labels for ids."""
    (text, info, *rest), (known, original, *others) = ours, theirs
    assert rest == others
    names = dict(zip(original["legal_actions"], original["admissible_commands"], strict=True))
    pairs = sorted((labels[action], name) for action, name in names.items())
    assert info["legal_actions"] == [label for label, _ in pairs]
    assert info["admissible_commands"] == [name for _, name in pairs]
    assert info["action_mask"].dtype == np.int8
    assert np.flatnonzero(info["action_mask"]).tolist() == info["legal_actions"]
    assert np.array_equal(env.action_masks(), info["action_mask"].astype(bool))
    assert info["action_mask"].shape == original["action_mask"].shape
    changed = ("action_mask", "legal_actions", "admissible_commands")
    assert {key: value for key, value in info.items() if key not in changed} == {
        key: value for key, value in original.items() if key not in changed
    }
    if pairs:
        state = known.rpartition("\n\nLegal Actions:\n")[0]
        lines = "\n".join(f"  {label} -> {name}" for label, name in pairs)
        assert text == f"{state}\n\nLegal Actions:\n{lines}\n\nYour choice (action ID only):"
    else:
        assert text == known


def test_an_address_has_the_same_labels_whatever_else_may_be_drawn() -> None:
    alone = build(task_id=200_000_000)
    among = build(task_ids=[200_000_000, (600_000_000, 600_000_003)])
    for seed in range(5):
        text, info = alone.reset(seed=seed)
        again, wide = among.reset(seed=seed, options={"task_id": 200_000_000})
        assert again == text and wide["legal_actions"] == info["legal_actions"]
        # Hex has 121 actions, leduc 3.
        assert wide["action_mask"].tolist() == info["action_mask"].tolist() + [0] * 118
        _, reward, *_ = among.step(50)  # beyond leduc's ids: never legal
        assert reward == -0.01


def test_illegal_actions_are_told_in_labels() -> None:
    env = build(game="leduc_poker")
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
        assert (
            terminated
            and info["legal_actions"] == []
            and info["error"]["message"].endswith(f"legal: {legal[0]}, {legal[1]}")
        )


def test_raising_speaks_in_labels_too() -> None:
    env = build(game="leduc_poker", illegal="raise")
    env.reset(seed=8)
    fold = shuffled_labels(8, 3)[0]
    legal = sorted({0, 1, 2} - {fold})
    with pytest.raises(IllegalActionError, match=rf" {fold} was .* {legal[0]}, {legal[1]}$"):
        env.step(fold)
    assert env.step(legal[0])[-1]["turn"] == 1
    with pytest.raises(ArgumentError, match=r"'x'.*whole number"):
        env.step("x")


def test_names_that_begin_with_ids_begin_with_labels() -> None:
    base, env = make(game="backgammon"), build(game="backgammon")
    _, original = base.reset(seed=1)
    _, info = env.reset(seed=1)
    labels = shuffled_labels(1, base.action_space.n)
    moves = {
        int(labels[action]): name.split(" - ", 1)[1]
        for action, name in zip(original["legal_actions"], original["admissible_commands"], strict=True)
    }
    assert len(moves) > 5
    assert info["admissible_commands"] == [f"{label} - {moves[label]}" for label in info["legal_actions"]]


def test_before_the_first_reset_and_after_the_end_nothing_is_legal() -> None:
    env = build(game="nim", params={"pile_sizes": "1"})
    assert not env.action_masks().any() and env.action_masks().shape == (env.action_space.n,)
    text, info = env.reset(seed=1)
    assert text.startswith("Game over: nim") and info["legal_actions"] == []
    assert plain(info)["action_mask"] == [0] * env.action_space.n


def test_ansi_shows_labels() -> None:
    env = build(game="leduc_poker", render_mode="ansi")
    # Id 0 has label 2 and the other two are below it, so that whatever is legal has other ids.
    seed = next(s for s in range(1, 99, 2) if shuffled_labels(s, 3)[0] == 2)
    assert env.reset(seed=seed)[0] == env.render() != env.unwrapped.render()


def test_what_cannot_speak_in_labels_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"UnicodeText.*Discrete"):
        ShuffledActions(gym.make("GameSpielText-v0", game="kuhn_poker"))
    with pytest.raises(ArgumentError, match=r"ShuffledActions.*text"):
        ShuffledActions(TokenObservation(make(game="kuhn_poker"), lambda text: [], 9, 9, 9))


def test_every_permutation_is_as_likely() -> None:
    counts = Counter(tuple(shuffled_labels(seed, 3)) for seed in range(6000))
    # 1000 each are expected, with a standard deviation of (6000 * 1/6 * 5/6) ** 0.5 = 29.
    assert len(counts) == 6 and all(abs(count - 1000) < 5 * 29 for count in counts.values())
