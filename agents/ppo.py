"""Proximal policy optimisation of language models over turns.

``LLMPPO.learn`` is the loop. A step is ``play_step`` and ``train``, one after the other below it.
``gamespiel.agents.sb3`` has what Stable-Baselines3 needs around it.
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
import hashlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.type_aliases import MaybeCallback, Schedule
from stable_baselines3.common.utils import FloatSchedule, update_learning_rate
from torch.nn.utils import get_total_norm

from gamespiel.agents import transfer
from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.collector import Collector, OnTurns
from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings, with_changes
from gamespiel.agents.learning.advantages import FindValues, explained_variance
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Coefficients, Shaped, schedule_of
from gamespiel.agents.learning.divergence import Backoff, DivergedError, SkippedUpdates
from gamespiel.agents.learning.metrics import rollout_metrics
from gamespiel.agents.learning.snapshots import Average, Magnet
from gamespiel.agents.learning.terms import load_term
from gamespiel.agents.models import AVERAGE, MAGNET, NEWEST
from gamespiel.agents.models.memory import used_memory
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.rollout import Episode
from gamespiel.agents.sampling import noise
from gamespiel.agents.sb3 import EpisodeAlgorithm, ProgressBar, check_env, list_callbacks
from gamespiel.agents.self_play import SelfPlay
from gamespiel.agents.starts import Starts
from gamespiel.agents.update import Update
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.arguments import check_least
from task_gym.errors import ArgumentError
from task_gym.samplers import Start


class LLMPPO(EpisodeAlgorithm):
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
            the run's seed. Checkpoints have its state.
        seed: Seed of the run.
        find_values: Finds advantages without the critic; None for ``gae``. Checkpoints have its state, and
            ``load`` returns a learner without it.
        ranks: The processes that learn together, each with such an object; one alone if left out.
        **changes: Single hyper-parameters, such as ``batch_size=64``.

    Raises:
        ArgumentError: two arguments do not go together.
        ValueError: a space or a number is not one of the above.
        TypeError: there is no such hyper-parameter.
    """

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
        if _init_setup_model and env is None:
            raise ArgumentError("env: none was given, allowed: a TextVecEnv, or one environment of texts")
        if _init_setup_model and total_steps is not None:
            check_least("total_steps", total_steps, 1)
        numbers = with_changes(hyperparameters or Hyperparameters(), changes, "LLMPPO()")
        super().__init__(
            policy, env, numbers,
            learning_rate=schedule_of(learning_rate, numbers.lr_schedule, numbers.learning_rate),
            policy_kwargs=policy_kwargs, tensorboard_log=tensorboard_log, verbose=verbose, seed=seed,
            device=device,
        )  # fmt: skip
        named = hyperparameters is not None or "num_train_steps" in changes
        self.total_steps = numbers.num_train_steps if total_steps is None and named else total_steps
        self.step, self.seconds, self.ranks, self.find_values = 0, 0.0, ranks, find_values
        self._tokens = 0  # that the model read in this step
        self.last_episode: Episode | None = None
        #: Called with ("episodes played" or "turns learned from", done, of how many) within a step.
        self.on_progress: Callable[[str, int, int], None] = lambda phase, done, total: None

        # The starts, and the players of the other seats.
        if self_play is not None and starts is not None:
            raise ArgumentError(
                "starts: a curriculum or a store of failures was given with self_play, allowed: at most one "
                "of them, because games are judged against an opponent"
            )
        self.starts = starts
        #: Self-play's pool; None if the environment plays the other seats.
        self.self_play = None if self_play is None else SelfPlay(self_play)
        check_env(self.env, self_play)
        #: Parts of a round (``TextEnvs.parts``), which a run keeps. The first environments decide it.
        self.parts: int | None = self.env.parts if isinstance(self.env, TextVecEnv) else None

        # The weights of the loss's terms, and the policies that this one is compared with.
        self.entropy_schedule = FloatSchedule(schedule_of(ent_coef, numbers.ent_schedule, numbers.ent_coef))
        horizon = numbers.kl_horizon if numbers.adaptive_kl else None
        self.kl = kl or AdaptiveKLController(numbers.init_kl_coef, numbers.target_kl, horizon)
        self.magnet_schedule = Shaped(numbers.magnet_schedule, numbers.magnet_coef, numbers.magnet_end)
        #: The moving reference; None without one.
        self.magnet = Magnet(numbers.magnet_every, numbers.magnet_rate) if numbers.magnet_coef > 0 else None
        #: The result, if that is not the newest policy.
        self.average = Average(numbers.average_decay) if numbers.average_decay > 0 else None
        #: The changes that divergence has made to the learning rate, and the updates that were skipped.
        self.backoff, self.skipped = Backoff(), SkippedUpdates()
        for path in numbers.terms:
            load_term(path)  # an error now, and not after the first step's games
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        numbers = self.hyperparameters
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.seed = self.seed or 0
        # ``policy_kwargs`` stays as the caller gave it, because ``load`` compares it.
        keywords: dict[str, Any] = {
            "seed": self.seed,
            "critic_lr_multiplier": numbers.critic_lr_multiplier,
            "betas": (numbers.adam_beta1, numbers.adam_beta2),
            "max_new_tokens": numbers.max_new_tokens,
            "temperature": numbers.temperature,
            **self.policy_kwargs,
            "device": str(self.device),
        }
        make_policy: type[LLMPolicy] = self.policy_class  # type: ignore[assignment]
        self.policy = make_policy(self.observation_space, self.action_space, self.lr_schedule, **keywords)
        self.policy.budgets.give(numbers.tokens_per_forward, numbers.tokens_per_backward)
        self.policy.scorer.ranks = self.ranks
        self.ranks.reserve(self.policy.trainable_parameters())
        self.rollout_buffer = TurnBuffer(numbers, self.device)
        # The divergence of replies is found from the magnet's states, behind the head without adapters.
        head = self.policy.model.get_base_model().get_output_embeddings()
        exact = not self.policy.answers.masked and numbers.kl_estimator == "exact"
        if self.magnet is not None and exact and hasattr(head, "base_layer"):
            raise ArgumentError(
                f"magnet_coef: {numbers.magnet_coef!r} was given with adapters on the model's head and "
                "kl_estimator 'exact', which reads replies behind the head without them; allowed: "
                "kl_estimator 'k3', or adapters elsewhere (target_modules)"
            )

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
            TaskGymError: another model sampled than the one that learns.
            RanksError: ranks failed, were lost, or differ in what they have learned.
        """
        if total_timesteps is None and self.total_steps is None:
            raise ValueError("learn() needs total_timesteps, or total_steps in the constructor")
        if reset_num_timesteps:
            self._begin_again()
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
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            callback.on_rollout_start()  # before the clock: checkpoints and evaluations happen there
            started = time.perf_counter()
            if not self.collect_rollouts(self.env, callback):  # which calls ``play_step``
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

    # -- a step: draw starts, play, find advantages; make passes, adapt ------------------------------------

    def play_step(self, env: TextVecEnv, on_turns: OnTurns) -> list[Episode] | None:
        """Plays this step's episodes into the buffer; returns them, or None, unchanged, if it was stopped.

        Raises:
            DivergedError: the model's logits are not finite.
            RankFailedError: another rank met an error.
        """
        numbers, buffer, counted = self.hyperparameters, self.rollout_buffer, self.num_timesteps

        # Draw the starts: each has a seed, and a sampler may choose task, opponent and seed.
        seeds = noise.episode_seeds(self.seed or 0, self.step, numbers.batch_size)
        starts = [Start(seed=seed) for seed in seeds]
        if self.starts is not None:
            starts = self.starts.draw(self.step, seeds)

        # Play them to the end: each rank its share, and then all have all episodes.
        collector = self.make_collector()
        episodes = collector.collect(env, starts, on_turns)
        if episodes is None:
            self.num_timesteps = counted
            return None
        self.num_timesteps = counted + collector.learned
        self._tokens, self.last_episode = collector.tokens, episodes[0]

        # Find the advantages: from the critic's values, or from what is known without it.
        played = [episode for episode in episodes if not episode.fault]
        buffer.fill(played, numbers.cut_penalty)
        known = None if self.find_values is None else self.find_values(played)
        buffer.compute_returns_and_advantage(known)
        if known:
            buffer.merge_turns(known, all_actions=numbers.all_actions, floor=numbers.action_floor)

        # Report the outcomes, to the samplers too.
        metrics = dict(collector.metrics)
        for name, variance in buffer.variances.items():
            metrics[f"rollout/advantage_variance/{name}"] = variance
        metrics |= {f"rollout/{name}": value for name, value in rollout_metrics(episodes).items()}
        if self.starts is not None:
            self.starts.record(starts, [episode.info for episode in episodes])
            metrics |= self.starts.metrics()
        metrics["rollout/tokens_per_decision"] = self._tokens / max(1, collector.learned)
        for name, value in metrics.items():
            self.logger.record(name, value)
        return episodes

    def train(self) -> None:
        """Makes ``ppo_epochs`` passes over the buffer's turns (see ``Update``), then adapts the KL weight.

        Raises:
            DivergedError: three updates in a row were not finite, or the weights are not.
            TaskGymError: another model sampled than the one that learns.
            MemoryLimitError: not even one turn fits into memory.
        """
        numbers, buffer, policy = self.hyperparameters, self.rollout_buffer, self.policy
        if not len(buffer):
            return  # every episode was a fault
        already_read = policy.engine.tokens_read

        # Weigh the terms of the loss, which the scorer may need a magnet for.
        self._update_learning_rate(policy.optimizer)
        self.ent_coef = self.entropy_schedule(self._current_progress_remaining)
        magnet_coef = 0.0
        if self.magnet is not None:
            magnet = self.magnet.move(policy.adapters.learning, self.step)
            policy.adapters.publish(MAGNET, magnet.adapters)
            magnet_coef = self.magnet_schedule(self._current_progress_remaining)
            self.logger.record("train/magnet_coef", magnet_coef)
            self.logger.record("train/magnet_step", magnet.step)
        coefficients = Coefficients(
            cliprange=numbers.cliprange, vf_coef=numbers.vf_coef, ent_coef=self.ent_coef,
            kl_coef=self.kl.coefficient, magnet_coef=magnet_coef, legal_coef=numbers.legal_coef,
            legal_target=numbers.legal_target, sampler_weight_cap=numbers.sampler_weight_cap,
        )  # fmt: skip

        # Make the passes.
        means = Update(
            policy, buffer, numbers, coefficients, magnet=self.magnet is not None,
            reference=self.kl.needs_divergence(self.step), terms=[load_term(path) for path in numbers.terms],
            seed=self.seed or 0, step=self.step, skipped=self.skipped, ranks=self.ranks,
            on_progress=self.on_progress,
        ).run()  # fmt: skip
        # The largest weight of all is not finite if any is not; a GPU is waited for once.
        if not get_total_norm(policy.trainable_parameters(), math.inf).isfinite():
            # Here, before they are saved as a checkpoint, or evaluated.
            raise DivergedError(f"step {self.step + 1}: it left weights that are not finite", self.step)
        self._require_same_state(f"after the update of step {self.step + 1}")

        # Adapt the KL weight.
        means.floor(*(name for name in ("kl_ref", "approx_kl", "kl_magnet") if name in means))
        if "kl_ref" in means:  # or it was not measured, or every update was skipped
            self.kl.update(means["kl_ref"], buffer.turns)

        # Report.
        self._n_updates += math.ceil(means["epochs"])
        assert buffer.returns is not None
        explained = explained_variance(np.array(buffer.values), buffer.returns, buffer.weights)
        means.record("explained_variance", explained)
        read = self.ranks.total(policy.engine.tokens_read - already_read)
        self._tokens += read
        means.record("tokens_per_decision", read / buffer.turns)
        budgets = policy.budgets
        budgets.tokens_per_forward = min(self.ranks.gather(budgets.tokens_per_forward))
        means.record("tokens_per_forward", budgets.tokens_per_forward)
        means.record("tokens_per_backward", budgets.tokens_per_backward)
        budgets.end_step()
        for name, value in means.items():
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/kl_coef", self.kl.coefficient)

    # -- what a step needs ---------------------------------------------------------------------------------

    def make_collector(self) -> Collector:
        """Returns what plays this step's episodes."""
        return Collector(
            self.policy, seed=self.seed or 0, step=self.step, self_play=self.self_play,
            parts=self.parts or 1, ranks=self.ranks, on_progress=self.on_progress,
        )  # fmt: skip

    def _update_learning_rate(self, optimizers: Any) -> None:
        """Sets the scheduled rate, lowered as far as warm-up and divergence lower it."""
        numbers = self.hyperparameters
        rate = self.lr_schedule(self._current_progress_remaining) * self.backoff.rate_factor
        learned = self.step - numbers.critic_warmup_steps
        if learned >= 0:  # the critic's first steps have all of it
            rate *= min(1.0, (learned + 1) / (numbers.lr_warmup_steps + 1))
        self.logger.record("train/learning_rate", rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            update_learning_rate(optimizer, rate)

    def _require_same_state(self, when: str) -> None:
        """Raises RanksDifferError unless all ranks have the same weights, and have counted the same."""
        if self.ranks.size == 1:
            return
        counted = (self.step, self.num_timesteps, self.kl.coefficient, self.backoff, self.seed)
        digest = hashlib.blake2b(repr(counted).encode())
        for tensor in transfer.read(*self.policy.trainable_parameters()):
            digest.update(tensor.contiguous().view(torch.uint8).numpy().data)
        self.ranks.require_same(f"weights or counters {when}", digest.digest())

    def _begin_again(self) -> None:
        """Counts steps from 0 again, and forgets all snapshots, which are named by their steps."""
        self.step = 0
        if self.magnet is not None:
            self.magnet.snapshot = None
        if self.average is not None:
            self.average.snapshot = None
        if self.find_values is not None:
            self.find_values.load_state_dict({})
        if self.self_play is not None:
            self.self_play.forget_members(self.policy.sampler)
            self.self_play = SelfPlay(self.self_play.settings)

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

    def publish_result(self) -> str:
        """Returns the name under which the sampler knows the run's result: the average, if one is kept."""
        if self.average is None or self.average.snapshot is None:
            self.policy.sampler.publish(NEWEST, self.policy.adapters.learning)
            return NEWEST
        self.policy.sampler.publish(AVERAGE, self.average.snapshot.adapters)
        return AVERAGE
