"""``gamespiel export``: recorded episodes as rows in chat format, for supervised training."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel.errors import InvalidValueError
from gamespiel.measure.records import Record, read_records
from task_gym.contract import ILLEGAL_REWARD
from task_gym.files import write_atomically

RESULTS = ("win", "draw", "loss", "cut")


def export_turns(
    place: Path, output: Path, *, results: Sequence[str] = (), console: Console | None = None
) -> Path:
    """Writes a row per turn: the observation as the user's message, the answer as the assistant's.

    Args:
        place: A run's folder, or a file of games.
        output: The file, which ends in .jsonl. ``datasets.load_dataset("json", data_files=…)`` reads it.
        results: Only episodes that ended so; none for all.
        console: Where to print.

    Raises:
        TaskGymError: there are no such games, or an option is wrong.
    """
    console = console or Console()
    if output.suffix != ".jsonl":
        raise InvalidValueError(f"--output must end in .jsonl, not {str(output)!r}")
    for result in results:
        if result not in RESULTS:
            raise InvalidValueError(f"--result must be one of {', '.join(RESULTS)}, not {result!r}")
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in make_rows(read_records(place), results)]
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output, "".join(lines).encode(errors="replace"))  # half a surrogate pair has no UTF-8
    console.print(f"{len(lines)} rows written to {output}", soft_wrap=True, markup=False)
    return output


def _list_messages(record: Record, number: int) -> list[dict[str, str]]:
    """Returns what was asked and answered in a turn, after all that came before if it was a conversation."""
    turn, said = record["turns"][number], record.get("conversation")
    if said is None:
        return [
            {"role": "user", "content": turn["observation"]},
            {"role": "assistant", "content": turn["answer"]},
        ]
    head = bool(said) and said[0]["role"] == "system"
    return [*said[: head + 2 * number + 1], {"role": "assistant", "content": turn["answer"]}]


def make_rows(records: Sequence[Record], results: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yields a row per legal turn. Faults are left out, and so are answers that the game refused."""
    for record in records:
        if record["result"] not in (results or RESULTS):
            continue
        for number, turn in enumerate(record["turns"]):
            refused = turn["names"] is not None and turn["action"] is None
            if refused or turn["reward"] == ILLEGAL_REWARD:  # a server may keep the names to itself
                continue
            yield {
                "messages": _list_messages(record, number),
                "turn": number,
                **{key: record[key] for key in ("game", "task_id", "seed", "seat", "opponent")},
                **{key: record[key] for key in ("result", "score")},
            }
