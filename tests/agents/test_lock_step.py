"""The lock-step of ranks, as threads that write down what they gather."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from gamespiel.agents.ranks import RanksError
from gamespiel.agents.ranks.lock_step import LockStep, Want

LAYERS, FIRST_TRAINED = 3, 1
FORWARD, BACKWARD = [0, 1, 2], [2, 1]
"""The layers that a pass gathers: the first one has no gradient."""

Actions = Sequence[str]


class Group:
    """Ranks that meet at a barrier: in each round, and for each layer."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=60)
        self.wants = [0] * size
        self.gathered: list[list[int]] = [[] for _ in range(size)]

    def choose(self, rank: int, want: int) -> int:
        self.wants[rank] = want
        self.barrier.wait()
        chosen = max(self.wants)
        self.barrier.wait()  # or a fast rank would change its want before a slow one has read it
        return chosen


class Rank:
    """A rank that plays a list of actions, and notes which layers are whole while it computes.

    "forward" and "backward" are passes, "exchange" an exchange. "forward 1" fails behind layer 1, and
    "forward -1" fails before layer 1 is gathered.
    """

    def __init__(self, group: Group, number: int) -> None:
        self.group, self.number = group, number
        self.whole: set[int] = set()
        self.computed: list[str] = []
        self.out_of_memory = False
        choose: Callable[[int], int] = lambda want: group.choose(number, want)  # noqa: E731
        self.lock_step = LockStep(self, LAYERS, FIRST_TRAINED, choose)

    def gather(self, layer: int, on_begun: Callable[[], object]) -> None:
        if self.out_of_memory:
            self.out_of_memory = False
            raise MemoryError
        on_begun()
        self.group.barrier.wait()
        self.group.gathered[self.number].append(layer)
        assert layer not in self.whole
        self.whole.add(layer)

    def free(self, layer: int) -> None:
        self.whole.discard(layer)

    def reset(self) -> None:
        self.whole.clear()

    def play(self, actions: Actions) -> None:
        for action in actions:
            kind, _, fails_at = action.partition(" ")
            if kind == "exchange":
                self.lock_step.settle()
                assert not self.whole
                self.group.barrier.wait()
                continue
            self.lock_step.begin(Want[kind.upper()])
            for layer in FORWARD if kind == "forward" else BACKWARD:
                self.out_of_memory = fails_at == f"-{layer}"
                try:
                    self.lock_step.reach(layer)
                except MemoryError:
                    break
                assert layer in self.whole
                self.computed.append(f"{kind} {layer}")
                if kind == "backward" or fails_at != str(layer):
                    self.free(layer)
                if fails_at == str(layer):
                    break


def play(*actions: Actions) -> tuple[Group, list[Rank]]:
    """Lets each rank play its actions; returns what they did. A rank that waits in vain raises."""
    group, errors = Group(len(actions)), list[BaseException]()
    ranks = [Rank(group, number) for number in range(len(actions))]

    def run(rank: Rank, own: Actions) -> None:
        try:
            rank.play(own)
        except BaseException as error:
            errors.append(error)
            group.barrier.abort()

    threads = [threading.Thread(target=run, args=each) for each in zip(ranks, actions, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    assert all(own == group.gathered[0] for own in group.gathered)
    return group, ranks


def test_a_rank_serves_the_forwards_of_others_while_it_waits() -> None:
    group, (first, second) = play(["forward", "forward", "exchange"], ["exchange"])
    assert group.gathered[0] == 2 * FORWARD
    assert first.computed == 2 * [f"forward {layer}" for layer in FORWARD] and second.computed == []


def test_a_backward_pass_waits_for_the_forwards_of_others() -> None:
    """The second rank's forwards are served in the middle of the first one's way back."""
    group, (first, second) = play(
        ["forward", "backward", "exchange"], ["forward", "forward", "forward", "backward", "exchange"]
    )
    assert group.gathered[0] == 3 * FORWARD + BACKWARD
    assert first.computed.count("backward 1") == second.computed.count("backward 1") == 1


def test_three_ranks_with_unequal_work_come_to_the_end() -> None:
    """Before the exchange a rank has at most one forward, after it two. Two ranks have a backward pass."""
    group, ranks = play(
        ["forward", "exchange", "forward", "exchange"],
        ["exchange", "forward", "forward", "backward", "exchange"],
        ["forward", "exchange", "forward", "backward", "exchange"],
    )
    assert group.gathered[0] == FORWARD + 2 * FORWARD + BACKWARD
    assert [len(rank.computed) for rank in ranks] == [6, 8, 8]


@pytest.mark.parametrize("fails_at", ["0", "1", "2", "-0", "-1", "-2"])
def test_a_rank_that_failed_gathers_what_it_left(fails_at: str) -> None:
    """The second forward of the first rank is its repetition, for which the other waits in an exchange."""
    group, (first, second) = play([f"forward {fails_at}", "forward", "exchange"], ["forward", "exchange"])
    assert group.gathered[0] == 2 * FORWARD
    assert first.computed[-3:] == second.computed == [f"forward {layer}" for layer in FORWARD]


@pytest.mark.parametrize("fails_at", ["2", "1", "-2", "-1"])
def test_a_way_back_that_failed_is_gone_to_its_end(fails_at: str) -> None:
    """Its next exchange comes first, in which the other rank's whole way back ends too."""
    again = ["exchange", "forward", "backward", "exchange"]
    group, _ = play(["forward", f"backward {fails_at}", *again], ["forward", "backward", *again])
    assert group.gathered[0] == 2 * (FORWARD + BACKWARD)


def test_an_unexpected_layer_is_an_error() -> None:
    rank = Rank(Group(1), 0)
    with pytest.raises(
        RanksError, match="reads its layer 0, and all ranks expect no layer; allowed: a model"
    ):
        rank.lock_step.reach(0)
    rank.lock_step.begin(Want.FORWARD)
    with pytest.raises(RanksError, match="reads its layer 1, and all ranks expect layer 0"):
        rank.lock_step.reach(1)
