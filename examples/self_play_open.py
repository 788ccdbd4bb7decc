"""Two learners play Kuhn poker against each other through `opponent="open"`, and approach an equilibrium.

Each seat has its own table of logits per observation and learns by REINFORCE. The average policies approach
an equilibrium: exploitability 0, value -1/18 = -0.056 chips for seat 0. There, seat 1 bets with probability
1/3 if it has J after a pass, or Q after a bet.
"""

from collections import defaultdict

import gymnasium as gym
import numpy as np

from game_gym import exact  # importing game_gym registers GameSpiel-v0

logits = [defaultdict(lambda: np.zeros(2)) for seat in (0, 1)]
played = defaultdict(lambda: np.full(2, 1e-9))  # the sum of all policies per observation
rng = np.random.default_rng(0)
env = gym.make("GameSpiel-v0", game="kuhn_poker", opponent="open", rules=False)


def average(texts, legal):
    return [played[text] / played[text].sum() for text in texts]


for episode in range(30_001):
    if episode % 5000 == 0:
        facts = exact.evaluate(env.unwrapped.variant, average, rules=False)
        print(f"{episode:>6} games: exploitability {facts.exploitability:.3f}, value {facts.self_value:+.3f}")
    (text, info), turns = env.reset(seed=episode), []
    while "result" not in info:
        seat, odds = info["seat"], np.exp(logits[info["seat"]][text])
        action = rng.choice(2, p=odds / odds.sum())
        turns.append((seat, text, action, odds / odds.sum()))
        text, *_, info = env.step(action)
    for seat, text, action, policy in turns:
        played[text] += policy
        logits[seat][text] += 0.02 * info["returns"][seat] * (np.eye(2)[action] - policy)
for text in sorted(logits[1]):
    print("Seat 1.", *text.split("\n")[4:6], f"-> bets {average([text], [])[0][1]:.2f}")
