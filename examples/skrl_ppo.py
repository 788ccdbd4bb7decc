"""skrl's PPO learns Kuhn poker behind the mask, which comes with the observation."""

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from skrl.utils.spaces.torch import unflatten_tensorized_space
from torch import nn

from game_gym.wrappers import TensorObservation
from task_gym.wrappers import DictObservation


class Net(Model):
    def __init__(self, spaces, outputs):
        Model.__init__(self, observation_space=spaces[0], action_space=spaces[1], device="cpu")
        size = spaces[0]["observation"].shape[0]
        self.net = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, outputs))

    def read(self, inputs):
        seen = unflatten_tensorized_space(self.observation_space, inputs["observations"])
        return self.net(seen["observation"]), seen["action_mask"]


class Policy(CategoricalMixin, Net):
    def __init__(self, spaces):
        Net.__init__(self, spaces, int(spaces[1].n))
        CategoricalMixin.__init__(self)

    def compute(self, inputs, role=""):
        logits, mask = self.read(inputs)
        return logits.masked_fill(mask == 0, -1e9), {}


class Value(DeterministicMixin, Net):
    def __init__(self, spaces):
        Net.__init__(self, spaces, 1)
        DeterministicMixin.__init__(self)

    def compute(self, inputs, role=""):
        return self.read(inputs)[0], {}


def wrapped(env):
    return DictObservation(TensorObservation(env))


set_seed(1)
games = gym.make_vec("game_gym:GameSpiel-v0", 8, "sync", wrappers=[wrapped], game="kuhn_poker")
env = wrap_env(games, verbose=False)
spaces = env.observation_space, env.action_space
agent = PPO(
    models={"policy": Policy(spaces), "value": Value(spaces)},
    memory=RandomMemory(memory_size=64, num_envs=8),
    observation_space=spaces[0], action_space=spaces[1], device="cpu",
    cfg={"rollouts": 64, "learning_rate": 5e-3, "discount_factor": 1.0, "entropy_loss_scale": 0.01,
         "experiment": {"write_interval": 0, "checkpoint_interval": 0}},
)  # fmt: skip
SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 2048, "disable_progressbar": True}).train()

scores, illegal = [], 0
observations, _ = env.reset()
while len(scores) < 1000:
    with torch.no_grad():
        actions, _ = agent.act(observations, None, timestep=0, timesteps=0)
    observations, rewards, terminated, truncated, _ = env.step(actions)
    illegal += int((rewards < 0).sum())
    scores += rewards[terminated | truncated].tolist()
print(f"{len(scores)} games, mean score {sum(scores) / len(scores):.3f}, {illegal} illegal actions")
