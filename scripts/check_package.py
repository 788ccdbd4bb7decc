"""The test of what is published: ``make package``.

It builds both distributions of the tracked files, has twine check them, and installs the wheel into new
environments, away from the repository: without the trainer, where every environment and every command that
needs no model has to work and the others say what to install; and with it, where a run is trained. The last
line has the seconds that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]
PINS = ("constraints/main.txt", "constraints/package.txt")
PLAY = (ROOT / "scripts/play_installed.py").read_text()
ROOMS = {"task_gym", "game_gym", "trace_gym", "gamespiel"}
TRAINER = "the packages torch, transformers, peft, stable_baselines3, sb3_contrib, matplotlib and filelock"
TRAIN = "not installed; pip install 'gamespiel[train]'"
PICTURE = """
import gymnasium as gym
env = gym.make("game_gym:GameSpiel-v0", game="hex", render_mode="rgb_array")
env.reset()
env.render()
"""


class Environment:
    """A new virtual environment. Programs in it see neither the repository nor its settings.

    Args:
        place: Its folder; programs run in the folder ``work`` beside it.
        python: The interpreter that makes it; None if it is there.
    """

    def __init__(self, place: Path, python: str | None = None) -> None:
        if python is not None:
            subprocess.run([python, "-m", "venv", "--without-pip", place], check=True)
        self.bin, self.work = place / "bin", place.parent / "work"
        self.work.mkdir(exist_ok=True)

    def install(self, *what: str | Path) -> None:
        """Installs packages at their pins."""
        pins = [f"--constraint={ROOT / name}" for name in PINS]
        python = str(self.bin / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-qq", *pins, *what], check=True, cwd=self.work)

    def run(self, program: str, *words: str | Path, stdin: str = "", status: int = 0) -> str:
        """Runs a program of the environment; returns its output and errors.

        Raises:
            SystemExit: it ended with another status.
        """
        command = [str(self.bin / program), *map(str, words)]
        out, err = subprocess.PIPE, subprocess.STDOUT
        done = subprocess.run(
            command, cwd=self.work, env=clean(), input=stdin, text=True, stdout=out, stderr=err, check=False
        )
        if done.returncode != status:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}, not {status}:\n{done.stdout}")
        return done.stdout

    def fails(self, sentence: str, program: str, *words: str | Path, status: int = 2) -> None:
        """Checks that a program ends with one line, or with an error, that says this."""
        said = self.run(program, *words, status=status).splitlines()
        if not said or not said[-1].endswith(sentence) or (status == 2 and len(said) > 1):
            sys.exit(f"{program} {' '.join(map(str, words))}\nshould say: {sentence}\nsaid: {said}")


def main(argv: Sequence[str] | None = None) -> None:
    """Builds and checks everything, or with ``--no-train`` what needs no trainer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--no-train", action="store_true", help="leave the trainer out")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the files there, to be published")
    arguments = parser.parse_args(argv)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gamespiel-package-") as folder:
        wheel = build(Path(folder))
        check_names(wheel)
        small = Environment(Path(folder, "small"), arguments.python)
        small.install(wheel)
        play_without_trainer(small)
        run = None
        if not arguments.no_train:
            large = Environment(Path(folder, "large"), arguments.python)
            large.install("torch")  # by itself and first, as in the Makefile
            large.install(f"{wheel}[train]")
            run = train(large)
            train_from_source(large, get_files(wheel)[0])
        see_without_trainer(small, wheel, run)
        if arguments.keep is not None:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for file in get_files(wheel):
                shutil.copy2(file, arguments.keep)
            print(
                f"to publish: twine upload {' '.join(str(arguments.keep / p.name) for p in get_files(wheel))}"
            )
    print(f"the package is sound: {time.monotonic() - began:.0f} s")


def get_files(wheel: Path) -> list[Path]:
    """Returns the files of a build: the source distribution and the wheel."""
    return [*wheel.parent.glob("*.tar.gz"), wheel]


def clean() -> dict[str, str]:
    """Returns this process's variables without those that lead Python to other modules."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def build(folder: Path) -> Path:
    """Builds the source distribution and, from it, the wheel; returns the wheel, which twine has checked."""
    tools = Environment(folder / "tools", sys.executable)
    tools.install("build", "twine", "setuptools")
    source, dist = folder / "source", folder / "dist"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in tracked.stdout.split("\0")[:-1]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    tools.run("python", "-m", "build", "--no-isolation", "--outdir", dist, source)
    print(tools.run("twine", "check", "--strict", *sorted(dist.iterdir())).strip())
    (wheel,) = dist.glob("*.whl")
    return wheel


def check_names(wheel: Path) -> None:
    """Checks that types, licences and data are in the wheel, and nothing under other names."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    wanted = {f"{room}/py.typed" for room in ROOMS} | {
        "gamespiel/agents/tiny/model.safetensors",
        "gamespiel/configs/tiny.yaml",
        "gamespiel/replay/viewer.js",
    }
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    # verifiers finds a taskset by the name of a module at the top.
    if tops != ROOMS or not wanted <= set(names) or licences != {"LICENSE", "NOTICE"}:
        sys.exit(f"{wheel.name} has {tops} and {licences}, and lacks {wanted - set(names)}")


def play_without_trainer(small: Environment) -> None:
    """Plays and runs what needs no trainer; what does need it has to say so in a sentence."""
    print(small.run("python", "-c", PLAY).strip())
    listed = json.loads(small.run("gamespiel", "games", "--json"))
    assert "leduc_poker" in {row["game"] for row in listed}, listed[:1]
    assert "given up" in small.run("gamespiel", "play", "--game", "tic_tac_toe", stdin="4\nquit\n")
    json.loads(small.run("gamespiel", "schema"))
    with endpoint() as address:
        agent = ("--agent", f"openai:model@{address}", "--env.task_id", "200000000")
        said = small.run("gamespiel", "eval", *agent, "--num_episodes", "2", "--output", "endpoint.json")
    assert "PyTorch" not in said and (small.work / "endpoint.json").is_file(), said
    two = ("--num_episodes", "2", "--output", "agent.json")
    for words in (["random", "--exact"], ["first", "--env.game", "hex"], ["echo", "--preset", "tiny-trace"]):
        said = small.run("gamespiel", "eval", "--agent", *words, *two)
        assert "PyTorch" not in said and json.loads((small.work / "agent.json").read_text()), said
    for command in (["train"], ["train", "--plan"], ["eval", "--model.model_name", "tiny"]):
        small.fails(f"gamespiel: {command[0]}: {TRAINER} are {TRAIN}", "gamespiel", *command)
    server = "the package starlette is not installed; pip install 'gamespiel[serve]'"
    small.fails(server, "gamespiel", "serve")
    sentence = f"{TRAINER} are {TRAIN}"
    for code in ("import gamespiel.agents.ppo", "import gamespiel; gamespiel.load_policy('runs')"):
        small.fails(sentence, "python", "-c", code, status=1)
    render = "the package pillow is not installed; pip install 'gamespiel[render]'"
    small.fails(render, "python", "-c", PICTURE, status=1)
    print(
        "without the trainer: games, play, schema and eval of agents and endpoints work, "
        "the others say why not"
    )


def train(large: Environment) -> Path:
    """Trains two steps; returns the run's folder."""
    large.run("gamespiel", "train", "--preset", "tiny", "--ppo.num_train_steps", "2", "--output_dir", "run")
    run = large.work / "run"
    rows = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in rows][-1] == 2, rows
    print("with the trainer: two steps of the preset tiny")
    return run


def train_from_source(large: Environment, source: Path) -> None:
    """Trains a step with ``train.py`` of the unpacked source distribution, which has no symbolic links."""
    with tarfile.open(source) as archive:
        archive.extractall(large.work, filter="data")
    folder = large.work / source.name.removesuffix(".tar.gz")
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import gamespiel.agents; print(gamespiel.agents)"
    )
    assert f"{folder / 'agents'}" in large.run("python", "-P", "-c", code)
    large.run("python", folder / "train.py", "--ppo.num_train_steps", "1", "--output_dir", "run-of-source")
    assert (large.work / "run-of-source" / "summary.json").is_file()
    print("from the unpacked source distribution: a step of train.py")


def see_without_trainer(small: Environment, wheel: Path, run: Path | None) -> None:
    """Serves games without the trainer and, if there is a run, shows and exports its games."""
    if run is not None:
        small.run("gamespiel", "replay", run, "--html", "games.html")
        small.run("gamespiel", "export", run, "--output", "games.jsonl")
        assert (small.work / "games.html").stat().st_size > 10_000, "the page of games is empty"
        for command in ("watch", "eval"):
            sentence = f"gamespiel: {command}: {TRAINER} are {TRAIN}"
            small.fails(sentence, "gamespiel", command, "--checkpoint", run)
    small.install(f"{wheel}[serve]")
    serve = [str(small.bin / "gamespiel"), "serve", "--port", "0"]
    with subprocess.Popen(
        serve, cwd=small.work, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            body = {"method": "reset", "args": [], "kwargs": {"task_id": 200000000, "seed": 3}}
            asked = Request(
                f"{address}/call", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with urlopen(asked, timeout=60) as answer:
                assert "leduc_poker" in answer.read().decode()
        finally:
            server.terminate()
    print("without the trainer: replay, export and serve work" if run else "without the trainer: serve works")


@contextmanager
def endpoint() -> Iterator[str]:
    """Yields the address of a model that always answers 0."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            reply = {"choices": [{"message": {"role": "assistant", "content": "0"}, "finish_reason": "stop"}]}
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


if __name__ == "__main__":
    main()
