"""``gamespiel leaderboard --html``: one page with a board's tables and its games. It loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape as escape_html
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from game_gym.text_env import read_unlisted
from game_gym.transcript import positions
from gamespiel.measure.board.agents import BOARD_TRACKS
from gamespiel.measure.board.benchmark import ANCHORS, TRACE, load_task
from gamespiel.measure.board.episodes import open_choices
from gamespiel.measure.board.prices import Prices
from gamespiel.measure.board.table import (
    COST_NOTE,
    DIFFERENCES_HEAD,
    DIFFERENCES_NOTE,
    NOTE,
    describe_agent,
    has_any,
    list_columns,
    list_differences,
    list_labels,
    list_meeting_tables,
    order_agents,
)
from gamespiel.replay.page import check_page, encode_record, write_episodes
from gamespiel.tracks import UNLISTED
from task_gym.replies import whole_reply
from task_gym.visible import show_controls

SHOWN = 300
"""The most episodes of a page."""

LARGEST = 30_000_000
"""The most characters of a page's episodes."""

STYLE = """
.board table { border-collapse: collapse; font-size: .85rem; margin: .5rem 0 1.5rem; }
.board th, .board td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: right; }
.board th:first-child, .board td:first-child { text-align: left; }
.board td { white-space: pre-line; }
.board .wide { overflow-x: auto; }
.board h1 { font-size: 1.5rem; } .board h2 { font-size: 1.2rem; } .board h3 { font-size: 1rem; }
"""


def write_board_page(data: Mapping[str, Any], html: Path, prices: Prices) -> int:
    """Writes the page of a board; returns the number of its episodes.

    Raises:
        InvalidValueError: its name does not end in .html.
        TaskGymError: an episode cannot be played again.
    """
    check_page(html)
    episodes = map(encode_record, _choose_records(data))
    title = f"GameSpiel leaderboard: {_escape(data['track'])}"
    tables = render_tables(data, prices)
    return write_episodes(html, episodes, LARGEST, title=title, before=tables, style=STYLE)


def render_tables(data: Mapping[str, Any], prices: Prices) -> str:
    """Returns a board's tables as HTML, in which every text of the file is escaped."""
    parts = ['<section class="board">', "<h1>Leaderboard</h1>", _render_head(data)]
    for kind, part in data["results"].items():
        order = order_agents(part)
        if order:
            parts += [f"<h2>{_escape(kind)}</h2>", *_render_kind(part, order, list_labels(data), prices)]
    return "\n".join([*parts, "</section>\n"])


def _escape(text: str) -> str:
    """Returns a text as HTML, with its control characters as escapes."""
    return escape_html(show_controls(text))


def _render_head(data: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in data["versions"].items())
    lines = (
        f"Benchmark {data['benchmark']}, deals {data['deals']}, {data['rounds']} planned for each task.",
        f"Track {data['track']}: {BOARD_TRACKS.get(data['track'], '')}.",
        f"Everybody meets {', '.join(ANCHORS)} on the same deals, from every seat; a search's /N is that "
        "part of the game's own budget.",
        f"Played with {versions}. sha256 {data['sha256']}.",
    )
    return "".join(f"<p>{_escape(line)}</p>" for line in lines)


def _render_kind(
    part: Mapping[str, Any], order: Sequence[str], labels: Mapping[str, str], prices: Prices
) -> Iterator[str]:
    rows = ([labels[name], *describe_agent(part, name, prices)] for name in order)
    yield _render_table(("agent", *list_columns(part)), rows)
    yield f"<p>{_escape(NOTE)}</p>"
    if has_any(part, "cost"):
        yield f"<p>{_escape(COST_NOTE)}</p>"
    for head, listed, title in list_meeting_tables(part, labels):
        yield f"<h3>{_escape(title.capitalize())}</h3>"
        yield _render_table(head, listed)
    if part["differences"]:
        yield f"<h3>Paired differences</h3><p>{_escape(DIFFERENCES_NOTE)}</p>"
        yield _render_table(DIFFERENCES_HEAD, list_differences(part["differences"], labels))
    yield "<h3>Scores by task</h3><p>Mean score, 95% interval, and deals.</p>"
    tasks = list(next(iter(part["agents"].values()))["tasks"])
    rows = (
        [task, *(_describe_cell(part["agents"][name]["tasks"][task]) for name in order)] for task in tasks
    )
    shown = [labels[name] for name in order]
    yield _render_table(("task", *shown), rows)
    yield "<h3>Scores against each opponent</h3>"
    yield _render_table(("task", "opponent", *shown), _list_anchors(part, order, tasks))


def _render_table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{_escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>\n{body}</table></div>'


def _describe_cell(cell: Mapping[str, Any]) -> str:
    if "refused" in cell:
        return "-"
    if "score" not in cell:
        return "not played" if not cell["faults"] else f"{cell['faults']} faults"
    faults = f", {cell['faults']} faults" if cell["faults"] else ""
    return f"{cell['score']:.3f} ({cell['low']:.2f} … {cell['high']:.2f}), {cell['deals']}{faults}"


def _list_anchors(part: Mapping[str, Any], order: Sequence[str], tasks: Sequence[str]) -> Iterator[list[str]]:
    for task in tasks:
        cells = [part["agents"][name]["tasks"][task].get("against", {}).items() for name in order]
        for pairs in zip_longest(*cells, fillvalue=("", None)):
            opponent = next((name for name, value in pairs if value is not None), "")
            yield [task, opponent, *("-" if value is None else f"{value['score']:.3f}" for _, value in pairs)]


def _choose_records(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns the records of the episodes that a page shows: first one of each agent and task, and so on.

    Of a deal, the games against the strongest opponent come first. Of two agents that meet, the first one's
    turns are shown by its moves: the replies are those of both.
    """
    labels, queues = list_labels(data), []
    for entry in data["agents"]:
        by_task: dict[str, list[Mapping[str, Any]]] = {}
        meets = entry["kind"] == "meeting"
        for row in entry["episodes"]:
            shown = row
            if meets:
                shown = {key: value for key, value in row.items() if key != "replies"}
                shown["opponent"] = labels[entry["rival"]]
            by_task.setdefault(row["task"], []).append(shown)
        for rows in by_task.values():
            first = [row for row in rows if row["deal"] == rows[0]["deal"]]
            rest = rows[len(first) :]
            label = labels[entry["agent" if meets else "name"]]
            queues.append([(row, label) for row in (*reversed(first), *rest)])
    in_turn = filter(None, chain.from_iterable(zip_longest(*queues)))
    return (make_record(row, label, data["track"]) for row, label in islice(in_turn, SHOWN))


def make_record(row: Mapping[str, Any], player: str, track: str) -> dict[str, Any]:
    """Returns an episode as the replay page takes it, with control characters as escapes."""
    trace = row["task"].startswith(TRACE)
    turns, final = _list_choices(row) if trace else (_list_turns(row, track), f"Result: {row['result']}")
    same = ("task_id", "seed", "seat", "result", "score", "returns")
    return {
        **{key: row[key] for key in same},
        "opponent": show_controls(row["opponent"]),
        "player": show_controls(player),
        "env_type": "trace" if trace else "openspiel",
        "game": row["task"],
        "history": None if trace else row["history"],
        "turns": turns,
        "final_observation": final,
    }


def _list_choices(row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    env = open_choices()
    text, info = env.reset(seed=row["seed"], options={"task_id": row["task_id"]})
    said = row.get("replies")
    action = None if said is not None else next(iter(row["history"] or []), None)  # a stranger's has none
    answer = "".join(said if said is not None else map(str, row["history"] or []))
    turn = _make_turn(info["legal_actions"], None, action, answer, text)
    assert env.trace is not None
    return [turn], f"The program prints:\n{env.trace.truth}\nscore {row['score']}"


def _make_turn(
    legal: list[int], names: list[str] | None, action: int | None, answer: str, observation: str = ""
) -> dict[str, Any]:
    return {
        "observation": observation,
        "legal_actions": legal,
        "names": names,
        "action": action,
        "answer": show_controls(answer),
        "probabilities": None,
        "value": None,
    }


def _list_turns(row: Mapping[str, Any], track: str) -> list[dict[str, Any]]:
    variant = load_task(row["task_id"]).variant
    seat, turns = row["seat"], []
    read = read_unlisted if track == UNLISTED else whole_reply
    chances, replies = iter(row.get("chances", ())), list(reversed(row.get("replies", ())))
    for state, moves in positions(variant, row["history"] or []):
        seat_move = next((move for move in moves if move.player == seat), None)
        if seat_move is None:
            continue
        legal = state.legal_actions(seat)
        names = variant.choices(state, seat, legal)[0]
        while replies:
            reply = replies.pop()
            if read(reply, legal, names) == seat_move.action:
                turns.append(_make_turn(legal, names, seat_move.action, reply))
                break
            turns.append(_make_turn(legal, names, None, reply))
        else:
            chance = next(chances, None)
            answer = seat_move.name if chance is None else f"{seat_move.name}, probability {chance:.3f}"
            turns.append(_make_turn(legal, names, seat_move.action, answer))
    return turns
