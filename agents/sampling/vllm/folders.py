"""Folders of adapters for servers: one per version, which is never written twice.

vLLM's cache of prefixes knows adapters by name and path. One that is loaded again under the same name answers
with what the cache has of the earlier one (SkyRL#1606, vllm#42125).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors.torch import save_file

from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models.adapter_sets import Adapters
from gamespiel.agents.models.weights import share_weights
from gamespiel.agents.sampling.vllm.replicas import Version

PREFIX = "gamespiel-"
"""The beginning of the names of all trainers' adapters on a server."""

_LOCK = "in-use"


def default_folder() -> Path:
    """Returns the user's folder for servers on this machine."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows has a folder per user
    return Path(tempfile.gettempdir()) / f"gamespiel-vllm-{user}"


@dataclass
class AdapterFolders:
    """A trainer's folder of versions, locked as long as the trainer lives.

    Servers read the folders, so they must find them at the same path.

    Args:
        parent: Where trainers have their folders.
        lora: The adapters' settings.
    """

    parent: Path
    lora: LoraSettings

    def __post_init__(self) -> None:
        while not self._take_folder():
            pass
        self._written = 0

    def _take_folder(self) -> bool:
        """Makes and locks a new folder; returns whether it is still there.

        Another trainer that starts may take a folder that is not locked yet for one that was left behind.
        """
        self.owner = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        self.folder = self.parent.resolve() / self.owner
        self.folder.mkdir(parents=True)
        self._lock = FileLock(self.folder / _LOCK)
        try:
            self._lock.acquire()
        except OSError:
            if self.folder.is_dir():
                raise
            return False
        if (self.folder / _LOCK).is_file():
            return True
        self._lock.release()
        return False

    def write(self, adapters: Adapters) -> Version:
        """Writes adapters in PEFT's format into a new folder; returns its name and path."""
        self._written += 1
        name = f"{self.owner}-{self._written:06d}"
        folder = self.folder / f"{self._written:06d}"
        draft = self.folder / f"{self._written:06d}.part"
        draft.mkdir()
        # PEFT saves parameters under names without that of the adapter itself.
        save_file(
            {
                key.replace(".default.", "."): tensor.detach().cpu().contiguous()
                for key, tensor in adapters.items()
            },
            draft / "adapter_model.safetensors",
        )
        (draft / "adapter_config.json").write_text(json.dumps(_config_of(self.lora), indent=2))
        share_weights(draft, like=draft / "adapter_config.json")
        draft.rename(folder)
        return Version(name, str(folder))

    def remove(self, version: Version) -> None:
        """Removes a version's folder, which no request may name any more."""
        shutil.rmtree(version.folder, ignore_errors=True)

    def close(self) -> None:
        """Removes all folders."""
        self._lock.release()
        shutil.rmtree(self.folder, ignore_errors=True)


def is_left_behind(name: str, root: str) -> bool:
    """Returns whether adapters on a server are those of a trainer that was killed.

    Args:
        name: Their name on the server.
        root: Their folder, as the server sees it.
    """
    if not name.startswith(PREFIX):
        return False
    owner = Path(root).parent
    if not owner.is_dir():
        return True
    with suppress(Timeout), FileLock(owner / _LOCK).acquire(timeout=0):
        return True
    return False


def remove_left_behind(parent: Path) -> None:
    """Removes the folders of trainers that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        # Under its lock, so that a trainer that is just making its folder sees that it has gone.
        with suppress(Timeout), FileLock(folder / _LOCK).acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _config_of(lora: LoraSettings) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "",
        "inference_mode": True,
        "r": lora.r,
        "lora_alpha": lora.lora_alpha,
        "lora_dropout": 0.0,
        "target_modules": list(lora.target_modules),
        "bias": "none",
    }
