"""Loading of base models and tokenizers, and the adapters put on them."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from task_gym.errors import TaskGymError, nearest

TINY = Path(__file__).parent / "tiny"
ALL_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class LoraSettings:
    """Settings of low-rank adapters (Hu et al. 2021, arXiv:2106.09685).

    There is no dropout: it would make old and new log-probabilities differ with no update at all.

    Attributes:
        r: Rank of the adapters.
        lora_alpha: Scale of the adapters; their output is multiplied by ``lora_alpha / r``.
        target_modules: Names of the linear modules that get adapters.
    """

    r: int = 16
    lora_alpha: float = 32
    target_modules: Sequence[str] = ALL_LINEAR


@dataclass(frozen=True)
class ModelSettings:
    """A base model by name, so that a policy can be rebuilt from its settings.

    Attributes:
        model_name: ``tiny`` (shipped with the package), a folder, or a name on the model hub.
        dtype: ``auto`` (float32 on a CPU, else the dtype of the saved model), or a name in ``DTYPES``.
        random_weights: Whether the weights are drawn anew, with the same architecture and tokenizer.
    """

    model_name: str = "tiny"
    dtype: str = "auto"
    random_weights: bool = False


class ModelError(TaskGymError):
    """A base model that cannot be loaded, or that lacks the modules to adapt."""


def resolve(model_name: str) -> str:
    """Returns the folder or hub name to load from.

    Raises:
        ModelError: the name is a path but no folder with a ``config.json``, or a misspelt ``tiny``.
    """
    if model_name == "tiny":
        return str(TINY)
    path = Path(model_name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"model_name {model_name!r} is a folder without a config.json")
        return str(path)
    if model_name.startswith(("/", ".", "~")) or model_name.count("/") > 1:
        raise ModelError(f"model_name {model_name!r} is not a folder")
    if "/" not in model_name and difflib.get_close_matches(model_name.lower(), ["tiny"], n=1):
        raise ModelError(f"model_name {model_name!r} is unknown; did you mean 'tiny'?")
    return model_name


def load_tokenizer(settings: ModelSettings) -> Any:
    from transformers import AutoTokenizer

    with _loading(settings.model_name):
        return AutoTokenizer.from_pretrained(resolve(settings.model_name), trust_remote_code=False)


def load_base(settings: ModelSettings, device: torch.device | str, seed: int) -> Any:
    """Returns the frozen base model in evaluation mode.

    Raises:
        ModelError: the dtype is unknown, or the model cannot be loaded.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    if settings.dtype != "auto" and settings.dtype not in DTYPES:
        raise ModelError(f"dtype {settings.dtype!r} is unknown; allowed: auto, {', '.join(DTYPES)}")
    on_cpu = torch.device(device).type == "cpu"
    dtype: Any = DTYPES.get(settings.dtype, torch.float32 if on_cpu else "auto")
    source = resolve(settings.model_name)
    with _loading(settings.model_name), torch.random.fork_rng(devices=[]):
        if settings.random_weights:
            config = AutoConfig.from_pretrained(source, trust_remote_code=False)
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
            model = model.to(torch.get_default_dtype() if dtype == "auto" else dtype)
        else:
            model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, trust_remote_code=False)
    model.requires_grad_(False)
    return model.to(device).eval()


def add_adapters(base: Any, settings: LoraSettings, seed: int) -> Any:
    """Returns the PEFT model around ``base``; its trainable float32 adapters change nothing at first (B = 0).

    Raises:
        ModelError: the model lacks a target module. PEFT itself would ignore that.
    """
    from peft import LoraConfig, get_peft_model

    modules = {name.rsplit(".", 1)[-1] for name, m in base.named_modules() if isinstance(m, nn.Linear)}
    for target in settings.target_modules:
        if target.rsplit(".", 1)[-1] not in modules:
            raise ModelError(
                f"target_modules: {target!r} was given, the model has: {', '.join(sorted(modules))}"
                f"{nearest(target, sorted(modules))}"
            )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LoraConfig(
            task_type="CAUSAL_LM",
            lora_dropout=0.0,
            r=settings.r,
            lora_alpha=settings.lora_alpha,  # type: ignore[arg-type]  # PEFT divides by r: any number does
            target_modules=list(settings.target_modules),
        )
        with warnings.catch_warnings():
            # PEFT asks transformers for an attribute that transformers has renamed.
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
            return get_peft_model(base, config)


@contextmanager
def _loading(model_name: str) -> Iterator[None]:
    """Turns transformers' loading errors into ModelError; hides the progress bar of ``tiny``."""
    from transformers.utils import logging

    quiet = model_name == "tiny" and logging.is_progress_bar_enabled()
    if quiet:
        logging.disable_progress_bar()
    try:
        yield
    except TaskGymError:
        raise
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"model_name {model_name!r} names code of its own in its config (auto_map), which is never "
                "run here; allowed: architectures that transformers knows"
            ) from error
        raise ModelError(f"model_name {model_name!r} cannot be loaded: {error}") from error
    except OSError as error:
        raise ModelError(f"model_name {model_name!r} cannot be loaded: {error}") from error
    finally:
        if quiet:
            logging.enable_progress_bar()
