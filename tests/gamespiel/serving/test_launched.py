"""Servers as processes of their own: their ends, the images' commands, and affinetes' ``afs validate``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from game_gym.games import TABLE
from tests.gamespiel.endpoints.models import Body, ModelStub, recorded
from tests.gamespiel.serving.servers import ask, call, launch_server, served, wait_until

pytest.importorskip("uvicorn")

pytestmark = pytest.mark.launch

ROOT = Path(__file__).parents[3]
CHESS = TABLE.index("chess") * 100_000_000


@pytest.mark.sample
def test_a_server_ends_while_a_model_thinks_and_says_so() -> None:
    asked, release = threading.Event(), threading.Event()

    def answer(body: Body) -> str:
        asked.set()
        release.wait(300)  # longer than the test: only its end ends the request
        return "1"

    with (
        ModelStub(answer) as stub,
        launch_server(token="s3cret") as (server, url),
        ThreadPoolExecutor(1) as threads,
    ):
        arguments = {"task_id": CHESS, "seed": 0, "model": "m", "base_url": stub.url, "opponent": "random"}
        assert ask(f"{url}/evaluate", arguments, authorization="Bearer secret")[0] == 401
        under_way = threads.submit(ask, f"{url}/evaluate", arguments, authorization="Bearer s3cret")
        assert asked.wait(60)
        server.send_signal(signal.SIGTERM)
        status, body = under_way.result(60)
        assert (status, body["kind"]) == (503, "full")  # a client may ask another server, or this one later
        assert body["error"] == "the server is ending, and gave the call up"
        server.wait(60)
        release.set()


def test_a_server_ends_while_an_opponent_searches() -> None:
    with launch_server() as (server, url), ThreadPoolExecutor(1) as threads:
        # In chess, player 1 begins: the opponent of seat 0, with a search of an hour.
        under_way = threads.submit(call, url, "reset", task_id=CHESS, seed=0, opponent="mcts:1000x1000")
        wait_until(lambda: ask(f"{url}/ready")[1]["sessions"] > 0)
        sleep(0.5)  # from the session's place to the search
        assert not under_way.done()
        server.send_signal(signal.SIGINT)
        server.wait(60)
        status, body = under_way.result(60)
        assert (status, body["kind"]) == (503, "status")  # a step could not be repeated


@pytest.mark.parametrize("image", ["game", "trace"])
def test_the_images_commands_start_a_server(image: str, tmp_path: Path) -> None:
    """Without Docker: the command of each target of the Dockerfile, with this Python and a free port."""
    targets = (ROOT / "hub/affinetes/Dockerfile").read_text().split("\nFROM ")
    (target,) = [text for text in targets if text.partition("\n")[0].endswith(f" AS {image}")]
    (line,) = [line for line in target.splitlines() if line.startswith("CMD ")]
    shell, option, command = json.loads(line.removeprefix("CMD "))
    command = command.replace("/opt/gamespiel/bin/python", sys.executable).replace("0.0.0.0", "127.0.0.1")
    (tmp_path / "a.txt").touch()  # which a bare asterisk would become
    started = subprocess.Popen(
        [shell, option, command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "AFFINETES_PORT": "0", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert started.stdout is not None
        served = started.stdout.readline()
    finally:
        started.terminate()
        _, said = started.communicate(timeout=60)
    assert served.startswith(f"serving {'openspiel' if image == 'game' else 'trace'} on http://127.0.0.1:")
    assert "have requests sent from here to hosts *;" in said


# -- ``afs validate`` on our environments, with a server in place of the container -------------------------


VALIDATE = """
import sys
from affinetes import api
from affinetes.cli.main import main

url, *sys.argv[1:] = sys.argv[1:]
load = api.load_env
api.build_image_from_env = lambda **arguments: None
api.load_env = lambda **arguments: load(mode="url", base_url=url)
main()
"""
"""The command, without the image that it would build and start."""


@pytest.mark.parametrize(
    ("folder", "env", "first"),
    # The rules of goofspiel have the number of cards, by which its five configurations differ.
    [("trace", "trace", 1), ("game", "openspiel", 0)],
)
def test_first_messages_follow_from_the_task_alone(folder: str, env: str, first: int, tmp_path: Path) -> None:
    pytest.importorskip("affinetes")

    def reply(body: Body) -> str:
        return recorded(body) if "Legal Actions:" in body["messages"][-1]["content"] else "?"

    with ModelStub(reply) as stub, served("--env", env) as url:
        command = [sys.executable, "-c", VALIDATE, url, "validate", str(ROOT / "hub/affinetes" / folder)]
        options = ["--num-tests", "5", "--task-id-start", str(first), "--output", str(tmp_path)]
        said = subprocess.run(
            [*command, *options, "--base-url", stub.url], check=True, capture_output=True, text=True
        )
    assert "All validations passed" in said.stdout + said.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["total_tests"], summary["seed_consistency_rate"]) == (5, 1.0)
    assert summary["seed_diversity"]["unique_prompts"] == 5
    assert all("error" not in rollout for rollout in summary["rollouts"])
    # The command names no model, so upstream's default is asked.
    assert {body["model"] for body in stub.asked} == {"deepseek-ai/DeepSeek-V3"}
