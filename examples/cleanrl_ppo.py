"""Masked PPO in one file, as CleanRL writes it. An action that the mask forbids would be an error."""

import gymnasium as gym
import torch
from torch import nn

from game_gym.wrappers import TensorObservation
from task_gym.wrappers import DictObservation

torch.manual_seed(0)
envs = gym.make_vec(
    "game_gym:GameSpiel-v0", 16, "sync", {"autoreset_mode": "SameStep"}, [TensorObservation, DictObservation],
    game="leduc_poker", rules=False, illegal="raise",
)  # fmt: skip
actor, critic = (nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, n)) for n in (3, 1))
optimizer, scores = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3), []
policy = lambda obs, mask: torch.distributions.Categorical(logits=actor(obs).masked_fill(mask == 0, -1e8))  # noqa: E731
seen = envs.reset(seed=0)[0]
for _ in range(40):
    rows, rewards, dones = [], [], []
    for _ in range(32):
        obs, mask = torch.from_numpy(seen["observation"]), torch.from_numpy(seen["action_mask"])
        action = policy(obs, mask).sample()
        seen, reward, over, _, _ = envs.step(action.numpy())
        rows.append((obs, mask, action, policy(obs, mask).log_prob(action).detach()))
        rewards.append(torch.tensor(reward).float()), dones.append(torch.tensor(over))
    target, targets = critic(torch.from_numpy(seen["observation"]))[:, 0].detach(), []
    for reward, over in zip(rewards[::-1], dones[::-1], strict=True):
        targets.insert(0, target := reward + target * ~over)
    obs, mask, action, old = (torch.cat(column) for column in zip(*rows, strict=True))
    for _ in range(4):
        advantage = torch.cat(targets) - critic(obs)[:, 0]
        ratio, gain = (policy(obs, mask).log_prob(action) - old).exp(), advantage.detach() / advantage.std()
        loss = advantage.pow(2).mean() - torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad(), loss.backward(), optimizer.step()
    scores.append(float(torch.stack(rewards).sum() / torch.stack(dones).sum()))
print(
    f"score in the first five updates {sum(scores[:5]) / 5:.3f}, in the last five {sum(scores[-5:]) / 5:.3f}"
)
