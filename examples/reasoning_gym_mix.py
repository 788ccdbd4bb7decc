"""reasoning-gym draws questions from its own data sets and from ours, and scores replies."""

from dataclasses import dataclass

import reasoning_gym
from reasoning_gym.composite import DatasetSpec
from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.factory import register_dataset

from trace_gym.dataset import TraceDataset


@dataclass
class TraceConfig:
    level: int = 1
    seed: int | None = None
    size: int = 500


class Traces(ProceduralDataset):
    def __init__(self, config: TraceConfig):
        super().__init__(config, seed=config.seed, size=config.size)
        self.traces = TraceDataset(self.size, self.seed, level=config.level)

    def __getitem__(self, idx: int):
        entry = self.traces[idx]
        return {**entry, "metadata": {**entry["metadata"], "source_dataset": "code_trace"}}

    def score_answer(self, answer, entry):
        return self.traces.score_answer(answer, entry)


register_dataset("code_trace", Traces, TraceConfig)
specs = [DatasetSpec("code_trace", 1, {"level": 2}), DatasetSpec("leg_counting", 1, {})]
mix = reasoning_gym.create_dataset("composite", seed=1, size=10, datasets=specs)
for entry in mix:
    name = entry["metadata"]["source_dataset"]
    print(name, mix.score_answer(entry["answer"], entry), mix.score_answer("no idea", entry))
