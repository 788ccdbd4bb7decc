"""Archives: what ``save`` writes. A zip of JSON and safetensors, and no code runs when it is read.

Stable-Baselines3's own format keeps a model's attributes as pickles, and so runs what their author wrote.
"""

from __future__ import annotations

import io
import json
import math
import platform
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from safetensors import SafetensorError
from safetensors.torch import load, save
from stable_baselines3.common.save_util import open_path

from task_gym.errors import ArgumentError
from task_gym.spaces import UnicodeText

FORMAT = 1
"""The version of the format. Archives of later ones are refused."""

_DATA = "gamespiel.json"
_MOST = 1 << 24
"""The most bytes of an archive's JSON, and the most numbers of a space."""

PLAIN = "numbers, texts, and lists and mappings of them"
"""The values that JSON can hold, for messages."""

Place = str | Path | io.BufferedIOBase
Tensors = Mapping[str, torch.Tensor]


class ArchiveError(ArgumentError):
    """A file is no archive, or not one that can be read here."""


class Archive(NamedTuple):
    """The contents of an archive.

    Attributes:
        data: The settings and counters, as JSON has them.
        tensors: Sets of tensors by name, on the CPU.
        system: The system on which it was written, for people.
    """

    data: dict[str, Any]
    tensors: Mapping[str, Tensors]
    system: str


def write_archive(
    path: Place, kind: str, data: Mapping[str, Any], tensors: Mapping[str, Tensors], suffix: str | None = None
) -> None:
    """Writes an archive.

    Args:
        path: A path, or a binary file that is open.
        kind: The class whose object it is.
        data: What becomes JSON.
        tensors: Sets of tensors by name.
        suffix: The ending, without a dot, of paths without one.

    Raises:
        ArgumentError: the data have something else than JSON takes.
    """
    try:
        text = json.dumps({"format": FORMAT, "kind": kind, **data}, indent=1)
    except TypeError as error:
        raise ArgumentError(f"save: {error}; allowed: {PLAIN}") from error
    # In memory first: what is there already stays as it is if a tensor cannot be written.
    blobs = {
        name: save({key: tensor.detach().cpu().contiguous() for key, tensor in part.items()})
        for name, part in tensors.items()
    }
    file = open_path(path, "w", suffix=suffix)
    try:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(_DATA, text)
            for name, blob in blobs.items():
                archive.writestr(f"{name}.safetensors", blob)
            archive.writestr("system_info.txt", describe_system())
    finally:
        if isinstance(path, str | Path):
            file.close()


def read_archive(path: Place, kind: str, suffix: str | None = None) -> Archive:
    """Returns what an archive has.

    Args:
        path: A path, or a binary file that is open.
        kind: The class whose object is expected.
        suffix: The ending, without a dot, that is added if there is no such path.

    Raises:
        ArchiveError: it is none, damaged, of another class, or of a later version.
        FileNotFoundError: there is no such path.
    """
    if isinstance(path, str | Path):
        place = Path(path) if Path(path).exists() or suffix is None else Path(f"{path}.{suffix}")
        if place.exists() and not place.is_file():
            raise ArchiveError(f"load: {_named(place)} is no ordinary file")
    file = open_path(path, "r", suffix=suffix)
    try:
        if not zipfile.is_zipfile(file):
            raise _not_ours(path)
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            if _DATA not in archive.namelist():
                raise _not_ours(path)
            return _read_entries(archive, path, kind)
    except (
        zipfile.BadZipFile, SafetensorError, ValueError, KeyError, NotImplementedError, RecursionError,
        EOFError, OSError,
    ) as error:  # fmt: skip
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"load: {_named(path)} is damaged: {error}") from error
    finally:
        if isinstance(path, str | Path):
            file.close()
        else:
            file.seek(0)


def _read_entries(archive: zipfile.ZipFile, path: Place, kind: str) -> Archive:
    for entry in archive.infolist():
        # Few bytes could become any number of them.
        if entry.compress_type != zipfile.ZIP_STORED or (entry.filename == _DATA and entry.file_size > _MOST):
            raise ArchiveError(
                f"load: {_named(path)}: {entry.filename!r:.80} is compressed or too long: no `save` wrote it"
            )
    data = json.loads(archive.read(_DATA))
    if not isinstance(data, dict) or data.get("kind") != kind:
        found = data.get("kind") if isinstance(data, dict) else data
        raise ArchiveError(f"load: {_named(path)} has a {found!r:.40}, allowed: {kind}")
    if data.get("format") != FORMAT:
        raise ArchiveError(
            f"load: {_named(path)} has the format {data.get('format')!r:.20}, and this version of GameSpiel "
            f"reads {FORMAT}: a later version wrote it"
        )
    names = [name for name in archive.namelist() if name.endswith(".safetensors")]
    return Archive(
        data,
        {name.removesuffix(".safetensors"): load(archive.read(name)) for name in names},
        archive.read("system_info.txt").decode(errors="replace"),
    )


def _not_ours(path: Place) -> ArchiveError:
    return ArchiveError(
        f"load: {_named(path)}: it is no archive that `save` has written; a pickle, which runs the code that "
        "its author put in, is not read"
    )


def _named(path: Place) -> str:
    return repr(str(path)) if isinstance(path, str | Path) else "the file"


def describe_system() -> str:
    """Returns the operating system and the versions of Python and PyTorch, in a line."""
    return f"{platform.platform()}; Python {platform.python_version()}; PyTorch {torch.__version__}\n"


# -- spaces --------------------------------------------------------------------------------------------------


def describe_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """Returns a space that a policy takes, as JSON has it.

    Raises:
        ArgumentError: it is another one.
    """
    if isinstance(space, UnicodeText):
        return {"type": "UnicodeText", "max_length": space.max_length, "min_length": space.min_length}
    if isinstance(space, spaces.Text):
        bounds = {"max_length": space.max_length, "min_length": space.min_length}
        return {"type": "Text", **bounds, "charset": space.characters}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Box) and np.ptp(space.low) == 0 == np.ptp(space.high):
        bounds = {"low": space.low.min().item(), "high": space.high.max().item()}
        return {"type": "Box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    raise ArgumentError(
        f"save: {space} was given, allowed: Text, UnicodeText, Discrete, and Box with one range"
    )


_SPACES: Mapping[str, Callable[..., spaces.Space[Any]]] = {
    "UnicodeText": UnicodeText,
    "Text": spaces.Text,
    "Discrete": spaces.Discrete,
    "Box": lambda low, high, shape, dtype: spaces.Box(low, high, tuple(shape), np.dtype(dtype).type),
}


def make_space(described: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that ``describe_space`` described.

    Raises:
        ArchiveError: nothing was described so.
    """
    arguments = dict(described)
    try:
        if math.prod(arguments.get("shape", ())) > _MOST:
            raise ValueError(f"more than {_MOST:,} numbers")
        return _SPACES[arguments.pop("type")](**arguments)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError) as error:
        raise ArchiveError(f"load: no space is {described!r:.80}: {error}") from error
