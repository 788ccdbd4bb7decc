"""The two protocols of upstream that turn one seed into a seat, chance outcomes and bots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

LAST_STREAM = 4
"""The most that is added to a bot's root. A bot that adds less says so by its attribute ``last_stream``."""


@dataclass(frozen=True, slots=True)
class SeedProtocol:
    """A way to expand a seed.

    Attributes:
        seat: (seed, players) to the seat of the agent.
        chance: Seed to the seed of the chance stream.
        bot: (seed, seat, players) to the root r of the bot on that seat: a random bot draws from
            ``RandomState(r + 2)``, a search rolls out with ``r + 3`` and searches with ``r + 4``.
    """

    seat: Callable[[int, int], int]
    chance: Callable[[int], int]
    bot: Callable[[int, int, int], int]


# Reset/step. Games of more than two seats have one bot per seat here; upstream's single bot fails in them.
_OPENENV = SeedProtocol(
    seat=lambda seed, players: seed % players,
    chance=lambda seed: seed + 100,
    bot=lambda seed, seat, players: seed if players == 2 else seed + seat,
)

# evaluate(): the bot on seat p starts from seed + 2 + p and adds its own 2, 3 and 4 to that.
_EVALUATE = SeedProtocol(
    seat=lambda seed, players: seed % 2 % players,
    chance=lambda seed: seed,
    bot=lambda seed, seat, players: seed + 2 + seat,
)

PROTOCOLS: dict[str, SeedProtocol] = {"openenv": _OPENENV, "evaluate": _EVALUATE}
"""The protocols by name."""

SEEDS = ("drawn", "affine")
"""The sources of episodes' seeds: the caller's draws, or the task's own."""


def own_seed(task_id: int) -> int:
    """Returns the seed of a task under ``seeds="affine"``, in 0 … 2**32 - 1.

    It is the first eight bytes of sha256("game:TASK_ID"), big-endian, modulo 2**32: so the validators of
    affinetes' competition drew it.
    """
    return int.from_bytes(sha256(f"game:{task_id}".encode()).digest()[:8], "big") % 2**32
