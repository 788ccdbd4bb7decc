"""affinetes' data set on the hub, always at a fixed commit, because a branch moves.

The first use of "hub" on a machine notes the branch's commit in a file. From then on "hub" means this commit,
with and without a connection. ``datasets.load_dataset`` alone would not keep to it: without a connection it
takes the version cached last, for every revision. So ``huggingface_hub.snapshot_download`` gets the files
and ``datasets`` reads them. A commit without a cached list of its files is not used: files may be missing.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from task_gym.errors import SourceError

DATASET, BRANCH = "satpalsr/rl-python", "main"
"""affinetes' data set, and the branch that affinetes reads."""

_COMMIT = re.compile("[0-9a-f]{40}")

_OTHERWISE = (
    "or use source='builtin', or the path of a JSONL or Parquet file with the columns program and inputs"
)


@lru_cache(maxsize=16)
def commit_of(revision: str | None) -> str:
    """Returns the commit of a revision (40 hexadecimal digits), the same while the process lives.

    Args:
        revision: A commit, tag or branch; None for the noted commit. If there is no note, the branch's commit
            is noted.

    Raises:
        SourceError: as ``rows_at``, or the note cannot be read or written.
    """
    if revision is None:
        return _noted() or _note(_folder(BRANCH).name)
    return revision if _COMMIT.fullmatch(revision) else _folder(revision).name


def rows_at(commit: str) -> Any:
    """Returns the rows of a commit.

    Raises:
        SourceError: the libraries are missing, there is no such commit, or the hub is out of reach and the
            cache lacks some of the commit.
    """
    folder = _folder(commit)
    with _named_errors(commit):
        import datasets

        return datasets.load_dataset(str(folder), split="train")


def note_path() -> Path:
    """Returns the path of the file with the commit of "hub" on this machine.

    Deleting the file makes the choice anew. The path is ``$XDG_STATE_HOME/gamespiel/hub-commit``; the default
    of ``XDG_STATE_HOME`` is ``~/.local/state``.

    Raises:
        SourceError: there is no home folder.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG specification ignores relative paths
        try:
            state = os.path.join(Path.home(), ".local", "state")
        except RuntimeError as error:
            raise SourceError(
                "source: 'hub' was given, and there is no home folder to note in which commit it means; set "
                "XDG_STATE_HOME, or name the commit: source='hub@COMMIT'"
            ) from error
    return Path(state, "gamespiel", "hub-commit")


def _folder(revision: str) -> Path:
    """Returns the folder with all of a revision's files; the folder's name is the commit.

    Raises:
        SourceError: the files are not available.
    """
    with _named_errors(revision):
        from huggingface_hub import get_cached_repo_tree, snapshot_download
        from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

        def download(**more: Any) -> Path:
            folder = Path(snapshot_download(DATASET, repo_type="dataset", revision=revision, **more))
            get_cached_repo_tree(DATASET, repo_type="dataset", revision=folder.name)  # else it may lack files
            return folder

        if _COMMIT.fullmatch(revision):  # a commit does not change, so the cache may be enough
            with contextlib.suppress(LocalEntryNotFoundError, CachedRepoTreeNotFoundError):
                return download(local_files_only=True)
        return download()


@contextlib.contextmanager
def _named_errors(revision: str) -> Iterator[None]:
    """Raises every error about a revision as a SourceError."""
    try:
        yield
    except ImportError as error:
        raise SourceError(
            f"source: 'hub' was given, which needs {error.name}: pip install 'gamespiel[hub]'; {_OTHERWISE}"
        ) from error
    except Exception as error:  # a dozen kinds of errors, from four libraries
        if type(error).__name__ == "RevisionNotFoundError":
            where = ""
            with contextlib.suppress(SourceError):  # without a readable note, the revision has another origin
                if _noted() == revision:
                    where = f", which {note_path()} holds; deleting that file takes the branch's"
            raise SourceError(f"source: {DATASET} has no revision {revision}{where}") from error
        raise SourceError(
            f"source: 'hub' was given, and {DATASET} at revision {revision} cannot be had "
            f"({type(error).__name__}: {error}). If the hub is out of reach, connect to it once, so that "
            f"its cache holds all of that revision; {_OTHERWISE}"
        ) from error


def _noted() -> str | None:
    """Returns the noted commit; None if there is none."""
    path = note_path()
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"source: {path}, which says what 'hub' means, cannot be read: {error}") from error
    if not _COMMIT.fullmatch(text):
        raise SourceError(
            f"source: {path}, which says what 'hub' means, holds {text!r:.60}; allowed: a commit of 40 "
            "hexadecimal digits. Deleting it makes the choice anew"
        )
    return text


def _note(commit: str) -> str:
    """Notes a commit unless another process has noted one meanwhile. Returns the noted commit."""
    path = note_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link makes the file appear whole or not at all, and keeps the first process's file.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
            file.write(commit + "\n")
            file.flush()
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
        if (noted := _noted()) is None:
            raise FileNotFoundError(f"{path} leads nowhere")
    except OSError as error:
        raise SourceError(
            f"source: 'hub' was given, and that it means commit {commit} cannot be noted in {path} "
            f"({error}); name it: source='hub@{commit}'"
        ) from error
    return noted
