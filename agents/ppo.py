"""Proximal policy optimisation of language models over turns, on Stable-Baselines3.

One class, in one file: the loop, with what Stable-Baselines3 expects of an algorithm around it.
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback, Schedule
from stable_baselines3.common.utils import FloatSchedule, check_for_correct_spaces, update_learning_rate
from stable_baselines3.common.vec_env import VecEnv
from torch.nn.utils import get_total_norm

from gamespiel.agents import arguments, saving, transfer
from gamespiel.agents.archive import Place, describe_system, read_archive
from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.collector import Collector
from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings, with_changes
from gamespiel.agents.learning.advantages import FindValues, explained_variance
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Coefficients, Shaped, schedule_of
from gamespiel.agents.learning.divergence import Backoff, DivergedError, SkippedUpdates
from gamespiel.agents.learning.progress_bar import ProgressBar, list_callbacks
from gamespiel.agents.learning.snapshots import Average, Magnet
from gamespiel.agents.learning.terms import load_term
from gamespiel.agents.models import AVERAGE, MAGNET, NEWEST
from gamespiel.agents.models.memory import used_memory
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.rollout import Episode
from gamespiel.agents.self_play import SelfPlay
from gamespiel.agents.starts import Starts
from gamespiel.agents.update import Update
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError


class LLMPPO(OnPolicyAlgorithm):
    """PPO whose policy is a language model and whose rollout is a step of whole episodes.

    A step draws the seeds of exactly ``batch_size`` episodes, plays all of them to the end, then makes
    ``ppo_epochs`` passes over their turns. Every random number of a step is addressed by (seed, step,
    episode, turn), so a run that stops between steps continues as if it had not.

    Stable-Baselines3's callbacks, Logger, ``learn``, ``save``, ``load``, ``predict(obs, action_masks=)`` and
    sb3-contrib's maskable ``evaluate_policy`` work; ``num_timesteps`` counts turns. sb3-contrib's
    MaskablePPO is not the base: it assumes rectangular rollouts and numeric observations, and normalises
    advantages per minibatch.

    Args:
        policy: ``LLMPolicy`` or its name.
        env: A ``TextVecEnv``, or one environment with Text observations. Among Discrete actions the policy
            chooses; into a Text space it writes replies.
        learning_rate: The actor's: a number, or a function of the progress remaining (1 to 0).
        hyperparameters: All of them; the defaults of ``Hyperparameters`` if left out.
        ent_coef: Weight of the entropy bonus: a number, or a function of the progress remaining.
        gae_lambda: Stable-Baselines3's name of ``lam``.
        self_play: Makes the policy play every seat of environments that leave them all to the caller.
        kl: The control of the divergence from the reference policy (adapters off), in place of the
            hyper-parameters' own.
        total_steps: Steps that schedules span, ``num_train_steps`` if ``hyperparameters`` are given. Without
            either, schedules span ``learn``'s timesteps.
        policy_kwargs: ``LLMPolicy``'s keywords: names, never live models.
        starts: Chooses the episodes' tasks, opponents and seeds; None leaves them to the environments and
            the run's seed. Checkpoints have its state; Stable-Baselines3's ``save`` leaves it out.
        seed: Seed of the run.
        find_values: Finds advantages without the critic; None for ``gae``. As ``starts``, it is not saved.
        ranks: The processes that learn together, each with such an object; one alone if left out.
        **changes: Single hyper-parameters, such as ``batch_size=64``.

    Raises:
        ArgumentError: two arguments do not go together.
        ValueError: a space or a number is not one of the above.
        TypeError: there is no such hyper-parameter.
    """

    policy: LLMPolicy  # type: ignore[assignment]
    rollout_buffer: TurnBuffer  # type: ignore[assignment]
    policy_aliases: ClassVar[dict[str, type[Any]]] = {"LLMPolicy": LLMPolicy}

    def __init__(
        self,
        policy: str | type[LLMPolicy] = "LLMPolicy",
        env: TextVecEnv | gym.Env[Any, Any] | None = None,
        learning_rate: float | Schedule | None = None,
        *,
        hyperparameters: Hyperparameters | None = None,
        ent_coef: float | Schedule | None = None,
        gae_lambda: float | None = None,
        self_play: SelfPlaySettings | None = None,
        kl: AdaptiveKLController | None = None,
        total_steps: int | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        starts: Starts | None = None,
        find_values: FindValues | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        seed: int | None = 0,
        device: torch.device | str = "auto",
        ranks: Ranks = ALONE,
        _init_setup_model: bool = True,
        **changes: Any,
    ) -> None:
        for name, value in {"learning_rate": learning_rate, "ent_coef": ent_coef, "lam": gae_lambda}.items():
            if value is not None and not callable(value):
                changes[name] = value
        if _init_setup_model:
            arguments.check_arguments(env, total_steps)
        self.hyperparameters = chosen = with_changes(
            hyperparameters or Hyperparameters(), changes, "LLMPPO()"
        )
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,  # type: ignore[arg-type]
            learning_rate=schedule_of(learning_rate, chosen.lr_schedule, chosen.learning_rate),
            n_steps=chosen.batch_size,
            gamma=chosen.gamma,
            gae_lambda=chosen.lam,
            ent_coef=0.0,
            vf_coef=chosen.vf_coef,
            max_grad_norm=chosen.max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            tensorboard_log=tensorboard_log,
            policy_kwargs=dict(policy_kwargs or {}),
            verbose=verbose,
            seed=seed,
            device=arguments.check_device(device),
            _init_setup_model=False,
            supported_action_spaces=(spaces.Discrete, spaces.Text),
        )
        self.entropy_schedule = FloatSchedule(schedule_of(ent_coef, chosen.ent_schedule, chosen.ent_coef))
        self._set_up_others(self_play, starts, kl)
        named = hyperparameters is not None or "num_train_steps" in changes
        self.total_steps = chosen.num_train_steps if total_steps is None and named else total_steps
        self.step, self.seconds, self.ranks = 0, 0.0, ranks
        self.find_values = find_values
        for path in chosen.terms:
            load_term(path)  # an error now, and not after the first step's games
        self._tokens = 0  # that the model read in this step
        #: Called with ("episodes played" or "turns learned from", done, of how many) within a step.
        self.on_progress: Callable[[str, int, int], None] = _no_progress
        if _init_setup_model:
            self._setup_model()

    def _set_up_others(
        self, self_play: SelfPlaySettings | None, starts: Starts | None, kl: AdaptiveKLController | None
    ) -> None:
        """Makes what the policy is compared with, what it plays against, and what divergence changes."""
        self.last_episode: Episode | None = None
        #: The changes that divergence has made to the learning rate, and the updates that were skipped.
        self.backoff, self.skipped = Backoff(), SkippedUpdates()
        chosen = self.hyperparameters
        if self_play is not None and starts is not None:
            raise ArgumentError(
                "starts: a curriculum or a store of failures was given with self_play, allowed: at most one "
                "of them, because games are judged against an opponent"
            )
        self.starts = starts
        #: Parts of a round (``TextEnvs.parts``), which a run keeps. The first environments decide it.
        self.parts: int | None = self.env.parts if isinstance(self.env, TextVecEnv) else None
        horizon = chosen.kl_horizon if chosen.adaptive_kl else None
        self.kl = kl or AdaptiveKLController(chosen.init_kl_coef, chosen.target_kl, horizon)
        self.magnet_schedule = Shaped(chosen.magnet_schedule, chosen.magnet_coef, chosen.magnet_end)
        #: The moving reference; None without one.
        self.magnet = Magnet(chosen.magnet_every, chosen.magnet_rate) if chosen.magnet_coef > 0 else None
        #: The result, if that is not the newest policy.
        self.average = Average(chosen.average_decay) if chosen.average_decay > 0 else None
        #: Self-play's pool; None if the environment plays the other seats.
        self.self_play = None if self_play is None else SelfPlay(self_play)
        arguments.check_env(self.env, self_play)

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Takes other environments of the same spaces, any number of them.

        Raises:
            ArgumentError: an environment takes its starts from a sampler itself.
            SeatsError: not all seats of its games can learn, as self-play asks for.
            ValueError: other spaces, or no ``TextVecEnv``.
        """
        wrapped = self._wrap_env(env, self.verbose)
        arguments.check_env(wrapped, None if self.self_play is None else self.self_play.settings)
        check_for_correct_spaces(wrapped, self.observation_space, self.action_space)
        self.n_envs = wrapped.num_envs  # no result depends on it, so it may change
        if self.parts is None and isinstance(wrapped, TextVecEnv):
            self.parts = wrapped.parts
        super().set_env(wrapped, force_reset)

    def _forget_others(self) -> None:
        """Forgets all snapshots: they are named by their steps, which begin again."""
        if self.magnet is not None:
            self.magnet.snapshot = None
        if self.average is not None:
            self.average.snapshot = None
        if self.self_play is not None:
            self.self_play.forget_members(self.policy.sampler)
            self.self_play = SelfPlay(self.self_play.settings)

    @staticmethod
    def _wrap_env(env: Any, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        if isinstance(env, gym.Env) and isinstance(env.observation_space, spaces.Text):
            return TextVecEnv([lambda: Monitor(env)])
        return BaseAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.seed = self.seed or 0
        # ``policy_kwargs`` stays as the caller gave it, because ``load`` compares it.
        keywords: dict[str, Any] = {
            "seed": self.seed,
            "critic_lr_multiplier": self.hyperparameters.critic_lr_multiplier,
            "betas": (self.hyperparameters.adam_beta1, self.hyperparameters.adam_beta2),
            "max_new_tokens": self.hyperparameters.max_new_tokens,
            "temperature": self.hyperparameters.temperature,
            **self.policy_kwargs,
            "device": str(self.device),
        }
        make_policy: type[LLMPolicy] = self.policy_class  # type: ignore[assignment]
        self.policy = make_policy(self.observation_space, self.action_space, self.lr_schedule, **keywords)
        numbers = self.hyperparameters
        self.policy.budgets.give(numbers.tokens_per_forward, numbers.tokens_per_backward)
        self.policy.scorer.ranks = self.ranks
        self.ranks.reserve(self.policy.trainable_parameters())
        self.rollout_buffer = TurnBuffer(
            self.gamma, self.gae_lambda, numbers.normalize_advantage, self.device, numbers.advantage_scale
        )
        arguments.check_magnet(self)

    # -- the loop ------------------------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int | None = None,
        callback: MaybeCallback = None,
        log_interval: int | None = 1,
        tb_log_name: str = "LLMPPO",
        reset_num_timesteps: bool = False,
        progress_bar: bool = False,
    ) -> LLMPPO:
        """Trains for ``total_timesteps`` more decisions, or, without them, to ``total_steps`` steps in all.

        Unlike elsewhere in Stable-Baselines3, counters go on by default. A step's number addresses its random
        numbers, and beginning again at 0 would draw the same tasks and actions a second time. Beginning
        again also forgets the magnet, the average and the snapshots of self-play. Samplers of starts go on.

        Raises:
            ValueError: neither says how long.
            DivergedError: logits, or three updates in a row, are not finite. The weights are those of the
                middle of a step, so go on from a checkpoint.
            MemoryLimitError: not even one turn fits into memory.
            RanksError: ranks failed, were lost, or differ in what they have learned.
        """
        if total_timesteps is None and self.total_steps is None:
            raise ValueError("learn() needs total_timesteps, or total_steps in the constructor")
        if reset_num_timesteps:
            self.step = 0
            self._forget_others()
        if self._last_obs is None:
            # Otherwise every environment would be reset once for nothing: this class gives the seeds.
            self._last_obs = np.empty(0, dtype=object)
        by_steps = total_timesteps is None
        if progress_bar:
            callback = [*list_callbacks(callback), ProgressBar(by_steps)]
        # Callbacks read the local variable, which is the limit in all of Stable-Baselines3.
        total_timesteps, callback = self._setup_learn(
            total_timesteps or 0, callback, reset_num_timesteps, tb_log_name
        )
        callback.on_training_start(locals(), globals())
        self._require_same_state("at the start")
        while self.step < self.total_steps if by_steps else self.num_timesteps < total_timesteps:  # type: ignore[operator]
            self._update_progress(None if by_steps else total_timesteps)
            callback.on_rollout_start()  # before the clock: checkpoints and evaluations happen there
            started = time.perf_counter()
            if not self.collect_rollouts(self.env, callback):
                break
            collected = time.perf_counter()
            self.train()
            self.step += 1
            if self.average is not None:
                self.average.add(self.policy.adapters.learning, self.step)
            self._log_step(collected - started, time.perf_counter() - started)
            if log_interval and self.step % log_interval == 0:
                self.logger.dump(step=self.step)
        callback.on_training_end()
        return self

    def _update_progress(self, limit: int | None) -> None:
        if self.total_steps is not None:
            self._current_progress_remaining = max(0.0, 1.0 - self.step / self.total_steps)
        elif limit is not None:
            self._update_current_progress_remaining(self.num_timesteps, limit)

    def collect_rollouts(self, env: Any, callback: BaseCallback) -> bool:  # type: ignore[override]
        """Plays this step's episodes into the buffer; returns False, unchanged, if it was stopped.

        A callback stops it after a round, ``task_gym.remote.loop.abandoning`` while it waits for a server.

        Raises:
            ValueError: the environment is no ``TextVecEnv``.
            DivergedError: the model's logits are not finite.
        """
        if not isinstance(env, TextVecEnv):
            raise ValueError(
                f"LLMPPO collects from a TextVecEnv, got {type(env).__name__}: wrap the environments in one"
            )
        counted = self.num_timesteps

        def on_turns(dones: list[bool], learned: int) -> bool:
            self.num_timesteps += learned
            callback.update_locals({"self": self, "env": env, "dones": np.array(dones)})
            return callback.on_step()

        collector = self.make_collector()
        episodes = collector.collect(env, on_turns)
        if episodes is None:
            self.num_timesteps = counted
            return False
        self.num_timesteps = counted + collector.learned
        for name, value in collector.metrics.items():
            self.logger.record(name, value)
        self._tokens = collector.tokens
        self.logger.record("rollout/tokens_per_decision", self._tokens / max(1, collector.learned))
        self.last_episode = episodes[0]
        callback.on_rollout_end()
        return True

    def make_collector(self) -> Collector:
        """Returns what plays this step's episodes into the buffer."""
        return Collector(
            self.policy, self.rollout_buffer, self.hyperparameters, seed=self.seed or 0, step=self.step,
            starts=self.starts, self_play=self.self_play, parts=self.parts or 1, ranks=self.ranks,
            find_values=self.find_values,
            on_progress=self.on_progress,
        )  # fmt: skip

    # -- the update ----------------------------------------------------------------------------------------

    def train(self) -> None:
        """Makes ``ppo_epochs`` passes over the buffer's turns (see ``Update``), then adapts the KL weight.

        Raises:
            DivergedError: three updates in a row were not finite, or the weights are not.
            MemoryLimitError: not even one turn fits into memory.
        """
        buffer = self.rollout_buffer
        if not len(buffer):
            return  # every episode was a fault
        self._update_learning_rate(self.policy.optimizer)
        self.ent_coef = self.entropy_schedule(self._current_progress_remaining)
        read = self.policy.scorer.tokens_read
        coefficients = Coefficients.for_step(
            self.hyperparameters,
            ent_coef=self.ent_coef,
            kl_coef=self.kl.coefficient,
            magnet_coef=self._pull_of_magnet(),
        )
        means = Update(
            self.policy, buffer, self.hyperparameters, coefficients, magnet=self.magnet is not None,
            reference=self.kl.needs_divergence(self.step),
            terms=[load_term(path) for path in self.hyperparameters.terms],
            seed=self.seed or 0, step=self.step, skipped=self.skipped, ranks=self.ranks,
            on_progress=self.on_progress,
        ).run()  # fmt: skip
        # The largest weight of all is not finite if any is not; a GPU is waited for once.
        if not get_total_norm(self.policy.trainable_parameters(), math.inf).isfinite():
            # Here, before they are saved as a checkpoint, or evaluated.
            raise DivergedError(f"step {self.step + 1}: it left weights that are not finite", self.step)
        self._require_same_state(f"after the update of step {self.step + 1}")
        self._n_updates += math.ceil(means["epochs"])
        means.floor(*(name for name in ("kl_ref", "approx_kl", "kl_magnet") if name in means))
        if "kl_ref" in means:  # or it was not measured, or every update was skipped
            self.kl.update(means["kl_ref"], buffer.turns)
        assert buffer.returns is not None
        explained = explained_variance(np.array(buffer.values), buffer.returns, buffer.weights)
        means.record("explained_variance", explained)
        read = self.ranks.total(self.policy.scorer.tokens_read - read)
        self._tokens += read
        budgets = self.policy.budgets
        budgets.tokens_per_forward = min(self.ranks.gather(budgets.tokens_per_forward))
        means.record("tokens_per_decision", read / buffer.turns)
        means.record("tokens_per_forward", budgets.tokens_per_forward)
        means.record("tokens_per_backward", budgets.tokens_per_backward)
        budgets.end_step()
        for name, value in means.items():
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/kl_coef", self.kl.coefficient)

    def _require_same_state(self, when: str) -> None:
        """Raises RanksDifferError unless all ranks have the same weights, and have counted the same."""
        if self.ranks.size == 1:
            return
        counted = (self.step, self.num_timesteps, self.kl.coefficient, self.backoff, self.seed)
        own = hashlib.blake2b(repr(counted).encode())
        for tensor in transfer.read(*self.policy.trainable_parameters()):
            own.update(tensor.contiguous().view(torch.uint8).numpy().data)
        self.ranks.require_same(f"weights or counters {when}", own.digest())

    def _pull_of_magnet(self) -> float:
        """Returns the weight of the divergence from this step's magnet, which the scorer knows then."""
        if self.magnet is None:
            return 0.0
        magnet = self.magnet.move(self.policy.adapters.learning, self.step)
        self.policy.scorer.publish(MAGNET, magnet.adapters)
        weight = self.magnet_schedule(self._current_progress_remaining)
        self.logger.record("train/magnet_coef", weight)
        self.logger.record("train/magnet_step", magnet.step)
        return weight

    def _update_learning_rate(self, optimizers: Any) -> None:
        """Sets the scheduled rate, lowered as far as warm-up and divergence lower it."""
        rate = self.lr_schedule(self._current_progress_remaining) * self.backoff.rate_factor
        rate *= self._warmed_up
        self.logger.record("train/learning_rate", rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            update_learning_rate(optimizer, rate)

    @property
    def _warmed_up(self) -> float:
        """The share of the learning rate that warm-up allows: the critic's first steps have all of it."""
        numbers = self.hyperparameters
        learned = self.step - numbers.critic_warmup_steps
        return 1.0 if learned < 0 else min(1.0, (learned + 1) / (numbers.lr_warmup_steps + 1))

    def _log_step(self, collecting: float, whole: float) -> None:
        self.seconds += whole
        self.logger.record("step", self.step)
        self.logger.record("seconds", self.seconds)
        self.logger.record("decisions", self.num_timesteps)
        self.logger.record("time/decisions_per_second", len(self.rollout_buffer) / max(whole, 1e-9))
        self.logger.record("time/collect_seconds", collecting)
        self.logger.record("time/update_seconds", whole - collecting)
        if self.ranks.size > 1:
            self.logger.record("time/exchange_seconds", self.ranks.seconds)
            self.ranks.seconds = 0.0
        self.logger.record("machine/tokens_per_second", self._tokens / max(whole, 1e-9))
        self.logger.record("machine/memory_gib", used_memory(self.policy.engine.device) / 2**30)

    # -- Stable-Baselines3's saving ------------------------------------------------------------------------

    def save(
        self, path: Place, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None
    ) -> None:
        """Writes the model, without the base and the environments, to a file that has no pickles.

        Functions (of schedules), controllers and classes that are not GameSpiel's are left out; ``load`` asks
        for them.

        Args:
            path: A path, which gets ``.zip`` if it has no ending, or a binary file that is open.
            exclude: Is taken for Stable-Baselines3's callers; everything that is written belongs together.
            include: Must be empty: attributes as they are would be pickles.

        Raises:
            ArgumentError: there is something to include, or a setting is no plain data.
        """
        if include := sorted(include or ()):
            raise ArgumentError(f"save: include={include} was given, allowed: nothing")
        saving.write_model(self, path)

    @classmethod
    def load(
        cls,
        path: Place,
        env: Any = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> LLMPPO:
        """Returns the model that ``save`` wrote; no code of the file runs.

        Args:
            path: The file, as ``save`` takes it.
            env: The environments; None for a model that only predicts.
            device: The model's device.
            custom_objects: As ``kwargs``, which come before it.
            print_system_info: Whether to print the system here and the one on which the file was written.
            force_reset: Is taken for Stable-Baselines3's callers; every step begins new episodes anyway.
            **kwargs: Constructor's arguments and attributes that replace saved ones: ``learning_rate``,
                ``ent_coef``, ``kl``, ``policy_class``, ``starts``, ``total_steps``, ``seed``.

        Raises:
            ArgumentError: a hyper-parameter was given, which the saved model has already; code was saved by
                its name and is not given; or the file is no archive (``gamespiel.agents.archive``).
        """
        known = {field.name for field in dataclasses.fields(Hyperparameters)} - {"learning_rate", "ent_coef"}
        for name in sorted(known & kwargs.keys()):
            raise ArgumentError(
                f"load: {name}={kwargs[name]!r} was given, and a saved model keeps its hyper-parameters; "
                "allowed: learning_rate; or make a new LLMPPO, and set_parameters(path) takes the weights"
            )
        archive = read_archive(path, saving.KIND, suffix="zip")
        if print_system_info:
            print(f"here: {describe_system()}there: {archive.system}", end="")
        return saving.make_model(cls, archive, env, device, {**(custom_objects or {}), **kwargs})

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Takes the weights and the optimizer's state from a file that ``save`` wrote, or from a mapping.

        Raises:
            ArgumentError: the file is no archive, or one of something else.
            RuntimeError: the weights are those of another model, or of other LoRA settings.
        """
        if not isinstance(load_path_or_dict, dict):
            archive = read_archive(load_path_or_dict, saving.KIND, suffix="zip")
            load_path_or_dict = saving.parameters_of(archive)
        super().set_parameters(load_path_or_dict, exact_match, device)

    def publish_result(self) -> str:
        """Returns the name under which the sampler knows the run's result: the average, if one is kept."""
        if self.average is None or self.average.snapshot is None:
            self.policy.sampler.publish(NEWEST, self.policy.adapters.learning)
            return NEWEST
        self.policy.sampler.publish(AVERAGE, self.average.snapshot.adapters)
        return AVERAGE

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray[Any, Any], ...] | None = None,
        episode_start: np.ndarray[Any, Any] | None = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], ...] | None]:
        """Returns actions for one or several texts under masks, true = legal; or replies, without masks.

        Raises:
            MissingMaskError: the policy chooses, and there are no masks.
        """
        return self.policy.predict(
            observation, state, episode_start, deterministic, action_masks=action_masks
        )


def _no_progress(phase: str, done: int, total: int) -> None:
    """Shows nothing."""
