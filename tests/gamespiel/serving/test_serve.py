"""The server itself: its methods and limits, what a request may be, and callers that are slow or leave."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_gym.games import TABLE
from gamespiel.cli import main
from gamespiel.endpoints.chat import ClosedError
from gamespiel.serving.actors import HostError
from gamespiel.serving.games import GameActor
from gamespiel.serving.hosts import is_own_name, name_caller
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import FullError, Sessions, UnknownEpisodeError
from task_gym.errors import ArgumentError
from tests.gamespiel.endpoints.models import Body, ModelStub
from tests.gamespiel.serving.servers import ask, call, connect, read_answer, request, serving

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from gamespiel.serving import http
from gamespiel.serving.app import parse_object

LEDUC = TABLE.index("leduc_poker") * 100_000_000
RESET = {"method": "reset", "kwargs": {"task_id": LEDUC, "seed": 0, "opponent": "random"}}
SESSION = json.loads((Path(__file__).parents[2] / "data" / "affinetes_session.json").read_text())


def test_health_readiness_and_methods(server: str) -> None:
    assert ask(f"{server}/health") == (200, {"status": "ok"})
    status, told = ask(f"{server}/ready")
    assert (status, told["status"], told["max_sessions"]) == (200, "ready", 1000)
    told = ask(f"{server}/methods")[1]
    named = [method["name"] for method in told["methods"]]
    assert named == ["reset", "step", "state", "stop", "evaluate"]
    assert [method["endpoint"] for method in told["methods"]] == [f"POST /{name}" for name in named]
    assert set(told["usage"]) == {"sdk_style", "restful_style"}


def test_recorded_sessions_are_answered_as_upstream_does(server: str) -> None:
    name = ""
    for entry in SESSION:
        theirs = entry["response"]
        if entry["call"] == "reset":
            asked = {key: entry[key] for key in ("task_id", "seed", "opponent")}
            status, ours = call(server, "reset", **asked)
            name = ours["episode_id"]
        else:
            status, ours = call(server, "step", action=entry["action"], episode_id=name)
        assert (status, ours["reward"]) == (200, pytest.approx(theirs["reward"]))
        assert (ours["done"], ours["truncated"]) == (theirs["done"], theirs["truncated"])
        head = "Legal Actions:\n"
        assert ours["observation"].partition(head)[2] == theirs["observation"].partition(head)[2]
        for key in ("task_id", "seed", "game_name", "llm_player_id", "opponent_type", "step_count"):
            assert ours["info"][key] == theirs["info"][key], key
        assert ours["info"].get("error") == theirs["info"].get("error")
        again = call(server, "state", episode_id=name)[1]
        assert again["info"]["legal_actions"] == ours["info"]["legal_actions"]
        mask = ours["info"]["action_mask"]
        bits = np.unpackbits(np.frombuffer(base64.b64decode(mask["bits"]), np.uint8))[: mask["length"]]
        assert np.flatnonzero(bits).tolist() == ours["info"]["legal_actions"]
    assert call(server, "stop", episode_id=name)[1]["stopped"] is True
    assert call(server, "stop", episode_id=name)[1]["stopped"] is False


@pytest.mark.parametrize(
    ("method", "kwargs", "status", "message"),
    [
        ("reset", {"task_id": -1}, 400, "task id: -1 was given"),
        ("reset", {"task_id": 0, "opponent": "policy:/etc/passwd"}, 400, "opponent: 'policy:/etc/passwd'"),
        ("reset", {"task_id": 0, "opponent": "open"}, 400, "opponent: 'open' was given"),
        ("reset", {"task_id": LEDUC, "opponent": "mcts:9999x9999"}, 400, "at most 1000000 rollouts"),
        ("reset", {"task_id": 0, "sed": 1}, 400, "did you mean 'seed'"),
        ("reset", {"task_id": 0, "self": 1}, 400, "argument of reset: 'self' was given"),
        ("sessions", {}, 404, "method: 'sessions' was given, allowed: reset, step, state, stop"),
    ],
)
def test_bad_calls_are_refused(
    server: str, method: str, kwargs: dict[str, Any], status: int, message: str
) -> None:
    answered, body = call(server, method, **kwargs)
    assert answered == status
    assert message in body["error"]


def test_numbers_that_are_none(server: str) -> None:
    huge = json.loads("1" + "0" * 400)
    for name, values in (
        ("temperature", (huge, -1, True, "1")),
        ("timeout", (True, "1")),
        ("seed", (huge, -1, True, "1", 0.5)),
        ("max_tokens", (huge, -1, True, "1", 0.5)),
    ):
        for value in values:
            status, result = call(server, "evaluate", task_id=0, **{name: value})
            assert (status, result["score"], result["success"]) == (200, 0.0, False)
            assert f"{name}: " in result["error"]
    for value in (huge, -1, 0, "x", "nan", [], "inf"):  # no call can take so long
        kwargs = {"task_id": 0, "timeout": value}
        status, body = ask(f"{server}/call", {"method": "evaluate", "kwargs": kwargs})
        assert (status, body["status"], body["error"]) == (200, "failed", None)
        assert "timeout: " in body["result"]["error"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_content_of_any_type_is_read_unless_a_page_sent_it(server: str, content_type: str) -> None:
    """A page can send these types without asking first, and a browser adds the header to what it sends."""
    for path, body in (("reset", RESET["kwargs"]), ("call", RESET)):
        status, answer = ask(f"{server}/{path}", body, content_type=content_type)
        assert (status, answer["result"]["info"]["task_id"]) == (200, LEDUC)
        for header in ({"origin": "null"}, {"sec_fetch_site": "same-site"}):
            assert ask(f"{server}/{path}", body, content_type=content_type, **header)[0] == 415
            assert ask(f"{server}/{path}", body, **header)[0] == 200
    assert ask(f"{server}/stop", b"", content_type=content_type)[0] == 200


def test_token_and_number_of_sessions() -> None:
    with serving(ServeOptions(port=0, max_sessions=1), token="s3cret") as (url, _):
        assert ask(f"{url}/call", RESET)[0] == 401
        assert ask(f"{url}/call", RESET, authorization="Bearer secret")[0] == 401
        assert ask(f"{url}/health")[0] == 200
        assert ask(f"{url}/call", RESET, authorization="Bearer s3cret")[0] == 200
        assert ask(f"{url}/ready")[0] == 503
        password = base64.b64encode(b"any:s3cret").decode()  # as a client sends http://any:s3cret@host
        status, body = ask(f"{url}/call", RESET, authorization=f"Basic {password}")
        assert (status, body["kind"]) == (503, "full")


def test_a_page_that_points_its_name_at_the_server_is_refused(server: str) -> None:
    status, body = ask(f"{server}/call", RESET, host="page.example.com:8000")
    assert status == 421
    assert "host: 'page.example.com:8000' was given" in body["error"]
    assert ask(f"{server}/call", RESET, host="localhost:8000")[0] == 200


def test_own_names() -> None:
    """Containers name one another by a word without a dot."""
    for name in ("127.0.0.1:8000", "[::1]:8000", "LOCALHOST", "game", "", "b.kept.org."):
        assert is_own_name(name, ("*.kept.org",)), name
    for other in ("a.example", "127.0.0.1.a.example:80", "127.0.0.1@a.example", "kept.org", "["):
        assert not is_own_name(other, ("*.kept.org",)), other


def test_hosts_that_evaluate_may_ask() -> None:
    # If only this machine can call, the caller could send the requests as well.
    assert ServeOptions().evaluation_hosts("") == ServeOptions(host="::1").evaluation_hosts("") == ("*",)
    assert ServeOptions(host="0.0.0.0").evaluation_hosts("t0ken") == ("*",)
    assert ServeOptions(host="0.0.0.0").evaluation_hosts("") == ()
    actor = GameActor(ServeOptions())
    asked = {"task_id": LEDUC, "seed": 0, "model": "m"}
    actor.evaluation_hosts = ()
    with pytest.raises(HostError, match=r"^base_url: 'http://h:1/v1' was given, allowed: none; .*--eval"):
        actor.evaluate(**asked, base_url="http://h:1/v1")
    actor.evaluation_hosts = ServeOptions(evaluate_hosts=("h", "*.Chutes.ai")).evaluation_hosts("t0ken")
    for host in ("169.254.169.254/v1", "h.evil.org/v1", "h@evil.org/v1", "chutes.ai"):
        with pytest.raises(HostError, match=r"allowed: hosts h, \*\.Chutes\.ai; "):
            actor.evaluate(**asked, base_url=f"http://{host}")
    actor.end()
    with pytest.raises(ClosedError, match=r"the server is ending"):  # so the host is allowed
        actor.evaluate(**asked, base_url="https://LLM.chutes.ai/v1")


def test_the_servers_key_goes_to_named_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUTES_API_KEY", "server")
    with ModelStub(lambda body: "1") as stub:
        for hosts, key, bearer in (
            ((), None, None),
            (("api.example.com", "127.0.0.*.org"), None, None),
            (("127.0.0.*",), None, "Bearer server"),
            (("127.0.0.1",), "", "Bearer server"),
            (("127.0.0.1",), "caller", "Bearer caller"),
        ):
            stub.keys.clear()
            actor = GameActor(ServeOptions(key_hosts=hosts))
            result = actor.evaluate(
                LEDUC, 0, model="m", base_url=stub.url, api_key=key, opponent="first", timeout=60
            )
            assert "error" not in result and set(stub.keys) == {bearer}


def test_an_episode_that_is_over_makes_room() -> None:
    """A server of one place plays any number of games, one after the other."""
    with serving(ServeOptions(port=0, max_sessions=1)) as (url, _):
        for seed in range(3):
            status, turn = call(url, "reset", task_id=LEDUC, seed=seed, opponent="random")
            assert status == 200
            while not turn["done"]:
                assert ask(f"{url}/ready")[0] == 503
                action = str(turn["info"]["legal_actions"][0])
                turn = call(url, "step", action=action, episode_id=turn["episode_id"])[1]
            assert ask(f"{url}/ready")[0] == 200
            assert call(url, "state", episode_id=turn["episode_id"])[1]["done"]
    # In euchre all may pass before the caller's seat has a turn: the game is over at its reset.
    actor = GameActor(ServeOptions(max_sessions=1))
    euchre, over = TABLE.index("euchre") * 100_000_000, 0
    for seed in range(100):
        turn = actor.reset(task_id=euchre, seed=seed, opponent="random")  # raises if there is no place
        over += turn["done"]
        assert actor.sessions.playing() == (0 if turn["done"] else 1)
        if not turn["done"]:
            actor.stop(turn["episode_id"])
    assert over > 0


def test_the_one_that_has_been_over_for_longest_goes_first() -> None:
    now = [0.0]
    sessions: Sessions[str] = Sessions(3, 9, 10.0, lambda: now[0])
    names = [sessions.add(lambda: "a")[0] for _ in range(3)]
    for time, name in ((1.0, names[2]), (2.0, names[0])):
        now[0] = time
        sessions.find(name).over = True
    assert sessions.playing() == 1
    sessions.add(lambda: "b")
    with pytest.raises(UnknownEpisodeError):
        sessions.find(names[2])
    sessions.add(lambda: "c")
    with pytest.raises(FullError, match=r"3 episodes are being played"):
        sessions.add(lambda: "d")
    assert sessions.find(names[1]).episode == "a"


def test_idle_episodes_are_dropped_and_busy_ones_kept() -> None:
    now = [0.0]
    sessions: Sessions[str] = Sessions(2, 9, 10.0, lambda: now[0])
    first, _ = sessions.add(lambda: "a")
    second, _ = sessions.add(lambda: "b")
    now[0] = 8.0
    entry = sessions.find(first)
    now[0] = 11.0  # the second was idle for 11 seconds, the first for 3
    with pytest.raises(UnknownEpisodeError, match=r"in the last 10 s"):
        sessions.find(second)
    now[0] = 30.0
    with entry.lock:
        assert sessions.playing() == 1 and sessions.find(first) is entry
    with pytest.raises(ZeroDivisionError):
        sessions.add(lambda: str(1 / 0))
    sessions.add(lambda: "d")  # the place of the failed one is free


def test_wrong_options_are_refused() -> None:
    assert ServeOptions().host == "127.0.0.1"
    for wrong, message in (
        ({"env": "games"}, "env: 'games' was given"),
        ({"port": 70000}, "port: 70000"),
        ({"max_sessions": 0}, "max_sessions: 0 was given, allowed: at least 1"),
        ({"idle_s": float("nan")}, "idle_s: nan"),
        ({"injector": "affine"}, "injector: 'affine' was given, allowed: with --env trace only"),
        ({"env": "trace", "upstream_search": True}, "upstream_search: True was given"),
    ):
        with pytest.raises(ArgumentError, match=message):
            ServeOptions(**wrong)  # type: ignore[arg-type]
    assert main(["serve", "--env", "games"]) == 2


# -- what a request may be ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow() -> Iterator[str]:
    with serving(ServeOptions(port=0, max_body=4096)) as (url, _):
        yield url


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"method": "reset", "kwargs": {"seed": NaN}}', "NaN was given, allowed: finite numbers"),
        (b'{"method": "evaluate", "kwargs": {"temperature": 1e999}}', "1e999 was given"),
        (b'{"method": "state", "kwargs": {"episode_id": "\\ud800"}}', "half a surrogate pair"),
        (b'{"method": "state", "kwargs": {"\\udc00": 1}}', "half a surrogate pair"),
        (b'{"method": "step", "kwargs": {"action": "\xff"}}', "is not in UTF-8"),
        (b'{"method": "reset", "kwargs": {"seed": ' + b"9" * 4000 + b"}}", "whole numbers 0"),
        (b"[" * 4000, "is no JSON"),
        (b'"reset"', "is no object"),
    ],
)
def test_what_is_not_ours_to_read_is_refused(narrow: str, body: bytes, message: str) -> None:
    status, said = ask(f"{narrow}/call", body)
    assert (status, said["kind"]) == (400, "refused")
    assert message in said["error"]


def test_whole_surrogate_pairs_and_escaped_backslashes_are_text() -> None:
    assert parse_object(b'{"a": "\\ud83c\\udccf"}') == {"a": "\U0001f0cf"}
    assert parse_object(b'{"a": "\\\\ud800"}') == {"a": "\\ud800"}
    assert parse_object(b'{"a": 1e308, "b": -0.5}') == {"a": 1e308, "b": -0.5}


def send(url: str, said: str) -> tuple[int, Any, bytes]:
    """Status and body of the answer to a request, and what comes after it until the server closes."""
    with connect(url) as client:
        client.sendall(said.encode())
        status, body = read_answer(client)
        return status, body, client.recv(1)


HEAD = "POST /call HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


def test_a_body_beyond_the_limit_is_refused_before_it_comes(narrow: str) -> None:
    for length in ("4097", "1000000000000"):
        status, body, rest = send(narrow, f"{HEAD}content-length: {length}\r\n\r\n")
        assert (status, rest) == (413, b"")  # and the connection is closed: nothing of the body is waited for
        assert "more than 4096 bytes" in body["error"]
    status, body, rest = send(narrow, f"{HEAD}transfer-encoding: chunked\r\n\r\n2000\r\n{' ' * 8192}\r\n")
    assert (status, rest) == (413, b"")


def test_a_length_that_is_stated_twice_is_refused(narrow: str) -> None:
    chunked = "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
    for path in ("/call", "/health", "/reset"):
        status, body, rest = send(narrow, HEAD.replace("/call", path) + chunked)
        assert (status, rest) == (400, b"")  # and nothing is read out of the rest
        assert body["error"] == "content-length and transfer-encoding were given, allowed: one of them"


def test_callers_are_told_apart_by_address() -> None:
    """One caller has as many addresses as it likes in its network of 64 bits."""
    names = {
        "::ffff:10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::/64", "2001:db8::ffff:1": "2001:db8::/64",
        "fe80::1%eth0": "fe80::/64", "": "",
    }  # fmt: skip
    assert {address: name_caller(address) for address in names} == names


# -- callers that are slow or leave ------------------------------------------------------------------------


EVALUATED = {"task_id": LEDUC, "seed": 0, "opponent": "first", "model": "m"}


WHOLE = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"
SLOW = b"POST /call HTTP/1.1\r\nhost: a\r\nx-slow: "
BODY = b"POST /call HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"


@pytest.mark.launch
@pytest.mark.sample
def test_a_request_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, half a head, and half a body after a request."""
    monkeypatch.setattr(http, "ARRIVAL", 0.5)
    with (
        serving(ServeOptions(port=0)) as (url, _),
        connect(url) as silent, connect(url) as slow, connect(url) as broken,
    ):  # fmt: skip
        slow.sendall(SLOW)
        broken.sendall(WHOLE + BODY)
        for client, answers in ((silent, 0), (slow, 0), (broken, 1)):
            heard = bytearray()
            while piece := client.recv(1 << 16):  # raises TimeoutError if the server goes on waiting
                heard += piece
            assert heard.count(b"HTTP/1.1 200") == answers
        assert call(url, "reset", task_id=LEDUC, seed=0, opponent="first")[0] == 200


@pytest.mark.launch
@pytest.mark.sample
def test_a_request_that_has_arrived_may_take_long(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ARRIVAL", 0.3)
    with ModelStub(lambda body: "1", pause=0.4) as stub:
        status, result = call(server, "evaluate", **EVALUATED, base_url=stub.url)
    assert (status, "error" in result) == (200, False)


def test_an_evaluation_ends_when_its_caller_leaves() -> None:
    asked, release = threading.Event(), threading.Event()

    def answer(body: Body) -> str:
        asked.set()
        release.wait(300)  # longer than the test: nothing but the caller's leaving ends the request
        return "1"

    with serving(ServeOptions(port=0)) as (url, server), ModelStub(answer) as stub:
        with connect(url) as client:
            client.sendall(request("evaluate", **EVALUATED, base_url=stub.url))
            assert asked.wait(60)
            assert not server.is_idle(0.0)
        assert server.is_idle(60.0)
        release.set()
        assert len(stub.asked) == 1
        assert ask(f"{url}/ready")[0] == 200
