"""The sampler on vLLM servers, and the folders from which they load adapters."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout
from safetensors.torch import save_file

from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models import BASE
from gamespiel.agents.models.adapters import Adapters, UnknownAdaptersError
from gamespiel.agents.models.weights import share_weights
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.sampling.drawing import make_decisions
from gamespiel.agents.sampling.noise import group_uniforms
from gamespiel.agents.sampling.vllm.answers import ServedAnswers
from gamespiel.agents.sampling.vllm.probe import GapError, Probe
from gamespiel.agents.sampling.vllm.replicas import Replicas, Version
from gamespiel.agents.sampling.vllm.server import ServerError
from gamespiel.agents.tokens import map_groups
from gamespiel.agents.tokens.constraints import FreeText
from task_gym.errors import nearest

PREFIX = "gamespiel-"
"""The beginning of the names of all trainers' adapters on a server."""

_LOCK = "in-use"


def default_folder() -> Path:
    """Returns the user's folder for servers on this machine."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows has a folder per user
    return Path(tempfile.gettempdir()) / f"gamespiel-vllm-{user}"


@dataclass
class AdapterFolders:
    """A trainer's folder of versions, none of which is written twice, locked as long as the trainer lives.

    vLLM's cache of prefixes knows adapters by name and path. One that is loaded again under the same name
    answers with what the cache has of the earlier one (SkyRL#1606, vllm#42125).

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


log = logging.getLogger(__name__)


class VllmSampler:
    """A ``Sampler`` whose decisions come from vLLM servers; it gives no values.

    Every set of adapters is written to a new folder and loaded under a new name, since vLLM's cache knows
    adapters by both. It is known to all servers before a request names it.

    Of several ranks the first writes and loads adapters, and removes them. The others have the same adapters
    under the same name, and find by their content what they are called on the servers.

    Args:
        replicas: The servers.
        folders: Where the adapters are written; None on ranks that write none.
        probe: Checks that adapters have arrived.
        ranks: The ranks that sample from these servers.
    """

    tokens_read = 0

    def __init__(
        self,
        replicas: Replicas,
        folders: AdapterFolders | None,
        probe: Probe,
        ranks: Ranks = ALONE,
    ) -> None:
        self._replicas, self._folders, self._ranks = replicas, folders, ranks
        self._probe, self._answers = probe, ServedAnswers(replicas)
        self._digests: dict[str, bytes] = {}
        #: Makes the servers forget this trainer's adapters and removes the folders; also when Python ends.
        self.close = weakref.finalize(self, _close, replicas, folders)

    # -- adapters ------------------------------------------------------------------------------------------

    def publish(self, name: str, adapters: Adapters) -> None:
        if name == BASE:
            raise ValueError(f"adapters were given the name {BASE!r}, which is that of the model without any")
        digest = _digest(adapters)
        if self._digests.get(name) == digest:
            return
        self._probe.reader.adapters.publish(name, adapters)
        version = self._ranks.lead_once(_key(name, digest), lambda: self._load(name, adapters))
        self._replicas.adopt(name, version)
        self._digests[name] = digest
        self._probe.check(name)

    def _load(self, name: str, adapters: Adapters) -> Version:
        """Makes all servers know adapters in the place of those of the same name; returns their version."""
        assert self._folders is not None
        version = self._folders.write(adapters)
        before = self._replicas.publish(name, version)
        if before is not None:
            # No rank samples from these any more: all wait for the new ones, or have yet to ask for them.
            self._ranks.withdraw(_key(name, self._digests.get(name, b"")))
            self._replicas.unload(before)
            self._folders.remove(before)
        return version

    def forget(self, name: str) -> None:
        digest = self._digests.pop(name, None)
        self._probe.forget(name)
        version = self._replicas.forget(name)
        if version is not None:
            self._probe.reader.adapters.forget(name)
            if self._folders is not None:
                self._folders.remove(version)
                self._ranks.withdraw(_key(name, digest or b""))

    def _require_known(self, requests: Sequence[Request]) -> None:
        for name in dict.fromkeys(request.adapters for request in requests):
            if name != BASE and name not in self._digests:
                known = (BASE, *self._digests)
                raise UnknownAdaptersError(
                    f"adapters {name!r} were asked for; published are {', '.join(known)}"
                    f"{nearest(name, known)}"
                )

    # -- answers -------------------------------------------------------------------------------------------

    def sample(self, requests: Sequence[Request]) -> list[Decision]:
        self._require_known(requests)
        return map_groups(
            requests, lambda r: (isinstance(r.constraint, FreeText), r.noise is None), self._answer
        )

    def _answer(self, requests: list[Request]) -> list[Decision]:
        """Returns decisions of one kind, all greedy or all drawn."""
        noises = [request.noise for request in requests if request.noise is not None]
        if isinstance(requests[0].constraint, FreeText):
            return make_decisions(requests, self._answers.write(requests))
        if not noises:
            return make_decisions(requests, self._answers.best(requests))
        return make_decisions(requests, self._answers.sample(requests, group_uniforms(noises)))

    def distribution(self, requests: Sequence[Request]) -> list[npt.NDArray[np.float64]]:
        self._require_known(requests)
        return self._answers.distribution(requests)

    def end_episodes(self) -> None:
        """Does nothing: servers keep what they have read, as long as there is room."""

    def check_gap(self, gap: float) -> None:
        if gap > self._probe.limit:
            raise GapError(
                f"the vLLM server's log-probabilities differ from the trainer's by {gap:.3g} nats on "
                f"average, allowed: {self._probe.limit:g} (run.vllm_gap_limit); it serves another model, "
                "other adapters, another type or another quantisation"
            )


def _key(name: str, digest: bytes) -> str:
    """Returns the key under which ranks find the version of adapters."""
    return f"adapters/{name}/{digest.hex()}"


def _digest(adapters: Adapters) -> bytes:
    """Returns what differs between sets of adapters."""
    digest = hashlib.blake2b()
    for name in sorted(adapters):
        digest.update(name.encode())
        digest.update(adapters[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.digest()


def _close(replicas: Replicas, folders: AdapterFolders | None) -> None:
    with suppress(ServerError, RuntimeError):
        replicas.close()
    if folders is not None:
        folders.close()
