"""README and docs: what they show is what happens, and what they tell to type can be typed."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import game_gym.opponents  # noqa: F401  (registers them, before the registry is copied)
from game_gym.games import DECLARED
from gamespiel.agents.runs import kept
from gamespiel.cli import build_parser, split_overrides
from task_gym import opponents, rewards
from tests.gamespiel.conftest import finished, one_thread

__all__ = ["finished", "one_thread"]

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/python.md",
    "docs/wrappers.md",
    "docs/curriculum.md",
    "docs/scores.md",
    "docs/trace.md",
    "docs/games.md",
    "docs/models.md",
    "docs/configuration.md",
    "docs/training.md",
    "docs/terminal.md",
    "docs/plug-in.md",
    "docs/start.md",
    "docs/concepts.md",
    "docs/qwen.md",
    "docs/own.md",
    "docs/comparisons.md",
    "docs/affinetes.md",
    "docs/self-play.md",
    "docs/compare.md",
    "docs/leaderboard.md",
    "docs/scale.md",
]
PRINTING = ["README.md", "docs/start.md", "docs/concepts.md", "docs/own.md"]
SESSIONS = [
    *PRINTING,
    *("docs/python.md", "docs/wrappers.md", "docs/curriculum.md", "docs/affinetes.md"),
]
"""Pages whose Python blocks are one session; the blocks of other pages are tested in tests/docs."""

QUICK = (
    "python train.py --help",
    "python eval.py --checkpoint RUN --exact",
    "python eval.py --checkpoint RUN --num_episodes 100 --opponent mcts:100",
    "python eval.py --model.model_name tiny --env.game leduc_poker",
    "python eval.py --agent mcts:100 --opponent random --num_episodes 100",
    "python eval.py --env trace --agent echo --num_episodes 500",
)
"""Commands of README that take less than a minute."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    """The lines of a page's shell blocks, without comments; those that go on in the next line are one."""
    blocks = [block.replace("\\\n", " ") for block in re.findall(r"```bash\n(.*?)```", read(page), re.DOTALL)]
    lines = [re.sub(r"\s+#\s.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Games and opponents that a page adds are gone afterwards."""
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
    monkeypatch.setattr(rewards, "_REGISTRY", {})
    declared = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(declared)


@pytest.mark.parametrize("page", SESSIONS)
@pytest.mark.usefixtures("registries")
def test_python_blocks_run_in_order_as_they_are(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```(?:\n\nprints\n\n```text\n(.*?)```)?", read(page), re.DOTALL)
    assert blocks
    namespace: dict[str, Any] = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), namespace)
        assert not shown or printed.getvalue() == shown
    assert (page in PRINTING) == any(shown for _, shown in blocks)


@pytest.fixture
def parsed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, finished: Path, request: pytest.FixtureRequest
) -> list[Any]:
    """The options that the commands hand on, in a folder with the files that the pages name."""
    made: list[Any] = []
    training, evaluation = ModuleType("gamespiel.training"), ModuleType("gamespiel.evaluation")
    external, comparison = ModuleType("gamespiel.external"), ModuleType("gamespiel.comparison.run")
    training.train = lambda config, resume=None: made.append(config)  # type: ignore[attr-defined]
    evaluation.evaluate = made.append  # type: ignore[attr-defined]
    external.evaluate_endpoint = made.append  # type: ignore[attr-defined]
    comparison.compare = made.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gamespiel.external", external)
    monkeypatch.setitem(sys.modules, "gamespiel.comparison.run", comparison)
    monkeypatch.setitem(sys.modules, "gamespiel.training", training)
    monkeypatch.setitem(sys.modules, "gamespiel.evaluation", evaluation)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which --import adds the folder
    for name in ("mine.json", "mine.yaml"):
        Path(name).write_text("{}")
    Path("mine.py").write_text("")
    for file in ("leduc.yaml", "week.yaml"):
        Path(file).write_text("{}")
    talk, served = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "affinetes.md").read_text(), re.DOTALL)
    Path("talk.yaml").write_text(talk)
    Path("served.yaml").write_text(served)
    for run in ("RUN", "runs/first", "runs/leduc", "runs/start"):
        shutil.copytree(finished, run)
    if "@best" in request.node.callspec.params.get(
        "line", ""
    ):  # the page begins this run by --resume auto, where no folder is yet
        shutil.copytree(finished, "runs/week")
        kept.mark_best(Path("runs/week"), kept.step_of(kept.find_whole(Path("runs/week"))), "score", 0.5)
    return made


LINES = sorted({line for page in PAGES for line in commands(page)})
SCRIPTS = [line for line in LINES if re.match(r"python (train|eval)\.py\b", line)]


@pytest.mark.parametrize("line", SCRIPTS)
def test_train_and_eval_read_what_the_pages_write(line: str, parsed: list[Any]) -> None:
    from gamespiel.cli import main

    _, script, *arguments = shlex.split(line)
    with pytest.raises(SystemExit, match=r"^0$") if "--help" in arguments else contextlib.nullcontext():
        assert main([script.removesuffix(".py"), *arguments]) == 0
        assert len(parsed) == ("--plan" not in arguments)  # which is quick, and runs


@pytest.mark.parametrize("line", [line for line in LINES if line not in SCRIPTS])
def test_other_commands_are_read_by_their_own_parsers(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *arguments = shlex.split(line)
    if program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
        return
    if program == "docker":  # which not every machine has
        assert arguments[:2] == ["build", "-f"] and (ROOT / arguments[2]).is_file()
        return
    if program == "afs":  # in a process of its own: it patches asyncio
        read = (
            "import sys; from affinetes.cli.main import create_parser as new; new().parse_args(sys.argv[1:])"
        )
        subprocess.run([sys.executable, "-c", read, *arguments], check=True, capture_output=True)
        return
    if program in ("hf", "transformers", "vllm"):  # others' programs, which talk to the hub or need more
        assert (program, arguments[0]) in {("hf", "upload"), ("transformers", "serve"), ("vllm", "serve")}
        return
    if program == "torchrun":  # PyTorch's
        from torch.distributed.run import get_args_parser

        place = arguments.index("train.py")
        get_args_parser().parse_args(arguments[: place + 1])
        program, arguments = "gamespiel", ["train", *arguments[place + 1 :]]
    if program == "ray":  # the extra "ray"
        assert arguments[0] == "start"
        return
    if (program, arguments[0]) == ("python", "-c"):
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return
    if arguments[:2] == ["-m", "gamespiel"]:
        program, arguments = "gamespiel", arguments[2:]
    if program == "gamespiel":
        build_parser().parse_args(split_overrides(arguments)[0])
        return
    assert (program, arguments[0]) == ("python", "-m"), f"who reads {line!r}?"
    module = importlib.import_module(arguments[1])
    if arguments[1].startswith("benchmarks."):
        monkeypatch.setattr(module, "parse", _only_parse)
        with pytest.raises(_ParsedError):
            module.main(arguments[2:])


class _ParsedError(Exception):
    """Ends a benchmark once its options are read."""


def _only_parse(parser: Any, argv: Any) -> None:
    parser.add_argument("--keep", action="store_true")  # which the real one adds
    parser.parse_args(argv)
    raise _ParsedError


def test_the_quick_commands_are_those_of_the_page() -> None:
    assert [line for line in QUICK if line not in commands("README.md")] == []


@pytest.mark.trains
@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=pytest.mark.sample if "--exact" in line else ()) for line in QUICK]
)
@pytest.mark.usefixtures("one_thread")
def test_quick_commands_run(
    line: str,
    tmp_path: Path,
    finished: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, which has imported everything. Only help, which is quick, is a process of its own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "RUN")
    _, script, *arguments = shlex.split(line)
    shutil.copy(ROOT / script, script)
    if "--help" in arguments:
        subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True)
        return
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    assert ended.value.code == 0
    assert "written to " in capsys.readouterr().out


@pytest.mark.trains
@pytest.mark.parametrize("page, count", [("docs/start.md", 5), ("docs/terminal.md", 12)])
@pytest.mark.usefixtures("one_thread")
def test_all_commands_of_a_page_run_in_order(
    page: str, count: int, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gamespiel.cli import main

    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "RUN")
    lines = [line for line in commands(page) if not line.startswith("make ")]
    assert len(lines) == count
    for line in lines:
        monkeypatch.setattr(sys, "stdin", io.StringIO())  # games and traces that a person answers end at once
        program, first, *arguments = shlex.split(line)
        assert main([first.removesuffix(".py"), *arguments]) == 0, line
        assert program == ("python" if first.endswith(".py") else "gamespiel")


@pytest.mark.parametrize("page", [*SESSIONS, "docs/architecture.md"])
def test_paths_and_links_of_a_page_lead_somewhere(page: str) -> None:
    rooms = "docs|configs|benchmarks|agents|gamespiel|game_gym|task_gym|trace_gym"
    named = re.findall(rf"`((?:{rooms})/[\w./-]*)`", read(page))
    linked = re.findall(r"\]\(([\w./-]+)\)", read(page))
    missing = [path for path in named if not (ROOT / path).exists()]
    missing += [path for path in linked if not ((ROOT / page).parent / path).exists()]
    assert missing == []
    titles = re.findall(r"^#+ (.*)$", read(page), re.MULTILINE)
    headings = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert [anchor for anchor in re.findall(r"\]\(#([\w-]+)\)", read(page)) if anchor not in headings] == []
