"""affinetes' data set on the hub, always at a commit: a branch moves with what is put on it.

Which commit "hub" means is settled when it is first used on a machine, by what the branch holds then, and
noted in a file; from then on it is that one, on the hub or off it. ``datasets.load_dataset`` alone would not
keep to it: without a connection it takes the version cached last, whatever revision was asked for. So the
files come from ``huggingface_hub.snapshot_download``, which gives a commit whole or not at all, and
``datasets`` reads them.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from task_gym.errors import SourceError

#: affinetes' data set, and the branch of it that affinetes reads.
DATASET, BRANCH = "satpalsr/rl-python", "main"

_COMMIT = re.compile("[0-9a-f]{40}")

_OTHERWISE = (
    "or use source='builtin', or the path of a JSONL or Parquet file with the columns program and inputs"
)


def note_path() -> Path:
    """The file that holds the commit "hub" stands for on this machine; deleting it makes the choice anew.

    ``$XDG_STATE_HOME/gamespiel/hub-commit``, that folder being ``~/.local/state`` where none is set.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gamespiel" / "hub-commit"


def load(revision: str | None) -> tuple[Any, str]:
    """The rows, and the commit they are from (40 hexadecimal digits).

    Args:
        revision: A commit, tag or branch; None for the noted commit, or for the branch's, noted from then on.

    Raises:
        SourceError: the libraries are missing, the hub is out of reach and its cache lacks the commit, there
            is no such revision, or the commit cannot be noted.
    """
    try:
        import datasets
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import RevisionNotFoundError
    except ImportError as error:
        raise SourceError(
            "source: 'hub' was given, which needs the datasets library: pip install 'gamespiel[hub]'; "
            + _OTHERWISE
        ) from error
    noted = _noted() if revision is None else None
    wanted = revision or noted or BRANCH
    try:
        folder = Path(snapshot_download(DATASET, repo_type="dataset", revision=wanted))
        rows = datasets.load_dataset(str(folder), split="train")
    except RevisionNotFoundError as error:
        where = f", which {note_path()} holds; deleting that file takes the branch's" if noted else ""
        raise SourceError(f"source: {DATASET} has no revision {wanted}{where}") from error
    except Exception as error:  # a dozen kinds, of four libraries
        raise SourceError(
            f"source: 'hub' was given, and {DATASET} at revision {wanted} cannot be had "
            f"({type(error).__name__}: {error}). Connect to the hub once, so that its cache holds that "
            f"revision; {_OTHERWISE}"
        ) from error
    # Another process may have been first.
    if revision is None and noted is None and (first := _note(folder.name)) != folder.name:
        return load(first)
    return rows, folder.name


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
    except OSError as error:
        raise SourceError(
            f"source: 'hub' was given, and that it means commit {commit} cannot be noted in {path} "
            f"({error}); name it: source='hub@{commit}'"
        ) from error
    return _noted() or commit
