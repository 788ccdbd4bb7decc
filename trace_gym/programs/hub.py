"""affinetes' data set on the hub, always at a commit: a branch moves with what is put on it.

Which commit "hub" means is settled when it is first used on a machine, by what the branch holds then, and
noted in a file; from then on it is that one, on the hub or off it. ``datasets.load_dataset`` alone would not
keep to it: without a connection it takes the version cached last, whatever revision was asked for. So the
files come from ``huggingface_hub.snapshot_download``, where that knows which files a commit has, since else
some may be missing; ``datasets`` reads them.
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

#: affinetes' data set, and the branch of it that affinetes reads.
DATASET, BRANCH = "satpalsr/rl-python", "main"

_COMMIT = re.compile("[0-9a-f]{40}")

_OTHERWISE = (
    "or use source='builtin', or the path of a JSONL or Parquet file with the columns program and inputs"
)


@lru_cache(maxsize=16)
def commit_of(revision: str | None) -> str:
    """The commit that a revision stands for (40 hexadecimal digits), the same as long as the process lives.

    Args:
        revision: A commit, tag or branch; None for the noted commit, or for the branch's, noted from then on.

    Raises:
        SourceError: as :func:`rows_at`, and where a commit can be neither noted nor read.
    """
    if revision is None:
        return _noted() or _note(_folder(BRANCH).name)
    return revision if _COMMIT.fullmatch(revision) else _folder(revision).name


def rows_at(commit: str) -> Any:
    """The rows of a commit.

    Raises:
        SourceError: the libraries are missing, there is no such commit, or the hub is out of reach and its
            cache lacks some of the commit.
    """
    folder = _folder(commit)
    with _named_errors(commit):
        import datasets

        return datasets.load_dataset(str(folder), split="train")


def note_path() -> Path:
    """The file that holds the commit "hub" stands for on this machine; deleting it makes the choice anew.

    ``$XDG_STATE_HOME/gamespiel/hub-commit``, that folder being ``~/.local/state`` where none is set.

    Raises:
        SourceError: there is no home folder.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # as the XDG specification has it
        try:
            state = os.path.join(Path.home(), ".local", "state")
        except RuntimeError as error:
            raise SourceError(
                "source: 'hub' was given, and there is no home folder to note in which commit it means; set "
                "XDG_STATE_HOME, or name the commit: source='hub@COMMIT'"
            ) from error
    return Path(state, "gamespiel", "hub-commit")


def _folder(revision: str) -> Path:
    """The folder of a revision's files, whose name is the commit; whole, or a SourceError."""
    with _named_errors(revision):
        from huggingface_hub import get_cached_repo_tree, snapshot_download
        from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

        def download(**more: Any) -> Path:
            folder = Path(snapshot_download(DATASET, repo_type="dataset", revision=revision, **more))
            get_cached_repo_tree(DATASET, repo_type="dataset", revision=folder.name)  # or it may lack files
            return folder

        if _COMMIT.fullmatch(revision):  # which does not change: there may be nothing to ask the hub for
            with contextlib.suppress(LocalEntryNotFoundError, CachedRepoTreeNotFoundError):
                return download(local_files_only=True)
        return download()


@contextlib.contextmanager
def _named_errors(revision: str) -> Iterator[None]:
    """Whatever goes wrong with a revision, as a SourceError."""
    try:
        yield
    except ImportError as error:
        raise SourceError(
            f"source: 'hub' was given, which needs {error.name}: pip install 'gamespiel[hub]'; {_OTHERWISE}"
        ) from error
    except Exception as error:  # a dozen kinds, of four libraries
        if type(error).__name__ == "RevisionNotFoundError":
            where = ""
            with contextlib.suppress(SourceError):  # no note, or none that can be read: it is from elsewhere
                if _noted() == revision:
                    where = f", which {note_path()} holds; deleting that file takes the branch's"
            raise SourceError(f"source: {DATASET} has no revision {revision}{where}") from error
        raise SourceError(
            f"source: 'hub' was given, and {DATASET} at revision {revision} cannot be had "
            f"({type(error).__name__}: {error}). Where the hub is out of reach, connect to it once, so that "
            f"its cache holds all of that revision; {_OTHERWISE}"
        ) from error


def _noted() -> str | None:
    """The commit settled on before; None if there was none."""
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
    """Note a commit, unless another process has meanwhile; the commit that is noted then."""
    path = note_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and linked, so that it is there whole or not at all, and the first one stays.
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
