"""The modules of a model that adapters go on: ``lora.target_modules``."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from gamespiel.agents.models.weights import ModelError
from task_gym.errors import nearest

log = logging.getLogger(__name__)

KEY = "lora.target_modules"

ROLES = {
    "attention": ("attn", "attention"),
    "state space": ("mixer", "mamba", "ssm"),
    "feed-forward": ("mlp", "ffn", "feed_forward", "fc", "moe", "expert"),
}
"""Parts of a linear module's path, by what the module does."""
HEAD, OTHERS = "head", "others"


def check(base: Any, targets: Sequence[str]) -> None:
    """Checks targets before adapters go on a model.

    Raises:
        ModelError: there are none, or one shares its weights with the embedding.
    """
    if not targets:
        raise ModelError(f"{KEY}: none were given; {_describe_allowed(base)}")
    for name, module in _linear_layers(base):
        if _is_target(name, targets) and _is_tied(base, module):
            raise ModelError(
                f"{KEY}: {name!r} shares its weights with the embedding, so adapters that are merged into it "
                f"would change the embedding too; leave it out; {_describe_allowed(base)}"
            )


def check_adapted(model: Any, targets: Sequence[str]) -> None:
    """Checks that every target has led to adapters, and warns of weights that have none.

    PEFT puts the adapters of ``gate_proj`` and the like on experts that lie in one parameter, in the families
    that it knows, and passes over linear modules of that name then: Qwen3-Next's shared expert has none.

    Raises:
        ModelError: PEFT has found nothing of a target's name.
    """
    base, kept = model.get_base_model(), model.peft_config["default"].target_modules
    if missing := _find_missing(base, [target for target in targets if target in kept]):
        raise _not_found(base, missing)
    passed_by = [name for name, module in _linear_layers(base, bare=True) if _is_target(name, targets)]
    bare = [(name, base.get_submodule(name).weight.numel()) for name in passed_by] + _bare_experts(base)
    if bare:
        total = sum(parameter.numel() for parameter in base.parameters() if not parameter.requires_grad)
        log.warning(
            "%d weights have no adapters, %.0f%% of the model (%s is the first): PEFT adapts linear modules, "
            "and in some families experts that lie in one parameter",
            len(bare),
            100 * sum(size for _, size in bare) / total,
            bare[0][0],
        )


def explain_refusal(base: Any, targets: Sequence[str], error: Exception) -> ModelError:
    """Returns the error for targets that PEFT refuses: Mamba's fused kernels pass adapters by, for one."""
    said = str(error).strip().splitlines()[0].rstrip(".")
    if "not found" in said and (missing := _find_missing(base, targets)):
        return _not_found(base, missing)
    named = [target for target in targets if f"'{target}'" in said]
    why = f"{_list_names(targets)} given, which PEFT refuses ({said})"
    return ModelError(f"{KEY}: {why}; {_describe_allowed(base, named)}")


def _find_missing(base: Any, targets: Sequence[str]) -> list[str]:
    """Returns the targets that no linear module has as its name."""
    names = [name for name, _ in _linear_layers(base)]
    return [target for target in targets if not any(_is_target(name, [target]) for name in names)]


def _not_found(base: Any, missing: Sequence[str]) -> ModelError:
    leaves = sorted({name.rpartition(".")[2] for name, _ in _linear_layers(base)})
    guess = nearest(missing[0], leaves) if len(missing) == 1 else ""
    return ModelError(f"{KEY}: {_list_names(missing)} given; {_describe_allowed(base)}{guess}")


def _linear_layers(base: Any, *, bare: bool = False) -> Iterator[tuple[str, Any]]:
    """Yields a model's linear modules by name, adapted or not; only those without adapters if ``bare``.

    Linear is what PEFT adapts as linear. GPT-2's ``Conv1D`` is a linear layer with transposed weights.
    """
    from transformers.pytorch_utils import Conv1D  # imported late: transformers takes seconds

    for name, module in base.named_modules():
        if isinstance(module, nn.Linear | Conv1D) and ".lora_" not in name:
            own = name.removesuffix(".base_layer")
            if not bare or own == name:
                yield own, module


def _is_target(name: str, targets: Sequence[str]) -> bool:
    """Returns whether PEFT takes a module for one of the targets."""
    return any(name == target or name.endswith(f".{target}") for target in targets)


def _is_tied(base: Any, module: Any) -> bool:
    embedding = base.get_input_embeddings()
    return embedding is not None and module.weight is embedding.weight


def _bare_experts(base: Any) -> list[tuple[str, int]]:
    """Returns names and sizes of the parameters without adapters that have a matrix per expert."""
    from peft.tuners.lora.layer import ParamWrapper  # imported late: see quantization.plain_peft

    adapted = {
        f"{name.replace('.base_layer', '')}.{module.parameter_name}"
        for name, module in base.named_modules()
        if isinstance(module, ParamWrapper)
    }
    experts = {
        name.replace(".base_layer", ""): parameter.numel()
        for name, parameter in base.named_parameters()
        if parameter.dim() == 3 and "expert" in name
    }
    return [(name, size) for name, size in experts.items() if name not in adapted]


def _describe_allowed(base: Any, without: Sequence[str] = ()) -> str:
    """Returns the model's linear modules by their roles, and a setting that adapts all of its layers'."""
    roles: dict[str, list[str]] = {}
    for name, module in _linear_layers(base):
        role, leaf = _describe_role(base, name, module), name.rpartition(".")[2]
        if leaf not in {*without, *roles.setdefault(role, [])}:
            roles[role].append(leaf)
    layers = sorted({leaf for role, leaves in roles.items() if not role.startswith(HEAD) for leaf in leaves})
    listed = "; ".join(f"{role}: {', '.join(leaves)}" for role, leaves in roles.items() if leaves)
    return f"this model ({base.config.model_type}) has {listed}; all layers: {json.dumps(layers)}"


def _describe_role(base: Any, name: str, module: Any) -> str:
    if module is base.get_output_embeddings():
        return f"{HEAD}, tied to the embedding" if _is_tied(base, module) else HEAD
    for role, words in ROLES.items():
        if any(word in part for part in name.split(".") for word in words):
            return role
    return OTHERS


def _list_names(targets: Sequence[str]) -> str:
    return f"{', '.join(map(repr, targets))} {'was' if len(targets) == 1 else 'were'}"
