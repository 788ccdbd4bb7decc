"""Runs whose environments are on a server: ``env_mode`` and the configuration files that people have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import ConfigError, evaluation_notices, from_dict, resolve
from gamespiel.evaluation import evaluate
from gamespiel.kinds import declaration_of
from gamespiel.options import EvalOptions
from gamespiel.training import train
from task_gym.errors import ArgumentError
from task_gym.remote import read_settings
from task_gym.remote.hosts import host_of
from tests.game_gym.test_remote_faults import FAULTS
from tests.gamespiel.runs import quiet
from tests.gamespiel.serving.servers import served
from tests.task_gym.remote.stub import Stub

FILES = Path(__file__).parents[1] / "data" / "configs"
SMALL = {
    "run.use_vllm": "false", "ppo.batch_size": "2", "ppo.mini_batch_size": "2", "ppo.ppo_epochs": "1",
    "ppo.gradient_accumulation_steps": "1", "ppo.num_train_steps": "2", "ppo.max_new_tokens": "8",
    "run.eval_games": "1", "run.device": "cpu", "run.num_threads": "1",
}  # fmt: skip


def arguments(data: dict[str, Any]) -> dict[str, Any]:
    env = from_dict(data).env
    return declaration_of(env).arguments(env)


def test_a_docker_file_is_upstreams_image_and_every_game() -> None:
    found = arguments(json.loads((FILES / "games_served.json").read_text()))
    # 22 games with 100 million configurations each.
    assert found["task_ids"] == [(0, 2_199_999_999)]
    assert (found["backend"], found["mode"], found["image"]) == ("affinetes", "docker", None)
    assert from_dict(json.loads((FILES / "trace_served.json").read_text())).env.decode == "text"
    pytest.importorskip("affinetes")
    server = {name: found[name] for name in ("mode", "image", "timeout")}
    assert [read_settings(server, kind).container.image for kind in ("game", "trace")] == [  # type: ignore[union-attr]
        "affinefoundation/game:openspiel", "affinefoundation/trace:latest",
    ]  # fmt: skip


def test_keys_of_servers() -> None:
    docker = {"env_mode": "docker", "image": "a/b:c", "mem_limit": "2g", "cpu_limit": 1.5, "pull": True}
    found = arguments({**docker, "docker_host": "ssh://u@h", "server_timeout": 5.0, "task_id": 0})
    names = ("image", "mem_limit", "cpu_limit", "pull", "host", "timeout")
    assert [found[name] for name in names] == ["a/b:c", "2g", 1.5, True, "ssh://u@h", 5.0]
    assert "base_url" not in found
    with pytest.raises(ConfigError, match=r"env.env_mode = 'url' needs env.base_url"):
        from_dict({"env_mode": "url"})
    (notice,) = evaluation_notices(from_dict({"image": "a", "task_id": 0}))
    assert notice == "env.image = 'a' has no effect with env.env_mode local."
    assert "backend" not in arguments({"task_id": 0})


def test_the_hosts_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AFFINETES_HOSTS_CONFIG", raising=False)
    assert host_of("game") is None
    file = tmp_path / "affinetes_hosts.json"
    file.write_text(
        '{"game": ["ssh://a@b", "ssh://c@d"], "default": {"hosts": ["localhost"], "mode": "docker"}}'
    )
    assert (host_of("game"), host_of("trace")) == ("ssh://a@b", "localhost")
    if pytest.importorskip("affinetes"):
        settings = [read_settings({"mode": "docker"}, kind) for kind in ("game", "trace")]
        assert [s.container.host for s in settings if s.container] == ["ssh://a@b", None]
        given = read_settings({"mode": "docker", "host": "ssh://e@f"}, "game").container
        assert given is not None and given.host == "ssh://e@f"
    file.write_text("null")
    assert host_of("game") is None
    for text, message in (
        ('{"game": {"mode": "basilica"}}', r"mode 'basilica' was given for 'game', allowed: 'docker'"),
        ('{"game": []}', r"\[\] was given for 'game', allowed: a list of engines"),
        ("{", r"it was found, and cannot be read"),
    ):
        file.write_text(text)
        with pytest.raises(ArgumentError, match=message):
            host_of("game")
    monkeypatch.setenv("AFFINETES_HOSTS_CONFIG", str(tmp_path / "none.json"))
    with pytest.raises(ArgumentError, match=r"none.json: .* cannot be read"):
        host_of("game")


def test_an_address_with_a_password_is_refused_and_not_shown() -> None:
    for wrong in ("http://any:s3cret@127.0.0.1:8000", "any:s3cret@host:8000", "http://any:s3cret@host:0"):
        with pytest.raises(ArgumentError, match=r"environment variable GAMESPI") as caught:
            read_settings({"base_url": wrong}, "game")
        assert "s3cret" not in str(caught.value)
        with pytest.raises(ConfigError, match=r"^env.base_url: an address with a user's name") as refused:
            from_dict({"env_mode": "url", "base_url": wrong})
        assert "s3cret" not in str(refused.value)
    read_settings({"base_url": "http://h/a@b"}, "game")
    with pytest.raises(ArgumentError, match=r"timeout: 1000"):
        read_settings({"base_url": "http://h", "timeout": 10**400}, "game")


def test_a_containers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("affinetes")
    monkeypatch.setenv("CHUTES_API_KEY", "s3cret")
    monkeypatch.delenv("GAMESPIEL_TOKEN", raising=False)
    container = read_settings({"mode": "docker", "env_vars": {"B": "2"}}, "game").container
    assert container is not None
    assert container.env_vars == (("B", "2"), ("CHUTES_API_KEY", "s3cret"))
    assert "s3cret" not in repr(container)


@pytest.mark.trains
def test_training_continues_through_all_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that fails in every way, at resets and at steps: what it played to the end is learned from."""
    pytest.importorskip("affinetes")
    monkeypatch.setattr("task_gym.remote.policy.Retries.pause", lambda *given: 0.001)
    stub = Stub()
    # "other seat" is none for a caller in seat 1, and "refused" is none at a reset.
    bad = [fault for name, (fault, _) in FAULTS.items() if name not in ("other seat", "refused")]
    stub.faults = [fault for each in bad for fault in (None, None, each)]
    there = {"env.env_mode": "url", "env.base_url": stub.url, "env.server_timeout": "1"}
    run = {"ppo.batch_size": "16", "ppo.num_train_steps": "3", "run.eval_games": "0"}
    chosen = {"env.allowed_game_indices": "2", "run.output_dir": str(tmp_path / "run")}
    config = resolve(files=[FILES / "games_served.json"], overrides=(SMALL | there | run | chosen).items())
    rows = read_rows(train(config, console=quiet()) / "metrics.jsonl")
    stub.shutdown()
    stub.server_close()
    assert stub.faults == []
    assert [row["rollout/episodes"] + row["rollout/faults"] for row in rows] == [16] * 3
    assert sum(row["rollout/episodes"] for row in rows) == stub.won
    assert 0 < sum(row["rollout/faults"] for row in rows) <= len(bad)


@pytest.mark.launch
@pytest.mark.parametrize(
    ("name", "env", "more"),
    [
        ("games_served", "openspiel", {"env.allowed_game_indices": "2", "env.max_turns": "4"}),
        ("trace_served", "trace", {}),
    ],
)
def test_the_files_train_and_evaluate_on_a_server(
    name: str, env: str, more: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("affinetes")
    pytest.importorskip("uvicorn")
    with served("--env", env) as url:
        there = {"env.env_mode": "url", "env.base_url": url, "run.output_dir": str(tmp_path / "run")}
        config = resolve(files=[FILES / f"{name}.json"], overrides=(SMALL | there | more).items())
        folder = train(config, console=quiet())
        rows = read_rows(folder / "metrics.jsonl")
        assert len(rows) == 2 and all(row.get("rollout/faults", 0) == 0 for row in rows)
        found = evaluate(EvalOptions(config=config, checkpoint=folder, num_episodes=1), quiet())
        measured = found.get("sampled") or found["replies"]["sampled"]
        assert measured["all"]["faults"] == 0
