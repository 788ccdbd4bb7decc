"""Answers one code-tracing task in several ways, and shows the three scores of each answer.

"affine" ignores white space and case. "exact" wants the same lines. "lines" gives partial credit: the mean of
the share of right lines before the first wrong one, and the share of right debug lines.
"""

import gymnasium as gym

import trace_gym  # noqa: F401  (registers CodeTrace-v0)

env = gym.make("CodeTrace-v0", level=2, family="classes")
observation, info = env.reset(seed=7)
print(observation)

*_, info = env.step("")  # one step ends the episode; its info has the true output
truth = info["truth"]
lines = truth.splitlines()
print(f"\nThe true output:\n\n{truth}")

replies = {
    "the truth": truth,
    "in a code fence": f"<think>Let me see.</think>\n```\n{truth}```",
    "in upper case": truth.upper(),
    "first half": "\n".join(lines[: len(lines) // 2]),
    "last line wrong": "\n".join([*lines[:-1], "?"]),
    "first line wrong": "\n".join(["?", *lines[1:]]),
    "nothing": "",
}
print(f"{'reply':<18}{'affine':>8}{'exact':>8}{'lines':>8}")
for name, reply in replies.items():
    env.reset(seed=7)
    *_, info = env.step(reply)
    print(f"{name:<18}" + "".join(f"{score:>8.3f}" for score in info["by_scoring"].values()))
