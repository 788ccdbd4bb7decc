"""Scores four ways to answer questions about single positions: 1 less what a move gives away.

In Leduc poker the scores are exact, for best play against the random opponent. In hex a search estimates
them.
"""

from game_gym.dataset import PositionDataset

SETS = {
    "leduc_poker": PositionDataset(100, seed=1, game="leduc_poker", rules=False),
    "hex": PositionDataset(20, seed=1, judge="mcts:300", game="hex", params={"board_size": 5}, rules=False),
}

question, scorer = next(SETS["leduc_poker"].pairs())
print(f"{question}\n")
for reply in ("0", "1", "<think>Fold?</think> I call.", "2", "no idea"):
    print(f"{reply!r} scores {scorer(reply):.3f}")

print(f"\n{'':<14}{'best':>8}{'first':>8}{'last':>8}{'zero':>8}")
for name, data in SETS.items():
    replies = {
        "best": [entry["answer"] for entry in data],
        "first": [str(entry["metadata"]["legal_actions"][0]) for entry in data],
        "last": [str(entry["metadata"]["legal_actions"][-1]) for entry in data],
        "0": ["0"] * len(data),
    }
    means = [
        sum(data.score_answer(reply, entry) for reply, entry in zip(answers, data, strict=True)) / len(data)
        for answers in replies.values()
    ]
    print(f"{name:<14}" + "".join(f"{mean:>8.3f}" for mean in means))
