"""The sampler on vLLM servers, with a stand-in that computes real log-probabilities and makes every fault."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel.agents.models import BASE, NEWEST
from gamespiel.agents.models.adapters import UnknownAdaptersError
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.vllm import sampler as folders_module
from gamespiel.agents.sampling.vllm import server as vllm_server
from gamespiel.agents.sampling.vllm.answers import NodeQuery, ServedAnswers
from gamespiel.agents.sampling.vllm.connect import Needs, UnsuitableServerError, connect
from gamespiel.agents.sampling.vllm.probe import GapError, LocalReader, StaleAdaptersError
from gamespiel.agents.sampling.vllm.replicas import Patience, Replicas
from gamespiel.agents.sampling.vllm.server import BrokenAnswerError, Server, ServerError
from task_gym.errors import ArgumentError
from task_gym.remote import loop
from tests.agents.fake_vllm import (
    LEGAL,
    TEXTS,
    MakeServer,
    Plug,
    answers_of,
    choosing,
    decide,
    noises,
    playing_itself,
    writing,
)
from tests.agents.toys import make_policy, masks_of, randomise, rows_of
from tests.gamespiel.serving.servers import wait_until

pytestmark = [pytest.mark.launch, pytest.mark.sample]


@pytest.fixture(scope="module")
def trainer() -> LLMPolicy:
    return make_policy()


@pytest.fixture
def policy(trainer: LLMPolicy) -> Iterator[LLMPolicy]:
    """Returns the same policy to each test, with the same random adapters and its own sampler."""
    local = trainer.sampler
    randomise(trainer, 0.1)
    yield trainer
    trainer.sampler = local


# -- decisions ---------------------------------------------------------------------------------------------


def test_texts_are_written_by_the_server(make_server: MakeServer, plug: Plug) -> None:
    """Tokens in, tokens out; what the server gave is what the scorer finds, at the run's temperature."""
    model, server = writing(total_steps=2), make_server(mode="processed_logprobs")
    plug(model.policy, server)
    model.learn()
    for row in rows_of(model):
        assert row["train/sampler_gap_max"] < 1e-4
    written = [body for body in server.requests if "stop_token_ids" in body]
    assert {body["temperature"] for body in written} == {0.8}
    assert len({body["seed"] for body in written}) == len(written)


def test_decisions_are_the_local_ones(policy: LLMPolicy, make_server: MakeServer, plug: Plug) -> None:
    """Greedy and by noise, of several adapters in one call; only the critic's values are missing."""
    names = [NEWEST, BASE, NEWEST, NEWEST]
    expected = [decide(policy, noise=noise, adapters=names) for noise in (None, noises(len(TEXTS)))]
    odds = policy.distribution(TEXTS, LEGAL)
    sampler = plug(policy, make_server())
    sampler.publish(NEWEST, policy.adapters.learning)
    decisions = [decide(policy, noise=noise, adapters=names) for noise in (None, noises(len(TEXTS)))]
    for one, other in zip([*decisions[0], *decisions[1]], [*expected[0], *expected[1]], strict=True):
        assert one.tokens == other.tokens and one.adapters == other.adapters
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        assert one.legal_mass == pytest.approx(other.legal_mass, rel=1e-3)
        assert one.value is None and other.value is not None
    values = [decision.value for decision in expected[0]]
    assert policy.values_of(decisions[0]) == pytest.approx(values, abs=1e-5)
    for row, other_row in zip(policy.distribution(TEXTS, LEGAL), odds, strict=True):
        assert row == pytest.approx(other_row, abs=1e-5)


def test_more_children_than_a_request_may_ask_for(policy: LLMPolicy, make_server: MakeServer) -> None:
    """300 children are three requests, and still exact."""
    server = make_server()
    query = NodeQuery(BASE, policy.prompts(["x"])[0], tuple(range(10, 310)))
    replicas = Replicas([Server(server.url)], None)
    (row,) = ServedAnswers(replicas).read_nodes([query])
    replicas.close()
    assert sorted(len(body["logprob_token_ids"]) for body in server.requests) == [44, 128, 128]
    (local_row,) = LocalReader(policy.engine, policy.adapters).read_nodes([query])
    assert row == pytest.approx(local_row, abs=1e-4)


# -- adapters ----------------------------------------------------------------------------------------------


def test_each_version_has_a_name_and_a_folder_of_its_own(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug, tmp_path: Path
) -> None:
    """The old one is unloaded and its folder goes. Adapters on disk are in PEFT's format."""
    server = make_server()
    sampler = plug(policy, server)
    for seed in (1, 2, 2):
        randomise(policy, 0.1, seed)
        sampler.publish(NEWEST, policy.adapters.learning)
        (name,) = server.loaded
        (folder,) = [path for path in tmp_path.glob("*/*") if path.is_dir()]
        assert server.loaded[name] == str(folder)
    # PEFT itself reads them, and has the same weights then.
    other = make_policy()
    other.model.load_adapter(folder, "read")
    read = dict(other.model.named_parameters())
    for key, tensor in policy.adapters.learning.items():
        assert torch.equal(read[key.replace(".default.", ".read.")], tensor)
    assert len(server.ever_loaded) == 3 == len(set(server.ever_loaded))  # one was for the checks
    sampler.publish("old", policy.adapters.learning)
    assert len(server.loaded) == 2
    sampler.forget("old")
    sampler.forget("old")
    assert len(server.loaded) == 1
    with pytest.raises(UnknownAdaptersError, match="'old' were asked for; published are base, newest"):
        decide(policy, adapters="old")
    sampler.close()
    assert not server.loaded and not list(tmp_path.iterdir())


def test_waiting_environments_share_a_request_per_server(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug
) -> None:
    servers = [make_server(), make_server()]
    plug(policy, *servers).publish(NEWEST, policy.adapters.learning)
    assert all(len(server.loaded) == 1 for server in servers)
    decide(policy)
    for server in servers:
        server.requests.clear()
    policy.decide([f"seat {i}" for i in range(71)], masks_of([(0, 1, 2)] * 71), noises(71))
    requests = [body for server in servers for body in server.requests]
    assert sorted(len(body["prompt"]) for body in requests) == [35, 36]
    for body in requests:
        assert len(body["logprob_token_ids"]) == 3
        assert not {"allowed_token_ids", "structured_outputs", "top_k"} & body.keys()


def test_a_killed_trainer_leaves_nothing_for_long(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug, tmp_path: Path
) -> None:
    """Adapters of a killed trainer go when the next one begins; those of a living one stay."""
    server, other = make_server(), make_policy(adapters=0.1)
    plug(policy, server).publish(NEWEST, policy.adapters.learning)
    sampler = plug(other, server)
    sampler.publish(NEWEST, other.adapters.learning)
    sampler._folders._lock.release()  # as the system does for a process that ends
    left = set(server.loaded)
    plug(other, server)
    assert len(left) == 2 and len(server.loaded) == 1
    assert len(list(tmp_path.iterdir())) == 2
    decide(policy)


def test_a_server_that_keeps_old_adapters_is_noticed(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug
) -> None:
    server = make_server()
    sampler = plug(policy, server)
    sampler.publish(NEWEST, policy.adapters.learning)
    server.follows = False
    server._first = {name: tensor.clone() for name, tensor in policy.adapters.learning.items()}
    randomise(policy, 0.1, 7)
    with pytest.raises(StaleAdaptersError, match="loaded new adapters and answers as before"):
        sampler.publish(NEWEST, policy.adapters.learning)


@pytest.mark.parametrize("case", ["float32", "cap", "overflow", "texts"])
def test_a_gap_above_the_limit_stops(make_server: MakeServer, plug: Plug, case: str) -> None:
    """The server's model becomes another one after all checks: nothing is learned from what it plays."""
    cap = {} if case == "float32" else {"sampler_weight_cap": 2.0}  # with which all turns are compared
    model = writing(total_steps=20) if case == "texts" else choosing(total_steps=20, mini_batch_size=4, **cap)
    server = make_server(mode="processed_logprobs")
    plug(model.policy, server)
    server.drift = 0.5
    if case == "overflow":
        score, scored = model.policy.scorer.score, list[Any]()

        def overflow(*arguments: Any, **named: Any) -> Any:
            scored.append(score(*arguments, **named))
            first = len(scored) == 1
            return replace(scored[0], log_probs=scored[0].log_probs * nan) if first else scored[-1]

        model.policy.scorer.score = overflow  # type: ignore[method-assign]
    before = {name: tensor.clone() for name, tensor in model.policy.adapters.learning.items()}
    with pytest.raises(GapError, match=r"differ from the trainer's by .* nats on average, allowed: 0.01"):
        model.learn()
    assert model.step == 0 and all(one.grad is None for one in model.policy.parameters())
    assert all(torch.equal(before[name], now) for name, now in model.policy.adapters.learning.items())


def test_an_old_sampler_is_weighted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are below the cap."""
    model = choosing(total_steps=1, sampler_weight_cap=1.5)
    sample = model.policy.sampler.sample

    def play_base(requests: Any) -> Any:
        decisions = sample([replace(request, adapters=BASE) for request in requests])
        return [replace(decision, adapters=NEWEST) for decision in decisions]

    monkeypatch.setattr(model.policy.sampler, "sample", play_base)
    model.learn()
    (row,) = rows_of(model)
    assert row["train/sampler_gap"] > 1e-3 and 0 < row["train/sampler_weight"] <= 1.5
    assert row["train/approx_kl"] >= 0  # the ratio's denominator is the scorer's


# -- checks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runtime_lora": False}, "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        ({"max_lora_rank": 2}, "LoRA rank 4 is greater than max_lora_rank 2"),
        ({"mode": "raw_logits"}, "gives no log-probabilities but logits"),
        ({"max_model_len": 8}, "has a context of 8 tokens"),
        ({"ignores_adapters": True}, "did not apply the adapters of a check"),
    ],
)
def test_unsuitable_servers(
    settings: dict[str, Any], message: str, trainer: LLMPolicy,
    make_server: MakeServer, plug: Plug, tmp_path: Path,
) -> None:  # fmt: skip
    with pytest.raises((UnsuitableServerError, ServerError), match=message):
        plug(trainer, make_server(**settings))
    assert not list(tmp_path.iterdir())


def test_another_model_and_log_probabilities_at_another_temperature_are_refused(
    trainer: LLMPolicy, make_server: MakeServer, plug: Plug
) -> None:
    with pytest.raises(UnsuitableServerError, match="--logprobs-mode processed_logprobs"):
        plug(writing().policy, make_server())
    other = make_policy(model={"random_weights": True})
    with pytest.raises(UnsuitableServerError, match="serves another model than the trainer's"):
        plug(trainer, make_server(policy=other))


def test_adapters_that_are_rounded_and_an_untested_version_are_named(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug, caplog: pytest.LogCaptureFixture
) -> None:
    plug(policy, make_server(version="0.33.0"))
    assert "vLLM 0.33.0, which is untested; tested: 0.32.0" in caplog.text
    assert "rounds the adapters" not in caplog.text
    plug(policy, make_server(lora_dtype=torch.bfloat16))
    assert "rounds the adapters" in caplog.text


def test_modules_that_vllm_cannot_adapt_and_addresses_that_are_none(trainer: LLMPolicy) -> None:
    """Another trainer's password is not shown."""
    sets = trainer.engine, trainer.adapters, trainer.lora_settings, (1,)
    for name, kind in (("lm_head", "Linear"), ("c_attn", "Conv1D")):
        with pytest.raises(UnsuitableServerError, match=rf"target_modules has '{name}' \({kind}\)"):
            connect(["http://127.0.0.1:9"], *sets, Needs(None, 1, [(name, kind)]))
    with pytest.raises(ArgumentError, match="'localhost' was given, allowed: "):
        Server("localhost")
    with pytest.raises(ArgumentError, match="VLLM_API_KEY") as caught:
        Server("http://any:s3cret@127.0.0.1:8000/v1")
    assert "s3cret" not in str(caught.value)


# -- faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", [["500", "close", "half", "missing", "forgotten"], ["hang"]])
def test_a_fault_is_tried_again(
    faults: list[str], policy: LLMPolicy, make_server: MakeServer, plug: Plug
) -> None:
    """A server that has forgotten the adapters is given them again."""
    server, hangs, expected = make_server(), faults.count("hang"), decide(policy)
    time_limit = {"seconds": 2.0} if hangs else {}
    plug(policy, server, **time_limit).publish(NEWEST, policy.adapters.learning)
    for fault in faults:
        if fault == "forgotten":
            server.loaded.clear()
        else:
            server.faults.extend([fault] * (1 if hangs else 3))  # the second time it counts as gone
        assert [one.tokens for one in decide(policy)] == [one.tokens for one in expected]
        assert server.loaded and not server.faults
    wait_until(lambda: server.aborted == hangs)
    assert server.aborted == hangs


def test_a_request_that_always_fails_and_a_server_that_never_comes_back_stop(
    policy: LLMPolicy, make_server: MakeServer, plug: Plug
) -> None:
    server = make_server()
    patience = Patience(tries=1, first=0.01, poll=0.02, seconds=0.2)
    plug(policy, server, patience=patience).publish(NEWEST, policy.adapters.learning)
    server.faults.extend(["500"] * 1000)
    with pytest.raises(ServerError, match=r"status 500: EngineCore died; the request failed too often"):
        decide(policy)
    server.stop()
    try:
        with pytest.raises(ServerError, match="no vLLM server came back within 0 s"):
            decide(policy)
    finally:
        server.start()


def test_a_restart_in_mid_run_changes_nothing(
    make_server: MakeServer, plug: Plug, caplog: pytest.LogCaptureFixture
) -> None:
    """It forgets all adapters, which are loaded again; what was collected is not lost."""
    here, there = playing_itself(total_steps=3), playing_itself(total_steps=3)
    here.learn()
    server = make_server()
    plug(there.policy, server)
    played, stopped = 0, threading.Event()

    def on_progress(phase: str, done: int, total: int) -> None:
        nonlocal played
        played += 1
        if played == 6:
            server.stop()
            stopped.set()

    def restart() -> None:
        stopped.wait()
        wait_until(lambda: "waiting for it" in caplog.text)
        server.start()

    there.on_progress = on_progress
    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    with caplog.at_level(logging.WARNING):
        there.learn()
    thread.join()
    assert answers_of(there) == answers_of(here)
    # The noise is the run's own, so a choice differs only within the gap of a boundary: here none does.
    assert all(row["train/sampler_gap_max"] < 1e-4 for row in rows_of(there))
    assert "waiting for it" in caplog.text and "is back" in caplog.text
    assert len(server.loaded) > 1  # the pool's snapshots too


def test_one_of_two_replicas_is_gone(policy: LLMPolicy, make_server: MakeServer, plug: Plug) -> None:
    """The other one answers, and gets the new version; the first one gets it when it is back."""
    servers = [make_server(), make_server()]
    sampler = plug(policy, *servers)
    sampler.publish(NEWEST, policy.adapters.learning)
    servers[0].stop()
    for seed in (1, 2):
        randomise(policy, 0.1, seed)
        sampler.publish(NEWEST, policy.adapters.learning)
        expected = [one.tokens for one in decide(policy)]
    servers[0].start()
    servers[1].stop()
    assert [one.tokens for one in decide(policy)] == expected
    assert servers[0].loaded.keys() <= set(servers[1].ever_loaded) | set(servers[0].ever_loaded)
    assert len(servers[0].loaded) == 1
    servers[1].start()


def test_ctrl_c_leaves_no_request_behind(policy: LLMPolicy, make_server: MakeServer, plug: Plug) -> None:
    server = make_server()
    plug(policy, server).publish(NEWEST, policy.adapters.learning)
    server.faults.extend(["hang"] * 4)

    def count_hung() -> int:
        return 4 - len(server.faults)

    def interrupt() -> None:
        wait_until(lambda: count_hung() > 0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        decide(policy)
    # The server may read a request that was sent before only now.
    wait_until(lambda: server.aborted == count_hung())
    assert server.aborted == count_hung() > 0
    server.faults.clear()
    assert len(decide(policy)) == len(TEXTS)  # the next requests are as before


def test_a_trainer_that_starts_with_another_keeps_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one looks for folders that were left behind, before and after this one has locked its own."""
    settings, acquire, rmtree = make_policy().lora_settings, folders_module.FileLock.acquire, shutil.rmtree
    looks, removed = list[bool](), list[Path]()

    def acquire_late(lock: Any, *arguments: Any, **named: Any) -> Any:
        if not looks:
            looks.append(True)
            folders_module.remove_left_behind(tmp_path)
        return acquire(lock, *arguments, **named)

    def remove(folder: Path, **_: Any) -> None:
        removed.append(folder)
        with pytest.raises(folders_module.Timeout):  # nobody can lock it between the look and the removal
            folders_module.FileLock(folder / "in-use").acquire(timeout=0)
        rmtree(folder)

    monkeypatch.setattr(folders_module.FileLock, "acquire", acquire_late)
    with monkeypatch.context() as patch:
        patch.setattr(folders_module.shutil, "rmtree", remove)
        folders = folders_module.AdapterFolders(tmp_path, settings)
        folders_module.remove_left_behind(tmp_path)
    assert len(removed) == 1  # not the second time
    assert [folder.name for folder in tmp_path.iterdir()] == [folders.owner]
    assert not folders_module.is_left_behind(folders.owner, str(folders.folder / "000001"))
    folders.close()
    folders.folder.mkdir()  # as after a kill
    assert folders_module.is_left_behind(folders.owner, str(folders.folder / "000001"))
    folders_module.remove_left_behind(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_answer_that_is_compressed_or_too_long_is_not_read(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server()
    there = Server(server.url)
    server.faults.append("gzip")
    with pytest.raises(BrokenAnswerError, match="sent a compressed response: gzip"):
        loop.wait_for(there.complete({"prompt": []}))
    loop.wait_for(there.close())
    monkeypatch.setattr(vllm_server, "MOST", 10)
    with pytest.raises(BrokenAnswerError, match="sent more than 10 bytes"):
        loop.wait_for(there.list_cards())
    loop.wait_for(there.close())
