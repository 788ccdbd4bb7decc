"""Two agents of TextArena play a game of ours, each from its own seat."""

import random
import re

import gymnasium as gym
import textarena as ta

import game_gym  # noqa: F401  (registers the environments)


class Game(ta.Env):
    def __init__(self, **arguments):
        self.game = gym.make("GameSpielText-v0", opponent="open", **arguments).unwrapped

    def reset(self, num_players: int, seed: int | None = None):
        self.text, self.info = self.game.reset(seed=seed)
        self.games = {seat: {"turn_count": 0, "invalid_move": False} for seat in range(num_players)}

    def get_observation(self):
        return self.info["seat"], self.text

    def step(self, action: str):
        seat = self.info["seat"]
        self.text, _, terminated, truncated, self.info = self.game.step(action)
        self.games[seat]["turn_count"] += 1
        self.games[seat]["invalid_move"] |= "error" in self.info
        if "error" in self.info:
            self.text = f"{self.info['error']['message']}\n\n{self.text}"
        return terminated or truncated, {}

    def close(self):  # TextArena's rewards are -1 … 1
        return {seat: 2 * score - 1 for seat, score in enumerate(self.info["scores"])}, self.games


class Random(ta.Agent):
    def __call__(self, observation: str) -> str:
        actions = re.findall(r"^  (\d+) -> ", observation, re.MULTILINE)
        return f"I play {random.choice(actions)}."


ta.register("GameSpiel-v0", Game, game="leduc_poker")
env, agents = ta.make("GameSpiel-v0"), {0: Random(), 1: Random()}
random.seed(0)
for seed in range(5):
    env.reset(num_players=2, seed=seed)
    done = False
    while not done:
        seat, observation = env.get_observation()
        done, _ = env.step(agents[seat](observation))
    print(*env.close())
