"""Sources of programs: the builtin generator, or the rows of a data set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from task_gym.errors import ArgumentError, SourceError, nearest
from task_gym.files import MOST, NO_JSON, read_file
from trace_gym.programs import hub
from trace_gym.programs.base import TASKS, Program

MOST_LOOKED_AT = 1000
"""Programs to try for one task id, at most."""

_COLUMNS = ("program", "inputs")
_AT_ONCE = 64  # rows of Parquet


class BuiltinSource:
    """The programs of ``trace_gym.programs.builtin``. Replacements have the same family and level."""

    name = "builtin"

    def candidates(self, task_id: int) -> Iterator[Program]:
        """Yields the task id's own program first, then its replacements in a fixed order."""
        # Imported here, because loading the generator's families takes longer than reading a row.
        from trace_gym.programs.builtin import CELLS, generate

        for k in range(MOST_LOOKED_AT):
            yield generate((task_id + k * CELLS) % TASKS)


class RowSource:
    """Rows of a data set with the columns ``program`` and ``inputs``; a task id is row ``task_id mod size``.

    The rows that follow are its replacements.

    Args:
        rows: Rows with both columns. ``inputs`` is a text, a list of lines, or None for no input.
        name: The name that means the same rows everywhere, "hub@COMMIT" or a path; error messages use it.

    Raises:
        SourceError: there are no rows.
    """

    def __init__(self, rows: Sequence[Any], name: str) -> None:
        if not len(rows):
            raise SourceError(f"source: {name} was given, which has no rows")
        self._rows, self.name = rows, name

    def __len__(self) -> int:
        return len(self._rows)

    def candidates(self, task_id: int) -> Iterator[Program]:
        """Yields the task id's own program first, then its replacements in a fixed order."""
        size = len(self._rows)
        for k in range(min(size, MOST_LOOKED_AT)):
            yield self._program((task_id + k) % size)

    def _program(self, row: int) -> Program:
        values = self._rows[row]
        program, inputs = values["program"], values["inputs"]
        if isinstance(inputs, list) and all(isinstance(line, str) for line in inputs):
            inputs = "\n".join(inputs)
        if not isinstance(program, str) or not isinstance(inputs, str | None):
            raise SourceError(
                f"source: row {row} of {self.name} was given with program {program!r:.60} and inputs "
                f"{inputs!r:.60}; allowed: texts (inputs also a list of lines, or null)"
            )
        return Program(program, inputs or "", row=row)


Source = BuiltinSource | RowSource
"""A map from task ids to programs."""


def open_source(source: str) -> Source:
    """Returns the source of a name: "builtin", "hub", "hub@REVISION", or a JSONL or Parquet file's path.

    The same name gives the same object while the file does not change.

    Raises:
        ArgumentError: the name is something else.
        SourceError: the rows are not available.
    """
    if not isinstance(source, str):
        raise ArgumentError(
            f"source: {source!r} was given, allowed: 'builtin', 'hub', 'hub@REVISION' or a path as text"
        )
    name, at, revision = source.partition("@")
    if name == "hub":
        if at and not revision:
            raise ArgumentError(f"source: {source!r} was given, allowed: 'hub@' and a commit, tag or branch")
        return _open_hub(hub.commit_of(revision or None))
    return _open(source, _version(Path(source)))


def _version(path: Path) -> tuple[str, int, int] | None:
    """Returns a file's full path, time of change and size; None if there is no file."""
    if not path.is_file():
        return None
    status = path.stat()
    return str(path.resolve()), status.st_mtime_ns, status.st_size


@lru_cache(maxsize=16)
def _open_hub(commit: str) -> Source:
    rows = hub.rows_at(commit)
    _check_columns(rows.column_names, f"the hub's {hub.DATASET} at {commit}")
    return RowSource(rows, f"hub@{commit}")


@lru_cache(maxsize=16)
def _open(source: str, version: tuple[str, int, int] | None) -> Source:
    """Returns the source of a name; ``version`` is only a key of the cache."""
    if source == "builtin":
        return BuiltinSource()
    path = Path(source)
    readers = {".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise ArgumentError(
            f"source: {source!r} was given, allowed: 'builtin', 'hub', 'hub@REVISION', or a path that ends "
            f"in .jsonl or .parquet{nearest(source, ('builtin', 'hub'))}"
        )
    if not path.is_file():
        raise SourceError(f"source: {source!r} was given, and there is no such file")
    return RowSource(readers[path.suffix](path), source)


def _read_jsonl(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(read_file(path).split(b"\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except NO_JSON as error:
                raise SourceError(f"source: line {number} of {path} is no JSON: {error}") from error
            _check_columns(row if isinstance(row, dict) else (), f"line {number} of {path}")
            rows.append({name: row[name] for name in _COLUMNS})
    return rows


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise SourceError(
            f"source: {path} was given, and reading Parquet needs pyarrow: pip install 'gamespiel[hub]'"
        ) from error
    try:
        schema = parquet.read_schema(path)
        _check_columns(schema.names, str(path))
        # A text that many rows have is in the file once, and stays one text.
        texts = [name for name in _COLUMNS if str(schema.field(name).type) in ("string", "large_string")]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            rows, size = list[dict[str, Any]](), path.stat().st_size
            _check_size(path, sum(_list_sizes(file.metadata)))
            for batch in file.iter_batches(_AT_ONCE, columns=list(_COLUMNS)):
                size += batch.nbytes
                _check_size(path, size)
                columns = [_list_values(batch.column(name)) for name in _COLUMNS]
                rows += [dict(zip(_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]
    except SourceError:
        raise
    except (ArrowException, OSError, ValueError) as error:  # ValueError also means bad UTF-8
        raise SourceError(f"source: {path} cannot be read as Parquet: {error}") from error
    return rows


def _list_sizes(metadata: Any) -> Iterator[int]:
    """Yields the bytes of each part of the columns before compression, as the file states them."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema.partition(".")[0] in _COLUMNS:
                yield chunk.total_uncompressed_size


def _check_size(path: Path, size: int) -> None:
    if size > MOST:
        raise SourceError(f"source: {path} has more than {MOST >> 20:,} MiB, which is the most")


def _list_values(column: Any) -> list[Any]:
    """Returns the values of a column, equal texts as one."""
    if not hasattr(column, "dictionary"):  # lists of lines
        return list(column.to_pylist())
    places = column.indices.to_pylist()
    texts = {place: column.dictionary[place].as_py() for place in set(places) - {None}}
    return [texts.get(place) for place in places]


def _check_columns(columns: Any, where: str) -> None:
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise SourceError(
            f"source: {where} has no column {missing[0]!r}; it has: {', '.join(map(str, columns)) or 'none'}"
        )
