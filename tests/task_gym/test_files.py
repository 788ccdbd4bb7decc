"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from task_gym.files import write_atomically


def test_a_file_is_replaced_in_one_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "old ♠\n")
    write_atomically(path, "new ♥\n")
    assert path.read_text(encoding="utf-8") == "new ♥\n"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "newer\n")
    assert path.read_text(encoding="utf-8") == "new ♥\n"


def killed(*paths: Path) -> None:
    raise KeyboardInterrupt
