"""Installations: without the extra "train", from a checkout, and as the set-up files say.

``make package`` tries them for real.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import reload
from pathlib import Path

import pytest
import yaml

import gamespiel
from gamespiel.agents import required
from gamespiel.agents.installed import TRAINER, check_trainer
from gamespiel.cli import main
from task_gym import picture
from task_gym.errors import ImportNameError, MissingPackageError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("line", ["train", "train --plan 24", "eval --model.model_name tiny --env.game hex"])
def test_a_command_says_what_to_install(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert main(line.split()) == 2
    sentence = "the package torch is not installed; pip install 'gamespiel[train]'"
    assert capsys.readouterr() == ("", f"gamespiel: {line.split()[0]}: {sentence}\n")


HIDDEN = """
import sys
for name in ("matplotlib", "peft", "sb3_contrib", "stable_baselines3", "torch", "transformers"):
    sys.modules[name] = None  # as if it were not installed
from gamespiel.cli import main
for line in sys.argv[1:]:
    assert main([*line.split(), "--game", "kuhn_poker", "--num_episodes", "2"]) == 0, line
"""


@pytest.mark.launch
@pytest.mark.sample
def test_agents_are_measured_without_the_trainer(tmp_path: Path) -> None:
    """In a process of its own, because this one has imported PyTorch."""
    commands = ["eval --agent random --exact --output results.json", "eval --compare random mcts:2"]
    commands += ["exploit random --methods exact"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    hidden = [sys.executable, "-c", HIDDEN, *commands]
    done = subprocess.run(hidden, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    # Half (bet) of (1 + 0) / 2, less half (pass) of (0 + (1 + 0) / 2) / 2.
    assert results["exact"]["policy"]["values"] == pytest.approx([0.125, -0.125])


LIGHT = """
import runpy, sys

def check(*heavy):
    assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)

import gamespiel
check("torch", "transformers", "gamespiel.assembly", "httpx")
for script in ("train.py", "eval.py"):
    sys.argv = [script, "--help"]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        assert not ended.code
check("torch", "transformers", "pyspiel", "rich")
gamespiel.cli.main(["train", "--plan", "12", "--preset", "tiny"])
check("torch", "transformers", "peft", "bitsandbytes")
"""


@pytest.mark.launch
@pytest.mark.sample
def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    """Not for the package, for help, and for a plan for a card of a known size."""
    done = subprocess.run([sys.executable, "-c", LIGHT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage: gamespiel train" in done.stdout and "usage: gamespiel eval" in done.stdout


def test_functions_and_modules_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_trainer("train")  # the tests have all of it
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("load_policy", "make_env"):
        with pytest.raises(ImportError, match=rf"gamespiel\.{name}: the package torch is not .*\[train\]'$"):
            getattr(gamespiel, name)
    with pytest.raises(MissingPackageError, match=r"^gamespiel\.agents: the package torch is not installed"):
        reload(required)
    for name in ("peft", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=r"^train: the packages torch, peft and matplotlib are not"):
        check_trainer("train")


def test_a_picture_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, package in (("matplotlib", "matplotlib"), ("PIL", "pillow")):
        monkeypatch.setitem(sys.modules, module, None)
        picture._drawn.cache_clear()
        picture._font.cache_clear()
        message = rf"^render_mode 'rgb_array': the package {package} is not installed; .*\[render\]'$"
        with pytest.raises(MissingPackageError, match=message):
            picture.picture("a")


# -- a checkout --------------------------------------------------------------------------------------------


def copy_tracked(folder: Path) -> None:
    """Copies the tracked files, as a clone has them, but for those that are deleted here."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    names = [name for name in tracked.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists()]
    copy = ["tar", "--null", "--files-from=-", "--create"]
    archive = subprocess.run(copy, cwd=ROOT, input=b"\0".join(names), check=True, capture_output=True).stdout
    folder.mkdir()
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive, check=True)


@pytest.mark.launch
def test_a_checkout_needs_no_link(tmp_path: Path) -> None:
    """Windows and some archives have none; an older checkout may have a text file in the link's place."""
    clone = tmp_path / "clone"
    copy_tracked(clone)
    assert not [path for path in clone.rglob("*") if path.is_symlink()]
    (clone / "gamespiel" / "agents").write_text("../agents")
    code = "import gamespiel.agents.ppo as ppo; print(ppo.__file__)"
    printed = [sys.executable, "-c", code]
    process = subprocess.run(printed, cwd=clone, capture_output=True, text=True, check=True)
    assert Path(process.stdout.strip()) == clone / "agents" / "ppo.py"


@pytest.mark.launch
def test_a_wheel_has_nothing_of_an_earlier_build(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    clone = tmp_path / "clone"
    copy_tracked(clone)
    gone = clone / "build" / "lib" / "gamespiel" / "gone.py"
    gone.parent.mkdir(parents=True)
    gone.touch()
    pip = f"-m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir {tmp_path} ."
    subprocess.run([sys.executable, *pip.split()], cwd=clone, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "gamespiel/cli.py" in names and "gamespiel/gone.py" not in names


def test_the_bare_name_says_which_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the repository its folder ``agents/`` comes first on the path, before openai-agents."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "agents", raising=False)
    with pytest.raises(ImportNameError, match=r"import 'gamespiel\.agents'; if you want .* openai-agents"):
        __import__("agents")
    with pytest.raises(ImportError):  # what optional imports catch
        __import__("agents.policy")


# -- the set-up files --------------------------------------------------------------------------------------


def _declared(extra: str | None = None) -> set[str]:
    """The distributions that an extra names, or those of every installation."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    options, extras = parser["options"], parser["options.extras_require"]
    lines = options["install_requires"] if extra is None else extras[extra]
    return {_normal(re.split(r"[<>=\[]", line)[0]) for line in lines.splitlines() if line.strip()}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_to_one_version() -> None:
    text = (ROOT / "constraints" / "main.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pinned = [_normal(line.split("==")[0]) for line in lines]
    assert len(pinned) == len(set(pinned))
    declared = [_declared(extra) for extra in (None, "train", "render", "dev")]
    assert set().union(*declared) - {"gamespiel"} <= set(pinned)
    assert "torch==2.13.0" in lines


def test_no_learning_library_comes_with_the_environments() -> None:
    """The packages without which ``gamespiel.agents`` refuses are in the extra "train", and only there."""
    trainer = {_normal(name) for name in TRAINER}
    assert trainer <= _declared("train") and not _declared("train") & _declared()
    # The extra's other names come with PEFT (accelerate), transformers (the next three), or are imported
    # where a run asks for them: for a GGUF file, and for weights of 4 or 8 bits.
    come = {"accelerate", "huggingface-hub", "safetensors", "tokenizers"}
    assert _declared("train") - trainer == come | {"gguf", "bitsandbytes"}


def test_versions_agree() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    assert parser["metadata"]["version"] == gamespiel.__version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == gamespiel.__version__
    assert cited["license"] == parser["metadata"]["license_expression"]
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # those that the format requires
