"""REINFORCE in TorchRL learns Leduc poker behind the mask. An action that it forbids would be an error."""

import torch
from tensordict.nn import TensorDictModule
from torchrl.modules import MaskedCategorical

from game_gym.torchrl import torchrl_env

torch.manual_seed(0)
env = torchrl_env(game="leduc_poker", rules=False, illegal="raise")
env.set_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(30, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))
optimizer, scores = torch.optim.Adam(network.parameters(), lr=1e-2), []


def policy(observation: torch.Tensor, action_mask: torch.Tensor) -> MaskedCategorical:
    return MaskedCategorical(logits=network(observation), mask=action_mask.bool())


act = TensorDictModule(lambda *seen: policy(*seen).sample(), ["observation", "action_mask"], ["action"])
for _ in range(30):
    with torch.no_grad():
        played = env.rollout(512, act, break_when_any_done=False)
    reward, done = played["next", "reward"][:, 0], played["next", "done"][:, 0]
    scores.append(float(reward.sum() / done.sum()))
    gains, gain = torch.zeros(len(reward)), 0.0
    for step in reversed(range(len(reward))):
        if done[step]:  # the score of the game that this step and those before it belong to
            gain = reward[step] - scores[-1]
        gains[step] = gain
    chosen = policy(played["observation"], played["action_mask"]).log_prob(played["action"])
    loss = -(chosen * gains).mean()
    optimizer.zero_grad(), loss.backward(), optimizer.step()
first, last = sum(scores[:5]) / 5, sum(scores[-5:]) / 5
print(f"score in the first five updates {first:.3f}, in the last five {last:.3f}")
