"""What a system lacks is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from task_gym.errors import ArgumentError
from task_gym.remote import read_settings

ELSEWHERE = """
import sys, os, signal
import asyncio, concurrent.futures, multiprocessing, subprocess, tempfile
import gymnasium, httpx, numpy, pydantic, pyspiel
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getpgrp", "getuid", "killpg", "register_at_fork", "setsid"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGXCPU"):
    delattr(signal, name)
import game_gym, trace_gym
sys.platform = "win32"
import json
env = gymnasium.make("GameSpiel-v0", game="leduc_poker")
_, info = env.reset(seed=1)
done = False
while not done:
    _, _, done, _, info = env.step(info["legal_actions"][0])
said = [info["result"]]
env = gymnasium.make("CodeTrace-v0", level=1)
env.reset(seed=1)
said.append(env.step("?")[4]["result"])
for more in ({"id": "CodeTrace-v0", "source": sys.argv[1]},
             {"id": "GameSpiel-v0", "task_id": 0, "backend": "affinetes", "mode": "docker"}):
    try:
        gymnasium.make(**more).reset(seed=1)
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""


def test_docker_needs_locks_on_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    message = r"^mode: 'docker' was given on the system .* lacks the locks .* allowed: Linux and macOS, or"
    with pytest.raises(ArgumentError, match=message):
        read_settings({"mode": "docker"}, "game")
    read_settings({"mode": "url", "base_url": "http://127.0.0.1:8000"}, "game")


def test_the_rest_works_where_linux_own_modules_are_missing(tmp_path: Path) -> None:
    programs = tmp_path / "programs.jsonl"
    programs.write_text(json.dumps({"program": "print(1)", "inputs": None}) + "\n")
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, str(programs)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    game, trace, stranger, docker = json.loads(done.stdout.splitlines()[-1])
    assert game in ("win", "loss", "draw") and trace == "loss"
    assert "this system is 'win32', allowed: 'linux'" in stranger
    assert docker.startswith("ArgumentError: mode: 'docker' was given on the system 'win32'")
