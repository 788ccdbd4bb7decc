"""Games on a server that fails: every fault ends one episode, and the next one is clean."""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from game_gym.backends import AffinetesBackend
from task_gym.errors import ArgumentError, BackendError, OpponentError
from task_gym.remote import Failure, Reply
from tests.game_gym.play import LEDUC, make
from tests.game_gym.test_golden import SESSION
from tests.task_gym.remote.stub import (
    CLOSING,
    QUESTION,
    WON,
    Stub,
    broken_json,
    closed,
    compressed,
    deep,
    hang_up,
    opened,
    result,
    run_stub,
    slow,
    status,
)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with run_stub() as server:
        yield server


@pytest.fixture(scope="module")
def server_and_env() -> Iterator[tuple[Stub, Any]]:
    """A server and an environment on it, which faults leave as they were."""
    with run_stub() as server:
        yield server, remote(server)


def remote(stub: Stub, **arguments: Any) -> Any:
    # A reset that is late is asked for again: a short limit would do that on a busy machine, too.
    defaults = {"timeout": 30.0, **({} if "game" in arguments else {"task_id": LEDUC})}
    return make(backend="affinetes", mode="url", base_url=stub.url, **defaults | arguments)


def play(env: Any) -> tuple[float, bool, bool, dict[str, Any]]:
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == [1, 2] and info["action_mask"].tolist() == [0, 1, 1]
    _, reward, terminated, truncated, info = env.step(1)
    return reward, terminated, truncated, info


def check_clean(env: Any) -> None:
    reward, terminated, truncated, info = play(env)
    assert (reward, terminated, truncated, info["result"]) == (pytest.approx(WON), True, False, "win")


def test_what_upstream_sends_is_mapped(stub: Stub) -> None:
    env = remote(stub)
    text, info = env.reset(seed=0)
    assert text.startswith("# Game Rules\nShort.")
    assert info["admissible_commands"] == ["Call", "Raise"]
    _, reward, terminated, _, info = env.step(2)
    assert (terminated, reward, info["score"], info["upstream_reward"]) == (True, *[pytest.approx(WON)] * 3)
    # From the closing text: returns 1 and -1, so scores 14/26 and 12/26.
    assert info["returns"] == [1.0, -1.0] and info["scores"] == pytest.approx([14 / 26, 12 / 26])
    assert "history" not in info and env.state is None
    assert remote(stub, rules=False).reset(seed=0)[0].startswith("Game: leduc_poker")


OTHER_IDS = "Legal Actions:\n  7 -> x\n\nYour choice"
FAULTS = {
    "500": (status(500), "answered with status 500"),
    "broken JSON": (broken_json, "sent no JSON"),
    "hung up": (hang_up, "broke the connection"),
    "slow": (slow, "did not answer step in 1 s"),
    "unknown": (status(404, '{"kind": "unknown", "error": "no such episode"}'), "no such episode"),
    "no object": (result([1]), "the response is no object"),
    "compressed": (compressed, "sent a compressed response: gzip"),
    "deep": (deep, "sent no JSON"),
    "long": (result({**opened("e1"), "observation": "x" * 65536 + QUESTION}), "at most 65536"),
    "other ids": (result({**opened("e1"), "observation": OTHER_IDS}), "another game"),
    "other score": (result({**closed("e1"), "reward": 3.0}), r"no number in \[0, 1\]: 3.0"),
    "a turn": (result({**closed("e1"), "observation": QUESTION}), "ends the game with a turn"),
    "other reward": (
        result({**closed("e1"), "observation": "Over.", "info": {"score": 1.0}}),
        "score 1.0 with reward 0.538",
    ),
    "other word": (
        result({**closed("e1"), "observation": CLOSING.replace("WIN", "LOSS")}),
        "'Result: LOSS' with score 0.538",
    ),
    "lower score": (result({**closed("e1"), "reward": 0.0}), r"score 0.0 with returns \[1.0"),
}

STATEMENTS = {
    "other result": (closed, {"result": "loss"}, r"result 'loss' with score 0\.538"),
    "other success": (closed, {"success": False}, "success False with score 0"),
    "returns that are no numbers": (closed, {"returns": ["1", "-1"]}, "returns .*, needed: 2 numbers"),
    "returns of NaN": (closed, {"returns": [float("nan"), 1.0]}, "returns .*nan.*, needed: 2 numbers"),
    "returns of three seats": (closed, {"returns": [1.0, -1.0, 0.0]}, "returns .*, needed: 2 numbers"),
    "returns that the text contradicts": (
        closed,
        {"returns": [2.0, -2.0]},
        r"returns \[2.0, .* \[1.0, -1.0\] in words",
    ),
    "other task": (opened, {"task_id": LEDUC + 1}, "plays task_id 200000001, and 200000000 was asked for"),
    "other seed": (opened, {"seed": 1}, "plays seed 1, and 0 was asked for"),
    "other game": (opened, {"game_name": "hex"}, "plays game_name 'hex', and 'leduc"),
    "other opponent": (opened, {"opponent_type": "mcts"}, "'mcts', and 'random' was"),
    "other seat": (opened, {"llm_player_id": 1}, "plays llm_player_id 1, and 0"),
    "refused": (opened, {"error": {"type": "invalid_action"}}, "refuses action 1, which it listed"),
}
FAULTS |= {
    name: (result({**begun("e1"), "info": info}), message)
    for name, (begun, info, message) in STATEMENTS.items()
}


WAITS = [pytest.mark.launch, pytest.mark.sample]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=WAITS if name == "slow" else []) for name in FAULTS]
)
def test_a_fault_in_a_step_ends_the_episode_and_the_next_is_clean(
    name: str, server_and_env: tuple[Stub, Any]
) -> None:
    (stub, env), (fault, message) = server_and_env, FAULTS[name]
    if name == "slow":
        env = remote(stub, timeout=1.0)
    stub.calls.clear()
    stub.faults = [None, fault]
    reward, terminated, truncated, info = play(env)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["result"], info["score"], info["legal_actions"]) == ("fault", None, [])
    assert re.search(message, info["fault"])
    assert [call for call in stub.calls if call != "stop"] == ["reset", "step"]  # the step is not repeated
    check_clean(env)


def test_a_response_without_an_end_is_given_up(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("task_gym.remote.client.MOST", 2000)  # the stub's own responses have about 500 bytes
    env = remote(stub)
    stub.faults = [None, result({**opened("e1"), "observation": "x" * 2000})]
    assert "sent more than 2000 bytes" in play(env)[3]["fault"]
    check_clean(env)


def test_recorded_sessions_are_played_as_here(stub: Stub) -> None:
    """Upstream's recorded responses through the real client: mask, names, reward, end and score are ours."""
    there: Any = None
    steps = 0
    for entry in SESSION:
        response = {**entry["response"], "episode_id": "e1"}
        if entry["call"] == "reset":
            arguments = {"task_id": entry["task_id"], "opponent": entry["opponent"], "reward": "upstream"}
            there, here = remote(stub, **arguments), make(**arguments)
            stub.faults = [result(response)]
            (_, theirs), (_, ours) = there.reset(seed=entry["seed"]), here.reset(seed=entry["seed"])
        elif "error" in response["info"]:  # illegal, so a client that has the mask does not send it
            continue
        else:
            stub.faults = [result(response)]
            action = int(re.findall(r"[0-9]+", entry["action"])[0])
            (_, *paid, theirs), (_, *outcome, ours) = there.step(action), here.step(action)
            assert paid == [pytest.approx(outcome[0]), *outcome[1:]]
            steps += 1
        for key in ("seat", "legal_actions", "admissible_commands", "score", "result", "returns"):
            assert theirs.get(key) == pytest.approx(ours.get(key), abs=1e-9), key
        assert theirs["action_mask"].tolist() == ours["action_mask"].tolist()
    assert steps >= 3


@pytest.mark.parametrize("name", ["500", "broken JSON", "hung up", "no object"])
def test_a_reset_is_repeated_three_times(name: str, server_and_env: tuple[Stub, Any]) -> None:
    stub, env = server_and_env
    stub.calls.clear()
    stub.faults = [FAULTS[name][0]] * 3
    check_clean(env)
    assert [call for call in stub.calls if call != "stop"] == ["reset"] * 4 + ["step"]
    stub.faults = [FAULTS[name][0]] * 4
    _, info = env.reset(seed=0)
    assert (info["result"], info["score"], info["legal_actions"]) == ("fault", None, [])
    check_clean(env)


def test_a_full_server_is_asked_again_and_a_step_that_did_not_happen_too(stub: Stub) -> None:
    full = status(503, '{"kind": "full", "error": "1 episodes are being played"}')
    stub.faults = [full, None, full]
    check_clean(remote(stub))
    assert stub.calls[:4] == ["reset", "reset", "step", "step"]


def test_a_server_that_is_away_at_the_start_is_an_error_and_later_a_fault(stub: Stub) -> None:
    gone = Stub()
    gone.close()
    with pytest.raises(BackendError, match=r"server http://127\.0\.0\.1:\d+ cannot be reached"):
        remote(gone).reset(seed=0)
    env = remote(stub)
    check_clean(env)
    env.reset(seed=0)
    stub.close()
    stub.faults = [hang_up]  # the connection that is still open
    assert env.step(1)[4]["result"] == "fault"
    with pytest.warns(UserWarning, match=r"is gone: 5 calls in a row failed"):
        assert env.reset(seed=0)[1]["result"] == "fault"
    assert env.reset(seed=0)[1]["result"] == "fault"  # after the pause, in which it is not tried


def test_what_a_server_cannot_do_is_a_named_error(stub: Stub) -> None:
    stub.faults = [status(400, '{"kind": "refused", "error": "task id: 5 was given"}')]
    with pytest.raises(BackendError, match=r"task id: 5 was given"):
        remote(stub).reset(seed=0)
    assert stub.calls == ["reset"]
    with pytest.raises(ArgumentError, match=r"seeding: 'evaluate' was given with backend 'affinetes'"):
        remote(stub, seeding="evaluate")
    with pytest.raises(ArgumentError, match=r"game: 'kuhn_poker' was given with backend 'affinetes'"):
        remote(stub, game="kuhn_poker").reset(seed=0)
    with pytest.raises(OpponentError, match=r"'open' was given with backend 'affinetes'"):
        remote(stub, opponent="open").reset(seed=0)
    # Upstream would play "random" and not say so.
    with pytest.raises(OpponentError, match=r"'first' was given, which this server does not know"):
        remote(stub, opponent="first").reset(seed=0)


@pytest.mark.launch
@pytest.mark.sample
def test_the_requests_of_a_round_are_under_way_together(stub: Stub) -> None:
    pytest.importorskip("torch")
    from gamespiel.agents.vec_env import TextVecEnv

    # The barrier lets no step pass before all 64 have arrived: one after another would break it.
    envs = TextVecEnv([lambda: remote(stub, timeout=60.0)] * 64)
    envs.reset()
    stub.gate = threading.Barrier(64)
    _, rewards, dones, infos = envs.step([1] * 64)
    assert dones.all() and [info["result"] for info in infos] == ["win"] * 64
    assert rewards == pytest.approx(WON)
    assert stub.most == 64
    envs.close()


def test_upstreams_goofspiel_is_a_fault_from_the_first_turn_on(stub: Stub) -> None:
    """As its server words a turn in which both are to move."""
    waiting = "Game: goofspiel\nYou are Player 0.\n\nCurrent State:\n-\n\nWaiting for Player -2 to move..."
    stub.faults = [result({**opened("e1"), "observation": waiting})]
    _, info = remote(stub, task_id=0).reset(seed=0)
    assert (info["result"], info["score"], info["legal_actions"]) == ("fault", None, [])
    assert "no legal actions in goofspiel, whose moves are simultaneous: upstream's cannot" in info["fault"]


def test_an_error_of_tls_is_a_fault(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*arguments: Any, **more: Any) -> None:
        raise ssl.SSLError("bad record")

    env = remote(stub)
    env.reset(seed=0)
    monkeypatch.setattr("httpx.AsyncClient.post", fail)
    assert re.search("failed: SSLError: .*bad record", env.step(1)[4]["fault"])


def test_a_loop_runs_in_the_thread_already(stub: Stub) -> None:
    """As in a notebook."""

    async def main() -> None:
        assert play(remote(stub))[3]["result"] == "win"

    asyncio.run(main())


def test_a_forfeit_of_another_seat_places_it_last() -> None:
    """Returns of 3 and 3 are a draw, or a win if the other seat gave the game up: it is last then."""
    backend: Any = AffinetesBackend(object(), "openenv", True)  # type: ignore[arg-type]
    backend._variant = SimpleNamespace(players=2, zero_sum=False, low=0.0, high=10.0)
    for score, ended, fits in (
        (0.5, "draw", True),
        (1.0, "win", True),
        (1.0, "draw", False),
        (0.0, "loss", False),
    ):
        reply = Reply("", score, True, False, "e1", {"result": ended, "success": score > 0.5})
        with nullcontext() if fits else pytest.raises(Failure, match="the server states"):
            backend._check_ending(reply, score, [3.0, 3.0], "draw")
