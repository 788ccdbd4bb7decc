"""The adapters that are trained in place of a base model's weights: where they go, and sets by name."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from gamespiel.agents import transfer
from gamespiel.agents.hyperparameters import ALL_LINEAR, LoraSettings
from gamespiel.agents.models import BASE, NEWEST, quantization
from gamespiel.agents.models.weights import ModelError
from task_gym.errors import TaskGymError, nearest

__all__ = ["ALL_LINEAR", "LoraSettings", "add_adapters"]


log = logging.getLogger(__name__)

KEY = "lora.target_modules"

ROLES = {
    "attention": ("attn", "attention"),
    "state space": ("mixer", "mamba", "ssm"),
    "feed-forward": ("mlp", "ffn", "feed_forward", "fc", "moe", "expert"),
}
"""Parts of a linear module's path, by what the module does."""
HEAD, OTHERS = "head", "others"

SUMMED = 2**15
"""The most weights of a layer whose adapter is added to them, since each forward makes that sum anew."""


def add_adapters(base: Any, settings: LoraSettings, seed: int) -> Any:
    """Returns the PEFT model around ``base``; its trainable float32 adapters change nothing at first (B = 0).

    Adapters of a bfloat16 model compute in bfloat16; see ``_Projection``. Those of a float32 model's small
    layers are added to the weights; see ``_make_summed_class``.

    Raises:
        ModelError: the model lacks a target module, which PEFT itself would ignore, a target shares its
            weights with the embedding, PEFT cannot adapt it, or the rank is beyond all of its layers.
    """
    _check_targets(base, settings.target_modules)
    _check_rank(base, settings.r)
    quantised = any(getattr(base, f"is_loaded_in_{bits}bit", False) for bits in (4, 8))
    with nullcontext() if quantised else quantization.plain_peft():
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            task_type="CAUSAL_LM",
            lora_dropout=0.0,
            r=settings.r,
            lora_alpha=settings.lora_alpha,  # type: ignore[arg-type]  # PEFT divides by r: any number does
            target_modules=list(settings.target_modules),
        )
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            torch.manual_seed(seed)
            # PEFT asks transformers for an attribute that transformers has renamed.
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
            try:
                model = get_peft_model(base, config)
            except ValueError as error:
                raise _explain_refusal(base, settings.target_modules, error) from error
        _check_adapted(model, settings.target_modules)
    if base.dtype == torch.bfloat16:
        _compute_in_type_of_input(model)
    elif base.dtype == torch.float32:
        _sum_weights_of_small_layers(model)
    return model


def _check_rank(base: nn.Module, rank: int) -> None:
    """Raises ModelError if a rank is larger than every side of every layer: it would only take memory."""
    sides = [
        int(side)
        for layer in base.modules()
        for side in (getattr(layer, "in_features", 0), getattr(layer, "out_features", 0))
        if isinstance(side, int)
    ]
    largest = max(sides, default=0)
    if rank > largest > 0:
        raise ModelError(
            f"lora.r: {rank} was given, allowed: 1 … {largest}, the largest side of a layer of this model"
        )


class _Projection(nn.Linear):
    """One of an adapter's two matrices: kept in float32, and multiplied in the type of the input.

    PEFT would copy the input to float32 for each adapter. Autograd would keep the copies, nearly half of an
    update's activations, and products of float32 are several times slower than those of bfloat16. This is
    what ``torch.autocast`` does to adapters, without its changes to the base model. float16 is left to PEFT:
    its small gradients would become 0.
    """

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, self.weight.to(input.dtype))


def _compute_in_type_of_input(model: nn.Module) -> None:
    from peft.tuners.lora import LoraLayer

    for layer in model.modules():
        if isinstance(layer, LoraLayer):
            layer.cast_input_dtype_enabled = False
            for projection in (*layer.lora_A.values(), *layer.lora_B.values()):
                # A new module would have to take over the weights, which PEFT finds by the modules' names.
                projection.__class__ = _Projection


def _sum_weights_of_small_layers(model: nn.Module) -> None:
    from peft.tuners.lora.layer import Linear

    for layer in model.modules():
        if type(layer) is Linear and type(layer.base_layer) is nn.Linear and _is_small(layer):
            layer.__class__ = _make_summed_class()  # type: ignore[assignment]


@cache
def _make_summed_class() -> type[nn.Module]:
    """Returns the class of layers whose adapter is added to the weights."""
    from peft.tuners.lora.layer import Linear  # imported late: it takes seconds

    class _SummedLinear(Linear):
        """An adapted layer that multiplies its input once, by W + scale B A. Each forward makes that sum.

        PEFT multiplies three times, and has six sums and scalings of whole outputs, back included. In a small
        layer the gradient of the sum costs less than those.
        """

        def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            if self.disable_adapters or self.merged or args or kwargs:
                result: Tensor = super().forward(x, *args, **kwargs)
                return result
            base: Any = self.base_layer
            weight: Tensor = base.weight
            for name in self.active_adapters:
                if name in self.lora_A:
                    b: Any = self.lora_B[name]
                    a: Any = self.lora_A[name]
                    weight = torch.addmm(weight, b.weight, a.weight, alpha=self.scaling[name])
            return nn.functional.linear(x, weight, base.bias)

    return _SummedLinear


def _is_small(layer: Any) -> bool:
    """Returns whether one product with the sum, back included, costs at most what an adapter adds.

    Per token, the gradient of the sum takes inputs * outputs multiplications. A and B take rank * (inputs +
    outputs), three times.
    """
    inputs, outputs = layer.in_features, layer.out_features
    adapters = (3 * rank * (inputs + outputs) for rank in layer.r.values())
    return inputs * outputs <= min(SUMMED, *adapters)


def _check_targets(base: Any, targets: Sequence[str]) -> None:
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


def _check_adapted(model: Any, targets: Sequence[str]) -> None:
    """Checks that every target has led to adapters, and warns of weights that have none.

    PEFT puts the adapters of ``gate_proj`` and the like on experts that lie in one parameter, in the families
    that it knows, and passes over linear modules of that name then: Qwen3-Next's shared expert has none.

    Raises:
        ModelError: PEFT has found nothing of a target's name.
    """
    base, peft_targets = model.get_base_model(), model.peft_config["default"].target_modules
    if missing := _find_missing(base, [target for target in targets if target in peft_targets]):
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


def _explain_refusal(base: Any, targets: Sequence[str], error: Exception) -> ModelError:
    """Returns the error for targets that PEFT refuses: Mamba's fused kernels pass adapters by, for one."""
    reason = str(error).strip().splitlines()[0].rstrip(".")
    if "not found" in reason and (missing := _find_missing(base, targets)):
        return _not_found(base, missing)
    named = [target for target in targets if f"'{target}'" in reason]
    why = f"{_list_names(targets)} given, which PEFT refuses ({reason})"
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
            plain_name = name.removesuffix(".base_layer")
            if not bare or plain_name == name:
                yield plain_name, module


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


Adapters = Mapping[str, Tensor]
"""Adapters by the names of the model's parameters."""


class UnknownAdaptersError(TaskGymError, KeyError):
    """A name under which no adapters were published."""

    def __str__(self) -> str:
        return str(self.args[0])


class AdapterSets:
    """The adapters of a PEFT model, and others that were published for it.

    Published tensors stay where they are, on the CPU as a rule: at most one set is beside the learning ones
    on the model's device. The learning parameters keep their identity, ``requires_grad`` and names.

    Args:
        model: The PEFT model, whose parameters with gradients are the ones that learn.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        # Found once: PEFT's own ways to switch adapters change the flag.
        self._learning: dict[str, nn.Parameter] = {
            name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
        }
        self._published: dict[str, Adapters] = {}

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Returns the parameters that learn."""
        return list(self._learning.values())

    @property
    def learning(self) -> dict[str, Tensor]:
        """Returns the adapters that learn: the live tensors, detached."""
        return {name: parameter.detach() for name, parameter in self._learning.items()}

    def publish(self, name: str, adapters: Adapters) -> None:
        """Makes adapters known by a name. ``NEWEST`` is always what the model has, so it is not kept.

        Raises:
            ValueError: they are adapters of another model, or of other LoRA settings, or the name is taken.
        """
        if name == NEWEST:
            return
        if name == BASE:
            raise ValueError(f"adapters were given the name {BASE!r}, which is that of the model without any")
        shapes = {key: tensor.shape for key, tensor in adapters.items()}
        if shapes != {key: parameter.shape for key, parameter in self._learning.items()}:
            raise ValueError(f"adapters {name!r} are those of another model or of other LoRA settings")
        self._published[name] = adapters

    def forget(self, name: str) -> None:
        """Forgets a name; one that is not known is no error."""
        self._published.pop(name, None)

    def stamp(self, name: str) -> Hashable:
        """Returns what changes with the adapters of a name: what was computed with them is good as long."""
        if name != NEWEST:
            return id(self._published.get(name))
        # torch counts the changes that are made to a tensor in place, as optimizers and load_state_dict do.
        return sum(parameter._version for parameter in self._learning.values())

    @contextmanager
    def use(self, name: str) -> Iterator[None]:
        """Makes the model compute with named adapters within the context. It always swaps back.

        Raises:
            UnknownAdaptersError: nothing was published by this name.
        """
        if name == NEWEST:
            yield
        elif name == BASE:
            with self._model.disable_adapter():
                yield
        elif name not in self._published:
            known = (NEWEST, BASE, *self._published)
            raise UnknownAdaptersError(
                f"adapters {name!r} were asked for; published are {', '.join(known)}{nearest(name, known)}"
            )
        else:
            learning = {name: parameter.data for name, parameter in self._learning.items()}
            adapters = self._published[name]
            try:
                for key, parameter in self._learning.items():
                    parameter.data = transfer.send(adapters[key], learning[key].device)
                yield
            finally:
                for key, parameter in self._learning.items():
                    parameter.data = learning[key]
