"""A group of environments: calls that may be made twice, and episodes that are played again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from task_gym import opponents
from task_gym.env import OUTSIDE
from task_gym.errors import EpisodeError
from task_gym.workers import Call, EnvGroup, Frame, Slots
from task_gym.workers.group import digest
from tests.task_gym.workers.toys import Walk


def make_group(count: int = 2) -> tuple[EnvGroup, list[Walk]]:
    """Returns a group, and its environments."""
    walks = [Walk() for _ in range(count)]
    return EnvGroup([lambda walk=walk: walk for walk in walks]), walks  # type: ignore[misc]


def one(group: EnvGroup, call: Call) -> Frame:
    (frame,) = group.advance([call])
    assert isinstance(frame, Frame), frame
    return frame


def recorded(group: EnvGroup) -> tuple[Slots, list[Call]]:
    """Returns a slot of the group, and its calls so far."""
    seen: list[Call] = []

    def advance(calls: Any) -> Any:
        seen.extend(calls)
        return iter(group.advance(calls))

    return Slots(advance, 1), seen


def content(frame: Frame) -> Any:
    """Returns a frame without what it cost."""
    return repr(frame._replace(replayed=0, replay_seconds=0.0))


def test_a_slot_steps_once_repeats_itself_and_replays() -> None:
    group, (walk,) = make_group(1)
    frames = [one(group, Call(0, 7, None, (1, 2, 0)[:count])) for count in range(3)]
    assert (walk.resets, walk.steps) == (1, 2) and [frame.replayed for frame in frames] == [0, 0, 0]
    assert one(group, Call(0, 7, None, (1, 2))) is frames[2]  # asked twice: nothing moves
    assert (walk.resets, walk.steps) == (1, 2)
    back = one(group, Call(0, 7, None, (1,)))  # it is behind, so it begins anew
    assert content(back) == content(frames[1]) and (walk.resets, walk.steps) == (2, 3)
    fresh, (other,) = make_group(1)
    ahead = one(fresh, Call(0, 7, None, (1, 2)))  # one of two steps was made before, elsewhere
    assert content(ahead) == content(frames[2]) and ahead.replayed == 1
    assert (other.resets, other.steps) == (1, 2)
    # Other seeds, options and actions are other episodes.
    for call in (Call(0, 8, None, (1, 2)), Call(0, 7, {}, (1, 2)), Call(0, 7, None, (2, 2))):
        assert one(fresh, call).observation != ahead.observation and other.resets > 1


def test_an_error_is_that_turns_alone_and_comes_again() -> None:
    group, walks = make_group(2)
    for _ in range(2):
        failed, good = group.advance([Call(0, 1, None, (1, 3)), Call(1, 1, None, (1, 2))])
        assert isinstance(failed, ValueError) and str(failed) == "action 3 after [1]"
        assert isinstance(good, Frame)
    assert walks[0].resets == 2 and walks[1].resets == 1
    assert content(one(group, Call(0, 1, None, (1, 2)))) == content(good)


def test_another_episode_in_a_replay_is_a_fault() -> None:
    group, _ = make_group(1)
    first = one(group, Call(0, 7))
    right = one(make_group(1)[0], Call(0, 7, None, (1,), digest(first.observation)))
    assert "fault" not in right.info
    wrong = one(make_group(1)[0], Call(0, 7, None, (1,), digest("something else")))
    ending = (wrong.truncated, wrong.reward, wrong.info["result"], wrong.info["score"])
    assert ending == (True, 0.0, "fault", None)
    assert wrong.info["fault"] == "a worker was lost, and the episode was another one when it was replayed"
    after = one(group, Call(0, 7, None, (1,), digest("something else")))
    assert "fault" not in after.info  # a step is no replay


def test_an_opponent_that_cannot_be_replayed_ends_the_episode_as_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Oracle(Walk):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            return text, {**info, "opponent": "oracle:delphi"}

    monkeypatch.setattr(opponents, "REGISTRY", {})
    why = "it answers as it likes"
    opponents.register_opponent("oracle", lambda seating: None, takes_argument=True, why_not_replayable=why)  # type: ignore[arg-type, return-value]
    group = EnvGroup([Oracle])
    assert "fault" not in one(group, Call(0, 7)).info
    assert "fault" not in one(group, Call(0, 7, None, (1,))).info  # it goes on as long as it lives
    lost = one(EnvGroup([Oracle]), Call(0, 7, None, (1, 2)))
    assert lost.info["fault"] == (
        f"a worker was lost, and the episode cannot be played again: opponent 'oracle:delphi': {why}"
    )
    assert lost.truncated and lost.info["result"] == "fault"
    # Before its first move nothing is lost.
    assert "fault" not in one(EnvGroup([Oracle]), Call(0, 7, None, ())).info


def test_environments_that_wait_have_a_thread_each() -> None:
    both = threading.Barrier(2, timeout=60)

    class Waiting(Walk):
        def step(self, action: int) -> Any:
            both.wait()
            return super().step(action)

    group = EnvGroup([Waiting, Waiting], waits=True)
    group.advance([Call(0, 1), Call(1, 2)])
    assert all(isinstance(f, Frame) for f in group.advance([Call(0, 1, None, (1,)), Call(1, 2, None, (1,))]))
    group.close()


def test_slots_keep_addresses_and_draw_as_the_environment_would() -> None:
    alone = Walk()
    slots, seen = recorded(make_group(1)[0])
    with pytest.raises(EpisodeError, match=OUTSIDE):
        slots.step([0], [1])
    for seed in (7, None, None):  # the second and the third are drawn from the first one's generator
        (frame,) = slots.reset([0], [seed], [None])
        assert frame.observation == alone.reset(seed=seed)[0]
        for action in (1, 2, 0):
            (frame,) = slots.step([0], [action])
            assert frame[:5] == alone.step(action)
    assert slots.frames == [frame]
    assert seen[-1].actions == (1, 2, 0) and isinstance(seen[-1].seed, dict)
    again = one(make_group(1)[0], seen[-1])  # so it is an address
    assert content(again) == content(frame) and again.replayed == 2
    slots, seen = recorded(make_group(1)[0])  # a first reset without a seed has one too
    (frame,) = slots.reset([0], [None], [None])
    assert one(make_group(1)[0], seen[0]).observation == frame.observation
