"""The script that fetches Qwen's vocabulary: what it takes out of a wheel, and what it refuses."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from scripts import fetch_qwen_vocabulary as script


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(script.MEMBER, b"IQ== 0\n")
        archive.writestr("dashscope/__init__.py", "raise SystemExit")
    return path


def test_one_file_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "qwen.tiktoken"
    script.unpack(wheel, place, hashlib.sha256(b"IQ== 0\n").hexdigest())
    assert place.read_bytes() == b"IQ== 0\n" and list(place.parent.iterdir()) == [place]


def test_another_file_is_refused(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"has the SHA-256 .*; allowed: {script.SHA256}"):
        script.unpack(wheel, tmp_path / "qwen.tiktoken")
    assert not (tmp_path / "qwen.tiktoken").exists()


def test_nothing_is_fetched_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*arguments: object, **keywords: object) -> None:
        raise AssertionError("pip was run")

    monkeypatch.setattr(script.subprocess, "run", fetched)
    monkeypatch.setattr(script, "PLACE", tmp_path / "qwen.tiktoken")
    (tmp_path / "qwen.tiktoken").touch()
    script.main()
