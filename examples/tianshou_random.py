"""Two random players of Tianshou play Leduc poker; an action that the mask forbids would be an error."""

from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.policy import MultiAgentPolicyManager, RandomPolicy

from game_gym.tianshou import GameSpielTianshou


def make() -> GameSpielTianshou:
    return GameSpielTianshou(game="leduc_poker", reward="returns", illegal="raise")


buffer = VectorReplayBuffer(4000, buffer_num=8)
players = MultiAgentPolicyManager([RandomPolicy(), RandomPolicy()], make())
played = Collector(players, DummyVectorEnv([make] * 8), buffer).collect(n_episode=500)
rows, _ = buffer.sample(0)
print(f"{played['n/ep']} games, {len(rows)} moves, {rows.obs.mask.sum(axis=1).mean():.2f} legal of 3 actions")
chips = rows.rew.sum(axis=0) / played["n/ep"]
print(f"chips per game: {chips[0]:+.2f} and {chips[1]:+.2f}")
