"""A server answers as upstream's does, plays as local play does, and asks about traces where it can."""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from game_gym.games import TABLE
from gamespiel.cli import main
from gamespiel.serving.games import GameActor
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.traces import TraceActor
from task_gym.caller import CALLER, Caller, CallerLeftError
from task_gym.errors import ArgumentError, OptionError, TaskIdError
from task_gym.processes import OFFERED
from task_gym.remote.protocol import Failure, read_reply, read_result
from tests.game_gym.play import LEDUC, episode, make
from tests.gamespiel.endpoints.models import ModelStub
from tests.gamespiel.runs import mark_samples
from tests.gamespiel.serving.servers import ask, call, served, serving
from tests.trace_gym.rows import PATH
from trace_gym.backends import make_backend
from trace_gym.envs.text import CodeTraceEnv

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from gamespiel.serving import app
from gamespiel.serving import games as game_calls
from gamespiel.serving import traces as trace_calls
from gamespiel.serving.lanes import Lane
from gamespiel.serving.trace_processes import TraceProcesses


@pytest.fixture(scope="module")
def traces() -> Iterator[str]:
    with serving(ServeOptions(env="trace", port=0)) as (url, _):
        yield url


def test_methods_have_addresses_of_their_own(server: str) -> None:
    asked = {"task_id": LEDUC, "seed": 3, "opponent": "random"}
    status, begun = ask(f"{server}/reset", asked)
    turn = begun["result"]
    assert (status, begun["status"], begun["error"]) == (200, "success", None)
    assert turn["observation"] == call(server, "reset", **asked)[1]["observation"]
    step = {"args": ["1"], "kwargs": {"episode_id": turn["episode_id"]}}
    assert ask(f"{server}/step", step)[1]["result"]["info"]["step_count"] >= 1
    drawn = ask(f"{server}/reset", {"opponent": "random"})[1]["result"]["info"]
    assert drawn["task_id"] >= 0 and drawn["seed"] >= 0
    assert ask(f"{server}/state", b" ")[1]["result"]["info"]["error"]["type"] == "no_episode_id"
    assert ask(f"{server}/step", b"{")[0] == 400
    assert ask(f"{server}/rest", asked)[0] == 404


def test_arguments_come_in_upstreams_order() -> None:
    """As ``env.py`` of upstream's images declares them; ours beyond them come last."""
    game, trace = GameActor(ServeOptions()), TraceActor(ServeOptions(env="trace"))
    listed = [list(inspect.signature(method).parameters) for method in (game.reset, trace.reset)]
    assert listed == [["task_id", "seed", "opponent", "seeding"], ["task_id", "seed"]]
    assert list(inspect.signature(game.step).parameters) == ["action", "episode_id"]
    asked = ["model", "base_url", "timeout", "temperature", "api_key"]
    assert list(inspect.signature(game.evaluate).parameters) == [
        "task_id", "seed", *asked, "opponent", "collect_logprobs", "max_tokens", "seeding",
    ]  # fmt: skip
    assert list(inspect.signature(trace.evaluate).parameters) == [*asked, "seed", "task_id", "max_tokens"]
    signature = inspect.signature(game.evaluate).parameters
    assert [signature[name].default for name in ("model", "base_url", "temperature", "api_key")] == [
        "deepseek-ai/DeepSeek-V3", "https://llm.chutes.ai/v1", None, None,
    ]  # fmt: skip
    assert game.reset(task_id=0, seed=0)["info"]["opponent_type"] == "mcts"


@pytest.mark.parametrize("env", ["openspiel", "trace"])
def test_an_unknown_episode_is_an_episode_that_is_over(env: str) -> None:
    """Status 200, so that affinetes' client returns it."""
    actor: Any = GameActor(ServeOptions()) if env == "openspiel" else TraceActor(ServeOptions(env="trace"))
    for asked, kind in (("no", "episode_not_found"), (None, "no_episode_id"), ("", "no_episode_id")):
        for response in (actor.step("1", asked), actor.state(asked)):
            assert (response["reward"], response["done"], response["truncated"]) == (0.0, True, True)
            assert response["episode_id"] == (asked or None)
            assert response["info"]["error"]["type"] == kind
            assert response["info"]["error"]["retryable"] is True
            assert (response["info"]["task_id"], response["info"]["step_count"]) == (None, 0)
            with pytest.raises(Failure) as failed:
                read_reply(response)
            assert failed.value.kind == "unknown"
        stopped = actor.stop(asked)
        assert (stopped["status"], stopped["stopped"]) == ("ok", False) and stopped["message"]


def test_the_state_has_no_rules_and_no_reward() -> None:
    actor = GameActor(ServeOptions())
    begun = actor.reset(LEDUC, 1, "random")
    name = begun["episode_id"]
    assert begun["observation"].startswith("# Game Rules\n")
    again = actor.state(name)
    assert again["observation"] == begun["observation"].partition("# Current Game State\n")[2]
    reply = "no idea " * 1000
    refused = actor.step(reply, name)
    assert refused["reward"] == -0.01 and f'"{reply}"' in refused["observation"]  # echoed whole
    assert actor.state(name) == again
    turn = begun
    while not turn["done"]:
        turn = actor.step(str(turn["info"]["legal_actions"][0]), name)
    over = actor.state(name)
    assert (over["observation"], over["reward"], over["done"]) == (turn["observation"], 0.0, True)
    assert "error" not in over["info"]
    late = actor.step("0", name)
    assert (late["observation"], late["reward"]) == (turn["observation"], 0.0)
    assert (late["done"], late["truncated"]) == (True, False)
    assert late["info"]["error"]["type"] == "episode_done" and late["info"]["score"] == turn["info"]["score"]
    assert actor.stop(name) == {"status": "ok", "stopped": True, "episode_id": name}


def test_an_answered_trace_says_its_score_again() -> None:
    actor = TraceActor(ServeOptions(env="trace"))
    asked = actor.reset(7, 0)
    name, info = asked["episode_id"], asked["info"]
    assert (info["step_count"], info["score"], info["dataset_index"]) == (0, 0.0, None)
    assert actor.state(name) == asked
    truth = actor.step("?", name)["info"]["truth"]
    right = actor.reset(7, 0)["episode_id"]
    assert actor.step(truth, right)["reward"] == 1.0
    again = actor.step("?", right)
    assert (again["reward"], again["done"], again["info"]["error"]["type"]) == (1.0, True, "episode_done")
    assert (again["info"]["score"], again["info"]["step_count"]) == (1.0, 1)
    assert actor.state(right)["reward"] == 0.0 and "error" not in actor.state(right)["info"]


@pytest.mark.launch
@pytest.mark.sample
def test_a_call_is_given_up_ten_seconds_after_its_timeout(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint never answers. The game is given up before the call, and so it has a result."""
    with ModelStub(pause=60.0) as stub:
        asked = {"task_id": LEDUC, "seed": 0, "model": "m", "base_url": stub.url, "opponent": "random"}
        kwargs = {**asked, "timeout": 1.0}
        status, body = ask(f"{server}/call", {"method": "evaluate", "kwargs": kwargs})
        assert (status, body["status"]) == (200, "success")
        assert body["result"]["error"] == "the game was not over after 0.9 s"  # max(1 - 20, 0.9)
        monkeypatch.setattr(game_calls, "HASTE", -30.0)  # now the game has 31 s, and the call 1.3 s
        monkeypatch.setattr(app, "LATER", 0.3)
        status, body = ask(f"{server}/call", {"method": "evaluate", "kwargs": kwargs})
        assert (status, body["status"], body["error"]) == (200, "failed", None)
        assert "longer than its timeout of 1 s and 0.3 s more" in body["result"]["error"]


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")
def test_a_search_beyond_the_timeout_has_upstreams_result(server: str) -> None:
    """In chess player 1 begins, here the opponent: its search would take an hour."""
    kwargs = {"task_id": 1_200_000_000, "seed": 0, "model": "m", "timeout": 1.0}
    with ModelStub(lambda body: "0") as stub:
        kwargs |= {"opponent": "mcts:1000x1000", "base_url": stub.url}
        status, body = ask(f"{server}/call", {"method": "evaluate", "kwargs": kwargs})
    assert (status, body["status"]) == (200, "success")
    result, extra = body["result"], body["result"]["extra"]
    assert result["error"] and 0.9 <= result["time_taken"] < 10.0
    assert (result["task_name"], result["score"], result["success"]) == ("openspiel:chess", 0.0, False)
    assert (extra["conversation"], extra["action_history"], extra["llm_player_id"]) == ([], [], 0)
    assert (extra["final_return"], extra["all_returns"]) == (None, None)
    assert extra["mcts_timing"] == {  # only searches that ended count
        "total_mcts_time": 0.0, "total_mcts_calls": 0, "avg_mcts_time_per_call": 0.0, "num_mcts_bots": 1,
    }  # fmt: skip


REFUSED = [
    ("opponent", "openai:m@http://h", "opponent: 'openai:m@http://h' was given", "leduc_poker"),
    ("opponent", None, "opponent: None was given", "leduc_poker"),
    ("task_id", "200000000", "task id: '200000000' was given", "unknown"),  # as a text only for reset
    ("task_id", 200000000.5, "task id: 200000000.5 was given", "unknown"),
    ("seed", 1.5, "seed: 1.5 was given", "leduc_poker"),
    ("base_url", 5, "endpoint: model ", "leduc_poker"),
    ("base_url", "file:///etc/passwd", "' at 'file:///etc/passwd' was given", "leduc_poker"),
    ("api_key", 5, "api_key: no text was given", "leduc_poker"),
    ("api_key", "k3y\n", "the key for http://h/v1 has a space", "leduc_poker"),
    ("collect_logprobs", "yes", "collect_logprobs: 'yes' was given", "unknown"),
]
"""Arguments of ``evaluate`` with which no game is played, the error, and the game's name in the result."""


@pytest.mark.parametrize(("name", "value", "error", "game"), REFUSED)
def test_evaluate_answers_wrong_arguments_with_a_result(
    server: str, name: str, value: Any, error: str, game: str
) -> None:
    asked = {"task_id": LEDUC, "seed": 0, "base_url": "http://h/v1", "opponent": "random", name: value}
    status, body = ask(f"{server}/evaluate", asked)
    result = body["result"]
    extra = result["extra"]
    assert (status, body["status"], body["error"]) == (200, "success", None)
    assert error in result["error"]
    assert (result["task_name"], result["score"], result["success"]) == (f"openspiel:{game}", 0.0, False)
    assert (extra["conversation"], extra["game_name"], extra["all_returns"]) == ([], game, None)
    assert [extra[key] for key in ("task_id", "seed", "opponent_type")] == [
        asked["task_id"], asked["seed"], asked["opponent"],
    ]  # fmt: skip
    assert extra["usage"]["total_tokens"] == 0
    with pytest.raises(Failure, match=re.escape(error)) as failed:
        read_result(result)
    assert failed.value.kind == "refused"


def test_reset_reads_task_ids_of_other_types() -> None:
    actor = GameActor(ServeOptions())
    for task_id in ("200000000", 200000000.0):
        assert actor.reset(task_id, 3, "random")["info"]["task_id"] == LEDUC
    for task_id in ("x", 200000000.5, []):
        with pytest.raises(TaskIdError):
            actor.reset(task_id, 3, "random")


def test_a_trace_of_no_task_id_is_over() -> None:
    turn = TraceActor(ServeOptions(env="trace")).reset("x", 0)
    assert (turn["reward"], turn["done"], turn["truncated"], turn["episode_id"]) == (0.0, True, True, None)
    assert (turn["info"]["task_id"], turn["info"]["error"]["type"]) == (None, "generation_error")


def test_evaluate_of_a_trace_answers_odd_types_with_a_result() -> None:
    actor = TraceActor(ServeOptions(env="trace"))
    prompt = {"role": "user", "content": actor.reset(17, 0)["observation"]}
    odd = {"model": 5, "base_url": None, "timeout": "x", "api_key": 5, "seed": 1.5}
    for name, value in odd.items():
        result = actor.evaluate(**{"task_id": 17, "seed": 0, "base_url": "http://h/v1", name: value})
        extra, error = result["extra"], result["error"]
        assert "was given" in error and (result["score"], result["success"]) == (0.0, False), name
        assert extra["conversation"] == [prompt, {"role": "assistant", "content": None}]
        assert (result["task_name"], extra["test_result"], extra["usage"]) == ("Trace", "0/1", None)
    with pytest.raises(OptionError):  # upstream's call fails, too
        actor.evaluate(task_id="x", seed=0, base_url="http://h/v1")


def test_moves_that_are_made_together_are_one_step() -> None:
    actor = GameActor(ServeOptions())
    turn = actor.reset(0, 0)  # goofspiel
    for count in range(3):
        assert turn["info"]["step_count"] == count
        turn = actor.step(str(turn["info"]["legal_actions"][0]), turn["episode_id"])


SEARCHED = {
    0: [([1, 2], 1, 0.0, 2), ([1, 2], 2, 0.538462, 4)],
    1: [([1, 2], 2, 0.0, 4), ([1, 2], 1, 0.5, 5)],
    3: [([1, 2], 2, 0.0, 3), ([0, 1], 0, 0.384615, 4)],
}
"""Upstream's sessions of Leduc poker against "mcts", by seed: legal actions, action, reward and steps. In
them OpenSpiel's C++ search moves otherwise."""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.families) for seed in (1, 3))])
def test_a_server_can_play_upstreams_search(seed: int) -> None:
    def play(options: ServeOptions) -> list[Any]:
        actor, turns = GameActor(options), []
        turn = actor.reset(LEDUC, seed, "mcts")
        while not turn["done"]:
            legal = turn["info"]["legal_actions"]
            action = legal[(7 * len(turns) + seed) % len(legal)]
            turn = actor.step(str(action), turn["episode_id"])
            turns.append((legal, action, round(turn["reward"], 6), turn["info"]["step_count"]))
        assert turn["info"]["opponent_type"] == "mcts"
        return turns

    assert play(ServeOptions(upstream_search=True)) == SEARCHED[seed]
    assert play(ServeOptions()) != SEARCHED[seed]


# -- local and served play ---------------------------------------------------------------------------------


SAMPLE = ("goofspiel", "leduc_poker", "phantom_ttt")
"""Simultaneous moves, hidden cards, and a game that upstream plays wrong."""


def shown(record: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A record without what only a local backend knows."""
    local = {"history"}
    if record[-1][-1].get("result") == "cut":
        local |= {"scores", "returns"}
    return [
        (*rest, {key: value for key, value in info.items() if key not in local}) for *rest, info in record
    ]


def assert_served_as_local(server: str, **arguments: Any) -> None:
    seed = arguments.pop("seed")
    here = make(**arguments)
    there = make(backend="affinetes", mode="url", base_url=server, **arguments)
    assert shown(episode(there, seed)) == shown(episode(here, seed))


@pytest.mark.parametrize("game", mark_samples(TABLE, SAMPLE))
def test_a_served_game_equals_the_local_one(game: str, server: str) -> None:
    assert_served_as_local(server, task_id=TABLE.index(game) * 100_000_000 + 4, seed=4, max_turns=200)


def test_a_game_that_is_cut_a_search_and_upstreams_rewards_are_those_of_local_play(server: str) -> None:
    assert_served_as_local(server, task_id=TABLE.index("hearts") * 100_000_000 + 1, seed=7, max_turns=12)
    paid = {"reward": "upstream", "rules": False}
    assert_served_as_local(server, task_id=LEDUC, seed=2, opponent="mcts:20x2", **paid)


def test_illegal_actions_are_counted_here(server: str) -> None:
    env = make(task_id=LEDUC, backend="affinetes", base_url=server)
    local = make(task_id=LEDUC)
    for played in (env, local):
        played.reset(seed=1)
        played.step(99)
        played.step(99)
    there, here = env.step(99), local.step(99)
    assert there[:4] == here[:4]
    for key in ("score", "scores", "returns", "result"):
        assert there[4][key] == here[4][key]


def test_a_copy_plays_the_episode_again(server: str) -> None:
    env = make(task_id=600_000_000, backend="affinetes", base_url=server)
    env.reset(seed=5)
    env.step(12)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.render_mode is None and copy.action_masks().tolist() == env.action_masks().tolist()
    assert copy.step(0)[0] == env.step(0)[0]


@pytest.mark.launch
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes_of_a_vector_environment_have_connections_of_their_own(context: str) -> None:
    options = {"shared_memory": False, "context": context}  # Text has no shape
    with served() as url:
        arguments = {"task_id": LEDUC, "backend": "affinetes", "base_url": url}
        make(**arguments).reset(seed=0)  # this process is connected before it forks
        envs = gym.make_vec(
            "GameSpiel-v0", num_envs=2, vectorization_mode="async", vector_kwargs=options, **arguments
        )
        texts, _ = envs.reset(seed=[0, 1])
        envs.close()
    assert list(texts) == [make(task_id=LEDUC).reset(seed=seed)[0] for seed in (0, 1)]


@pytest.mark.parametrize("scoring", ["affine", "lines"])
def test_traces(scoring: str, traces: str) -> None:
    here: Any = gym.make("CodeTrace-v0", scoring=scoring).unwrapped
    there: Any = gym.make("CodeTrace-v0", scoring=scoring, backend="affinetes", base_url=traces).unwrapped
    for task_id in (40, 41):
        text, info = here.reset(seed=1, options={"task_id": task_id})
        told, said = there.reset(seed=1, options={"task_id": task_id})
        assert told == text
        assert {**said, "source": info["source"]} == info
        truth = here.trace.truth
        for reply in (truth, truth[: len(truth) // 2]):
            ours, theirs = here.step(reply), there.step(reply)
            assert theirs[:4] == ours[:4]
            assert {**theirs[4], "source": ours[4]["source"]} == ours[4]
            here.reset(seed=1, options={"task_id": task_id})
            there.reset(seed=1, options={"task_id": task_id})


# -- traces: a data set with user namespaces and without, debug prints, and upstream's question ------------


def test_rows_of_a_data_set_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_calls, "trouble", lambda level: f"{level} are forbidden")
    rows = TraceActor(ServeOptions(env="trace", source=str(PATH)))
    for method in (rows.reset, rows.evaluate):  # not as a failure, after which a client would try again
        with pytest.raises(ArgumentError, match=r"allowed here: 'builtin'; namespaces are forbidden$"):
            method(task_id=1, seed=0)
    asked = TraceActor(ServeOptions(env="trace")).reset(task_id=1, seed=0)
    assert asked["info"]["sandbox"] == "in-process" and not asked["done"]


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")
def test_a_process_that_ends_while_it_is_idle_costs_no_trace() -> None:
    processes = TraceProcesses("builtin", "safe", "builtin")
    try:
        backend = make_backend("builtin", "safe", False)
        assert processes.load(1) == backend.load(1)
        (idle,) = processes._pool.idle.values()
        os.kill(idle.pid, signal.SIGKILL)  # as a machine without memory does
        assert processes.load(2) == backend.load(2)
        (idle,), caller = processes._pool.idle.values(), Caller()
        caller.leave()
        token = CALLER.set(caller)
        with pytest.raises(CallerLeftError):
            processes.load(3)
        CALLER.reset(token)
        assert not processes._pool.idle and idle in processes._pool.nursery.dead
    finally:
        processes.end()


def observe(task_id: int, **arguments: Any) -> str:
    return CodeTraceEnv(task_id=task_id, **arguments).reset(seed=0)[0]


def test_the_injector_is_the_one_of_local_play() -> None:
    assert observe(3, injector="safe") != observe(3, injector="affine")
    for injector in ("safe", "affine"):
        asked = TraceActor(ServeOptions(env="trace", injector=injector)).reset(task_id=3, seed=0)
        assert asked["observation"] == observe(3, injector=injector)
        assert asked["info"]["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(ArgumentError, match=r"injector: 'afine' was given, .*did you mean 'affine'"):
        TraceActor(ServeOptions(env="trace", injector="afine"))


def test_the_command_names_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServeOptions] = []
    monkeypatch.setattr("gamespiel.serving.run.serve", seen.append)
    assert main(["serve", "--env", "trace", "--injector", "affine"]) == 0
    assert main(["serve", "--key_hosts", "a.org,*.b.org", "--upstream_search"]) == 0
    assert [(options.injector, options.key_hosts, options.upstream_search) for options in seen] == [
        ("affine", (), False), ("safe", ("a.org", "*.b.org"), True),
    ]  # fmt: skip


def test_the_container_names_source_and_injector(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(__file__).parents[3] / "hub/affinetes/trace" / "env.py"
    spec = spec_from_file_location("container_env", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("GAMESPIEL_SOURCE", raising=False)
    for name, value in ((None, "safe"), ("affine", "affine")):
        monkeypatch.delenv("GAMESPIEL_INJECTOR", raising=False)
        if name is not None:
            monkeypatch.setenv("GAMESPIEL_INJECTOR", name)
        assert module.Actor().reset(3, 0)["observation"] == observe(3, injector=value)


def test_the_question_is_in_upstreams_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = TraceActor(ServeOptions(env="trace"))
    ours = actor.reset(3, 0)["observation"]
    (tmp_path / "trace_task.py").write_text('prompt = f"Run {transformed} on {inputs}!"\n')
    monkeypatch.setenv("TRACE_TASK_PATH", str(tmp_path))
    asked = actor.reset(3, 0)
    assert asked["observation"] == observe(3) != ours
    assert asked["observation"].startswith("Run ") and actor.state(asked["episode_id"]) == asked
    monkeypatch.delenv("TRACE_TASK_PATH")
    assert actor.reset(3, 0)["observation"] == ours


def test_a_call_for_which_there_is_no_thread_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask_twice() -> int:
        lane = Lane(1, 1, "test")
        with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="can't start new thread"):
            patch.setattr(threading.Thread, "start", refuse)
            await lane.run("caller", lambda: 1)
        return int(await asyncio.wait_for(lane.run("caller", lambda: 2), 30))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    assert asyncio.run(ask_twice()) == 2
