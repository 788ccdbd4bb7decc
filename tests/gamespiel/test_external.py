"""``gamespiel eval --agent openai:MODEL@URL``, here and by a server's ``evaluate``."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from game_gym.protocols import own_seed
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, resolve
from gamespiel.endpoints.chat import EndpointError
from gamespiel.measure.external import evaluate_endpoint
from gamespiel.measure.options import EvalOptions
from task_gym.errors import BackendError, OpponentError, PickleError
from task_gym.remote import Connection, Failure
from tests.consoles import quiet
from tests.gamespiel.endpoints.models import Body, ModelStub, chatty, recorded, status
from tests.gamespiel.serving.servers import served


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelStub]:
    monkeypatch.setattr("task_gym.remote.protocol.Retries.pause", lambda *numbers: 0.001)
    with ModelStub(recorded) as server:
        yield server


def run(stub: ModelStub, folder: Path, *overrides: tuple[str, str], **options: Any) -> dict[str, Any]:
    settings = resolve("tiny", overrides=overrides)
    agent = f"openai:m@{stub.url}"
    chosen = {"num_episodes": 3, "concurrency": 2, "output": folder / "r.json", **options}
    return evaluate_endpoint(EvalOptions(config=settings, agent=agent, **chosen), quiet())


def collect(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [row for row in rows if row != {"over": True}]


def test_scores_tokens_and_cost(stub: ModelStub, tmp_path: Path) -> None:
    results = run(stub, tmp_path, prices=(1.0, 10.0), temperature=0.5, max_new_tokens=9)
    rows, records = results["endpoint"], collect(tmp_path)
    # Three episodes per seat; the seat of protocol "evaluate" is the seed's parity.
    assert {name: row["episodes"] for name, row in rows.items()} == {"seat 0": 3, "seat 1": 3, "all": 6}
    assert [record["extra"]["llm_player_id"] for record in records] == [r["seed"] % 2 for r in records]
    mean = sum(record["score"] for record in records) / 6
    assert rows["all"]["score"][0] == pytest.approx(mean)
    prompts = sum(10 * len(body["messages"]) for body in stub.asked)
    assert results["usage"]["prompt_tokens"] == prompts
    # A dollar per million tokens of prompts, and ten per million of replies, which have two tokens each.
    assert results["cost"] == pytest.approx((prompts + 20 * len(stub.asked)) / 1e6)
    assert {(body["temperature"], body["max_tokens"]) for body in stub.asked} == {(0.5, 9)}
    assert 1 <= stub.most <= 2


@pytest.mark.trains
@pytest.mark.sample
def test_a_failure_keeps_what_was_played_and_resume_plays_the_rest(
    stub: ModelStub, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.faults = [status(503)] * 6
    with pytest.raises(EndpointError, match=r"answered with status 503; 6 tries failed$"):
        run(stub, here, concurrency=1)
    assert list(here.iterdir()) == []  # nothing was played
    whole = run(stub, here / "whole", concurrency=1)
    stub.faults = [None] * 8 + [status(401)]
    with pytest.raises(EndpointError, match=r"status 401.*episodes were played and are kept in .*--resume"):
        run(stub, here, concurrency=1, output=None)
    (file,) = Path("runs").glob("*.jsonl")
    place = file.with_name(file.name.replace(f"-{file.stem[-8:]}.jsonl", ".json"))
    place.touch()  # a kill leaves the empty file by which the place of the results was reserved
    with file.open("ab") as out:
        out.write('{"seed": 1, "sco♠'.encode()[:-1])  # and a line that ends in mid-character
    before = file.read_bytes().count(b"\n")
    assert 1 <= before < 6
    with pytest.raises(InvalidValueError, match=rf"has {before} episodes of this command: --resume"):
        run(stub, here, concurrency=1, output=None)
    # Other limits or words are another evaluation.
    with pytest.raises(InvalidValueError, match=r"--resume: there is no"):
        run(stub, here, concurrency=1, output=None, resume=True, episode_s=900.0)
    (here / "agents").mkdir()
    (here / "agents" / "leduc.py").write_text(
        "class Leduc:\n    game_name = 'leduc_poker'\n    def get_rules(self): return 'Win.'\n"
        "    def format_state(self, state, player_id): return 'A card.'\n"
    )
    with monkeypatch.context() as patch, pytest.raises(InvalidValueError, match=r"--resume: there is no"):
        patch.setenv("OPENSPIEL_AGENTS_PATH", str(here / "agents"))
        run(stub, here, concurrency=1, output=None, resume=True)
    stub.asked.clear()
    assert run(stub, here, concurrency=1, output=None, resume=True) == whole
    assert len({body["seed"] for body in stub.asked}) == 6 - before
    assert {row["seed"] for row in collect(Path("runs"))} == {row["seed"] for row in collect(here / "whole")}
    assert len(collect(Path("runs"))) == 6


@pytest.mark.parametrize("whole_game", [False, pytest.param(True, marks=pytest.mark.launch)])
def test_ctrl_c_gives_up_what_is_under_way_and_keeps_the_rest(
    stub: ModelStub, tmp_path: Path, whole_game: bool
) -> None:
    with ExitStack() as stack:
        there: list[tuple[str, str]] = []
        if whole_game:
            pytest.importorskip("uvicorn")
            there = [("env.env_mode", "url"), ("env.base_url", stack.enter_context(served()))]
        whole = run(stub, tmp_path / "whole", *there, whole_game=whole_game)
        release = threading.Event()
        stub.asked.clear()

        def answer(body: Body) -> str:
            # The place of this request, not how many there are: two that come together may both count ten,
            # or neither does.
            place = next(i for i, asked in enumerate(stub.asked) if asked is body)
            if place < 9:
                return recorded(body)
            if place == 9:
                os.kill(os.getpid(), signal.SIGINT)
            release.wait(300)
            return "?"

        stub.answer = answer
        with pytest.raises(KeyboardInterrupt):
            run(stub, tmp_path, *there, whole_game=whole_game)
        for thread in threading.enumerate():
            if thread.name.startswith("gamespiel.measure.external"):
                thread.join(60)
                assert not thread.is_alive()
        before = len(collect(tmp_path))
        # Ten replies are at least one game of Leduc, which has at most four moves of a player; six are more.
        assert 1 <= before < 6
        stub.answer = recorded
        release.set()
        resumed = run(stub, tmp_path, *there, whole_game=whole_game, resume=True)
    assert resumed == whole


def test_faults_of_a_server_are_played_again(
    stub: ModelStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls fail at first: the server answers with an error, or too late."""
    failures = [Failure("status", "it failed"), Failure("late", "it was late")]
    game = {"score": 1.0, "success": True, "extra": {"llm_player_id": 0}}
    seeds = []

    def play(self: Connection, limit: float, **arguments: Any) -> dict[str, Any]:
        seeds.append(arguments["seed"])
        if len(seeds) > 2 and failures:
            raise failures.pop(0)
        return game

    monkeypatch.setattr(Connection, "evaluate", play)
    there = [("env.env_mode", "url"), ("env.base_url", "http://127.0.0.1:9")]
    with pytest.raises(BackendError, match=r"it was late; 3 episodes were played and are kept"):
        run(stub, tmp_path, *there, whole_game=True, concurrency=1)
    first = seeds.copy()
    results = run(stub, tmp_path, *there, whole_game=True, concurrency=1, resume=True)
    # The third was a fault and is played again; the fourth was not kept, and two had not begun.
    assert set(seeds[4:]) == {record["seed"] for record in collect(tmp_path)} - set(first[:2])
    assert len(seeds) == 8
    assert (results["endpoint"]["all"]["episodes"], results["endpoint"]["all"]["faults"]) == (6, 0)


def test_episodes_are_played_together(stub: ModelStub, tmp_path: Path) -> None:
    together = threading.Event()

    def answer(body: Body) -> str:
        if len(stub.asked) >= 5:
            together.set()
        assert together.wait(60)
        return recorded(body)

    stub.answer = answer
    run(stub, tmp_path, num_episodes=4, concurrency=8)
    assert 5 <= stub.most <= 8


@pytest.mark.launch
def test_a_server_plays_the_same_games(stub: ModelStub, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    stub.answer = chatty
    here = run(stub, tmp_path / "here")
    with served() as url:
        there = run(stub, tmp_path / "there", ("env.env_mode", "url"), ("env.base_url", url), whole_game=True)
    assert [there[key] for key in ("endpoint", "usage")] == [here[key] for key in ("endpoint", "usage")]
    with pytest.raises(BackendError, match=r"--whole_game: server .* cannot be reached"):
        run(stub, tmp_path, ("env.env_mode", "url"), ("env.base_url", url), whole_game=True)


def test_the_command_line(stub: ModelStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.json"
    command = ["eval", "--agent", f"openai:m@{stub.url}", "--num_episodes", "2", "--output", str(output)]
    assert main([*command, "--prices", "1", "2", "--concurrency", "1"]) == 0
    assert json.loads(output.read_text())["endpoint"]["all"]["episodes"] == 4
    assert "prompt tokens" in capsys.readouterr().out
    assert main([*command, "--backend", "affinetes", "--env.base_url", "http://127.0.0.1:9"]) == 2
    assert "env.env_mode url: give --whole_game" in capsys.readouterr().err
    assert main([*command, "--whole_game"]) == 2
    assert "--whole_game is for --backend affinetes" in capsys.readouterr().err
    stub.asked.clear()
    stub.answer = lambda body: "nothing of the kind"
    assert main([*command, "--env", "trace"]) == 0
    told = json.loads(output.read_text())["endpoint"]["all"]
    assert told["episodes"] == len(stub.asked) == 2 and told["score"][0] == 0.0


# -- as an opponent ----------------------------------------------------------------------------------------


def test_a_model_as_opponent(stub: ModelStub) -> None:
    env = gym.make("GameSpiel-v0", task_id=200_000_000, opponent=f"openai:m@{stub.url}")
    assert env.unwrapped.waits  # type: ignore[attr-defined]
    env.reset(seed=0)
    with pytest.raises(PickleError, match=r"may answer otherwise"):
        pickle.dumps(env.unwrapped)
    stub.faults = [status(500)] * 6
    with pytest.raises(EndpointError, match=r"status 500; 6 tries failed"):
        env.step(1)
    stub.asked.clear()
    _, info = env.reset(seed=0)  # seat 0 moves first, so nobody was asked
    assert stub.asked == []
    assert info["opponent_illegal"] == 0
    env.step(1)
    assert [m["role"] for m in stub.asked[0]["messages"]] == ["system", "user"]
    assert "You are Player 1." in stub.asked[0]["messages"][1]["content"]
    # Three replies without a legal action: the model gives its game up, and the caller has won.
    stub.answer = lambda body: "?"
    env.reset(seed=0)
    stub.asked.clear()
    _, reward, terminated, _, info = env.step(1)
    assert (terminated, info["result"], info["opponent_illegal"], len(stub.asked)) == (True, "win", 1, 3)
    assert reward > 0.5
    # Its replies can be limited.
    limited = f"openai:m@{stub.url}#max_tokens=16"
    env = gym.make("GameSpiel-v0", task_id=200_000_000, opponent=limited)
    assert env.reset(seed=0)[1]["opponent"] == limited
    stub.asked.clear()
    env.step(1)
    assert [body["max_tokens"] for body in stub.asked] == [16] * 3
    for wrong in ("#", "#max_token=16", "#max_tokens=0", "#max_tokens=16&a=1", "#max_tokens=1e3"):
        with pytest.raises(OpponentError, match=r"allowed: openai:MODEL@URL\[#max_tokens=N\] "):
            gym.make("GameSpiel-v0", task_id=200_000_000, opponent=f"openai:m@{stub.url}{wrong}")


@pytest.mark.trains
@pytest.mark.sample
def test_the_pool_of_the_competition_is_played_with_its_seeds(stub: ModelStub, tmp_path: Path) -> None:
    """Its preset, against a cheaper opponent: each address is a task of the pool with the task's own seed."""

    def play(folder: Path, *overrides: tuple[str, str]) -> None:
        config = resolve("affine-pool", overrides=[("env.opponent", "random"), *overrides])
        agent, output = f"openai:m@{stub.url}", folder / "r.json"
        options = EvalOptions(config, agent=agent, num_episodes=2, temperature=0.0, output=output)
        evaluate_endpoint(options, quiet())

    play(tmp_path)
    played = collect(tmp_path)
    assert len(played) == 4  # two per seat
    assert {body["temperature"] for body in stub.asked} == {0.0}
    for record in played:
        assert record["task_id"] // 100_000_000 in (0, 1, 2, 3, 4, 6, 7)
        assert record["seed"] == record["extra"]["seed"] == own_seed(record["task_id"])
        assert record["extra"]["llm_player_id"] == record["seed"] % 2
    with pytest.raises(InvalidValueError, match=r"has one episode of each task, and 2 draws gave some task"):
        play(tmp_path / "one", ("env.task_id", "200000000"))


def test_resume_plays_faults_again(stub: ModelStub, tmp_path: Path) -> None:
    whole = run(stub, tmp_path / "whole", concurrency=1)
    stub.faults = [None] * 2 + [status(400)]
    first = run(stub, tmp_path, concurrency=1)
    assert first["endpoint"]["all"]["faults"] == 1
    (fault,) = [record["seed"] for record in collect(tmp_path) if "error" in record]
    stub.asked.clear()
    assert run(stub, tmp_path, concurrency=1, resume=True) == whole
    assert {body["seed"] for body in stub.asked} == {fault}
    assert len(collect(tmp_path)) == 7  # six, and one that was played twice
