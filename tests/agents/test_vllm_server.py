"""The sampler on a real vLLM server on the CPU: ``make test-vllm``.

The model is SmolLM2, because vLLM's attention refuses the embedded model's heads of 16. The CPU runs vLLM's
model runner V1; GPUs run V2, which these tests have not seen.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.models import BASE, NEWEST
from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.sampling.vllm.answers import NodeQuery
from gamespiel.agents.sampling.vllm.sampler import VllmSampler
from tests.agents.fake_vllm import Plug, answers_of, plugging, read_text
from tests.agents.smollm2 import NAME
from tests.agents.toys import Stairs, make_policy, make_ppo, masks_of, randomise, rows_of

PYTHON = os.environ.get("VLLM_PYTHON", "")
"""The interpreter of that environment; without it the tests are skipped."""

READY_SECONDS = 600.0

pytestmark = [
    pytest.mark.launch,
    pytest.mark.weights("smollm2"),
    pytest.mark.skipif(not PYTHON, reason="no VLLM_PYTHON with vLLM's environment: make test-vllm"),
]


class RealVllm:
    """A server of one model.

    Args:
        model: The model's folder.
        log: The file that has its output.
        options: Further options of its command line.
        variables: Further variables of its environment.
    """

    def __init__(self, model: Path, log: Path, *options: str, **variables: str) -> None:
        self.model, self.log, self.options, self.variables = model, log, options, variables
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self, *, wait: bool = True) -> None:
        """Starts it, and waits until it answers."""
        settings = {
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }  # fmt: skip
        command = [
            str(Path(PYTHON).absolute()), "-m", "vllm.entrypoints.openai.api_server",
            "--model", str(self.model), "--host", "127.0.0.1", "--port", str(self.port),
            "--max-model-len", "1024", "--enforce-eager",
            "--generation-config", "vllm", "--enable-lora", "--max-lora-rank", "16", "--max-loras", "2",
            "--max-cpu-loras", "4", *self.options,
        ]  # fmt: skip
        path = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=path | settings | self.variables, cwd=self.log.parent,
                start_new_session=True,
            )  # fmt: skip
        ends = time.monotonic() + READY_SECONDS
        while wait and time.monotonic() < ends:
            assert self._process is not None and self._process.poll() is None, self.log.read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        if wait:
            raise TimeoutError(self.log.read_text()[-3000:])

    def count_answers(self) -> int:
        """Returns how many completions it has answered."""
        return self.log.read_text().count('"POST /v1/completions HTTP/1.1" 200')

    def kill(self) -> None:
        """Kills it and the processes that it started, at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (0, 1, 2, 12, 15, 120, 123)]
SPREAD = 0.02


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in float32, as vLLM reads it: it would read the wheel's blocks otherwise."""
    settings, folder = ModelSettings(NAME, dtype="float32"), tmp_path_factory.mktemp("smollm2")
    base = load_base(settings, "cpu", 0)
    if hasattr(base.config, "quantization_config"):
        del base.config.quantization_config
    base.save_pretrained(folder)
    load_tokenizer(settings).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(model_folder: Path) -> Iterator[RealVllm]:
    vllm = RealVllm(model_folder, model_folder / "float32.log", "--dtype", "float32")
    vllm.start()
    yield vllm
    vllm.kill()


@pytest.fixture
def replica(model_folder: Path, server: RealVllm) -> Iterator[RealVllm]:
    """A second server of the same model."""
    vllm = RealVllm(model_folder, model_folder / "replica.log", "--dtype", "float32")
    vllm.start()
    yield vllm
    vllm.kill()


@pytest.fixture(scope="module")
def sixteen(model_folder: Path) -> Iterator[RealVllm]:
    """A server in bfloat16, whose head is in float32, as `gamespiel vllm-command` asks for it."""
    vllm = RealVllm(
        model_folder, model_folder / "bfloat16.log", "--dtype", "bfloat16",
        "--hf-overrides", '{"head_dtype": "float32"}', "--logprobs-mode", "processed_logprobs",
        "--no-enable-chunked-prefill", "--max-num-batched-tokens", "1024",
    )  # fmt: skip
    vllm.start()
    yield vllm
    vllm.kill()


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    with plugging("Which number is the largest: 3, 12, 7 or 25?", folder=tmp_path) as plug:
        yield plug


def smollm2(dtype: str = "float32") -> LLMPolicy:
    return make_policy(adapters=SPREAD, lora={}, model=ModelSettings(NAME, dtype=dtype))


def gap_of(sampler: VllmSampler, policy: LLMPolicy, name: str) -> float:
    """Returns the largest difference at all nodes of answers of one to three tokens and their ends."""
    queries = [
        NodeQuery(name, (*prompt, *node.prefix), node.children)
        for prompt in policy.prompts(["x", "seat 0"])
        for trie in policy.answers.make_tries(["x"] * len(LEGAL), LEGAL)
        for node in trie.nodes
    ]
    assert max(len(query.text) for query in queries) > min(len(query.text) for query in queries) + 2
    local_rows, theirs = sampler._probe.reader.read_nodes(queries), sampler._answers.read_nodes(queries)
    return max(float(np.abs(a - b).max()) for a, b in zip(local_rows, theirs, strict=True))


@torch.no_grad()
def scorers_gap(policy: LLMPolicy, decisions: Sequence[Decision]) -> float:
    """Returns the mean difference between the server's log-probabilities and the scorer's."""
    scored = policy.scorer.score(decisions).log_probs.numpy()
    return float(np.abs(scored - np.concatenate([one.log_probs for one in decisions])).mean())


def test_log_probabilities_are_the_scorers(server: RealVllm, plug: Plug) -> None:
    """In float32 to 1e-3, without adapters and with them; a new version changes them at once.

    The server takes at most 128 tokens per request: 300 children are asked for in three.
    """
    policy = smollm2()
    sampler = plug(policy, server)
    assert gap_of(sampler, policy, BASE) < 1e-3
    moved: list[np.ndarray[Any, Any]] = []
    for seed in (1, 2):
        randomise(policy, SPREAD, seed)
        sampler.publish(NEWEST, policy.adapters.learning)
        assert gap_of(sampler, policy, NEWEST) < 1e-3
        moved.append(policy.distribution(["x"], [(0, 1, 2)])[0])
    assert np.abs(moved[0] - moved[1]).max() > 1e-3
    queries = [
        NodeQuery(NEWEST, prompt, tuple(range(300, 600))) for prompt in policy.prompts(["x", "seat 0"])
    ]
    local_rows, theirs = sampler._probe.reader.read_nodes(queries), sampler._answers.read_nodes(queries)
    for mine, other in zip(local_rows, theirs, strict=True):
        assert mine.shape == other.shape == (300,)
        assert np.abs(mine - other).max() < 1e-3


def steps() -> LLMPPO:
    """Three steps of answers of one to three digits."""
    settings = {"lora": {"r": 8}, "model": ModelSettings(NAME, dtype="float32")}
    return make_ppo(
        Stairs, batch_size=4, adapters=SPREAD, total_steps=3, policy_kwargs=settings,
        learning_rate=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("names", [["server"], ["server", "replica"]])
def test_a_run_with_a_kill_and_a_restart_is_the_local_one(
    names: list[str], plug: Plug, request: pytest.FixtureRequest
) -> None:
    """All answer at first; the last is killed in the second step.

    One alone is waited for until another one answers on its port. Of two, it does not matter whether the
    killed one answers again in time.
    """
    here, there, killed = steps().learn(), steps(), threading.Event()
    servers = [request.getfixturevalue(name) for name in names]
    plug(there.policy, *servers)

    def on_progress(phase: str, done: int, total: int) -> None:
        if there.step == 1 and phase == "episodes played" and not killed.is_set():
            killed.set()
            assert all(server.count_answers() > 0 for server in servers)
            servers[-1].kill()
            servers[-1].start(wait=False)

    there.on_progress = on_progress
    rows = rows_of(there.learn())
    assert killed.is_set() and len(rows) == 3
    # A draw within the gap of a boundary may be another one: of some hundred draws, one with 1e-4.
    assert answers_of(there) == answers_of(here)
    assert all(row["train/sampler_gap_max"] < 1e-3 for row in rows)


def test_texts_are_tokens_in_and_tokens_out(server: RealVllm, plug: Plug) -> None:
    """The same address is the same text; log-probabilities are the scorer's, the end's too."""
    policy = smollm2()
    sampler = plug(policy, server)
    sampler.publish(NEWEST, policy.adapters.learning)
    free = policy.free_text(12)
    noise = [Address(1, Purpose.ACTIONS, 0, 0, episode) for episode in range(6)]
    texts = [f"Say the number {i} and nothing else." for i in range(6)]
    first, again = (policy.decide(texts, None, noise, constraint=free) for _ in range(2))
    assert [one.tokens for one in first] == [one.tokens for one in again]
    assert len({one.tokens for one in first}) > 1
    for one in first:
        log_probs = read_text(sampler._probe.reader, NEWEST, one.prompt, one.tokens)
        assert one.log_probs == pytest.approx(log_probs, abs=1e-3)
    (greedy, *_) = policy.decide(texts, None, None, constraint=free)
    assert len(greedy.tokens) > 0


def test_sixteen_bits_stay_within_their_limit(sixteen: RealVllm, plug: Plug) -> None:
    """A server and a trainer in bfloat16; replies at 0.7 have the temperature's log-probabilities."""
    policy = smollm2("bfloat16")
    masks, texts = masks_of([LEGAL[i % 3] for i in range(48)]), [f"seat {i}" for i in range(48)]
    noise = [Address(1, Purpose.ACTIONS, 0, 0, episode) for episode in range(48)]
    here = policy.decide(texts, masks, noise)
    plug(policy, sixteen).publish(NEWEST, policy.adapters.learning)
    there = policy.decide(texts, masks, noise)
    assert scorers_gap(policy, there) < 0.15
    assert sum(ours.tokens != theirs.tokens for ours, theirs in zip(here, there, strict=True)) <= 4
    cooled = policy.free_text(24, temperature=0.7)
    written = policy.decide(["Tell me a story."] * 4, None, noise[:4], constraint=cooled)
    # More tokens of prompts at once than a batch has: the server would end if it split them.
    long = policy.decide(["Tell me a story. " * 60] * 8, None, noise[:8], constraint=policy.free_text(2))
    assert len(long) == 8 and len(long[0].prompt) > 256
    assert sum(len(one.tokens) for one in written) > 24 and scorers_gap(policy, written) < 0.15
