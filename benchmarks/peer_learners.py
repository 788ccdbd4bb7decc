"""One contender of `benchmarks.learning_peers`, in a process and an environment of its own.

`python -m benchmarks.peer_learners NAME` trains the embedded model on Leduc poker for some CPU seconds, plays
held-out games, and ends in one line of JSON. It imports only what its contender needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch

from game_gym.text_env import GameSpielTextEnv

TASK_ID, OPPONENT = 200_000_000, "random"  # Leduc poker
HELD_OUT = 1_000_000
"""Training draws seeds below it, evaluations from it on."""

REPLY_TOKENS = 4
GROUP, GAMES = 8, 256
"""Games of one deal, and games per step, of both peers."""

LORA: dict[str, Any] = {"r": 16, "lora_alpha": 32, "lora_dropout": 0.0, "target_modules": "all-linear"}
"""As in the preset `tiny`."""


class BudgetSpentError(Exception):
    """The CPU seconds are over."""


@dataclass
class Budget:
    """The CPU seconds of training, and the decisions made in them."""

    seconds: float
    decisions: int = 0
    begun: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> float:
        return time.process_time() - self.begun

    @property
    def is_over(self) -> bool:
        return self.spent >= self.seconds


@dataclass
class Learned:
    """A trained contender.

    Attributes:
        settings: The settings that are not its library's defaults.
        conversation: Whether its prompts have the game's earlier turns too.
    """

    versions: dict[str, str]
    settings: dict[str, Any]
    model: Any
    conversation: bool


# -- play without a mask -----------------------------------------------------------------------------------


@dataclass
class Episode:
    """A game as one sequence of tokens: the first prompt, then replies and what came between them.

    Attributes:
        own: One per token of ``completion``: 1 if the model wrote it.
    """

    prompt: list[int]
    completion: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    reward: float = 0.0
    score: float = 0.0
    decisions: int = 0


def make_game() -> GameSpielTextEnv:
    return GameSpielTextEnv(task_id=TASK_ID, opponent=OPPONENT, rules=False)


def frame(text: str) -> str:
    """Returns an observation as the user's message, up to where the reply begins."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def play(model: Any, tokenizer: Any, seeds: Sequence[int], conversation: bool) -> list[Episode]:
    """Plays a game per seed, all at once; the model samples from its whole vocabulary at temperature 1.

    Args:
        conversation: Whether a prompt has the game's earlier turns too, as multi-turn trainers see it.
    """
    games, episodes, prompts = [make_game() for _ in seeds], [], []
    for game, seed in zip(games, seeds, strict=True):
        prompts.append(tokenizer(frame(game.reset(seed=seed)[0]))["input_ids"])
        episodes.append(Episode(list(prompts[-1])))
    playing = list(range(len(games)))
    while playing:
        replies = reply(model, tokenizer, [prompts[i] for i in playing])
        going = []
        for i, ids in zip(playing, replies, strict=True):
            episode = episodes[i]
            text, reward, terminated, truncated, info = games[i].step(
                tokenizer.decode(ids, skip_special_tokens=True)
            )
            episode.completion += ids
            episode.own += [1] * len(ids)
            episode.decisions += 1
            episode.reward += float(reward)
            if terminated or truncated:
                episode.score = float(info["score"])
                continue
            closing = "\n" if ids[-1] == tokenizer.eos_token_id else "<|im_end|>\n"
            more = tokenizer((closing if conversation else "") + frame(text))["input_ids"]
            if conversation:
                episode.completion += more
                episode.own += [0] * len(more)
                prompts[i] = episode.prompt + episode.completion
            else:
                prompts[i] = more
            going.append(i)
        playing = going
    return episodes


@torch.no_grad()
def reply(model: Any, tokenizer: Any, prompts: list[list[int]]) -> list[list[int]]:
    """Returns the tokens of a reply to each prompt, the end of the turn included."""
    length = max(map(len, prompts))
    rows = [[tokenizer.pad_token_id] * (length - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (length - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    written = model.generate(
        input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask), do_sample=True, temperature=1.0,
        top_k=0, top_p=1.0, max_new_tokens=REPLY_TOKENS, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    replies = []
    for row in written[:, length:].tolist():
        ended = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
        replies.append(row[:ended])
    return replies


def measure_score(model: Any, tokenizer: Any, games: int, conversation: bool) -> dict[str, float]:
    """Returns the mean score over held-out games, and half the width of its 95% interval."""
    model.eval()
    episodes = play(model, tokenizer, range(HELD_OUT, HELD_OUT + games), conversation)
    scores = [episode.score for episode in episodes]
    half = 1.96 * statistics.stdev(scores) / games**0.5 if games > 1 else 0.0
    return {"score": round(statistics.fmean(scores), 4), "interval": round(half, 4)}


# -- the contenders ----------------------------------------------------------------------------------------


def load() -> tuple[Any, Any]:
    """Returns the embedded model and its tokenizer."""
    from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer

    settings = ModelSettings("tiny")
    return load_base(settings, "cpu", 0), load_tokenizer(settings)


def learn_gamespiel(budget: Budget, seed: int, rate: float | None) -> Learned:
    """Trains the preset `tiny`, with its own schedules."""
    from stable_baselines3.common.callbacks import BaseCallback

    from gamespiel.assembly import make_algorithm
    from gamespiel.config import resolve

    changes = [("env.task_id", str(TASK_ID)), ("env.opponent", OPPONENT), ("env.rules", "false")]
    changes += [("run.seed", str(seed)), ("run.device", "cpu")]
    if rate is not None:
        changes.append(("ppo.learning_rate", str(rate)))

    class Watch(BaseCallback):
        def _on_rollout_start(self) -> None:
            budget.decisions = self.model.num_timesteps
            if budget.is_over:
                raise BudgetSpentError

        def _on_step(self) -> bool:
            return True

    algorithm = make_algorithm(resolve("tiny", overrides=changes))
    budget.begun = time.process_time()
    watch = Watch()
    with suppress(BudgetSpentError):
        algorithm.learn(callback=watch)
    budget.decisions = algorithm.num_timesteps
    settings = {"preset": "tiny", "learning_rate": rate or "the preset's"}
    return Learned({"torch": torch.__version__}, settings, algorithm.policy.model, conversation=False)


def learn_trl(budget: Budget, seed: int, rate: float | None) -> Learned:
    """Trains with TRL's GRPO: a game is one completion, in which only the replies' tokens count."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    base, tokenizer = load()

    def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
        model = trainer.accelerator.unwrap_model(trainer.model)
        model.eval()
        episodes = play(model, tokenizer, [int(prompt) for prompt in prompts], conversation=True)
        model.train()
        budget.decisions += sum(episode.decisions for episode in episodes)
        return {
            "prompt_ids": [episode.prompt for episode in episodes],
            "completion_ids": [episode.completion for episode in episodes],
            "logprobs": None,
            "env_mask": [episode.own for episode in episodes],
            "paid": [episode.reward for episode in episodes],
        }

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_training_stop = budget.is_over

    settings = {
        "learning_rate": rate or 4e-3, "lr_scheduler_type": "constant", "num_generations": GROUP,
        "per_device_train_batch_size": GAMES, "beta": 0.0, "max_completion_length": 512,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            base,
            reward_funcs=lambda prompts, completions, paid, **columns: list(paid),
            args=GRPOConfig(
                output_dir=folder, max_steps=1_000_000, use_cpu=True, bf16=False, report_to=[], seed=seed,
                save_strategy="no", logging_strategy="no", disable_tqdm=True, gradient_checkpointing=False,
                **settings,
            ),
            train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(100_000)]}),
            processing_class=tokenizer,
            peft_config=LoraConfig(task_type="CAUSAL_LM", **LORA),
            rollout_func=roll_out,
            callbacks=[Watch()],
        )  # fmt: skip
        budget.begun = time.process_time()
        trainer.train()
    model = trainer.accelerator.unwrap_model(trainer.model)
    return Learned({name: version(name) for name in ("trl", "torch")}, settings, model, conversation=True)


class TextGame:
    """A game for AgileRL: it begins from a seed, and a step takes a reply."""

    system_prompt = ""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._game = budget, make_game()

    def reset(self, seed: int | None = None, **others: Any) -> tuple[str, dict[str, Any]]:
        return self._game.reset(seed=None if seed is None else seed % HELD_OUT)[0], {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._budget.decisions += 1
        text, reward, terminated, truncated, _ = self._game.step(action)
        return text, float(reward), terminated, truncated, {}


def learn_agilerl(budget: Budget, seed: int, rate: float | None) -> Learned:
    """Trains with AgileRL's GRPO over its own multi-turn rollouts."""
    import agilerl

    agilerl.HAS_LIGER_KERNEL = (
        False  # 2.58 patches models with Triton's kernels if they are installed: no CPU
    )
    from agilerl.algorithms.grpo import GRPO
    from agilerl.llm_envs import RolloutHarness
    from agilerl.training.llm import train_llm_rollout
    from peft import LoraConfig

    base, tokenizer = load()
    settings = {
        "lr": rate or 4e-3, "group_size": GROUP, "batch_size": GAMES // GROUP, "beta": 0.0,
        "temperature": 1.0, "top_k": 0, "max_output_tokens": REPLY_TOKENS, "max_model_len": 1024,
        "max_grad_norm": 1.0, "gradient_checkpointing": False, "use_liger_loss": False,
        # Its choice of games of several turns compares turns, so that ending a game at once wins its group.
        "advantage_granularity": "trajectory",
    }  # fmt: skip

    class Watched(GRPO):  # type: ignore[misc]
        def finalize_training_step(self, *given: Any, **named: Any) -> Any:
            if budget.is_over:
                raise BudgetSpentError
            return super().finalize_training_step(*given, **named)

    agent = Watched(
        pad_token_id=tokenizer.pad_token_id, pad_token=tokenizer.pad_token, actor_network=base, device="cpu",
        lora_config=LoraConfig(task_type="CAUSAL_LM", **LORA), seed=seed, **settings,
    )  # fmt: skip
    budget.begun = time.process_time()
    with suppress(BudgetSpentError):
        train_llm_rollout(
            [agent],
            max_turns=16,
            env_factory=lambda: RolloutHarness.local(
                TextGame(budget), tokenizer, max_turns=16, max_model_len=1024
            ),
            max_steps=10**9,
            evaluation_interval=10**9,
            verbose=False,
        )
    return Learned({name: version(name) for name in ("agilerl", "torch")}, settings, agent.actor, True)


Learn = Callable[[Budget, int, "float | None"], Learned]

CONTENDERS: dict[str, Learn] = {"gamespiel": learn_gamespiel, "trl": learn_trl, "agilerl": learn_agilerl}


def run(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Trains and measures a contender, and returns its row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=CONTENDERS)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--games", type=int, default=1000)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    base, tokenizer = load()
    before = measure_score(base, tokenizer, given.games, given.name != "gamespiel")
    budget = Budget(given.seconds)
    learned = CONTENDERS[given.name](budget, given.seed, given.rate)
    spent = budget.spent
    after = measure_score(learned.model, tokenizer, given.games, learned.conversation)
    row = {
        "contender": given.name,
        "versions": learned.versions,
        "settings": learned.settings,
        "seed": given.seed,
        "cpu_seconds": round(spent, 1),
        "decisions": budget.decisions,
        "decisions_per_cpu_second": round(budget.decisions / spent, 1),
        "before": before,
        "after": after,
    }
    print(json.dumps(row))
    return row


if __name__ == "__main__":
    run()
