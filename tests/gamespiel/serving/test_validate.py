"""affinetes' own ``afs validate`` on our environments, with a server in place of the container."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gamespiel.endpoints.models import Body, ModelStub, recorded
from tests.gamespiel.serving.servers import served

pytest.importorskip("affinetes")
pytest.importorskip("uvicorn")

pytestmark = pytest.mark.launch

DOCKER = Path(__file__).parents[3] / "docker"

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


def reply(body: Body) -> str:
    return recorded(body) if "Legal Actions:" in body["messages"][-1]["content"] else "?"


@pytest.mark.parametrize(
    ("folder", "env", "first"),
    # The rules of goofspiel have the number of cards, by which its five configurations differ.
    [("trace", "trace", 1), ("game", "openspiel", 0)],
)
def test_first_messages_follow_from_the_task_alone(folder: str, env: str, first: int, tmp_path: Path) -> None:
    with ModelStub(reply) as stub, served("--env", env) as url:
        command = [sys.executable, "-c", VALIDATE, url, "validate", str(DOCKER / folder)]
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
