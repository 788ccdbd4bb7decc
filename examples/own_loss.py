"""Adds a term to PPO's loss, by its import path: a penalty on large steps, which PPO's clip does not bound.

It is the squared log-ratio of the policy to the one that played, as in "Simple Policy Optimization"
(arXiv:2401.16025) a quadratic penalty takes the place of the clip. Its metric is logged with the others.
"""

from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.learning.terms import Part, Played, Scored
from gamespiel.assembly import make_algorithm
from gamespiel.config import resolve

WEIGHT = 0.5


def step_penalty(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """A term: what the update scored and what the rollout knows, to a part of the loss with its metrics."""
    size = played.mean_over_units((scored.log_probs - played.old_log_probs).square())
    return Part(WEIGHT * size, "units", {"squared_step": size})


if __name__ == "__main__":
    settings = {
        "env.game": "kuhn_poker", "env.task_id": "null", "ppo.batch_size": "64", "ppo.num_train_steps": "3",
        "ppo.terms": "[__main__:step_penalty]",
    }  # fmt: skip
    model = make_algorithm(resolve("tiny", files=[], overrides=settings.items()))
    model.learn(log_interval=None)
    print(f"squared step: {model.logger.name_to_value['train/squared_step']:.5f}")
