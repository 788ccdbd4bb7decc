"""``gamespiel vllm-command``: the command lines of the vLLM servers that a configuration needs."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

from gamespiel.agents.models import weights
from gamespiel.agents.sampling.vllm.server import LOOPBACK, TOKEN
from gamespiel.assembly import list_urls, named_device
from gamespiel.config import Config, InvalidValueError
from gamespiel.kinds import kind_of

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values that vLLM 0.32.0 takes for ``--max-lora-rank``."""

DEFAULT_URL = "http://127.0.0.1:8000/v1"

SERVED = "a folder with a config.json, or a name on the hub; --model.model_name names it for this command too"


def round_rank(rank: int) -> int:
    """Returns the smallest rank that vLLM takes and that is enough.

    Raises:
        InvalidValueError: there is none.
    """
    if rank > RANKS[-1]:
        raise InvalidValueError(f"lora.r is {rank}, and vLLM's adapters have a rank of at most {RANKS[-1]}")
    return min(allowed for allowed in RANKS if rank <= allowed)


def vllm_commands(config: Config, *, batch_invariant: bool = False) -> list[str]:
    """Returns the command line of each server of ``run.vllm_base_url``, to be pasted to a shell.

    Args:
        config: The configuration.
        batch_invariant: Whether the servers' numbers must not depend on what shares a batch.

    Raises:
        InvalidValueError: the model or its adapters cannot be served.
    """
    urls = list_urls(config.run.vllm_base_url or DEFAULT_URL)
    return [_command(config, url, batch_invariant) for url in urls]


def _command(config: Config, url: str, batch_invariant: bool) -> str:
    parts = urlsplit(url)
    host, local = parts.hostname or "", parts.hostname in LOOPBACK
    variables = ["VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"]
    if batch_invariant:
        variables.append("VLLM_BATCH_INVARIANT=1")
    if not local:
        variables.append(f'{TOKEN}="${{{TOKEN}:?a secret, which the trainer has too}}"')
    dtype = config.model.dtype
    if dtype == "auto" and named_device(config.run.device).type == "cpu":
        dtype = "float32"
    # A batch can name the newest adapters and those of the pool. Besides, a server keeps the average, and one
    # more for the version that takes another's place.
    itself = kind_of(config.env).plays_itself(config.env)
    pool = config.self_play.pool_size if itself and config.self_play.learn == "one" else 0
    average = config.ppo.average_decay > 0
    options = [
        ("--model", _find_model(config)),
        ("--host", host if local else "0.0.0.0"),
        ("--port", str(parts.port or 80)),
        ("--dtype", dtype),
        # The trainer computes its own logits in float32, which such a head leaves unrounded, too.
        *([] if dtype == "float32" else [("--hf-overrides", '{"head_dtype": "float32"}')]),
        ("--generation-config", "vllm"),
        ("--enable-lora", ""),
        ("--max-lora-rank", str(round_rank(config.lora.r))),
        ("--max-loras", str(1 + pool)),
        ("--max-cpu-loras", str(1 + average + pool + 1)),
    ]
    if config.env.decode == "text":
        if config.ppo.temperature != 1:
            options.append(("--logprobs-mode", "processed_logprobs"))
        if named_device(config.run.device).type == "cpu":
            # On the CPU, 0.32.0 ends with "CPU Generator does not use offset" when it splits a prompt whose
            # reply has a seed, as it does when a wave's prompts have more tokens than a batch.
            options.append(("--no-enable-chunked-prefill", ""))
    lines = [" ".join(f"{name} {shlex.quote(value)}" if value else name for name, value in options)]
    return " ".join([*variables, "python -m vllm.entrypoints.openai.api_server", *lines])


def _find_model(config: Config) -> str:
    """Returns the model as vLLM finds it."""
    name = config.model.model_name
    location = weights.resolve(name)
    if name == "tiny" or location == str(weights.TINY):
        raise InvalidValueError(
            "model.model_name 'tiny' has attention heads of 16 numbers, which vLLM does not serve; allowed: "
            f"{SERVED}"
        )
    if weights.is_gguf(location):
        raise InvalidValueError(
            f"model.model_name {name!r} is read from {location}, a file that vLLM would read otherwise; "
            f"allowed: {SERVED}"
        )
    if config.model.random_weights:
        raise InvalidValueError("model.random_weights draws a model that no server has; allowed: false")
    return location
