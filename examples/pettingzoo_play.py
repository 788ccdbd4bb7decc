"""Random agents play Leduc poker in PettingZoo, in turn, and goofspiel, all at once.

In both, every agent's observation has its text and its mask: an illegal action would cost 0.01.
"""

from game_gym import pettingzoo as games

env = games.env(game="leduc_poker", reward="returns")
total = dict.fromkeys(env.possible_agents, 0.0)
for number, agent in enumerate(env.possible_agents):
    env.action_space(agent).seed(number)
for seed in range(200):
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        total[agent] += reward
        mask = observation["action_mask"]
        env.step(None if terminated or truncated else env.action_space(agent).sample(mask))
print(f"200 games of Leduc poker, chips: {total}")

parallel = games.parallel_env(game="goofspiel", params={"num_cards": 8}, rules=False)
observations, infos = parallel.reset(seed=1)
steps = 0
while parallel.agents:
    actions = {
        agent: parallel.action_space(agent).sample(seen["action_mask"])
        for agent, seen in observations.items()
    }
    observations, rewards, terminations, truncations, infos = parallel.step(actions)
    steps += 1
print(f"goofspiel took {steps} steps, scores: {rewards}")
print(observations["player_0"]["observation"])
