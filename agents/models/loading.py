"""Loading of base models and tokenizers, and the check that they go together."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.models import memory, quantization
from gamespiel.agents.models.quantization import Quantization, replace_names
from gamespiel.agents.models.weights import (
    TINY,
    ModelError,
    is_gguf,
    is_hub_name,
    only_cached,
    resolve,
    weight_files,
)
from gamespiel.agents.tokens.codec import ChatCodec
from task_gym.errors import TaskGymError
from task_gym.files import check_ordinary

log = logging.getLogger(__name__)

__all__ = ["DTYPES", "TINY", "ModelError", "ModelSettings", "load_base", "load_tokenizer", "resolve"]

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

SPLITS_DIGITS = ("refact", "smollm", "starcoder")
"""Values of a GGUF file's ``tokenizer.ggml.pre`` whose tokenizers make each digit a word."""


@dataclass(frozen=True)
class _LoadPlan:
    """The way to load a base model: its settings, as a device takes them."""

    location: str
    dtype: torch.dtype | None
    """None: the type of the saved model."""
    quantization: Quantization | None
    device: torch.device


def load_tokenizer(settings: ModelSettings) -> Any:
    """Returns the model's tokenizer.

    Raises:
        ModelError: it cannot be loaded.
    """
    from transformers import AutoTokenizer

    location = resolve(settings.model_name)
    with _explain_errors(settings.model_name, location) as files:
        tokenizer = AutoTokenizer.from_pretrained(**files, trust_remote_code=False)
        if is_gguf(location):
            _restore_digit_splits(tokenizer, location)
        tokenizer.model_max_length = int(tokenizer.model_max_length)
        tokenizer.encode("a")  # or it fails at the first prompt
    return tokenizer


def _restore_digit_splits(tokenizer: Any, location: str) -> None:
    """Gives a tokenizer its GGUF file's way of splitting digits, which transformers leaves behind.

    Without it, "\\n  1" has other tokens than those that the model has learned.
    """
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf.reader import read_gguf_metadata

    metadata, _ = read_gguf_metadata(location)
    if metadata.get("tokenizer.ggml.pre") in SPLITS_DIGITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )


def load_base(settings: ModelSettings, device: torch.device | str, seed: int) -> Any:
    """Returns the frozen base model in evaluation mode.

    Raises:
        ModelError: the settings contradict each other or ask for what the device cannot do, or the model
            cannot be loaded.
        MemoryLimitError: the model does not fit into the device's memory.
    """
    if settings.use_4bit and settings.use_8bit:
        raise ModelError("use_4bit and use_8bit contradict each other: set one of them")
    device, location, dtype = torch.device(device), resolve(settings.model_name), DTYPES.get(settings.dtype)
    bits, layer_format = 4 if settings.use_4bit else 8 if settings.use_8bit else None, None
    if bits is not None:
        dtype = dtype or torch.bfloat16
        layer_format = Quantization(bits, settings.use_nested_quant, dtype)
        quantization.check(layer_format, device)
    elif dtype is None and (device.type == "cpu" or is_gguf(location)):
        # The blocks of a GGUF file have no type of their own.
        dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    plan = _LoadPlan(location, dtype, layer_format, device)
    with torch.random.fork_rng(devices=[]), _require_memory(settings.model_name, device):
        load = _load_unpacked if is_gguf(location) else _load_saved
        model = (_draw_weights if settings.random_weights else load)(settings, plan, seed)
    gpu_bfloat16 = device.type == "cuda" and model.dtype == torch.bfloat16
    # A GPU from before 2020 has instructions for float16, and none for bfloat16.
    if gpu_bfloat16 and not torch.cuda.is_bf16_supported(including_emulation=False):
        log.warning(
            "%s emulates bfloat16: it is slower there, and attention takes more memory than --plan says; "
            "model.dtype float16 is computed by the card itself",
            quantization.describe_device(device),
        )
    model.requires_grad_(False)
    return model.eval()


@contextmanager
def _require_memory(model_name: str, device: torch.device) -> Iterator[None]:
    """Turns errors of memory into MemoryLimitError."""
    try:
        yield
    except Exception as error:
        # Those that torch's allocator does not raise are the cause of a ModelError by now.
        if not any(isinstance(e, Exception) and memory.is_out_of_memory(e) for e in (error, error.__cause__)):
            raise
        raise memory.MemoryLimitError(
            f"model_name {model_name!r} does not fit into the memory of "
            f"{quantization.describe_device(device)}; use a smaller model or type (model.use_4bit, "
            "model.dtype), or a device with more memory: train --plan shows what each takes"
        ) from error


def _draw_weights(settings: ModelSettings, plan: _LoadPlan, seed: int) -> Any:
    """Returns a model of the same architecture with random weights.

    A GPU draws them itself, in their type: a CPU takes minutes for four billion, and 16 GB. Another device
    draws others from the same seed, so the model says where it was drawn.
    """
    from transformers import AutoModelForCausalLM

    config = load_config(settings.model_name, plan.location)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # it describes the saved weights
    dtype, on_gpu = plan.dtype or torch.get_default_dtype(), plan.device.type == "cuda"
    with (
        _explain_errors(settings.model_name, plan.location),
        torch.random.fork_rng(devices=[plan.device] if on_gpu else []),
        plan.device,
    ):
        torch.manual_seed(seed)
        typed = {"dtype": dtype} if on_gpu else {}
        model = AutoModelForCausalLM.from_config(config, **typed, trust_remote_code=False)
    model.drawn_on = f"{plan.device.type}, {dtype}" if on_gpu else plan.device.type
    return _place_model(model.to(dtype), plan)


def _load_unpacked(settings: ModelSettings, plan: _LoadPlan, seed: int) -> Any:
    """Returns the model of a GGUF file, with plain weights."""
    from transformers import AutoModelForCausalLM, GgufConfig

    with _explain_errors(settings.model_name, plan.location) as files:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            **files,
            # On some devices the blocks would be kept, through which no gradient goes.
            quantization_config=GgufConfig(dequantize=True),
            dtype=plan.dtype,
            output_loading_info=True,
            trust_remote_code=False,
        )
    model = _require_complete(settings, *loaded)
    # PEFT writes it beside the adapters. transformers has put the file's folder there.
    model.name_or_path = settings.model_name
    return _place_model(model, plan)


def _load_saved(settings: ModelSettings, plan: _LoadPlan, seed: int) -> Any:
    """Returns the model of a folder or of the hub, in the bits in which it was saved if they are few."""
    from transformers import AutoModelForCausalLM

    if not is_hub_name(plan.location):
        weight_files(settings.model_name, Path(plan.location))
    bits, chosen = quantization.bits_of(load_config(settings.model_name, plan.location)), plan.quantization
    if bits is not None and chosen is not None and chosen.bits != bits:
        raise ModelError(
            f"model_name {settings.model_name!r} was saved in {bits} bits, and model.use_{chosen.bits}bit "
            "was given: leave it out"
        )
    keywords: dict[str, Any] = {"dtype": plan.dtype or "auto"}
    if bits is not None or chosen is not None:
        keywords["device_map"] = {"": plan.device}
    if bits is not None:
        keywords["dtype"] = DTYPES.get(settings.dtype, "auto")
        quantization.check(Quantization(bits, False, plan.dtype or torch.bfloat16), plan.device)
    elif chosen is not None:
        keywords["quantization_config"] = quantization.config_of(chosen)
    with _explain_errors(settings.model_name, plan.location) as files:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            **files, **keywords, output_loading_info=True, trust_remote_code=False
        )
    model = _require_complete(settings, *loaded)
    return quantization.settle_device(model) if "device_map" in keywords else model.to(plan.device)


def load_config(model_name: str, location: str) -> Any:
    """Returns the configuration of the model at a location of ``resolve``.

    Raises:
        ModelError: it cannot be loaded.
    """
    from transformers import AutoConfig

    with _explain_errors(model_name, location) as files:
        return AutoConfig.from_pretrained(**files, trust_remote_code=False)


def _place_model(model: Any, plan: _LoadPlan) -> Any:
    """Returns the model on its device, quantised if that was asked for."""
    if plan.quantization is None:
        return model.to(plan.device)
    return quantization.quantise(model, plan.quantization, plan.device)


def _list_files(model_name: str, location: str) -> dict[str, Any]:
    """Returns where transformers finds the files of a model."""
    path = Path(location).absolute()
    if not is_hub_name(location):
        _check_files(model_name, path.parent if is_gguf(location) else path)
    if not is_gguf(location):
        return {"pretrained_model_name_or_path": location}
    if find_spec("gguf") is None:
        raise ModelError(
            f"model_name {model_name!r} is a GGUF file, which needs the package gguf: pip install gguf"
        )
    # An absolute name: a file of that name in the working directory would be read in its place.
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": str(path)}


def _check_files(model_name: str, folder: Path) -> None:
    """Raises ModelError for a pipe, a device or a huge file that transformers would read whole."""
    for path in folder.iterdir():
        if path.suffix in (".jinja", ".json", ".model", ".txt") and path.exists():
            try:
                check_ordinary(path, path.stat().st_mode, path.stat().st_size)
            except OSError as error:
                raise ModelError(
                    f"model_name {model_name!r} cannot be loaded: {path.name!r:.100}: {error.strerror}"
                ) from error


def _require_complete(settings: ModelSettings, model: Any, info: Mapping[str, Any]) -> Any:
    """Returns the model if all its weights were in the files: transformers draws missing ones at random."""
    if missing := sorted(info["missing_keys"]):
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ModelError(
            f"model_name {settings.model_name!r} lacks the weights {', '.join(missing[:3])}{more}, which its "
            "architecture needs"
        )
    return model


@contextmanager
def _explain_errors(model_name: str, location: str) -> Iterator[dict[str, Any]]:
    """Yields where transformers finds the files, and turns its errors into ModelError.

    Progress bars are hidden, except those of downloads.
    """
    files = _list_files(model_name, location)
    try:
        with (
            _from_hub(location) if is_hub_name(location) else _silence_transformers(),
            _refuse_adapters(model_name),
        ):
            yield files
    except (TaskGymError, MemoryError, torch.OutOfMemoryError):
        raise
    except SafetensorError as error:
        raise ModelError(
            f"model_name {model_name!r} has a damaged safetensors file ({_join_lines(error)}); copy or "
            "download it again"
        ) from error
    except BaseException as error:
        # transformers has no class for errors of files that it is given, and those of Rust are no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(f"model_name {model_name!r} {_explain_error(error, location)}") from error


@contextmanager
def _refuse_adapters(model_name: str) -> Iterator[None]:
    """Refuses a folder of adapters within the context.

    transformers would load whatever base the file in it names, and adapters of whatever rank.
    """
    from transformers.models.auto import auto_factory

    find = vars(auto_factory)["find_adapter_config_file"]

    def refuse(*arguments: Any, **keywords: Any) -> None:
        if find(*arguments, **keywords) is not None:
            raise ModelError(
                f"model_name {model_name!r} has an adapter_config.json, so it is a folder of adapters; "
                "allowed: a base model, or both merged into one (gamespiel merge)"
            )

    with replace_names(auto_factory, find_adapter_config_file=refuse):
        yield


def _explain_error(error: BaseException, location: str) -> str:
    if "trust_remote_code" in str(error):
        return (
            "names code of its own in its config (auto_map), which is never run here; allowed: architectures "
            "that transformers knows"
        )
    if "GGUF model with architecture" in str(error):
        return (
            f"has an architecture that transformers does not read from GGUF files ({_join_lines(error)}); "
            "give the model's folder or hub name"
        )
    if "ignore_mismatched_sizes" in str(error):
        return "has weights of other shapes than its config.json describes"
    if isinstance(error, JSONDecodeError):
        return f"has a damaged JSON file ({_join_lines(error)})"
    if "backend tokenizer" in str(error):
        return "has no tokenizer; allowed: a model with a tokenizer.json beside its config.json"
    hint = "; copy or download it again if it is damaged or cut off" if is_gguf(location) else ""
    return f"cannot be loaded: {_join_lines(error)}{hint}"


def _join_lines(error: BaseException) -> str:
    """Returns a message's first sentence; the others are about other ways to use transformers."""
    lines = [line.strip(" .") for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1]) if lines else type(error).__name__


@contextmanager
def _from_hub(name: str) -> Iterator[None]:
    """Keeps to the hub's cache within the context if the hub cannot be reached."""
    from huggingface_hub import constants

    offline = constants.HF_HUB_OFFLINE
    if only_cached(name) and not offline:
        offline = True
        _say_cached(name)
    with replace_names(constants, HF_HUB_OFFLINE=offline):
        yield


@cache
def _say_cached(name: str) -> None:
    log.warning("the model hub cannot be reached: %s is what its cache has", name)


@contextmanager
def _silence_transformers() -> Iterator[None]:
    """Hides transformers' progress bars within the context."""
    from transformers import modeling_gguf_pytorch_utils as unpacker
    from transformers.utils import logging

    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        # This bar does not ask whether bars are shown.
        with replace_names(unpacker, tqdm=lambda items, **_: items):
            yield
    finally:
        logging.enable_progress_bar()


EXACT, COARSE = 1e-3, 5e-2
"""Shares of the logits' spread up to which two equal readings differ, in float32 and in smaller types."""


@torch.no_grad()
def check_base(base: Any, codec: ChatCodec, model_name: str) -> None:
    """Checks a base model before adapters are put on it.

    Raises:
        ModelError: the tokenizer has tokens that the embedding has not, or a token's reading depends on the
            tokens after it, as in BERT: such a model cannot write.
    """
    rows = base.get_input_embeddings().weight.shape[0]
    # Control tokens come from the template alone: Gemma 3 has one for images, which its text model lacks.
    used = {codec.end_of_turn, *codec.encode_prompt("")}
    beyond = {
        token: index
        for token, index in codec.tokenizer.get_vocab().items()
        if index >= rows and (index in used or not codec.is_control(index))
    }
    if beyond:
        token, index = min(beyond.items(), key=lambda item: item[1])
        raise ModelError(
            f"model_name {model_name!r} has an embedding of {rows:,} tokens and a tokenizer with "
            f"{len(beyond):,} more, the first of them {token!r} with id {index:,}; allowed: the tokenizer "
            "that the model was trained with, or a model whose embedding was resized to the tokenizer"
        )
    # A causal model says the same of the beginning of two texts that begin alike.
    first, *others = dict.fromkeys(codec.encode_prompt("0 1"))
    if len(others) < 2:
        return
    texts = [[first, others[0], others[0]], [first, others[1], others[1]]]
    embedded = base.get_input_embeddings().weight
    logits = base(input_ids=torch.tensor(texts, device=embedded.device)).logits[:, 0].float()
    allowed = EXACT if base.dtype == torch.float32 else COARSE
    if (logits[0] - logits[1]).abs().max() > allowed * logits.std():
        raise ModelError(
            f"model_name {model_name!r} is bidirectional ({base.config.model_type}): what it says of a token "
            "depends on the tokens after it, so it cannot write an answer token by token; allowed: a causal "
            "language model, such as Qwen, Llama or SmolLM"
        )
