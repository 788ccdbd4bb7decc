"""The sampler on servers, after the checks of them: each error is one sentence, with what to do."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gamespiel.agents.engines import Engine
from gamespiel.agents.hyperparameters import LoraSettings
from gamespiel.agents.models import BASE
from gamespiel.agents.models.adapters import Adapters, AdapterSets
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.sampling.vllm.probe import LIMITS, LocalReader, Probe, mean_gap
from gamespiel.agents.sampling.vllm.replicas import Patience, Replicas
from gamespiel.agents.sampling.vllm.sampler import (
    AdapterFolders,
    VllmSampler,
    default_folder,
    is_left_behind,
    remove_left_behind,
)
from gamespiel.agents.sampling.vllm.server import (
    ANSWER_SECONDS,
    TOKEN,
    RefusedError,
    Server,
    ServerError,
    UnreachableError,
)
from gamespiel.agents.tokens import Tokens
from task_gym.remote import loop

log = logging.getLogger(__name__)

TESTED = "0.32.0"
"""The version of vLLM that the tests run."""

UNADAPTED = ("lm_head", "embed_tokens", "wte", "Conv1D")
"""Target modules whose adapters vLLM does not apply; Conv1D is GPT-2's linear layer."""

HINT = "`gamespiel vllm-command` prints a command line that starts one"

ROUNDED = 10_000
"""In float32, a server whose gap is above this part of what adapters change has rounded the adapters.

Measured with a server in float32: 1/60,000 with `--lora-dtype auto`, 1/550 with `bfloat16`.
"""

CHECK = "check"
"""The name of adapters that are there for the checks alone."""


class Needs(NamedTuple):
    """The requirements of a trainer on servers.

    Attributes:
        temperature: Of replies; None for choices.
        tokens: The most tokens of an answer.
        targets: The modules that have adapters, each with the name of its class.
    """

    temperature: float | None
    tokens: int
    targets: Sequence[tuple[str, str]]


class UnsuitableServerError(ServerError):
    """A server that cannot sample for this trainer as it was started."""


def connect(
    urls: Sequence[str],
    engine: Engine,
    adapters: AdapterSets,
    lora: LoraSettings,
    prompt: Tokens,
    needs: Needs,
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
        limit: The largest mean gap, in nats; None for that of the model's type (``probe.LIMITS``).
        folder: A folder that the servers see at the same path; None for one of this machine's.
        patience: How long servers are waited for.
        seconds: The longest time for one request.
        ranks: The ranks that sample from these servers.

    Raises:
        ArgumentError: an address is none.
        UnsuitableServerError: a server does not suit.
    """
    servers = [Server(url, seconds) for url in urls]
    folders = None
    if ranks.leads:
        check_targets(needs)
        check_reachable(servers, needs, len(prompt))
        parent = folder or default_folder()
        parent.mkdir(parents=True, exist_ok=True)
        remove_left_behind(parent)
        folders = AdapterFolders(parent, lora)
    reader = LocalReader(engine, adapters)
    replicas = Replicas(servers, None if folders is None else folders.owner, patience)
    kind = "quantised" if quantised else str(engine.dtype).removeprefix("torch.")
    allowed = LIMITS[kind] if limit is None else limit
    probe = Probe(replicas, reader, prompt, allowed)
    sampler = VllmSampler(replicas, folders, probe, ranks)
    try:
        if folders is not None:
            check_model(probe)
            check_mode(probe, needs)
            check_adapters(replicas, folders, probe)
    except BaseException:
        sampler.close()
        raise
    return sampler


def list_targets(model: Any) -> list[tuple[str, str]]:
    """Returns the modules of a PEFT model that have adapters: each one's name and the name of its class."""
    from peft.tuners.lora import LoraLayer

    return sorted({
        (path.rsplit(".", 1)[-1], type(module.get_base_layer()).__name__)
        for path, module in model.named_modules()
        if isinstance(module, LoraLayer)
    })  # fmt: skip


def check_targets(needs: Needs) -> None:
    """Checks that vLLM can adapt the target modules.

    Raises:
        UnsuitableServerError: it cannot.
    """
    for name, kind in needs.targets:
        if name in UNADAPTED or kind in UNADAPTED:
            raise UnsuitableServerError(
                f"lora.target_modules has {name!r} ({kind}), whose adapters vLLM does not apply: leave it "
                "out, or set run.use_vllm to false"
            )


def check_reachable(servers: Sequence[Server], needs: Needs, prompt_tokens: int) -> None:
    """Checks that all servers are there, and removes what killed trainers left on them.

    Raises:
        UnsuitableServerError: one is not there, or its context is too short.
    """
    for server in servers:
        try:
            version = loop.wait_for(server.version())
            cards = loop.wait_for(server.list_cards())
        except UnreachableError as error:
            raise UnsuitableServerError(f"run.vllm_base_url: {error}; {HINT}") from error
        if version != TESTED:
            log.warning("%s is vLLM %s, which is untested; tested: %s", server.url, version or "?", TESTED)
        context, needed = cards[0].context, prompt_tokens + needs.tokens
        if context is not None and context < needed:
            raise UnsuitableServerError(
                f"{server.url} has a context of {context} tokens, and a short prompt with its answer has "
                f"{needed}: start it with a larger --max-model-len"
            )
        for card in cards:
            if not card.is_base and is_left_behind(card.name, card.root):
                log.warning("%s: the adapters %s of an earlier trainer are unloaded", server.url, card.name)
                loop.wait_for(server.unload(card.name))


def check_model(probe: Probe) -> None:
    """Checks that servers have the trainer's model.

    Raises:
        UnsuitableServerError: a server's log-probabilities are others, or are none.
    """
    local = probe.read(BASE)
    for url, theirs in probe.ask(BASE).items():
        if np.logaddexp.reduce(theirs) > 1e-2:
            raise UnsuitableServerError(
                f"{url} gives no log-probabilities but logits: start it without --logprobs-mode, or with "
                "raw_logprobs"
            )
        gap = mean_gap(local, theirs)
        log.info("%s: the probe's log-probabilities differ by %.3g nats from the trainer's", url, gap)
        if gap > probe.limit:
            raise UnsuitableServerError(
                f"{url} serves another model than the trainer's, another type or another quantisation: the "
                f"probe's log-probabilities differ by {gap:.3g} nats on average, allowed: {probe.limit:g} "
                "(run.vllm_gap_limit)"
            )


def check_mode(probe: Probe, needs: Needs) -> None:
    """Checks that log-probabilities of replies are those of the temperature that they are drawn at.

    Choices are drawn here, at temperature 1, where all modes of log-probabilities are the same.

    Raises:
        UnsuitableServerError: they are those of temperature 1.
    """
    if needs.temperature in (None, 1.0):
        return
    plain, cooled = probe.ask(BASE), probe.ask(BASE, temperature=0.5)
    for url in plain.keys() & cooled.keys():
        if np.abs(plain[url] - cooled[url]).max() < 1e-3:
            raise UnsuitableServerError(
                f"{url} gives log-probabilities of temperature 1, and replies are drawn at "
                f"ppo.temperature {needs.temperature:g}: start it with --logprobs-mode processed_logprobs"
            )


def check_adapters(replicas: Replicas, folders: AdapterFolders, probe: Probe) -> None:
    """Checks that servers apply adapters as the trainer does, with random ones that change every layer.

    Raises:
        UnsuitableServerError: they cannot load them, or apply them otherwise.
    """
    adapters = _draw_adapters(probe.reader.adapters.learning)
    probe.reader.adapters.publish(CHECK, adapters)
    version = folders.write(adapters)
    try:
        replicas.publish(CHECK, version)
        local, base, adapted = probe.read(BASE), probe.ask(BASE), probe.read(CHECK)
        moved = mean_gap(adapted, local)
        for url, theirs in probe.ask(CHECK).items():
            if url in base:
                _judge_adapters(url, probe, moved, mean_gap(adapted, theirs), mean_gap(local, base[url]))
    except RefusedError as error:
        raise UnsuitableServerError(_explain_refusal(error)) from error
    finally:
        replicas.forget(CHECK)
        folders.remove(version)
        probe.reader.adapters.forget(CHECK)


def _draw_adapters(learning: Adapters) -> Adapters:
    """Returns adapters whose every matrix B has small random entries, A's entries being as they are."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(tensor.shape, generator=generator) * 0.02 if ".lora_B." in name else tensor.cpu()
        for name, tensor in learning.items()
    }


def _judge_adapters(url: str, probe: Probe, moved: float, gap: float, base_gap: float) -> None:
    """Raises if a server's gap with adapters, which move the probe, is too large for adapters as they are."""
    log.info("%s: with adapters the probe moves by %.3g nats, and differs by %.3g", url, moved, gap)
    if gap > max(probe.limit, moved / 20):
        arrived = "did not apply" if gap > moved / 2 else "applied otherwise, or rounded,"
        raise UnsuitableServerError(
            f"{url} {arrived} the adapters of a check: they move the probe's log-probabilities by "
            f"{moved:.3g} nats here, and the server differs by {gap:.3g} (--enable-lora, --lora-dtype auto, "
            "lora.target_modules that vLLM adapts)"
        )
    if probe.reader.engine.dtype == torch.float32 and gap > max(10 * base_gap, moved / ROUNDED):
        log.warning(
            "%s rounds the adapters of this float32 run, so log-probabilities differ by %.2g nats with them, "
            "by %.2g without: start it with --lora-dtype auto", url, gap, base_gap,
        )  # fmt: skip


def _explain_refusal(error: RefusedError) -> str:
    """Returns what to do about a server that refuses to load adapters."""
    if error.status in (404, 405) and "adapter" not in error.said.lower():
        return (
            f"{error}: it cannot load adapters while it runs; start it with the command of `gamespiel "
            "vllm-command`: --enable-lora, VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and, as its callers name "
            f"folders then, --host 127.0.0.1 or a token in {TOKEN}"
        )
    if "rank" in error.said:
        return f"{error}: start it with a larger --max-lora-rank"
    if error.status == 404:
        return (
            f"{error}: it does not see the folder of the adapters; run.vllm_adapter_dir must be a folder "
            "that trainer and server have at the same path"
        )
    return f"{error}: it cannot load this run's adapters"
