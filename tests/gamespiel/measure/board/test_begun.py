"""Deals that were begun and not finished: what endpoints said counts, and only the rest is asked for."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel.endpoints.chat import EndpointError
from gamespiel.measure.board import agents, run
from gamespiel.measure.board.file import BoardError
from gamespiel.measure.board.run import BoardOptions, play_board
from gamespiel.measure.board.verification import inspect_board
from tests.gamespiel.endpoints.models import Body, ModelStub, choices, status
from tests.gamespiel.measure.board.conftest import play, read, shrink


def answer_first(body: Body) -> str:
    """The first legal action, which in leduc_poker is to fold or to check."""
    return str(choices(body)[0][0])


def answer_last(body: Body) -> str:
    """The last legal action: to raise, or to call."""
    return str(choices(body)[-1][0])


def list_episodes(path: Path) -> list[list[dict[str, Any]]]:
    """Returns the episodes of each entry, without the seconds, which no two plays have alike."""
    entries = [entry["episodes"] for entry in read(path)["agents"]]
    for row in (row for rows in entries for row in rows):
        row.get("cost", {}).pop("seconds", None)
    return entries


@pytest.mark.parametrize("meet", [False, True])
def test_who_is_lost_in_a_deal_has_no_second_try(
    meet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request is refused, which loses an episode; at the last one the endpoint is lost.

    In a meeting both write, and what they say comes from two connections to one server.
    """
    shrink(monkeypatch, ("leduc_poker",))
    honest, cut = tmp_path / "honest.json", tmp_path / "cut.json"
    with ModelStub(answer_first) as model:
        names = [f"{name}=openai:m@{model.url}" for name in (("one", "two") if meet else ("one",))]
        options: dict[str, Any] = {"track": "unmasked", "concurrency": 1, "meetings": meet}
        model.faults = [None, status(400)]
        play(honest, *names, **options)
        whole, model.asked = model.asked, []
        model.faults = [None, status(400), *[None] * (len(whole) - 3), status(403)]
        with pytest.raises(EndpointError, match="403"):
            play(cut, *names, **options)
        (begun,) = tmp_path.glob("cut.json.*.begun")
        assert list_episodes(cut) == [*list_episodes(honest)[:-1], []]
        model.answer, model.asked = answer_last, []
        play(cut, *names, **options)
    *kept, last = list_episodes(cut)[-1]
    *said, final = list_episodes(honest)[-1]
    assert kept == said and sum("400" in row.get("error", "") for row in list_episodes(cut)[0]) == 1
    given = len(final["replies"]) - 1
    assert last["replies"][:given] == final["replies"][:given] and last["replies"][given] == "2"
    # Nothing is asked but what nobody has answered; against an anchor that is the last request alone.
    assert model.asked[0] == whole[-1] and len(model.asked) == len(last["replies"]) - given
    if not meet:
        assert len(model.asked) == 1
        assert last["cost"] == final["cost"]  # two tokens a reply, also of those that are given again
        assert last["cost"]["completion_tokens"] == 2 * len(last["replies"])
    assert inspect_board(cut).findings == []
    assert not begun.exists() and not list(tmp_path.glob("*.journal"))
    begun.touch()  # as if a kill had come between the deal's record and this file's end
    with ModelStub(answer_first) as model, pytest.raises(EndpointError):
        model.faults = [status(403)]
        play(cut, *names, **options, rounds=2)
    assert not begun.exists()


def test_what_was_said_is_that_of_one_model_and_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch, ("leduc_poker",))
    path, options = tmp_path / "board.json", dict[str, Any](track="unmasked", concurrency=1)
    with ModelStub(answer_first) as model:
        for name in ("m", "n"):
            path.unlink(missing_ok=True)
            model.faults, model.asked = [None, None, status(403)], []
            with pytest.raises(EndpointError):
                play(path, f"one=openai:{name}@{model.url}", **options)
            assert len(model.asked) == 3  # the other model's replies are not this one's
        begun = max(tmp_path.glob("*.begun"), key=lambda file: file.stat().st_mtime_ns)
        first, second = begun.read_text().splitlines()
        begun.write_text(f"{first}\n{second[:-9]}")  # as a kill leaves it
        model.faults, model.asked = [status(403)], []
        with pytest.raises(EndpointError):
            play(path, f"one=openai:n@{model.url}", **options)
        assert len(model.asked) == 1 and begun.read_text() == f"{first}\n"
        begun.write_text(f"{first}\n{json.dumps(json.loads(first) | {'seconds': 'few'})}\n")
        with pytest.raises(BoardError, match=r"begun', line 2: seconds: .* valid number, not 'few'; without"):
            play(path, f"one=openai:n@{model.url}", **options)
        # It answered in this episode, so a refusal loses the episode, and does not stop the command again.
        begun.write_text(f"{first}\n")
        model.faults, output = [status(400)], io.StringIO()
        names = (f"one=openai:n@{model.url}",)
        play_board(BoardOptions(path, names, **options), Console(file=output, width=200))
    assert "1 of them were begun: what endpoints said in these is not asked again" in output.getvalue()
    (rows,) = list_episodes(path)
    assert ["400" in row.get("error", "") for row in rows] == [True] + [False] * (len(rows) - 1)


def test_an_entry_of_a_journal_that_is_none_is_named(small: None, tmp_path: Path) -> None:
    journal = tmp_path / "board.json.journal"
    head = json.dumps({"deals": "fixed", "track": "masked"})
    journal.write_text(f'{head}\n{{"entry": {{"name": "x"}}}}\n')
    with pytest.raises(BoardError, match=r"board.json.journal', line 2: .*Field required"):
        play(tmp_path / "board.json", "random", games=1)


COMMAND = """\
import sys
from pathlib import Path

from gamespiel.measure.board import agents, run

if __name__ == "__main__":
    agents.TASK_NAMES = run.TASK_NAMES = ("leduc_poker",)
    path, agent, processes = sys.argv[1:]
    options = {"track": "unmasked", "concurrency": 1, "processes": int(processes)}
    run.play_board(run.BoardOptions(Path(path), (agent,), **options))
"""


@pytest.mark.launch
@pytest.mark.parametrize("processes", [1, 2])
def test_a_kill_within_a_deal_gives_no_second_try(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fourth request waits until the command has been killed."""
    asked, killed = threading.Event(), threading.Event()

    def answer(body: Body) -> str:
        if len(model.asked) == 4 and not killed.is_set():
            asked.set()
            killed.wait(60)
        return answer_last(body)

    path = tmp_path / "board.json"
    with ModelStub(answer) as model:
        agent = f"one=openai:m@{model.url}"
        script = tmp_path / "command.py"
        script.write_text(COMMAND)
        words = [sys.executable, str(script), str(path), agent, str(processes)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as command:
            try:
                assert asked.wait(60)
            finally:
                command.kill()
                command.communicate()  # which ends with its processes
        (begun,) = tmp_path.glob("*.begun")
        kept = [json.loads(line)["text"] for line in begun.read_text().splitlines()]
        assert len(kept) == 3
        for module in (agents, run):
            monkeypatch.setattr(module, "TASK_NAMES", ("leduc_poker",))
        model.asked = []
        killed.set()
        model.answer = answer_first
        play(path, agent, track="unmasked", concurrency=1)
    said = [text for row in read(path)["agents"][0]["episodes"] for text in row["replies"]]
    assert said[:3] == kept and len(model.asked) == len(said) - 3
    assert not list(tmp_path.glob("*.begun"))
