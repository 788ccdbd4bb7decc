"""Runs with servers: environments on them, vLLM and its command lines, and the files that people have."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs.loggers import read_rows
from gamespiel.agents.sampling.vllm import connect as connecting
from gamespiel.assembly import list_urls
from gamespiel.cli import main
from gamespiel.config import ConfigError, InvalidValueError, evaluation_notices, from_dict, resolve
from gamespiel.deployment.vllm_command import round_rank, vllm_commands
from gamespiel.kinds import kind_of
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from gamespiel.stopping import Stopped
from gamespiel.training.dashboard import Dashboard
from gamespiel.training.run import train
from task_gym.errors import ArgumentError, BackendError
from task_gym.remote import read_settings
from task_gym.remote.settings import host_of
from tests.agents.fake_vllm import FakeVllm
from tests.agents.toys import make_policy
from tests.consoles import quiet, read_console
from tests.game_gym.test_remote_faults import FAULTS
from tests.gamespiel.runs import assert_same_run, resume, rows_of, small, steps_of, train_quietly
from tests.task_gym.remote.stub import Stub

FILES = Path(__file__).parents[1] / "data" / "configs"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeVllm]:
    monkeypatch.setattr(connecting, "default_folder", lambda: tmp_path / "adapters")
    fake = FakeVllm(make_policy(lora={"r": 16}))
    yield fake
    fake.stop()


def served_config(folder: Path, server: FakeVllm, **more: str) -> Any:
    where = {"run__use_vllm": "true", "run__vllm_base_url": server.url, "run__exact_every": "null"}
    return small(folder, **(where | {"ppo__num_train_steps": "2", "run__eval_games": "2"} | more))


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_and_its_evaluations_are_those_without_a_server(server: FakeVllm, here: Path) -> None:
    config = served_config(here / "run", server)
    run = train_quietly(config)
    other = train_quietly(small(here / "other", ppo__num_train_steps="2", run__eval_games="2"))
    for metrics, expected in zip(rows_of(run), rows_of(other), strict=True):
        for key in ("rollout/success", "train/policy_loss", "train/approx_kl", "decisions"):
            assert metrics[key] == pytest.approx(expected[key], rel=1e-3, abs=1e-5), key
        assert metrics["train/sampler_gap_max"] < 1e-4
    scores = {}
    for name, asking in {"there": config, "here": small(here / "run")}.items():
        asked = len(server.requests)
        options = EvalOptions(asking, checkpoint=run, num_episodes=3, output=here / f"{name}.json")
        rows = evaluate(options, quiet())["sampled"]
        scores[name] = {seat: (row["score"], row["success"]) for seat, row in rows.items()}
        assert (len(server.requests) > asked) == (name == "there")
    assert scores["there"] == scores["here"]
    asked = len(server.requests)
    assert main(["watch", "--checkpoint", str(run), "--seed", "1"]) == 0
    assert len(server.requests) > asked


@pytest.mark.launch
@pytest.mark.sample
def test_a_signal_ends_the_wait_for_a_dead_server(
    server: FakeVllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies in the second step's update, after which the next version of the adapters is waited for."""
    settings = {"ppo__num_train_steps": "3", "run__checkpoint_every": "100", "run__eval_games": "0"}
    whole = train_quietly(served_config(tmp_path / "whole", server, **settings))
    run, activity, console = tmp_path / "run", Dashboard.activity, quiet()
    threads, signalled = list[threading.Thread](), list[float]()

    def kill() -> None:
        ends = time.monotonic() + 120
        while "waiting for it" not in read_console(console) and time.monotonic() < ends:
            time.sleep(0.02)
        signalled.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)

    def show(self: Dashboard, now: str, done: int, total: int) -> None:
        activity(self, now, done, total)
        if (now, self._pace.step) == ("turns learned from", 1) and not threads:
            server.stop()
            threads.append(threading.Thread(target=kill, daemon=True))
            threads[0].start()

    with monkeypatch.context() as patch, pytest.raises(Stopped) as caught:
        patch.setattr(Dashboard, "activity", show)
        train(served_config(run, server, **settings), console=console)
    assert time.monotonic() - signalled[0] < 60.0  # a server is waited for for an hour
    said = read_console(console)
    assert caught.value.number == signal.SIGTERM and steps_of(run) == [0, 2]
    assert "waiting for it" in said and "stopped after step 2 of 3" in said
    server.start()
    assert_same_run(resume(run), whole)


# -- configuration -----------------------------------------------------------------------------------------


def test_one_address_or_several() -> None:
    for urls in ("http://a/v1,http://b/v1", ["http://a/v1", "http://b/v1"]):
        config = from_dict({"use_vllm": True, "vllm_base_url": urls})
        assert list_urls(config.run.vllm_base_url) == ["http://a/v1", "http://b/v1"]
    for secret in ("http://any:s3cret@h/v1", ["http://h/v1", "http://any:s3cret@h/v1"]):
        with pytest.raises(ConfigError, match=r"^run.vllm_base_url: an address with a user") as caught:
            from_dict({"use_vllm": True, "vllm_base_url": secret})
        assert "s3cret" not in str(caught.value)


# -- the command line of a server --------------------------------------------------------------------------


def words(command: str) -> dict[str, str]:
    """Returns a command line's options and variables with their values."""
    values, parts = {}, shlex.split(command)
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        if part.startswith("--"):
            values[part] = "" if after.startswith("--") else after
        elif "=" in part and part.split("=")[0].isupper():
            values[part.split("=")[0]] = part.split("=", 1)[1]
    return values


@pytest.mark.parametrize("name", ["games_served", "trace_served"])
def test_the_command_of_docker_files(name: str) -> None:
    """The files that people have, with a model that can be served."""
    model = [("model.model_name", "Qwen/Qwen3-4B"), ("model.dtype", "bfloat16")]
    config = resolve(files=[FILES / f"{name}.json"], overrides=model)
    values = words(vllm_commands(config)[0])
    assert values["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert (values["--host"], values["--port"]) == ("localhost", "8000")
    assert (values["--max-lora-rank"], values["--max-loras"], values["--max-cpu-loras"]) == ("16", "1", "2")
    assert values["--generation-config"] == "vllm" and values["--hf-overrides"] == '{"head_dtype": "float32"}'
    cooled = name == "trace_served" and config.ppo.temperature != 1
    assert ("--logprobs-mode" in values) == cooled


def test_seeds_of_replies_do_not_end_a_server_on_the_cpu() -> None:
    """There vLLM 0.32.0 must not split prompts; choices have no seeds."""
    for device, decode in (("cpu", "text"), ("cpu", "choice"), ("cuda", "text")):
        keys = {"model.model_name": "Qwen/Qwen3-4B", "run.device": device, "env.decode": decode}
        (command,) = vllm_commands(resolve(overrides=keys.items()))
        assert ("--no-enable-chunked-prefill" in command) == ((device, decode) == ("cpu", "text"))


def test_every_command_that_is_printed_listens_on_this_machine_or_has_a_token(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A server that loads adapters while it runs opens the folders that callers name."""
    assert main(["vllm-command", "--preset", "qwen3-4b"]) == 0
    assert "api_server --model Qwen/Qwen3-4B" in capsys.readouterr().out
    for host in ("127.0.0.1", "localhost", "[::1]", "h", "0.0.0.0"):
        overrides = {"model.model_name": "Qwen/Qwen3-4B", "run.vllm_base_url": f"http://{host}:1"}
        (command,) = vllm_commands(resolve(overrides=overrides.items()))
        values = words(command)
        local = values["--host"] in ("127.0.0.1", "localhost", "::1")
        # The shell refuses to start it if the token is empty.
        assert local or values["VLLM_API_KEY"].startswith("${VLLM_API_KEY:?")
    root = Path(__file__).parents[2]
    pages = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / "benchmarks").glob("*.md")]
    printed = [
        line
        for page in pages
        for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        if "VLLM_ALLOW_RUNTIME_LORA_UPDATING=" in line
    ]
    assert len(printed) >= 3
    assert [line for line in printed if not re.search(r"--host (127\.0\.0\.1|localhost)", line)] == []


def test_several_servers_of_a_run_with_a_pool() -> None:
    overrides = {
        "model.model_name": "Qwen/Qwen3-4B", "lora.r": "20", "env.opponent": "self",
        "self_play.learn": "one", "self_play.pool_size": "5", "ppo.average_decay": "0.5",
        "run.vllm_base_url": "http://10.0.0.3:8001/v1,http://127.0.0.1:8002", "run.device": "cpu",
    }  # fmt: skip
    config = resolve(overrides=overrides.items())
    first, second = vllm_commands(config, batch_invariant=True)
    assert "VLLM_API_KEY" in words(first) and "VLLM_API_KEY" not in words(second)
    assert words(first)["--host"] == "0.0.0.0" and words(second)["--host"] == "127.0.0.1"
    assert words(first)["--max-lora-rank"] == "32" and words(second)["VLLM_BATCH_INVARIANT"] == "1"
    # The newest and five snapshots in a batch; the average and the next version are kept besides.
    assert (words(first)["--max-loras"], words(first)["--max-cpu-loras"]) == ("6", "8")
    assert words(second)["--dtype"] == "float32" and "--hf-overrides" not in words(second)


def test_models_and_ranks_that_can_be_served() -> None:
    assert [round_rank(rank) for rank in (1, 2, 8, 9, 33, 400)] == [1, 8, 8, 16, 64, 512]
    with pytest.raises(InvalidValueError, match=r"lora.r is 513, .* at most 512"):
        round_rank(513)
    with pytest.raises(InvalidValueError, match="'tiny' has attention heads of 16 numbers"):
        vllm_commands(resolve())
    unknown = [("model.model_name", "Qwen/Q"), ("model.random_weights", "true")]
    with pytest.raises(InvalidValueError, match="a model that no server has"):
        vllm_commands(resolve(overrides=unknown))


# -- the files that people have ----------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.parametrize("name", [pytest.param("games_served", marks=pytest.mark.sample), "trace_served"])
def test_the_docker_files_train(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, but for containers, the port and the size."""
    monkeypatch.setattr(connecting, "default_folder", lambda: tmp_path / "adapters")
    fake = FakeVllm(make_policy(lora={"r": 16}), mode="processed_logprobs")
    smaller = {
        "env.env_mode": "local", "run.vllm_base_url": fake.url, "run.output_dir": str(tmp_path / "run"),
        "run.device": "cpu", "run.eval_games": "0", "run.exact_every": "0", "ppo.batch_size": "2",
        "ppo.num_train_steps": "1", "ppo.ppo_epochs": "1", "ppo.max_new_tokens": "8",
    }  # fmt: skip
    # In containers traces are written, and games are drawn from all.
    smaller |= {"env.game": "kuhn_poker"} if name == "games_served" else {"env.decode": "text"}
    run = train_quietly(resolve(files=[FILES / f"{name}.json"], overrides=smaller.items()))
    fake.stop()
    (row,) = rows_of(run)
    assert row["train/sampler_gap_max"] < 1e-4
    asked = [body for body in fake.requests if len(body.get("logprob_token_ids", "")) < 128]
    assert {"stop_token_ids" in body for body in asked} == {name == "trace_served"}


SMALL = {
    "run.use_vllm": "false", "ppo.batch_size": "2", "ppo.mini_batch_size": "2", "ppo.ppo_epochs": "1",
    "ppo.gradient_accumulation_steps": "1", "ppo.num_train_steps": "2", "ppo.max_new_tokens": "8",
    "run.eval_games": "1", "run.device": "cpu", "run.num_threads": "1",
}  # fmt: skip


def arguments(data: dict[str, Any]) -> dict[str, Any]:
    env = from_dict(data).env
    return kind_of(env).arguments(env)


def test_a_docker_file_is_upstreams_image_and_every_game() -> None:
    env_kwargs = arguments(json.loads((FILES / "games_served.json").read_text()))
    # 22 games with 100 million configurations each.
    assert env_kwargs["task_ids"] == [(0, 2_199_999_999)]
    assert (env_kwargs["backend"], env_kwargs["mode"], env_kwargs["image"]) == ("affinetes", "docker", None)
    assert from_dict(json.loads((FILES / "trace_served.json").read_text())).env.decode == "text"
    pytest.importorskip("affinetes")
    server = {name: env_kwargs[name] for name in ("mode", "image", "timeout")}
    assert [read_settings(server, kind).container.image for kind in ("game", "trace")] == [  # type: ignore[union-attr]
        "affinefoundation/game:openspiel", "affinefoundation/trace:latest",
    ]  # fmt: skip


def test_keys_of_servers() -> None:
    docker = {"env_mode": "docker", "image": "a/b:c", "mem_limit": "2g", "cpu_limit": 1.5, "pull": True}
    env_kwargs = arguments({**docker, "docker_host": "ssh://u@h", "server_timeout": 5.0, "task_id": 0})
    names = ("image", "mem_limit", "cpu_limit", "pull", "host", "timeout")
    assert [env_kwargs[name] for name in names] == ["a/b:c", "2g", 1.5, True, "ssh://u@h", 5.0]
    assert "base_url" not in env_kwargs
    (notice,) = evaluation_notices(from_dict({"image": "a", "task_id": 0}))
    assert notice == "env.image = 'a' has no effect with env.env_mode local."
    assert "backend" not in arguments({"task_id": 0})


def test_the_hosts_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFFINETES_HOSTS_CONFIG", raising=False)
    assert host_of("game") is None
    file = here / "affinetes_hosts.json"
    file.write_text(
        '{"game": ["ssh://a@b", "ssh://c@d"], "default": {"hosts": ["localhost"], "mode": "docker"}}'
    )
    assert (host_of("game"), host_of("trace")) == ("ssh://a@b", "localhost")
    if pytest.importorskip("affinetes"):
        settings = [read_settings({"mode": "docker"}, kind) for kind in ("game", "trace")]
        assert [s.container.host for s in settings if s.container] == ["ssh://a@b", None]
        container = read_settings({"mode": "docker", "host": "ssh://e@f"}, "game").container
        assert container is not None and container.host == "ssh://e@f"
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
    monkeypatch.setenv("AFFINETES_HOSTS_CONFIG", str(here / "none.json"))
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


def test_only_containers_need_affinetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("task_gym.remote.settings.find_spec", lambda name: None if name == "affinetes" else 1)
    assert read_settings({"base_url": "http://h"}, "game").base_url == "http://h"
    with pytest.raises(BackendError, match=r"mode: 'docker' was given, and affinetes, .* is not installed"):
        read_settings({"mode": "docker"}, "game")


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
    monkeypatch.setattr("task_gym.remote.protocol.Retries.pause", lambda *numbers: 0.001)
    stub = Stub()
    # "other seat" is none for a caller in seat 1, and "refused" is none at a reset.
    bad = [fault for name, (fault, _) in FAULTS.items() if name not in ("other seat", "refused")]
    stub.faults = [fault for each in bad for fault in (None, None, each)]
    there = {"env.env_mode": "url", "env.base_url": stub.url, "env.server_timeout": "1"}
    run = {"ppo.batch_size": "16", "ppo.num_train_steps": "3", "run.eval_games": "0"}
    chosen = {"env.allowed_game_indices": "2", "run.output_dir": str(tmp_path / "run")}
    config = resolve(files=[FILES / "games_served.json"], overrides=(SMALL | there | run | chosen).items())
    folder = train(config, console=quiet())
    rows = read_rows(folder / "metrics.jsonl")
    assert stub.faults == []
    assert [row["rollout/episodes"] + row["rollout/faults"] for row in rows] == [16] * 3
    assert sum(row["rollout/episodes"] for row in rows) == stub.won
    assert 0 < sum(row["rollout/faults"] for row in rows) <= len(bad)
    results = evaluate(EvalOptions(config=config, checkpoint=folder, num_episodes=1), quiet())
    stub.shutdown()
    stub.server_close()
    assert results["sampled"]["all"]["faults"] == 0 and results["sampled"]["all"]["episodes"] == 2
