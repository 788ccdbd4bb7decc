"""Adds an opponent to Kuhn poker that bets with the king and never bluffs, and exploits it from seat 1.

The opponent reads only its own observation. It has the king in 1/3 of the games. If it passes, it has no king
and does not call, so a bet wins 1 chip. If it bets, it has the king: a bet then loses 2 chips, a pass 1 chip.
So always betting earns 2/3 * 1 - 1/3 * 2 = 0, and betting only after a pass earns 2/3 * 1 - 1/3 * 1 = 1/3.
"""

import gymnasium as gym

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from task_gym.opponents import Seating, SeatView, register_opponent

PASS, BET = 0, 1


class Honest:
    def __init__(self, seating: Seating) -> None:
        pass  # `seating` has the game and the seat

    def restart(self, seed: int) -> None:
        pass  # a random opponent would seed its generator here

    def act(self, view: SeatView) -> int:  # a legal action's id
        return BET if "Your card: K" in view.text() else PASS


register_opponent("honest", Honest)
env = gym.make("GameSpiel-v0", game="kuhn_poker", opponent="honest", rules=False)

for name, exploits in (("always bets", False), ("bets after a pass only", True)):
    earned = []
    for seed in range(1, 16_000, 2):  # odd seeds play seat 1, after the opponent's first action
        observation, info = env.reset(seed=seed)
        action = PASS if exploits and "Player 0 bet" in observation else BET
        observation, reward, terminated, truncated, info = env.step(action)
        earned.append(info["returns"][1])
    print(f"{name}: {sum(earned) / len(earned):+.3f} chips per game against {info['opponent']!r}")
