"""AgileRL's IPPO learns Kuhn poker from both seats, behind the mask that it reads from the infos."""

import numpy as np
import torch
from agilerl.algorithms import IPPO
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from pettingzoo.utils import BaseParallelWrapper

from game_gym.pettingzoo import parallel_env


class ListedMasks(BaseParallelWrapper):
    """Masks as lists: AgileRL 2.58 looks for None among them with ``in``, which arrays cannot answer."""

    def reset(self, seed=None, options=None):
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, listed(infos)

    def step(self, actions):
        *turn, infos = self.env.step(actions)
        return *turn, listed(infos)


def listed(infos):
    return {agent: {"action_mask": info["action_mask"].tolist()} for agent, info in infos.items()}


torch.manual_seed(0)
env = ListedMasks(parallel_env(game="kuhn_poker", observation="tensor", mask="info"))
agent = IPPO(
    observation_spaces=[env.observation_space(name) for name in env.possible_agents],
    action_spaces=[env.action_space(name) for name in env.possible_agents],
    agent_ids=env.possible_agents,
    batch_size=64, learn_step=256, lr=3e-3, gamma=1.0,
)  # fmt: skip
trained, _ = train_multi_agent_on_policy(
    env, "kuhn_poker", "IPPO", [agent], sum_scores=False, max_steps=4096, evo_steps=1024, eval_steps=50,
    verbose=False,
)  # fmt: skip
agent = trained[0]
illegal, totals = 0, np.zeros(2)
for seed in range(200):
    observations, infos = env.reset(seed=seed)
    while env.agents:
        actions = agent.get_action(observations, infos)[0]
        chosen = {name: int(np.asarray(action).item()) for name, action in actions.items()}
        observations, rewards, *_, infos = env.step(chosen)
        totals += [rewards[name] for name in env.possible_agents]
        illegal += sum(reward < 0 for reward in rewards.values())
print(f"200 games, mean scores {totals[0] / 200:.3f} and {totals[1] / 200:.3f}, {illegal} illegal actions")
