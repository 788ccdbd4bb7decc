"""README and docs: what they show is what happens, and what they tell to type can be typed."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.site import site_pages
from gamespiel.agents.runs import catalog
from gamespiel.cli import build_parser, split_overrides
from tests.docs.test_blocks import BLOCK, run_block
from tests.gamespiel.conftest import finished, no_decoration

__all__ = ["finished", "no_decoration"]

ROOT = Path(__file__).parents[2]
PAGES = [
    page for page in site_pages() if page not in ("docs/lab-notes.md", ".github/SECURITY.md", "CHANGELOG.md")
]
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", CONTRIBUTING, flags=re.DOTALL))
PLACEHOLDER = "NAME"
"""Stands in pages for names of the reader's own."""

PRINTING = ["README.md", "docs/start.md", "docs/concepts.md", "docs/own.md"]
SESSIONS = [*PRINTING, *(f"docs/{name}.md" for name in ("python", "wrappers", "curriculum", "affinetes"))]
"""Pages whose Python blocks are one session; the blocks of other pages are tested in tests/docs."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    """The lines of a page's shell blocks, without comments and variables; those that go on are one."""
    blocks = [block.replace("\\\n", " ") for block in re.findall(r"```bash\n(.*?)```", read(page), re.DOTALL)]
    lines = [re.sub(r"(^|\s+)#\s.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return [re.sub(r"^([A-Z_]+=\S+ )+", "", line) for line in lines if line]


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.parametrize("page", SESSIONS)
@pytest.mark.usefixtures("registries")
def test_python_blocks_run_in_order_as_they_are(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(read(page))
    assert blocks
    namespace: dict[str, Any] = {}
    for code, shown in blocks:
        printed = run_block(code, page, namespace)
        assert not shown or printed == shown
    assert (page in PRINTING) == any(shown for _, shown in blocks)


@pytest.fixture
def parsed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, finished: Path, request: pytest.FixtureRequest
) -> list[Any]:
    """The options that the commands hand on, in a folder with the files that the pages name."""
    option_sets: list[Any] = []
    for name, function in (
        ("training.run", "train"),
        ("measure.evaluation", "evaluate"),
        ("measure.external", "evaluate_endpoint"),
        ("measure.compare.run", "compare"),
    ):
        module = ModuleType(f"gamespiel.{name}")
        setattr(module, function, lambda options, resume=None: option_sets.append(options))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which --import adds the folder
    talk, served = re.findall(r"```yaml\n(.*?)```", read("docs/affinetes.md"), re.DOTALL)
    (week,) = re.findall(r"```yaml\n(# week.yaml\n.*?)```", read("docs/training.md"), re.DOTALL)
    files = dict.fromkeys(("mine.json", "mine.yaml", "leduc.yaml"), "{}")
    files |= {"mine.py": "", "talk.yaml": talk, "served.yaml": served, "week.yaml": week}
    for file, text in files.items():
        Path(file).write_text(text)
    line = request.node.callspec.params.get("line", "")
    for run in ("RUN", "runs/first", "runs/leduc", "runs/start", "runs/talk"):
        if re.search(rf"(^|\s){run}\b", line):
            shutil.copytree(finished, run)
    # The page begins this run by --resume auto, where no folder is yet.
    if "@best" in line:
        shutil.copytree(finished, "runs/week")
        week = Path("runs/week")
        catalog.mark_best(week, catalog.step_of(catalog.find_whole(week)), "score", 0.5)
    return option_sets


LINES = sorted({line for page in PAGES for line in commands(page)})
SCRIPTS = [line for line in LINES if re.match(r"python (train|eval)\.py\b", line)]
AFFINETES = [line for line in LINES if line.startswith("afs ")]


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.parametrize("line", SCRIPTS)
def test_train_and_eval_read_what_the_pages_write(
    line: str, parsed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from gamespiel.cli import main

    _, script, *arguments = shlex.split(line)
    with pytest.raises(SystemExit, match=r"^0$") if "--help" in arguments else contextlib.nullcontext():
        assert main([script.removesuffix(".py"), *arguments]) == 0
        assert len(parsed) == ("--plan" not in arguments)  # which is quick, and runs
        assert parsed or capsys.readouterr().out.count("peak") >= 2


FOREIGN = {
    *(("docker", "build"), ("hf", "upload"), ("pip", "install"), ("ray", "start"), ("trackio", "show")),
    *(("tensorboard", "--logdir"), ("transformers", "serve"), ("vllm", "serve"), (".", ".venv/bin/activate")),
}
"""The shell's own, and others' programs, which not every machine has, talk to the hub or need more."""


@pytest.mark.parametrize("line", [line for line in LINES if line not in (*SCRIPTS, *AFFINETES)])
def test_other_commands_are_read_by_their_own_parsers(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *arguments = shlex.split(line)
    if (program, arguments[0]) in FOREIGN:
        assert program != "docker" or (arguments[1] == "-f" and (ROOT / arguments[2]).is_file())
    elif program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
    elif program == "torchrun":  # PyTorch's
        from torch.distributed.run import get_args_parser

        place = arguments.index("train.py")
        get_args_parser().parse_args(arguments[: place + 1])
        build_parser().parse_args(split_overrides(["train", *arguments[place + 1 :]])[0])
    elif (program, arguments[0]) == ("python", "-c"):
        assert run_block(arguments[1], line, {})
    elif program == "gamespiel" or arguments[:2] == ["-m", "gamespiel"]:
        build_parser().parse_args(split_overrides(arguments[2 * (program == "python") :])[0])
    elif arguments[1] != "vllm.entrypoints.openai.api_server":
        assert (program, arguments[0]) == ("python", "-m"), f"who reads {line!r}?"
        module = importlib.import_module(arguments[1])
        if arguments[1].startswith("benchmarks."):
            monkeypatch.setattr(module, "parse", _only_parse)
            with pytest.raises(SystemExit, match=r"^0$"):
                module.main(arguments[2:])


@pytest.mark.launch
@pytest.mark.sample
def test_commands_of_affinetes_are_read_by_its_parser() -> None:
    """In a process of its own: it patches asyncio."""
    code = "import shlex, sys\nfrom affinetes.cli.main import create_parser\n"
    code += "for line in sys.stdin: create_parser().parse_args(shlex.split(line)[1:])"
    lines = "\n".join(AFFINETES)
    subprocess.run([sys.executable, "-c", code], input=lines, text=True, check=True, capture_output=True)


def _only_parse(parser: Any, argv: Any) -> None:
    parser.add_argument("--keep", action="store_true")  # which the real one adds
    parser.parse_args(argv)
    parser.exit()


def test_readme_is_short_and_its_first_commands_are_those_of_other_pages() -> None:
    """Commands of its first table are also those of other pages' shell blocks."""
    text = read("README.md")
    assert len(text.splitlines()) <= 140 and len(CONTRIBUTING.splitlines()) <= 140
    screen = "\n".join(text.splitlines()[:24])
    pictures = "(docs/assets/decision.svg)", "(benchmarks/results/learning_speed.png)"
    assert all(part in screen for part in ("(docs/play.md)", "make train ", *pictures))
    head = text.partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| .*\]\(docs/", head, re.MULTILINE)
    assert "](docs/start.md)" in head
    assert len(rows) == 4 and set(rows) <= set(LINES)


@pytest.mark.trains
@pytest.mark.parametrize("page, count", [("docs/start.md", 5), ("docs/terminal.md", 10)])
def test_all_commands_of_a_page_run_in_order(
    page: str, count: int, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gamespiel.cli import main

    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "RUN")
    lines = [line for line in commands(page) if not line.startswith("make ")]
    assert len(lines) == count
    for line in lines:
        monkeypatch.setattr(sys, "stdin", io.StringIO())  # games that a person answers end at once
        program, first, *arguments = shlex.split(line)
        assert main([first.removesuffix(".py"), *arguments]) == 0, line
        assert program == ("python" if first.endswith(".py") else "gamespiel")


DEVELOPERS = ["AGENTS.md", ".github/CONTRIBUTING.md", ".github/RELEASE.md", "docs/llms.txt"]


@pytest.mark.parametrize("page", sorted({*PAGES, *DEVELOPERS}))
def test_paths_links_and_targets_of_a_page_are_there(page: str) -> None:
    whole = read(page)
    text = re.sub(r"^(`{3,}).*?^\1$", "", whole, flags=re.DOTALL | re.MULTILINE)
    path = r"(?:docs|configs|benchmarks|agents|gamespiel|game_gym|task_gym|trace_gym)/[\w./-]*"
    if page in DEVELOPERS:
        path = r"(?:\.?[\w-]+/)+[\w./-]*|[\w.-]+\.(?:md|cfg|cff|txt)"
    # dist/ is made by the command that the page names; metrics and names of one's own are no paths.
    named = [path for path in re.findall(rf"`({path})`", text) if path != "dist/" and PLACEHOLDER not in path]
    linked = re.findall(r"\]\(([\w./-]+)\)", text)
    assert page not in DEVELOPERS or len(named + linked) >= 6
    missing = [path for path in named if not (ROOT / path).exists()]
    missing += [path for path in linked if not ((ROOT / page).parent / path).exists()]
    assert missing == []
    code = re.findall(r"`[^`]*`|```.*?```", whole if page in DEVELOPERS else text, re.DOTALL)
    targets, makefile = re.findall(r"\bmake (\w[\w-]*)", "".join(code)), read("Makefile")
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    headings = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert [anchor for anchor in re.findall(r"\]\(#([\w-]+)\)", text) if anchor not in headings] == []


def test_modules_and_names_of_the_page_for_developers_are_there() -> None:
    modules = [code.split()[2] for code in CODE if code.startswith("python -m ")]
    assert len(set(modules)) > 5
    assert [name for name in modules if PLACEHOLDER not in name and find_spec(name) is None] == []
    said = re.findall(r"`([A-Z_]{3,})`(?: or `([A-Z_]+)`)? (?:in|of)\s+`([\w/.]+)`", CONTRIBUTING)
    assert len(said) >= 6
    for *names, path in said:
        source = (ROOT / path).read_text(encoding="utf-8")
        for name in filter(None, names):
            assert re.search(rf"^{name}\b.*=", source, re.MULTILINE), f"{name} in {path}"
