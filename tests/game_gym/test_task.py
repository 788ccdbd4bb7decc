"""Task ids and sets of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_gym.games import DECLARED, TABLE
from game_gym.task import CONFIGS, TASK_LIMIT, TaskSet, decode, encode, split
from task_gym.errors import ArgumentError, GameError, TaskGymError, TaskIdError
from tests.game_gym.play import LEDUC

CONFIG_IDS = st.integers(0, CONFIGS - 1)


@given(st.sampled_from(TABLE), CONFIG_IDS)
def test_encode_and_split_are_inverse(game: str, config: int) -> None:
    assert split(encode(game, config)) == (game, config)


@given(st.integers(0, TASK_LIMIT - 1))
def test_every_id_is_split_and_ids_a_table_apart_are_one_game(task_id: int) -> None:
    game, config = split(task_id)
    again = encode(game, config)
    assert again % CONFIGS == task_id % CONFIGS
    assert (task_id - again) % (22 * CONFIGS) == 0


def test_index_wraps_after_22_games() -> None:
    assert split(24 * CONFIGS + 5) == ("leduc_poker", 5)
    task = decode(24 * CONFIGS + 5)
    assert task.task_id == 24 * CONFIGS + 5
    assert task.variant is decode(LEDUC).variant
    assert task.variant.params["players"] == 2


@pytest.mark.parametrize("task_id", [-1, 2**62, 1.0, "200000000", True, None, [LEDUC]])
def test_what_is_no_task_id(task_id: object) -> None:
    with pytest.raises(TaskIdError, match="allowed: whole numbers 0"):
        decode(task_id)  # type: ignore[arg-type]


def test_the_table_is_frozen_and_declared() -> None:
    assert len(TABLE) == 22
    # The ends, and those upstream's ids in the recorded games point to.
    expected = {0: "goofspiel", 2: "leduc_poker", 6: "hex", 16: "phantom_ttt", 21: "oware"}
    assert {index: TABLE[index] for index in expected} == expected
    assert set(TABLE) <= set(DECLARED)
    assert [decode(index * CONFIGS).variant.spec.name for index in range(22)] == list(TABLE)


def test_a_table_game_without_a_declaration_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(DECLARED, "gin_rummy")
    with pytest.raises(TaskIdError, match="a task of 'gin_rummy', which has no declaration yet; declared"):
        decode(3 * CONFIGS)
    with pytest.raises(TaskIdError, match="300000000 was given, a task of 'gin_rummy'"):
        TaskSet(task_ids=[(LEDUC, 300_000_000)])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task_id": LEDUC, "game": "kuhn_poker"}, ArgumentError, "task_id, game was given"),
        ({"task_id": LEDUC, "params": {}}, ArgumentError, "params: {} was given with task_id"),
        ({"task_ids": []}, TaskIdError, r"task_ids: \[\] was given, allowed: a non-empty list"),
        ({"task_ids": (LEDUC, LEDUC + 9)}, TaskIdError, "allowed: a non-empty list of ids"),
        ({"task_ids": [(LEDUC + 1, LEDUC)]}, TaskIdError, "first <= last"),
        ({"task_ids": [(LEDUC,)]}, TaskIdError, r"allowed: \(first, last\)"),
        ({"task_ids": [(0, TASK_LIMIT - 1)] * 2}, TaskIdError, "ids in all"),
        ({"game": "leduc"}, GameError, "'leduc' was given.*did you mean 'leduc_poker'"),
        ({"game": "breakthrough", "params": {"row": 6}}, GameError, "did you mean 'rows'"),
        ({"game": "kuhn_poker", "params": {"player": 3}}, GameError, "did you mean 'players'"),
        ({"game": "kuhn_poker", "params": {"players": 5}}, GameError, "5 was given, allowed: 2, 3, 4"),
        ({"game": "tic_tac_toe", "params": {"x": 1}}, GameError, "'x' was given, allowed: nothing"),
    ],
)
def test_bad_sets_are_named(arguments: dict[str, object], error: type[TaskGymError], message: str) -> None:
    with pytest.raises(error, match=message):
        TaskSet(**arguments)  # type: ignore[arg-type]


def test_drawing_is_uniform_over_ids_and_stays_inside() -> None:
    tasks = TaskSet(task_ids=[LEDUC + 50, (LEDUC, LEDUC + 2)])
    generator = np.random.default_rng(0)
    drawn = Counter(tasks.draw(lambda: generator) for _ in range(4000))
    assert set(drawn) == {LEDUC, LEDUC + 1, LEDUC + 2, LEDUC + 50}
    # 4000 draws of probability 1/4: standard deviation sqrt(4000 * 3/16) = 27.4, and five of those.
    assert all(abs(count - 1000) < 137 for count in drawn.values())


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted), min_size=1, max_size=5))
def test_a_set_draws_what_it_holds(ranges: list[list[int]]) -> None:
    tasks = TaskSet(task_ids=[(LEDUC + first, LEDUC + last) for first, last in ranges])
    inside = {LEDUC + c for first, last in ranges for c in range(first, last + 1)}
    generator = np.random.default_rng(1)
    assert {tasks.draw(lambda: generator) for _ in range(20)} <= inside
    for task_id in range(LEDUC - 1, LEDUC + 101):
        assert (task_id in tasks) == (task_id in inside)
    assert all(tasks.task(task_id).task_id == task_id for task_id in inside)


def test_ranges_are_not_written_out() -> None:
    tasks = TaskSet(task_ids=[(LEDUC, LEDUC + CONFIGS - 1), 24 * CONFIGS])
    assert len(tasks.variants) == 1
    assert str(tasks) == "200000000 … 299999999, 2400000000"


def test_a_single_task_draws_nothing() -> None:
    def generator() -> np.random.Generator:
        raise AssertionError

    assert TaskSet(task_id=LEDUC).draw(generator) == LEDUC
    assert TaskSet(task_ids=[LEDUC]).draw(generator) == LEDUC
    named = TaskSet(game="kuhn_poker")
    assert named.draw(generator) is None
    assert named.task(None).variant is named.variants[0]


def test_encode_names_its_errors() -> None:
    with pytest.raises(GameError, match="'kuhn_poker' was given, which is not in the task-id table"):
        encode("kuhn_poker", 0)
    with pytest.raises(TaskIdError, match="config id: 100000000 was given, allowed: 0 … 99999999"):
        encode("hex", CONFIGS)
