"""Measures how fast Leduc poker is learned: `python -m benchmarks.learning_speed`.

Four learners train against a uniformly random opponent, one after the other in one process: a multilayer
perceptron on the game's tensor under sb3-contrib's MaskablePPO, the preset `tiny-gae`, the same preset with
random base weights, and the preset `tiny`, whose advantages come from the game's tree: it knows the rules and
the opponent, as no other of them does. At about a hundred points of training each policy's share of best
response is computed exactly, at temperature 1. Seconds are those of training, without these evaluations.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`. The picture is beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from benchmarks.ending import end, machine, make_parser, parse
from game_gym import exact
from game_gym.tree import build_tree
from game_gym.wrappers import TensorObservation
from gamespiel.agents.ppo import LLMPPO
from gamespiel.assembly import make_algorithm
from gamespiel.config import resolve

TASK_ID, OPPONENT = 200_000_000, "random"  # Leduc poker
POINTS = 100
THRESHOLDS = (0.85, 0.90, 0.95)

MLP_ENVS = 16
MLP_SETTINGS: Mapping[str, Any] = {
    "n_steps": 128,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "gamma": 1.0,
}
"""MaskablePPO's settings; all others are its defaults. docs/lab-notes.md has others that were tried."""


@dataclass(frozen=True)
class Point:
    """One exact evaluation, after some decisions and seconds of training."""

    decisions: int
    seconds: float
    share: float


Learn = Callable[["Curve", int, int], Any]
"""(curve, decisions, seed) -> the learner, trained with `curve` as its callback."""


class Curve(BaseCallback):
    """Evaluates every `every` decisions, between rollouts, and stops at `decisions`."""

    def __init__(self, name: str, share: Callable[[Any], float], decisions: int, every: int) -> None:
        super().__init__()
        self.name, self.share = name, share
        self.decisions, self.every = decisions, every
        self.points: list[Point] = []
        self._begun = 0
        self._evaluating = 0.0

    def _on_training_start(self) -> None:
        self._started = time.perf_counter()

    def _on_rollout_start(self) -> None:
        self._begun = self.model.num_timesteps
        if not self.points or self._begun - self.points[-1].decisions >= self.every:
            self._evaluate()

    def _on_step(self) -> bool:
        return self._begun < self.decisions

    def _on_training_end(self) -> None:
        if self.points[-1].decisions < self.model.num_timesteps:
            self._evaluate()

    def _evaluate(self) -> None:
        begun = time.perf_counter()
        point = Point(
            self.model.num_timesteps, begun - self._started - self._evaluating, self.share(self.model)
        )
        self.points.append(point)
        print(
            f"{self.name}: {point.decisions:>9,} decisions  {point.seconds:7.1f} s  share {point.share:6.1%}",
            flush=True,
        )
        self._evaluating += time.perf_counter() - begun


# -- a perceptron on the game's tensor ---------------------------------------------------------------------


def make_tensor_env() -> TensorObservation:
    """Returns Leduc poker with tensor observations for MaskablePPO."""
    return TensorObservation(gym.make("GameSpiel-v0", task_id=TASK_ID, opponent=OPPONENT, rules=False))


def tensors_by_text() -> dict[str, NDArray[np.float32]]:
    """Returns the perceptron's tensor for the text of every information state.

    Raises:
        ValueError: two information states share a text but have different tensors.
    """
    variant = exact.find_variant(TASK_ID)
    tensors: dict[tuple[int, str], NDArray[np.float32]] = {}
    waiting = [variant.game.new_initial_state()]
    while waiting:
        state = waiting.pop()
        if not (state.is_terminal() or state.is_chance_node()):
            seat = state.current_player()
            key = seat, state.information_state_string(seat)
            if key not in tensors:
                tensors[key] = np.array(state.information_state_tensor(seat), dtype=np.float32)
        waiting.extend(state.child(action) for action in state.legal_actions())
    shown: dict[str, NDArray[np.float32]] = {}
    for known in build_tree(variant, rules=False).states:
        tensor = tensors[known.seat, known.key]
        if not np.array_equal(shown.setdefault(known.text, tensor), tensor):
            raise ValueError(f"two information states share a text and differ in their tensors: {known.text}")
    return shown


def mlp_share(tensors: Mapping[str, NDArray[np.float32]]) -> Callable[[MaskablePPO], float]:
    """Returns a function from a MaskablePPO on tensors to its exact share of best response."""

    def share(model: MaskablePPO) -> float:
        def policy(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
            actions_at_most: int = model.action_space.n  # type: ignore[attr-defined]
            masks = np.zeros((len(texts), actions_at_most), dtype=np.bool_)
            for row, actions in enumerate(legal):
                masks[row, list(actions)] = True
            seen = torch.as_tensor(np.stack([tensors[text] for text in texts]), device=model.device)
            with torch.no_grad():
                distribution: Any = model.policy.get_distribution(seen, action_masks=masks).distribution
                probabilities = distribution.probs.double().cpu().numpy()
            rows = [row[list(actions)] for row, actions in zip(probabilities, legal, strict=True)]
            return [row / row.sum() for row in rows]  # float32 sums are barely within 1e-6 of 1

        return share_of(policy)

    return share


def learn_mlp(curve: Curve, decisions: int, seed: int) -> MaskablePPO:
    env = DummyVecEnv([make_tensor_env] * MLP_ENVS)
    model = MaskablePPO("MlpPolicy", env, seed=seed, device="cpu", **MLP_SETTINGS)
    return model.learn(decisions, callback=curve)


# -- language models ---------------------------------------------------------------------------------------


def llm_overrides(seed: int, random_weights: bool = False) -> list[tuple[str, str]]:
    """Returns the overrides of the preset; all other keys are as in `python train.py`."""
    return [
        ("env.task_id", str(TASK_ID)),
        ("env.opponent", OPPONENT),
        ("env.rules", "false"),
        ("model.random_weights", str(random_weights).lower()),
        ("run.seed", str(seed)),
        ("run.device", "cpu"),
    ]


def learn_llm(curve: Curve, preset: str, seed: int, random_weights: bool = False) -> LLMPPO:
    """Trains the preset with its own schedules, to its last step or to the curve's decisions."""
    return make_algorithm(resolve(preset, overrides=llm_overrides(seed, random_weights))).learn(
        callback=curve
    )


def llm_share(model: LLMPPO) -> float:
    return share_of(model.policy.distribution)


def share_of(policy: exact.Policy) -> float:
    return exact.evaluate(exact.find_variant(TASK_ID), policy, OPPONENT, rules=False).share


# -- the run -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learner:
    """One line of the picture."""

    key: str
    label: str
    learn: Learn
    share: Callable[[Any], float]
    settings: Mapping[str, Any]


def make_llm_learner(key: str, label: str, preset: str, random_weights: bool = False) -> Learner:
    """Returns the learner of a preset."""
    chosen = resolve(preset)
    settings = {"preset": preset, "ppo": asdict(chosen.ppo), "lora": asdict(chosen.lora)}
    return Learner(
        key,
        f"LLMPPO, preset {preset}{label}",
        lambda curve, decisions, seed: learn_llm(curve, preset, seed, random_weights),
        llm_share,
        settings | {"random_weights": random_weights},
    )


def learners() -> list[Learner]:
    return [
        Learner(
            "mlp",
            "MaskablePPO, perceptron on the game's tensor",
            learn_mlp,
            mlp_share(tensors_by_text()),
            {"policy": "MlpPolicy", "n_envs": MLP_ENVS, **MLP_SETTINGS},
        ),
        make_llm_learner("tiny", ": advantages from the game's tree", "tiny"),
        make_llm_learner("gae", "", "tiny-gae"),
        make_llm_learner("random_weights", " on random weights", "tiny-gae", random_weights=True),
    ]


def summary(seed: int, points: Sequence[Point]) -> dict[str, Any]:
    """Returns one learner's run as plain data. A threshold that was never reached is null."""
    reached = {
        f"{least:.2f}": next((point for point in points if point.share >= least), None)
        for least in THRESHOLDS
    }
    return {
        "seed": seed,
        "decisions_to": {name: point and point.decisions for name, point in reached.items()},
        "seconds_to": {name: point and round(point.seconds, 2) for name, point in reached.items()},
        "final_share": round(points[-1].share, 4),
        "best_share": round(max(point.share for point in points), 4),
        "curve": [[point.decisions, round(point.seconds, 2), round(point.share, 4)] for point in points],
    }


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draws share of best response against decisions and against seconds, a line per run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from gamespiel.overview.plots import COLOURS

    figure = Figure(figsize=(11, 4.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, column, label in zip(panels, (0, 1), ("decisions", "seconds of training"), strict=True):
        for (_, learner), colour, style in zip(
            results["learners"].items(), COLOURS[:4], ("--", "-", "-", ":"), strict=True
        ):
            for i, run in enumerate(learner["runs"]):
                # A logarithmic axis has no 0 seconds.
                rows = [row for row in run["curve"] if column == 0 or row[1] > 0]
                x, y = [row[column] for row in rows], [row[2] for row in rows]
                name = learner["label"] if i == 0 else None
                axes.plot(x, y, color=colour, linestyle=style, linewidth=1.8, label=name)
        for threshold in (0.85, 0.95):
            axes.axhline(threshold, color="0.45", linewidth=0.9)
            axes.text(
                0.995, threshold, f"{threshold:.0%}", transform=axes.get_yaxis_transform(),
                ha="right", va="bottom", fontsize=8, color="0.35",
            )  # fmt: skip
        axes.set_xlabel(label)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_xlim(left=0)
    panels[0].xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,g}k" if value else "0")
    panels[1].set_xscale("log")
    panels[1].xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    lowest = min(
        row[2] for record in results["learners"].values() for run in record["runs"] for row in run["curve"]
    )
    panels[0].set_ylim(min(0.0, lowest) - 0.03, 1.03)
    panels[0].set_ylabel("share of best response (exact)")
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panels[0].legend(loc="lower right", fontsize=8.5, frameon=True, framealpha=0.9, edgecolor="none")
    where = results["machine"]
    figure.suptitle(
        f"Leduc poker against a random opponent  ({where['cpu']}, threads: {where['threads']})", fontsize=10
    )
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = make_parser("learning_speed", __doc__)
    parser.add_argument("--decisions", type=int, default=200_000, help="of each learner [200000]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED", help="a run each [0]")
    parser.add_argument("--threads", type=int, help="CPU threads (left out: torch decides)")
    arguments = parse(parser, argv)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)

    results: dict[str, Any] = {
        "benchmark": "learning_speed",
        "machine": machine() | {"threads": torch.get_num_threads(), "torch": torch.__version__},
        "task_id": TASK_ID,
        "opponent": OPPONENT,
        "decisions": arguments.decisions,
        "learners": {},
    }
    for learner in learners():
        runs = []
        for seed in arguments.seeds:
            every = max(1, arguments.decisions // POINTS)
            curve = Curve(f"{learner.key}, seed {seed}", learner.share, arguments.decisions, every)
            learner.learn(curve, arguments.decisions, seed)
            runs.append(summary(seed, curve.points))
        results["learners"][learner.key] = {
            "label": learner.label,
            "settings": dict(learner.settings),
            "runs": runs,
        }
    return end(results, arguments.out, draw)


if __name__ == "__main__":
    main()
