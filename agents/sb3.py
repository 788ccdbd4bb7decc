"""The adapter between Stable-Baselines3 and a learner of whole episodes.

``LLMPPO`` in ``gamespiel.agents.ppo`` is the learner. This module has the parent's constructor, the checks of
environments, the callbacks of a rollout, the progress bar, and saving.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import EXPECTED_METHOD_NAME
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback, ProgressBarCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback, Schedule
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv

from gamespiel.agents.collector import OnTurns
from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.arguments import describe_arguments, describe_system, make_model
from gamespiel.agents.self_play import SelfPlay, check_learns
from gamespiel.agents.starts import check_not_sampled
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.visible import show_controls

Learner = TypeVar("Learner", bound="EpisodeAlgorithm")

Place = str | Path | io.BufferedIOBase
"""As Stable-Baselines3 has it. A folder cannot be written to a file that is open."""


class EpisodeAlgorithm(OnPolicyAlgorithm):
    """Stable-Baselines3's algorithm for a learner that plays whole episodes and seeds each of them itself.

    Stable-Baselines3's rollout steps all environments together and goes on from ``_last_obs``. A learner of
    whole episodes has neither: its ``play_step`` takes the place of the parent's rollout.
    """

    policy: LLMPolicy  # type: ignore[assignment]
    hyperparameters: Hyperparameters
    self_play: SelfPlay | None
    step: int
    total_steps: int | None
    parts: int | None

    def __init__(
        self,
        policy: str | type[LLMPolicy],
        env: TextVecEnv | gym.Env[Any, Any] | None,
        hyperparameters: Hyperparameters,
        *,
        learning_rate: float | Schedule,
        policy_kwargs: Mapping[str, Any] | None,
        tensorboard_log: str | None,
        verbose: int,
        seed: int | None,
        device: torch.device | str,
    ) -> None:
        # Stable-Baselines3 itself would take the CPU silently.
        if device != "auto" and torch.device(device).type == "cuda" and not torch.cuda.is_available():
            raise ArgumentError(
                f"device: {str(device)!r} was given, and torch finds no GPU here; allowed: 'cpu' or 'auto'"
            )
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,  # type: ignore[arg-type]
            learning_rate=learning_rate,
            n_steps=hyperparameters.batch_size,
            gamma=hyperparameters.gamma,
            gae_lambda=hyperparameters.lam,
            ent_coef=0.0,
            vf_coef=hyperparameters.vf_coef,
            max_grad_norm=hyperparameters.max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            tensorboard_log=tensorboard_log,
            policy_kwargs=dict(policy_kwargs or {}),
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=False,
            supported_action_spaces=(spaces.Discrete, spaces.Text),
        )
        # Without it ``learn`` would reset every environment once for nothing: the learner gives the seeds.
        self._last_obs = np.empty(0, dtype=object)
        self._logger = Logger(None, [])  # a step outside ``learn`` is not logged
        self.hyperparameters = hyperparameters

    def play_step(self, env: TextVecEnv, on_turns: OnTurns) -> list[Any] | None:
        """Plays a step's episodes into the buffer; returns them, or None, unchanged, if it was stopped."""
        raise NotImplementedError

    # -- environments --------------------------------------------------------------------------------------

    @staticmethod
    def _wrap_env(env: Any, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        if isinstance(env, gym.Env) and isinstance(env.observation_space, spaces.Text):
            return TextVecEnv([lambda: Monitor(env)])
        return BaseAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Takes other environments of the same spaces, any number of them.

        Raises:
            ArgumentError: an environment takes its starts from a sampler itself.
            SeatsError: not all seats of its games can learn, as self-play asks for.
            ValueError: other spaces, or no ``TextVecEnv``.
        """
        wrapped = self._wrap_env(env, self.verbose)
        check_env(wrapped, None if self.self_play is None else self.self_play.settings)
        check_for_correct_spaces(wrapped, self.observation_space, self.action_space)
        self.n_envs = wrapped.num_envs  # no result depends on it, so it may change
        if self.parts is None and isinstance(wrapped, TextVecEnv):
            self.parts = wrapped.parts
        super().set_env(wrapped, force_reset=False)

    # -- the verbs of ``learn`` ----------------------------------------------------------------------------

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

        def on_turns(dones: list[bool], learned: int) -> bool:
            self.num_timesteps += learned
            callback.update_locals({"self": self, "env": env, "dones": np.array(dones)})
            return callback.on_step()

        if self.play_step(env, on_turns) is None:
            return False
        callback.on_rollout_end()
        return True

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        if self.total_steps is None:
            super()._update_current_progress_remaining(num_timesteps, total_timesteps)
        else:
            self._current_progress_remaining = max(0.0, 1.0 - self.step / self.total_steps)

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

    # -- saving --------------------------------------------------------------------------------------------

    def save(
        self, path: Place, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None
    ) -> None:
        """Writes the model, without the base and the environments, to a folder that has no pickles.

        It is a checkpoint (``gamespiel.agents.runs.checkpoint``), whose ``adapter/`` anything reads that
        reads PEFT. Functions (of schedules), controllers and classes that are not GameSpiel's are left out;
        ``load`` asks for them.

        Args:
            path: The folder; an ending ``.zip``, which Stable-Baselines3's callbacks give, is dropped.
            exclude: Is taken for Stable-Baselines3's callers; everything that is written belongs together.
            include: Must be empty: attributes as they are would be pickles.

        Raises:
            ArgumentError: there is something to include, the path is an open file, or a setting is no plain
                data.
            CheckpointError: the folder has something else, or cannot be written.
        """
        if include := sorted(include or ()):
            raise ArgumentError(f"save: include={include} was given, allowed: nothing")
        checkpoint.save_with_arguments(self, _to_folder(path), describe_arguments(self))

    @classmethod
    def load(
        cls: type[Learner],
        path: Place,
        env: Any = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> Learner:
        """Returns the model that ``save`` wrote; no code of the folder runs.

        Args:
            path: The folder, as ``save`` takes it.
            env: The environments; None for a model that only predicts.
            device: The model's device.
            custom_objects: As ``kwargs``, which come before it.
            print_system_info: Whether to print the system here and the one on which the folder was written.
            force_reset: Is taken for Stable-Baselines3's callers; every step begins new episodes anyway.
            **kwargs: Constructor's arguments and attributes that replace saved ones: ``learning_rate``,
                ``ent_coef``, ``kl``, ``policy_class``, ``total_steps``, ``seed``. ``starts`` goes on from the
                saved state of its samplers, if there is one.

        Raises:
            ArgumentError: a hyper-parameter was given, which the saved model has already; or code was saved
                by its name and is not given.
            CheckpointError: ``save`` wrote no such folder, or it is damaged, or the base is another one.
        """
        known = {field.name for field in dataclasses.fields(Hyperparameters)} - {"learning_rate", "ent_coef"}
        for name in sorted(known & kwargs.keys()):
            raise ArgumentError(
                f"load: {name}={kwargs[name]!r} was given, and a saved model keeps its hyper-parameters; "
                "allowed: learning_rate; or make a new LLMPPO, and set_parameters(path) takes the weights"
            )
        folder = _to_folder(path)
        data = checkpoint.read_arguments(folder)
        if print_system_info:
            print(f"here: {describe_system()}\nthere: {show_controls(str(data.get('system')))}")
        overrides = {**(custom_objects or {}), **kwargs}
        model: Learner = make_model(cls, data, env, device, overrides)
        checkpoint.load(model, folder, overrides)
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Takes the weights and the optimizer's state from a folder that ``save`` wrote, or from a dict.

        ``exact_match`` and ``device`` are for a dict: a folder's weights fit this model, or are an error.

        Raises:
            CheckpointError: ``save`` wrote no such folder, or it is of another model or LoRA settings.
            RuntimeError: the dict's weights are those of another model, or of other LoRA settings.
        """
        if isinstance(load_path_or_dict, dict):
            super().set_parameters(load_path_or_dict, exact_match, device)
        else:
            checkpoint.load_weights(self, _to_folder(load_path_or_dict))


def _to_folder(path: Place) -> Path:
    """Returns the folder that is meant by a path of Stable-Baselines3's callers, made absolute.

    Raises:
        ArgumentError: it is no path, or that of a file.
    """
    if not isinstance(path, str | Path):
        raise ArgumentError(f"path: {path!r:.80} was given, allowed: the path of a folder")
    folder = Path(path).resolve()
    if folder.is_file():
        raise ArgumentError(
            f"path: {str(path)!r} was given, which is a file; allowed: a folder; pickles, as "
            "Stable-Baselines3 writes them, run the code that their author put in, and are not read"
        )
    return folder.with_suffix("") if folder.suffix == ".zip" else folder


def check_env(env: Any, self_play: SelfPlaySettings | None) -> None:
    """Raises ArgumentError or SeatsError if no step can be learned from these environments."""
    check_not_sampled(env)
    space = getattr(env, "action_space", None)
    if isinstance(env, TextVecEnv) and isinstance(space, spaces.Discrete):
        if not env.has_attr(EXPECTED_METHOD_NAME):
            raise ArgumentError(
                f"env: {env.envs[0]} was given, which has no {EXPECTED_METHOD_NAME}(); allowed: "
                "environments of Discrete actions with this method, which returns true = legal"
            )
        if space.start != 0:
            raise ArgumentError(f"env: actions {space} were given, allowed: Discrete(n), which starts at 0")
    if self_play is not None:
        check_learns(env, self_play)


def list_callbacks(callback: MaybeCallback) -> list[Any]:
    """Returns callbacks as a list, whatever form ``learn`` was given them in."""
    if isinstance(callback, list):
        return callback
    if callback is None or isinstance(callback, BaseCallback):
        return [] if callback is None else [callback]
    return [ConvertCallback(callback)]


class ProgressBar(ProgressBarCallback):
    """Counts decisions, or steps if that is how ``learn`` was told when to end.

    Stable-Baselines3's own counts an environment's step per environment, also of those that are over.
    """

    def __init__(self, by_steps: bool) -> None:
        super().__init__()
        self._by_steps = by_steps

    @property
    def _done(self) -> int:
        model: Any = self.model
        return int(model.step if self._by_steps else model.num_timesteps)

    def _on_training_start(self) -> None:
        model: Any = self.model
        self._begun = self._done
        if self._by_steps:
            left = model.total_steps - model.step
            self.locals = {**self.locals, "total_timesteps": left + model.num_timesteps}
        super()._on_training_start()

    def _on_rollout_start(self) -> None:
        self._on_step()

    def _on_step(self) -> bool:
        self.pbar.update(self._done - self._begun - self.pbar.n)
        return True

    def _on_training_end(self) -> None:
        self._on_step()
        super()._on_training_end()
