"""Scenarios of ranks that learn together, many in one launch.

``torchrun … -m tests.gamespiel.ranks FOLDER URL NAME …`` plays those that are named.

A launch imports PyTorch once per rank, which takes longer than all of a scenario. So each rank plays many,
one after the other, and writes what it found to ``FOLDER/NAME.RANK.json``. URL is that of a stand-in
of a vLLM server.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gamespiel.agents.launch import read_launch
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.ranks import Ranks
from gamespiel.agents.ranks.world import World
from gamespiel.agents.sampling import noise
from gamespiel.agents.update import Update
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import Config, resolve, saved_config
from gamespiel.training import callbacks
from gamespiel.training import run as training
from tests.agents.toys import Stairs
from tests.gamespiel.runs import STAGED, list_overrides, train_quietly

LAUNCH = read_launch()
CPU = torch.device("cpu")
EPISODES = 6

SHORT = {"ppo.num_train_steps": "3", "run.eval_games": "0", "run.exact_every": "0"}
PLAIN: dict[str, tuple[str, dict[str, str]]] = {
    "kuhn": ("tiny", {"ppo.all_actions": "true"}),
    # Each optimizer step has one turn, so one rank has nothing to read.
    "one turn": (
        "tiny",
        {"ppo.batch_size": "3", "ppo.mini_batch_size": "1", "ppo.gradient_accumulation_steps": "1"},
    ),
    "warm-up and control": (
        "tiny", {"ppo.critic_warmup_steps": "1", "ppo.kl_horizon": "20", "ppo.target_kl": "0.01"},
    ),
    "scored first": ("tiny", {"ppo.sampler_weight_cap": "2.0"}),
    "curriculum": ("tiny", STAGED | {"env.opponent": "random"}),
    "self-play": ("tiny-selfplay", {"ppo.magnet_every": "1"}),
    "pool": (
        "tiny-selfplay",
        {"self_play.learn": "one", "self_play.pool_every": "1", "ppo.init_kl_coef": "0.1"},
    ),
    "text": ("tiny", {"env.decode": "text", "ppo.max_new_tokens": "4"}),
    # Each rank has two workers, which play its episodes against a search.
    "workers": ("tiny", {"run.env_workers": "2", "env.opponent": "mcts:5"}),
    "evaluated": ("tiny", {"run.eval_games": "2", "run.eval_steps": "1", "run.eval_episodes": "2"}),
}  # fmt: skip
"""Runs by name: the preset, and what is changed in it."""


def config_of(name: str, folder: Path, **more: str) -> Config:
    """Returns the configuration of a run."""
    preset, changes = PLAIN[name]
    return resolve(preset, overrides=list_overrides(folder, SHORT | changes | more).items())


def stairs(ranks: Ranks) -> LLMPPO:
    """Returns a learner on toy games, those of odd episodes faults: all of the second of two ranks."""
    seeds = {seed for step in range(2) for seed in noise.episode_seeds(0, step, EPISODES)[1::2]}
    share = EPISODES // ranks.size
    env = TextVecEnv([lambda: Stairs(max_turns=3, fault=lambda seed: seed in seeds)] * share)
    return LLMPPO(
        env=env, ranks=ranks, seed=0, device="cpu", total_steps=2, batch_size=EPISODES, mini_batch_size=4,
        gradient_accumulation_steps=1, num_train_steps=2, learning_rate=1e-3,
        policy_kwargs={"lora": {"r": 4}},
    )  # fmt: skip


def describe_weights(model: LLMPPO) -> dict[str, Any]:
    """Returns what a learner on toy games has come to."""
    weights = {name: tensor.flatten().tolist() for name, tensor in model.policy.state_dict().items()}
    return {"decisions": model.num_timesteps, "rewards": model.rollout_buffer.rewards, "weights": weights}


# -- scenarios, each of which every rank calls ---------------------------------------------------------------


def exchange_values(folder: Path, url: str) -> Any:
    """The ways of exchange, in the order of ``Ranks``."""
    world = World(LAUNCH, CPU)
    first, second = (torch.nn.Parameter(torch.zeros(2, 2)) for _ in range(2))
    world.reserve([first, second])
    if world.leads:  # the other rank has no gradient at all, and nobody has one of the second
        first.grad = torch.full((2, 2), 3.0)
    world.add_gradients()

    def fail() -> str:
        if not world.leads:
            raise OSError("no space on this machine")
        return "done"

    values = {
        "share": list(world.take_share(range(5))),
        "gathered": world.gather({"rank": world.rank}),
        "led": world.lead(lambda: f"rank {world.rank}"),
        "agreed": [world.agree(world.rank == 1), world.agree(False)],
        "total": world.total(world.rank + 1),
        "joined": world.join([torch.full((world.rank,), 7.0)], CPU).tolist(),
        "gradients": [None if each.grad is None else each.grad.tolist() for each in (first, second)],
        "once": world.lead_once("key", lambda: f"rank {world.rank}"),
        "failed": error_of(lambda: world.share_work(fail)),
        "differing": error_of(lambda: world.require_same("names", str(world.rank).encode())),
    }
    world.agree(False)
    world.close()
    return values


def play_faults(folder: Path, url: str) -> Any:
    world = World(LAUNCH, CPU)
    model = stairs(world)
    model.learn()
    world.close()
    return describe_weights(model)


def train_on_server(folder: Path, url: str) -> Any:
    where = {
        "run__use_vllm": "true",
        "run__vllm_base_url": url,
        "run__vllm_adapter_dir": str(folder / "adapters"),
    }
    train_quietly(config_of("kuhn", folder / "served", **where, run__eval_games="2"))
    return sorted(path.name for path in (folder / "adapters").iterdir())


def interrupt_one(folder: Path, url: str) -> Any:
    """Ctrl-C at the second rank, when the third step is played: it is dropped, and played when resumed."""
    config = config_of("kuhn", folder / "stopped", run__checkpoint_every="100")
    on_step = callbacks.BetweenSteps._on_step

    def interrupting(self: callbacks.BetweenSteps) -> bool:
        if LAUNCH.rank == 1 and self._model.step == 2:
            signal.raise_signal(signal.SIGINT)
        return on_step(self)

    error = failing(callbacks.BetweenSteps, "_on_step", interrupting, config)
    checkpoints = sorted(path.name for path in (folder / "stopped" / "checkpoints").iterdir())
    train_quietly(saved_config(folder / "stopped"), resume=folder / "stopped")
    return {"error": error, "kept": checkpoints}


def move_weights(folder: Path, url: str) -> Any:
    """The second rank's weights are moved in its second step."""
    run = Update.run

    def moving(self: Update) -> Any:
        metrics = run(self)
        if LAUNCH.rank == 1 and self.step == 1:
            with torch.no_grad():
                self.optimizer.param_groups[0]["params"][0][0, 0] += 1e-6
        return metrics

    return failing(Update, "run", moving, config_of("kuhn", folder / "differing"))


def break_decisions(folder: Path, step: int, break_off: Callable[[], None]) -> str:
    """Something happens to the second rank when it first decides in a step; returns the error."""
    decide, met = LLMPolicy.decide, []

    def breaking(self: LLMPolicy, *arguments: Any, **more: Any) -> Any:
        if LAUNCH.rank == 1 and arguments[2][0].step == step and not met:
            met.append(True)
            break_off()
        return decide(self, *arguments, **more)

    return failing(LLMPolicy, "decide", breaking, config_of("kuhn", folder))


def fail_to_decide(folder: Path, url: str) -> Any:
    """The second rank cannot answer in its second step."""

    def fail() -> None:
        raise OSError("the weights have gone")

    return break_decisions(folder / "broken", 1, fail)


def die(folder: Path, url: str) -> Any:
    """The second rank is killed in its second step; the first says what it finds."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of torchrun, which would end the first one too
    return break_decisions(folder / "dead", 1, lambda: os.kill(os.getpid(), signal.SIGKILL))


def meet_infinity(folder: Path, url: str) -> Any:
    """The second rank meets logits that are not finite, once: both go back, with half the learning rate."""

    def fail() -> None:
        raise FloatingPointError("logits are not finite")

    return break_decisions(folder / "diverged", 2, fail)


def run_out_of_memory(folder: Path, url: str) -> Any:
    """The second rank's memory runs out in its first optimizer step: both halve the budget."""
    accumulate, met = Update._accumulate_gradient, []

    def running_out(self: Update, index: Any) -> Any:
        attempt = accumulate(self, index)
        if LAUNCH.rank == 1 and not met:
            met.append(True)
            raise torch.OutOfMemoryError("no memory is left")
        return attempt

    return failing(Update, "_accumulate_gradient", running_out, config_of("kuhn", folder / "memory"))


def failing(owner: type, method: str, instead: Callable[..., Any], config: Config) -> str:
    """Trains with a method replaced; returns the error."""
    with patch.object(owner, method, instead):
        return error_of(lambda: train_quietly(config))


def error_of(work: Callable[[], Any]) -> str:
    """Returns the kind and the text of an error; "" if there is none."""
    try:
        work()
    except (Exception, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return ""


SCENARIOS: dict[str, Callable[[Path, str], Any]] = {
    "exchange": exchange_values,
    "faults": play_faults,
    **{
        name: lambda folder, url, name=name: train_quietly(config_of(name, folder / name)) and None
        for name in PLAIN
    },
    "served": train_on_server,
    "stopped": interrupt_one,
    "short of memory": run_out_of_memory,
    "diverged": meet_infinity,
    "differing": move_weights,
    "broken": fail_to_decide,
    "dead": die,
}


def main(argv: list[str]) -> None:
    """Plays the named scenarios and writes what they found."""
    global LAUNCH
    LAUNCH = read_launch()  # a fork has another one than what it is a fork of
    folder, url = Path(argv[0]), argv[1]
    training.plot_run = lambda folder, picture: None  # type: ignore[assignment]
    for name in argv[2:]:
        findings = SCENARIOS[name](folder, url)
        (folder / f"{name}.{LAUNCH.rank}.json").write_text(json.dumps(findings))


if __name__ == "__main__":
    main(sys.argv[1:])
