"""The lock-step of ranks that share a base model's layers: all of them gather the same layers in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from gamespiel.agents.ranks.alone import RanksError


class Want(IntEnum):
    """The pass through the layers that a rank wants to begin; the greatest want of all ranks is served."""

    NOTHING = 0
    BACKWARD = 1
    FORWARD = 2


class Layers(Protocol):
    """The layers of a model, each of which has a part of its weights on every rank."""

    def gather(self, layer: int, on_begun: Callable[[], object]) -> None:
        """Makes a layer's weights whole on this rank, with all ranks.

        ``on_begun`` is called as soon as the other ranks count on this one. If it was not called, an error
        has changed nothing, and the layer can be gathered again.
        """

    def free(self, layer: int) -> None:
        """Leaves this rank its own part of a layer's weights."""

    def reset(self) -> None:
        """Frees all layers, and forgets the last pass, which may have failed."""


class LockStep:
    """The order in which ranks gather layers: the same on all ranks, whatever each of them computes.

    A layer's weights come together only if all ranks gather them at the same time, and ranks make passes of
    different numbers at different times. So a rank that wants a pass, or that waits in an exchange, says so
    in a round. If any rank wants a forward, all ranks gather all layers in order. Else, if any rank wants a
    backward pass, they gather them in reverse order, down to the first one that has gradients. A rank that
    wanted something else gathers and frees the layers without computing, and the next round begins. If all
    ranks want nothing, the exchange begins.

    A forward comes before a backward pass because a rank can take part in the former in the middle of its own
    backward pass, and not the other way round.

    A rank that fails in the middle of a pass owes the others the layers that are left. It gathers them when
    it begins the next pass or the next exchange. Until then the others wait for it.

    Args:
        layers: What is gathered.
        count: The number of layers.
        first_trained: The first layer whose output has a gradient.
        choose: Returns the greatest number of all ranks, each of which gives its own.
    """

    def __init__(self, layers: Layers, count: int, first_trained: int, choose: Callable[[int], int]) -> None:
        self._layers, self._choose = layers, choose
        self._orders: dict[Want, Sequence[int]] = {
            Want.FORWARD: range(count),
            Want.BACKWARD: range(count - 1, first_trained - 1, -1),
        }
        self._left = deque[int]()  # layers of the pass under way that are still to be gathered

    def begin(self, want: Want) -> None:
        """Waits until all ranks begin the pass that this one wants, and serves those of others before it."""
        self._end_pass()
        while True:
            chosen = Want(self._choose(want))
            if chosen is not Want.NOTHING:
                self._left.extend(self._orders[chosen])
            if chosen is want:
                return
            self._serve()

    def settle(self) -> None:
        """Serves the other ranks until none of them wants a pass."""
        self.begin(Want.NOTHING)

    def reach(self, layer: int) -> None:
        """Gathers the next layer of this rank's pass.

        Raises:
            RanksError: another layer is the next one, so the model does not read its layers in their order.
        """
        if not self._left or self._left[0] != layer:
            expected = f"layer {self._left[0]}" if self._left else "no layer"
            raise RanksError(
                f"model.shard: the model reads its layer {layer}, and all ranks expect {expected}; allowed: "
                "a model that reads each of its layers once, in their order"
            )
        self._layers.gather(layer, self._left.popleft)

    def _end_pass(self) -> None:
        """Frees what the last pass has gathered; if that failed, with the layers that it left."""
        self._layers.reset()
        self._serve()

    def _serve(self) -> None:
        """Gathers the layers that are left for the other ranks, one at a time."""
        while self._left:
            layer = self._left[0]
            self._layers.gather(layer, self._left.popleft)
            self._layers.free(layer)
