"""Sets of adapters by name, each of which can take the place of the ones that learn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from gamespiel.agents import transfer
from gamespiel.agents.models import BASE, NEWEST
from task_gym.errors import TaskGymError, nearest

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
        else:
            with self._swap_in(self._find_published(name)):
                yield

    def _find_published(self, name: str) -> Adapters:
        if name not in self._published:
            known = (NEWEST, BASE, *self._published)
            raise UnknownAdaptersError(
                f"adapters {name!r} were asked for; published are {', '.join(known)}{nearest(name, known)}"
            )
        return self._published[name]

    @contextmanager
    def _swap_in(self, adapters: Adapters) -> Iterator[None]:
        own = {name: parameter.data for name, parameter in self._learning.items()}
        try:
            for name, parameter in self._learning.items():
                parameter.data = transfer.send(adapters[name], own[name].device)
            yield
        finally:
            for name, parameter in self._learning.items():
                parameter.data = own[name]
