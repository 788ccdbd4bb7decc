"""The sampler on servers, checked and ready."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gamespiel.agents.engines import Engine
from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models.adapter_sets import AdapterSets
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.sampling.vllm import checks
from gamespiel.agents.sampling.vllm.comparison import LIMITS, Comparison
from gamespiel.agents.sampling.vllm.folders import AdapterFolders, default_folder, remove_left_behind
from gamespiel.agents.sampling.vllm.probe import Probe
from gamespiel.agents.sampling.vllm.reader import LocalReader
from gamespiel.agents.sampling.vllm.replicas import Patience, Replicas
from gamespiel.agents.sampling.vllm.sampler import VllmSampler
from gamespiel.agents.sampling.vllm.server import ANSWER_SECONDS, Server
from gamespiel.agents.tokens import Tokens


def connect(
    urls: Sequence[str],
    engine: Engine,
    adapters: AdapterSets,
    lora: LoraSettings,
    prompt: Tokens,
    needs: checks.Needs,
    *,
    quantised: bool = False,
    limit: float | None = None,
    folder: Path | None = None,
    patience: Patience | None = None,
    seconds: float = ANSWER_SECONDS,
    ranks: Ranks = ALONE,
) -> VllmSampler:
    """Returns the sampler on servers, which have passed all checks: those of the first rank.

    Args:
        urls: The servers' addresses, at least one.
        engine: Runs the forwards of the model that learns.
        adapters: The sets of adapters by name, shared with the scorer.
        lora: The adapters' settings.
        prompt: The tokens of a prompt on which servers and model are compared.
        needs: What the trainer needs of servers.
        quantised: Whether the model that learns is quantised.
        limit: The largest mean gap, in nats; None for that of the model's type (``comparison.LIMITS``).
        folder: A folder that the servers see at the same path; None for one of this machine's.
        patience: How long servers are waited for.
        seconds: The longest time for one request.
        ranks: The ranks that sample from these servers.

    Raises:
        ArgumentError: an address is none.
        UnsuitableServerError: a server does not suit.
    """
    servers = [Server(url, seconds) for url in urls]
    folders = _prepare_folders(servers, lora, prompt, needs, folder) if ranks.leads else None
    reader = LocalReader(engine, adapters)
    replicas = Replicas(servers, None if folders is None else folders.owner, patience)
    kind = "quantised" if quantised else str(engine.dtype).removeprefix("torch.")
    chosen = LIMITS[kind] if limit is None else limit
    probe = Probe(replicas, reader, prompt, chosen)
    sampler = VllmSampler(replicas, folders, probe, Comparison(reader, chosen), ranks)
    try:
        if folders is not None:
            checks.check_servers(replicas, folders, probe, needs)
    except BaseException:
        sampler.close()
        raise
    return sampler


def _prepare_folders(
    servers: Sequence[Server],
    lora: LoraSettings,
    prompt: Tokens,
    needs: checks.Needs,
    folder: Path | None,
) -> AdapterFolders:
    """Returns the trainer's folders for servers that are there; what killed trainers left is removed."""
    checks.check_targets(needs)
    checks.check_reachable(servers, needs, len(prompt))
    parent = folder or default_folder()
    parent.mkdir(parents=True, exist_ok=True)
    remove_left_behind(parent)
    return AdapterFolders(parent, lora)


def list_targets(model: Any) -> list[tuple[str, str]]:
    """Returns the modules of a PEFT model that have adapters: each one's name and the name of its class."""
    from peft.tuners.lora import LoraLayer

    return sorted({
        (path.rsplit(".", 1)[-1], type(module.get_base_layer()).__name__)
        for path, module in model.named_modules()
        if isinstance(module, LoraLayer)
    })  # fmt: skip
