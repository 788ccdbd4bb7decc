"""The keys that a resumed run may change: those that do not decide what is learned."""

from operator import attrgetter

from gamespiel.config.schema import DOTTED
from gamespiel.config.sections import Config
from gamespiel.errors import InvalidValueError

MAY_CHANGE = (
    "model.model_name",  # the same weights in another place: their content is compared when they are loaded
    "model.gradient_checkpointing",
    "model.kernels",
    "model.reading",
    "ppo.num_train_steps",
    "ppo.tokens_per_forward",
    "ppo.tokens_per_backward",
    "env.require",  # the protection of programs, which decides nothing about their outputs
    "env.base_url",
    "env.pull",
    "env.mem_limit",
    "env.cpu_limit",
    "env.docker_host",
    "env.server_timeout",
    "run.output_dir",
    "run.checkpoint_every",
    "run.checkpoint_minutes",
    "run.keep_checkpoints",
    "run.eval_games",
    "run.exact_every",
    "run.eval_steps",
    "run.eval_episodes",
    "run.eval_seconds",
    "run.eval_opponents",
    "run.metric_for_best_model",
    "run.early_stopping_patience",
    "run.report_to",
    "run.grace_seconds",
    "run.device",
    "run.num_threads",
    "run.env_threads",
    "run.env_workers",
    "run.ray_address",
    "run.env_seconds",
    "run.vllm_base_url",
    "run.vllm_adapter_dir",
    "run.vllm_gap_limit",
    "run.imports",
)


def check_resumed(asked: Config, saved: Config, step: int) -> None:
    """Checks that ``asked`` continues the run that began as ``saved``, from a checkpoint after so many steps.

    Raises:
        InvalidValueError: A key that decides what is learned has another value, or the steps are over.
    """
    kept = [(key, attrgetter(key)) for key in DOTTED if key not in MAY_CHANGE]
    changed = [f"{key} ({of(saved)!r}, not {of(asked)!r})" for key, of in kept if of(saved) != of(asked)]
    if changed:
        raise InvalidValueError(
            f"a resumed run keeps {', '.join(changed)}; it may change {', '.join(MAY_CHANGE)}. "
            "To train its weights in another way, start a new run with --from"
        )
    if asked.ppo.num_train_steps < step:
        raise InvalidValueError(
            f"ppo.num_train_steps: {asked.ppo.num_train_steps} was given, and the run goes on after step "
            f"{step}; allowed: at least {step}, or --resume RUN@STEP, which goes back"
        )
