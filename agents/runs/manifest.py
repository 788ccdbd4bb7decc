"""The manifest of a checkpoint: its files by content, so that a torn or changed one is known by name.

It is written last, after all else is on the disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from typing import Any

from task_gym.files import read_file, write_atomically

NAME = "manifest.json"

FORMAT = 1
"""The format of checkpoints that this version writes, and the newest that it reads."""

_FREE = ("adapter/README.md", "adapter/adapter_config.json")
"""Files that a user may change: nothing of a run depends on them."""


POLICY_FILES = ("adapter/adapter_model.safetensors", "value_head.safetensors", "state.json")
"""The files of a checkpoint that make a policy."""


class ManifestError(ValueError):
    """A checkpoint that is not as it was written."""


def write_manifest(folder: Path) -> None:
    """Writes the manifest of a folder's files, and returns when all of them are on the disk."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            sync(path)
            if name not in (NAME, *_FREE):
                files[name] = [_digest(path)]
        else:
            sync(path)
    _write(folder, {"format": FORMAT, "files": files})


def replace_file(folder: Path, name: str, content: str) -> None:
    """Writes a file of a folder anew. A kill at any moment leaves a folder that is whole.

    Until the file is written, the manifest has both contents.
    """
    manifest = _read(folder)
    new = sha256(content.encode()).hexdigest()
    before = manifest["files"].get(name, [])
    _write(folder, manifest | {"files": manifest["files"] | {name: [*before, new]}})
    write_atomically(folder / name, content)
    sync(folder / name)
    _write(folder, manifest | {"files": manifest["files"] | {name: [new]}})


def check_files(folder: Path, names: Sequence[str] | None = None) -> None:
    """Raises unless files are as the manifest says.

    Args:
        folder: The checkpoint.
        names: The files to check; None for all of the manifest.

    Raises:
        ManifestError: a file is missing there or in the manifest, or has other content, or the checkpoint is
            of a later version.
    """
    manifest = _read(folder)
    if manifest["format"] > FORMAT:
        raise ManifestError(
            f"it has format {manifest['format']}, and this version reads formats up to {FORMAT}: a later "
            "version has written it"
        )
    for name in manifest["files"] if names is None else names:
        if (allowed := manifest["files"].get(name)) is None:
            raise ManifestError(f"{NAME} does not list {name}")
        if not _is_within(name):
            raise ManifestError(f"{NAME} lists {name!r:.80}, which is no file of a checkpoint")
        path = folder / name
        if not path.is_file():
            raise ManifestError(f"{name} is missing")
        if _digest(path) not in allowed:
            raise ManifestError(f"{name} has another content than was written: it is torn, or was changed")


def digest_manifest(folder: Path) -> str:
    """Returns the digest of a folder's manifest, which says of each file that makes a policy what it has.

    Raises:
        ManifestError: it does not, or is missing. Two digests are left by a kill in ``replace_file``.
    """
    manifest = _read(folder)
    for name in POLICY_FILES:
        if (count := len(manifest["files"].get(name, ()))) != 1:
            raise ManifestError(
                f"{NAME} has {count} digests of {name}, needed: one; after a kill in the midst of a change "
                "there are two, and another checkpoint has one"
            )
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def has_only(folder: Path, name: str) -> bool:
    """Returns whether a folder's manifest lists a file, and the folder has no files that it does not list."""
    try:
        known = {*_read(folder)["files"], NAME, *_FREE}
    except (ManifestError, OSError):
        return False
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return name in known and names <= known


def is_whole(folder: Path) -> bool:
    """Returns whether a checkpoint is as it was written."""
    try:
        check_files(folder)
    except (ManifestError, OSError):
        return False
    return (folder / "state.json").is_file()


def sync(path: Path) -> None:
    """Returns when a file, or a folder's list of files, is on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    write_atomically(folder / NAME, json.dumps(manifest, indent=1) + "\n")
    sync(folder / NAME)
    sync(folder)


def _read(folder: Path) -> dict[str, Any]:
    """Returns a folder's manifest.

    Raises:
        ManifestError: it is missing, or cannot be read.
    """
    try:
        content: Any = json.loads(read_file(folder / NAME))
        if not isinstance(content["format"], int) or not all(
            isinstance(digests, list) for digests in content["files"].values()
        ):
            raise ValueError("its fields are of other types")
    except FileNotFoundError as error:
        raise ManifestError(f"{NAME} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ManifestError(f"{NAME} cannot be read: {error!s:.100}") from error
    manifest: dict[str, Any] = content
    return manifest


def _is_within(name: str) -> bool:
    """Returns whether a name is that of a file in a folder: a stranger's could be of any file here."""
    path = PurePosixPath(name)
    is_plain = name.isascii() and len(name) <= 200 and not {"\\", ":"} & set(name)
    return is_plain and not path.is_absolute() and ".." not in path.parts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
