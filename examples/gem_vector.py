"""GEM plays Kuhn poker in a vector of environments, whose actions are replies as text."""

import random

import gem
import gymnasium as gym

import game_gym  # noqa: F401  (registers the environments)


class Game(gem.Env):
    def __init__(self, seed: int = 0, **arguments):
        self.game = gym.make("GameSpielText-v0", **arguments).unwrapped
        self.reset(seed)

    def reset(self, seed=None):
        text, self.info = self.game.reset(seed=seed)
        return text, self.info

    def step(self, action: str):
        text, reward, terminated, truncated, self.info = self.game.step(action)
        # GEM's agents read only the observation.
        error = f"{self.info['error']['message']}\n\n" if "error" in self.info else ""
        return error + text, reward, terminated, truncated, self.info

    def sample_random_action(self) -> str:
        return str(random.choice(self.info["legal_actions"]))


gem.register("game:GameSpiel", Game, game="kuhn_poker", rules=False)
envs = gem.make_vec(["game:GameSpiel"] * 8)
random.seed(0)
envs.reset()
scores = []
while len(scores) < 400:
    _, rewards, terminated, truncated, infos = envs.step([env.sample_random_action() for env in envs.envs])
    over = [a or b for a, b in zip(terminated, truncated, strict=True)]
    scores += [reward for reward, ended in zip(rewards, over, strict=True) if ended]
print(f"{len(scores)} games, mean score {sum(scores) / len(scores):.3f}")
