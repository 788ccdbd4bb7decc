"""Seeds to seats and streams, as upstream's two protocols do it."""

from game_gym.protocols import PROTOCOLS

OPENENV, EVALUATE = PROTOCOLS["openenv"], PROTOCOLS["evaluate"]


def test_seats() -> None:
    assert [OPENENV.seat(seed, 4) for seed in range(6)] == [0, 1, 2, 3, 0, 1]
    assert [EVALUATE.seat(seed, 4) for seed in range(6)] == [0, 1, 0, 1, 0, 1]
    assert [protocol.seat(3, 1) for protocol in PROTOCOLS.values()] == [0, 0]


def test_chance() -> None:
    assert (OPENENV.chance(7), EVALUATE.chance(7)) == (107, 7)


def test_bots() -> None:
    # A uniform bot draws from root + 2: seed + 2 whichever seat of two, seed + 2 + p of more.
    assert [OPENENV.bot(7, seat, 2) + 2 for seat in (0, 1)] == [9, 9]
    assert [OPENENV.bot(7, seat, 4) + 2 for seat in range(4)] == [9, 10, 11, 12]
    # evaluate's base is seed + 2 + p, and uniform base + 2, rollouts base + 3, search base + 4.
    assert [EVALUATE.bot(7, seat, 2) + 2 for seat in (0, 1)] == [11, 12]
