"""Plays Kuhn poker with random legal actions, and compares the result with the exact value.

If both players are random, 1/4 of the games are "bet, pass": seat 0 wins 1 chip. 1/8 are "pass, bet, pass":
seat 0 loses 1 chip. The others end in a showdown, worth 0 on average. So seat 0 earns 1/4 - 1/8 = 0.125 chips
per game, and seat 1 loses as much.
"""

import gymnasium as gym

import game_gym  # noqa: F401  (registers GameSpiel-v0)

EXACT = (0.125, -0.125)

env = gym.make("GameSpiel-v0", game="kuhn_poker", opponent="random", rules=False)
env.action_space.seed(0)

observation, info = env.reset(seed=0)
print(f"The first observation of seed 0:\n\n{observation}\n")

returns: list[list[float]] = [[], []]  # by seat
for seed in range(20_000):  # even seeds play seat 0, odd seeds seat 1
    observation, info = env.reset(seed=seed)
    while "result" not in info:
        action = env.action_space.sample(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
    returns[info["seat"]].append(info["returns"][info["seat"]])

for seat, earned in enumerate(returns):
    mean = sum(earned) / len(earned)
    print(f"seat {seat}: {mean:+.3f} chips per game over {len(earned):,} games, exactly {EXACT[seat]:+.3f}")
