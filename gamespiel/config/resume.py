"""The keys that a resumed run may change: those that do not decide what is learned."""

from collections.abc import Iterator
from typing import Any

from gamespiel.config.errors import InvalidValueError
from gamespiel.config.schema import KEYS
from gamespiel.config.sections import Config

MAY_CHANGE = (
    "ppo.num_train_steps",
    "env.vllm_base_url",
    "run.output_dir",
    "run.checkpoint_every",
    "run.keep_checkpoints",
    "run.eval_games",
    "run.exact_every",
    "run.device",
    "run.num_threads",
)


def check_resumed(asked: Config, saved: Config) -> None:
    """Raises unless `asked` goes on with the run that was begun as `saved`.

    Raises:
        InvalidValueError: a key that decides what is learned has another value, or there are fewer steps.
    """
    changed = [f"{key} ({was!r}, not {now!r})" for key, was, now in _changes(saved, asked)]
    if changed:
        raise InvalidValueError(
            f"a resumed run keeps {', '.join(changed)}; it may change {', '.join(MAY_CHANGE)}. "
            "To train its weights in another way, start a new run with --from"
        )
    if asked.ppo.num_train_steps < saved.ppo.num_train_steps:
        raise InvalidValueError(
            f"ppo.num_train_steps of a resumed run may grow, not shrink: it is {saved.ppo.num_train_steps}, "
            f"{asked.ppo.num_train_steps} was given"
        )


def _changes(saved: Config, asked: Config) -> Iterator[tuple[str, Any, Any]]:
    for section, keys in KEYS.items():
        for name in keys:
            was, now = getattr(getattr(saved, section), name), getattr(getattr(asked, section), name)
            if was != now and f"{section}.{name}" not in MAY_CHANGE:
                yield f"{section}.{name}", was, now
