"""The wheel: the import names that it installs, and its use without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from task_gym.errors import ImportNameError

ROOT = Path(__file__).parents[2]


def copy_tracked(folder: Path) -> None:
    """Copies the tracked files, as a clone has them."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    copy = ["tar", "--null", "--files-from=-", "--create"]
    archive = subprocess.run(copy, cwd=ROOT, input=tracked, check=True, capture_output=True).stdout
    folder.mkdir()
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive, check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the tracked files, so that the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_tracked(folder / "source")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            folder / "source",
        ],
        check=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_no_name_that_belongs_to_another_distribution(wheel: Path) -> None:
    """``agents`` is openai-agents' import name; any package may use ``configs``, ``tests`` or ``docs``."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "task_gym", "game_gym", "trace_gym", "gamespiel", "gamespiel_games.py",
    }  # fmt: skip
    room = {f"gamespiel/{path.relative_to(ROOT)}" for path in (ROOT / "agents").rglob("*.py")}
    assert room <= set(names) and "gamespiel/agents/tiny/model.safetensors" in names
    assert "gamespiel/configs/tiny.yaml" in names
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_it_trains_beside_another_package_called_agents(wheel: Path, tmp_path: Path) -> None:
    """A user has no checkout, and another distribution's ``agents`` in the same place."""
    site = tmp_path / "site"
    (site / "agents").mkdir(parents=True)
    (site / "agents" / "__init__.py").write_text("OWNER = 'somebody else'\n")
    zipfile.ZipFile(wheel).extractall(site)
    assert (site / "agents" / "__init__.py").read_text() == "OWNER = 'somebody else'\n"
    code = (
        "import sys, agents, gamespiel.agents.ppo\n"
        "from gamespiel.cli import main\n"
        f"assert gamespiel.__file__.startswith({str(site)!r}), gamespiel.__file__\n"
        "assert agents.OWNER == 'somebody else'\n"
        "sys.argv[0] = '/usr/bin/gamespiel'\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    train = "train --env.game kuhn_poker --ppo.batch_size 4 --ppo.num_train_steps 1 --run.eval_games 0"
    done = subprocess.run(
        [sys.executable, "-c", code, *train.split(), "--run.num_threads", "1", "--output_dir", "run"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "gamespiel eval --checkpoint run" in done.stdout  # there is no eval.py to name
    assert (tmp_path / "run" / "summary.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("link", [None, "../agents"], ids=["no link", "a link that is a text file"])
def test_a_checkout_trains_without_links(link: str | None, tmp_path: Path) -> None:
    """Windows and some archives have none; an older checkout may have a text file in the link's place."""
    clone = tmp_path / "clone"
    copy_tracked(clone)
    assert not [path for path in clone.rglob("*") if path.is_symlink()]
    if link is not None:
        (clone / "gamespiel" / "agents").write_text(link)
    if link is None:  # the other way is the same from the import on
        train = "train.py --env.game kuhn_poker --ppo.batch_size 4 --ppo.num_train_steps 1 --run.eval_games 0"
        done = subprocess.run(
            [sys.executable, "-P", *train.split(), "--run.num_threads", "1", "--output_dir", "run"],
            cwd=clone, env={**os.environ, "PYTHONPATH": str(clone)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (clone / "run" / "summary.json").is_file()
    code = "import gamespiel.agents.ppo as ppo; print(ppo.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == clone / "agents" / "ppo.py"


def test_the_bare_name_says_which_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the repository its folder ``agents/`` comes first on the path, before openai-agents."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "agents", raising=False)
    with pytest.raises(ImportNameError, match=r"import 'gamespiel\.agents'; if you want .* openai-agents"):
        __import__("agents")
    with pytest.raises(ImportError):  # what optional imports catch
        __import__("agents.policy")
