"""Callers that leave, searches and rows that take long, and callers that keep all places for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from game_gym.games import TABLE
from game_gym.opponents import search_processes
from task_gym.caller import CALLER, Caller, CallerLeftError
from task_gym.processes import OFFERED
from tests.gamespiel.endpoints.models import ModelStub
from tests.gamespiel.serving.servers import ask, call, connect, read_answer, request, serving, wait_until

pytest.importorskip("uvicorn")

from gamespiel.serving import sessions
from gamespiel.serving.games import GameActor
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import FullError, Sessions, UnknownEpisodeError

pytestmark = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")

CHESS, LEDUC = (TABLE.index(game) * 100_000_000 for game in ("chess", "leduc_poker"))

# In chess, player 1 begins: the opponent of seat 0, whose move with this budget takes an hour.
ENDLESS: dict[str, Any] = {"task_id": CHESS, "seed": 0, "opponent": "mcts:1000x1000"}


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    search_processes.close()


@pytest.mark.launch
@pytest.mark.sample
def test_searches_end_when_their_callers_leave() -> None:
    evaluation = request("evaluate", **ENDLESS, model="m", base_url="http://127.0.0.1:9/v1")
    with serving(ServeOptions(port=0)) as (url, server):
        clients = [connect(url) for _ in range(40)]
        for client in clients:
            client.sendall(evaluation if client is clients[0] else request("reset", **ENDLESS))
        lanes = server._calls, server._evaluations
        wait_until(lambda: sum(len(lane._under_way) for lane in lanes) == 40)
        assert not server.is_idle(0.0)
        for client in clients:
            client.close()
        assert server.is_idle(60.0)  # a search of an hour has ended
        assert call(url, "reset", task_id=LEDUC, seed=1, opponent="mcts")[0] == 200
        assert ask(f"{url}/ready")[1]["sessions"] == 1  # nothing is kept of those who left


@pytest.mark.launch
@pytest.mark.sample
def test_a_search_beyond_its_time_is_a_fault_with_a_reason() -> None:
    with serving(ServeOptions(port=0, search_s=0.3)) as (url, server):
        status, turn = call(url, "reset", **ENDLESS)
        assert (status, turn["done"], turn["truncated"]) == (200, True, True)
        assert (turn["info"]["result"], turn["info"]["score"]) == ("fault", None)
        assert "more than 0.3 s of processor time" in turn["info"]["fault"]
        with ModelStub(lambda body: "1") as stub:
            result = call(url, "evaluate", **ENDLESS, model="m", base_url=stub.url)[1]
        assert "more than 0.3 s of processor time" in result["error"]
        assert server.is_idle(0.0)


def play(search_s: float | None, opponent: str, seed: int) -> list[Any]:
    """Returns the turns of a game of Leduc poker in which the caller always takes the first legal action."""
    actor = GameActor(ServeOptions())
    turns = []
    CALLER.set(None if search_s is None else Caller(search_s, each=True))
    try:
        turns.append(actor.reset(LEDUC, seed, opponent))
        while not turns[-1]["done"]:
            first = str(turns[-1]["info"]["legal_actions"][0])
            turns.append(actor.step(first, turns[-1]["episode_id"]))
            search_processes.close()  # an idle process that is killed is replaced, and makes the same moves
    finally:
        CALLER.set(None)
    return [{**turn, "episode_id": None} for turn in turns]


OTHERS = [pytest.param(name, marks=pytest.mark.families) for name in ("mcts-python:4x1", "ismcts:4")]


@pytest.mark.launch
@pytest.mark.parametrize("opponent", [pytest.param("mcts:4x1", marks=pytest.mark.sample), *OTHERS])
def test_a_search_that_ends_in_time_makes_the_same_moves(opponent: str) -> None:
    """With so few simulations the moves depend on the generators' positions."""
    for seed in range(2):
        assert play(60.0, opponent, seed) == play(None, opponent, seed)


def test_a_step_that_was_given_up_ends_its_episode() -> None:
    actor = GameActor(ServeOptions())
    begun = actor.reset(CHESS, 1, "mcts:1000x1000")  # the caller has the first move
    caller = Caller()
    token = CALLER.set(caller)
    caller.leave()
    try:
        with pytest.raises(CallerLeftError):
            actor.step(str(begun["info"]["legal_actions"][0]), begun["episode_id"])
    finally:
        CALLER.reset(token)
    assert actor.state(begun["episode_id"])["info"]["error"]["type"] == "episode_not_found"


def test_a_caller_has_so_many_episodes_and_others_have_theirs() -> None:
    begin = request("reset", task_id=LEDUC, seed=0, opponent="random")
    with serving(ServeOptions(port=0, max_sessions=4)) as (url, _), connect(url) as one:
        statuses = []
        for _ in range(3):
            one.sendall(begin)
            statuses.append(read_answer(one))
        assert [status for status, _ in statuses] == [200, 200, 503]
        assert statuses[-1][1]["kind"] == "full"
        assert "this caller plays 2 episodes" in statuses[-1][1]["error"]
        with connect(url, "127.0.0.2") as other:
            other.sendall(begin)
            assert read_answer(other)[0] == 200


def test_abandoned_episodes_make_room() -> None:
    now = [0.0]
    episodes: Sessions[str] = Sessions(4, 3, 3600.0, lambda: now[0])
    hog = [episodes.add(lambda: "hog", "hog")[0] for _ in range(3)]
    with pytest.raises(FullError, match=r"this caller plays 3 episodes"):
        episodes.add(lambda: "hog", "hog")
    episodes.add(lambda: "other", "other")
    with pytest.raises(FullError, match=r"4 episodes are being played"):
        episodes.add(lambda: "other", "other")
    now[0] = 30.0
    for name in hog[1:]:
        episodes.find(name)
    now[0] = sessions.ABANDONED  # only the first was left alone for so long
    episodes.add(lambda: "third", "third")
    with pytest.raises(UnknownEpisodeError):
        episodes.find(hog[0])
    with pytest.raises(FullError):
        episodes.add(lambda: "third", "third")
    # Those of the caller that has most go, and not the other's, which is idle for longer.
    now[0] = 30.0 + sessions.ABANDONED
    episodes.add(lambda: "third", "third")
    assert [item.owner for item in episodes._sessions.values()] == ["hog", "other", "third", "third"]


def test_calls_about_one_episode_do_not_take_all_threads() -> None:
    episodes: Sessions[str] = Sessions(1, 1, 3600.0)
    entry = episodes.find(episodes.add(lambda: "a")[0])

    def take_turn() -> None:
        with episodes.turn(entry):
            pass

    with ThreadPoolExecutor(8) as threads:
        with entry.lock:
            waiting = [threads.submit(take_turn) for _ in range(sessions.WAITING)]
            wait_until(lambda: entry.waiting == sessions.WAITING)
            with pytest.raises(FullError, match=r"4 calls about this episode wait"):
                take_turn()
        for future in waiting:
            future.result(60)
