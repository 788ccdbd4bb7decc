"""Declares Nim, which OpenSpiel has, and plays it perfectly against a search.

The exclusive or of the piles 1, 2 and 3 is 0. The second seat wins if it always makes it 0 again (Bouton,
1901). So the perfect player wins from seat 1. From seat 0 it loses: the search solves this small game.
"""

from functools import reduce
from operator import xor

import gymnasium as gym

from game_gym.games import register_game
from game_gym.spec import Budget, GameSpec


def piles(state) -> list[int]:
    return [int(size) for size in str(state).split()[1:]]  # "(0): 1 2 3"


nim = GameSpec(
    name="nim",
    rules=lambda params: "Take one stick or more from one pile. Whoever takes the last stick wins.",
    describe=lambda state, seat: "\n".join("|" * size or "-" for size in piles(state)),
    allowed={"pile_sizes": ("1;2;3",), "is_misere": (False,)},
    budget=Budget(simulations=1000, rollouts=1),
)
register_game(nim)
params = {"pile_sizes": "1;2;3", "is_misere": False}
env = gym.make("GameSpiel-v0", game="nim", params=params, opponent="mcts")
print(env.reset(seed=0)[0], end="\n\n")
for seat in (0, 1):
    wins = 0
    for seed in range(seat, 40, 2):  # even seeds play seat 0, odd seeds seat 1
        _, info = env.reset(seed=seed)
        while "result" not in info:
            sums = {a: reduce(xor, piles(env.unwrapped.state.child(a))) for a in info["legal_actions"]}
            *_, info = env.step(min(sums, key=sums.get))
        wins += info["result"] == "win"
    print(f"seat {seat}: {wins} of 20 games won")
