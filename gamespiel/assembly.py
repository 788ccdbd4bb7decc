"""The assembly of a run's objects from its configuration: policy and algorithm, on its environments.

``make_env`` and ``load_policy`` return those of an earlier run, for use from Python.
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
import dataclasses
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.hyperparameters import LoraSettings, ModelSettings
from gamespiel.agents.launch import Launch
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.sampling.vllm.connect import Needs, connect, list_targets
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import (
    Config,
    ConfigError,
    InvalidValueError,
    from_dict,
    import_own_modules,
    saved_config,
)
from gamespiel.config.imports import import_modules
from gamespiel.environments.curriculum import make_starts, stage_opponents
from gamespiel.environments.making import list_makers, make_one_env
from gamespiel.environments.tree_values import make_find_values
from gamespiel.kinds import kind_of
from task_gym.opponents import opponent_waits
from task_gym.processes import count_cores

FEW_POSITIONS = 4096
"""Games' first prompts are shorter; to begin an episode in vain can cost an opponent's search."""


def named_device(name: str) -> torch.device:
    """Returns the device of a name, also if it is not there; ``auto`` is the first GPU, else the CPU.

    Raises:
        InvalidValueError: it names no CPU and no GPU.
    """
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise InvalidValueError(f"run.device must be auto, cpu, cuda or cuda:N, not {name!r}")
    return device


def device_of(config: Config, launch: Launch | None = None) -> torch.device:
    """Returns the device that ``run.device`` names; of several ranks each has its own GPU.

    Raises:
        InvalidValueError: this machine has no such device, or not one for each of its ranks.
    """
    name = config.run.device
    device = named_device(name)
    if device.type == "cuda" and launch is not None and launch.local_size > 1:
        count = torch.cuda.device_count()
        if device.index is not None and name != "auto":
            raise InvalidValueError(
                f"run.device is {name!r}, and torchrun started {launch.local_size} ranks here; allowed: "
                "auto, cpu, or cuda, of which each rank takes its own"
            )
        if count < launch.local_size:
            raise InvalidValueError(
                f"torchrun started {launch.local_size} ranks here, and torch finds {count or 'no'} GPU; "
                "allowed: a GPU per rank (--nproc-per-node), or run.device cpu"
            )
        return torch.device("cuda", launch.local_rank)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise InvalidValueError(f"run.device is {name!r}, but torch finds {count or 'no'} GPU here")
    return device


def policy_settings(config: Config) -> dict[str, Any]:
    """Returns ``LLMPolicy``'s keywords, without ``lora_dropout``: see ``LoraSettings``."""
    return {
        "model": ModelSettings(**dataclasses.asdict(config.model)),
        "lora": LoraSettings(config.lora.r, config.lora.lora_alpha, config.lora.target_modules),
        "answer": config.env.answer,
        "decode": config.env.decode,
        "think": config.env.think,
        "context_tokens": kind_of(config.env).context_tokens(config.env),
        "seed": config.run.seed,
    }


def make_policy(config: Config, env: TextEnvs | gym.Env[Any, Any]) -> LLMPolicy:
    """Returns only the policy, for evaluation and play."""
    limits: dict[str, Any] = {}
    if config.env.decode == "text":
        limits = {"max_new_tokens": config.ppo.max_new_tokens, "temperature": config.ppo.temperature}
    policy = LLMPolicy(
        env.observation_space,
        env.action_space,
        lambda remaining: config.ppo.learning_rate,
        device=str(device_of(config)),
        **policy_settings(config),
        **limits,
    )
    policy.budgets.give(config.ppo.tokens_per_forward, config.ppo.tokens_per_backward)
    return policy


PROBE = "Which of these numbers is the largest: 3, 12, 7 or 25?"
"""The prompt on which a server's log-probabilities are compared with the model's."""


def connect_sampler(config: Config, policy: LLMPolicy, ranks: Ranks = ALONE) -> LLMPolicy:
    """Returns the policy, which samples from vLLM servers if ``run.use_vllm`` asks for it.

    Of several ranks the first publishes adapters, and the others ask for them by the name that it gave them.

    Servers know the adapters that learn from the next ``policy.sampler.publish`` on.

    Raises:
        ServerError: a server is not there, or does not suit.
    """
    run = config.run
    if not run.use_vllm:
        return policy
    (prompt,) = policy.prompts([PROBE])
    needs = Needs(None, 1, list_targets(policy.model))
    if config.env.decode == "text":
        needs = needs._replace(temperature=policy.temperature, tokens=policy.max_new_tokens)
    policy.sampler = connect(
        list_urls(run.vllm_base_url),
        policy.engine,
        policy.adapters,
        policy.lora_settings,
        prompt,
        needs,
        quantised=config.model.use_4bit or config.model.use_8bit,
        limit=run.vllm_gap_limit,
        folder=None if run.vllm_adapter_dir is None else Path(run.vllm_adapter_dir),
        ranks=ranks,
    )
    return policy


def list_urls(urls: str | tuple[str, ...] | None) -> list[str]:
    """Returns the addresses of ``run.vllm_base_url``, which options write with commas."""
    several = (urls or "").split(",") if isinstance(urls, str) or urls is None else list(urls)
    return [url.strip() for url in several]


def make_algorithm(config: Config, ranks: Ranks = ALONE) -> LLMPPO:
    """Returns the algorithm before its first step, with environments and policy.

    Of several ranks each has environments for its own episodes.

    Raises:
        PromptLengthError: an episode's first prompt has more tokens than a model of few positions reads.
    """
    starts, kind = make_starts(config), kind_of(config.env)
    itself = kind.plays_itself(config.env)
    episodes = math.ceil(config.ppo.batch_size / ranks.size)
    makers, threads, workers = list_makers(config, episodes)
    if threads is None and ranks.launch.local_size > 1:
        threads = max(1, count_cores() // ranks.launch.local_size)
    envs = TextVecEnv(makers, threads, workers)
    game: Any = envs.envs[0].unwrapped
    for name in stage_opponents(config):  # each is played in every game that may be drawn
        envs.waits |= opponent_waits(name)
        if game.may_search(name):
            seconds = game.estimate_search(name)
            envs.searches, envs.search_seconds = True, max(envs.search_seconds, seconds)
    if itself:
        kind.check_self_play(envs.envs[0], config.self_play.learn)
    import_modules((term.partition(":")[0] for term in config.ppo.terms), "ppo.terms")
    model = LLMPPO(
        LLMPolicy,
        envs,
        hyperparameters=config.ppo,
        self_play=config.self_play if itself else None,
        policy_kwargs=policy_settings(config),
        starts=starts,
        seed=config.run.seed,
        device=device_of(config, ranks.launch),
        ranks=ranks,
    )
    model.find_values = make_find_values(config, model.policy)
    positions = model.policy.codec.positions
    if positions is not None and positions <= FEW_POSITIONS:
        text, _ = envs.reset_one(0, seed=0)
        model.policy.prompts([text])
    return model


def make_env(run: str | Path, **changes: Any) -> gym.Env[Any, Any]:
    """Returns the environment that a run was trained in.

    Args:
        run: A run's folder, or one of its checkpoints.
        **changes: Other values for keys of the configuration's ``env`` section.

    Raises:
        TaskGymError: there is no such run, key, opponent or game.
    """
    config = import_own_modules(from_dict({"env": changes}, "make_env", base=saved_config(run)))
    return make_one_env(config.env)


def load_policy(run: str | Path, env: gym.Env[Any, Any] | None = None, *, device: str = "auto") -> LLMPolicy:
    """Returns the policy that a run has trained.

    ``policy.predict(observation, action_masks=mask)`` draws an action; with ``deterministic=True`` it takes
    the most probable one. ``policy.distribution([observation], [legal_actions])`` returns all probabilities.

    Args:
        run: A run's folder, whose newest checkpoint is loaded, or one of its checkpoints.
        env: The environment to play, if it is not the run's own; it may have other actions.
        device: "auto" (the first GPU, else the CPU), "cpu", "cuda" or "cuda:N".

    Raises:
        TaskGymError: there is no such run, checkpoint or device, or the base model cannot be loaded.
    """
    place = checkpoint.find(Path(run))
    config = import_own_modules(saved_config(place))
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, device=device))
    played = make_one_env(config.env) if env is None else env
    writes = config.env.decode == "text"
    if isinstance(played.action_space, gym.spaces.Text) != writes:
        takes = "a number" if writes else "text"
        raise ConfigError(
            f"the policy of {str(run)!r} was trained with env.decode: {config.env.decode}, and this "
            f"environment takes {takes}: leave env.decode as it was"
        )
    policy = make_policy(config, played)
    checkpoint.load_newest(policy, Path(run))
    return policy
