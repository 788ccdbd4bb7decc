"""The benchmark: deals that never change, anchors, and who enters where."""

from __future__ import annotations

from hashlib import sha256

import pytest

from game_gym.games import TABLE
from gamespiel.errors import InvalidValueError
from gamespiel.leaderboard.agents import list_tasks, read_agents
from gamespiel.leaderboard.benchmark import (
    GAMES,
    TASK_NAMES,
    DealSet,
    explain_refusal,
    load_task,
    parse_deals,
    resolve_opponent,
)
from gamespiel.tracks import MASKED
from trace_gym.programs.builtin.tasks import split

SEEDS = {"leduc_poker": 3738917040, "chess": 3188123317, "trace/strings": 3945051130}
"""The first 8 bytes of SHA-256 of "gamespiel-1/fixed/deal/TASK/0", modulo 2**32 - 200."""

LATER = "2026-12-24:" + "0123456789abcdef" * 4


def test_deals_follow_from_their_name_by_sha_256() -> None:
    for name in ("fixed", LATER):
        digest = sha256(f"gamespiel-1/{name}/deal/leduc_poker/0".encode()).digest()
        hand = DealSet(name).list_hands("leduc_poker", 0)[0]
        assert hand.seed == int.from_bytes(digest[:8], "big") % (2**32 - 200)
        # leduc_poker has index 2 in the table.
        assert hand.task_id == 200_000_000 + int.from_bytes(digest[8:16], "big") % 100_000_000


def test_the_fixed_deals_never_change() -> None:
    assert {task: DealSet().list_hands(task, 0)[0].seed for task in SEEDS} == SEEDS
    assert sorted(GAMES) == sorted(TABLE) and len(TASK_NAMES) == 22 + 16


def test_every_seat_meets_every_anchor_on_the_same_deal() -> None:
    hands = DealSet().list_hands("hearts", 3)
    assert len(hands) == 12 and {hand.seat for hand in hands} == {0, 1, 2, 3}
    assert len({hand.opponent for hand in hands}) == 3
    assert len({(hand.seed, hand.task_id) for hand in hands}) == 1
    assert [hand.opponent for hand in DealSet().list_hands("goofspiel", 0)] == ["random"] * 2 + ["first"] * 2
    assert [hand.opponent for hand in DealSet().list_hands("2048", 0)] == ["none"]


def test_the_first_ten_deals_of_a_family_have_all_levels() -> None:
    found = [split(DealSet().list_hands("trace/strings", deal)[0].task_id) for deal in range(10)]
    assert found == [("strings", level) for level in range(1, 11)]


def test_a_part_of_a_budget_is_that_part_of_its_rollouts() -> None:
    """othello has 1000 x 20: a hundredth are 200 rollouts. liars_dice has 3000 x 200: 6,000 are 3000 x 2."""
    othello, dice = (
        load_task(DealSet().list_hands(game, 0)[0].task_id).variant for game in ("othello", "liars_dice")
    )
    assert resolve_opponent("mcts/100", othello) == "mcts:200x1"
    assert resolve_opponent("mcts/100", dice) == "mcts:3000x2"
    assert resolve_opponent("mcts/1000000", othello) == "mcts:2x1"
    assert resolve_opponent("mcts:7x2", othello) == "mcts:7x2"
    assert resolve_opponent("random", dice) == "random"


def test_searches_enter_what_they_can_play() -> None:
    for game in ("goofspiel", "2048", "solitaire", "trace/strings"):
        assert explain_refusal("mcts/100", game)
    assert "moves are simultaneous" in explain_refusal("mcts:5", "goofspiel")
    assert "more than 0.3 s" in explain_refusal("mcts", "chess") and not explain_refusal(
        "mcts", "leduc_poker"
    )
    entry = read_agents(["ismcts/100"], MASKED)[0].to_dict(MASKED)
    assert list_tasks(entry, MASKED) == ["leduc_poker", "hearts", "gin_rummy"]


def test_deals_have_a_date_and_a_hash() -> None:
    assert parse_deals(LATER).name == LATER
    wrong = ("", "Fixed", "2026-12-24", "2026-12-24:xyz", "2026-02-30:" + "0" * 64, "2026-12-24:" + "A" * 64)
    for text in wrong:
        with pytest.raises(InvalidValueError, match="allowed: fixed, or DATE:HASH"):
            parse_deals(text)


@pytest.mark.parametrize(
    ("names", "track", "said"),
    [
        (["randm"], "masked", "no such run, and no such agent.*did you mean 'random'"),
        (["random", "random"], "masked", "has 'random' twice"),
        (["openai:m@http://127.0.0.1:1/v1"], "masked", "writes replies"),
        (["model:tyni"], "masked", "did you mean 'tiny'"),
        (["random"], "maskd", "did you mean 'masked'"),
    ],
)
def test_agents_that_are_none(names: list[str], track: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        read_agents(names, track)
