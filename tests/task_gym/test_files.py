"""A file is written whole or not at all."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from task_gym.files import append_line, write_atomically


def test_a_file_is_replaced_in_one_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "old ♠\n")
    write_atomically(path, "new ♥\n")
    assert path.read_text(encoding="utf-8") == "new ♥\n"
    assert list(tmp_path.iterdir()) == [path]

    def kill(*paths: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", kill)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "newer\n")
    assert path.read_text(encoding="utf-8") == "new ♥\n"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limits the size of the files that this process writes, which stands in for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_space_a_file_is_as_it_was_and_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old\n")
    with files_of_at_most(6), pytest.raises(OSError, match=r"File too large: '.*/file'"):
        write_atomically(path, "newer text\n")
    assert path.read_text() == "old\n" and list(tmp_path.iterdir()) == [path]


def test_without_space_no_part_of_a_line_remains(tmp_path: Path) -> None:
    """There is space for two of the second line's bytes. The third line fits."""
    path = tmp_path / "file"
    append_line(path, "ab")
    with files_of_at_most(5):
        with pytest.raises(OSError, match=r"File too large: '.*/file'"):
            append_line(path, "cdef")
        assert path.read_bytes() == b"ab\n"
        append_line(path, "c")
    assert path.read_bytes() == b"ab\nc\n"
