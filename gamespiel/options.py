"""The options of ``gamespiel eval``."""

import re
from dataclasses import dataclass
from pathlib import Path

from gamespiel.config import Config, EnvConfig, InvalidValueError
from gamespiel.kinds import KINDS


@dataclass(frozen=True)
class EvalOptions:
    """The options of one evaluation.

    Attributes:
        config: The configuration with overrides applied, on top of the run's own for a checkpoint.
            ``--opponent`` is in ``config.env`` and ``--seed`` in ``config.run``.
        checkpoint: A run's folder or one of its checkpoints. Without checkpoint and agent, the untrained
            model plays.
        agent: Name of a baseline.
        num_episodes: Episodes per seat.
        exact: Whether values are computed exactly instead of by play.
        greedy: Whether the policy always takes its most probable action.
        output: The file of results; None for one beside the checkpoint, or in ``runs``.

    Raises:
        InvalidValueError: options that exclude one another, or a value out of range.
    """

    config: Config
    checkpoint: Path | None = None
    agent: str | None = None
    num_episodes: int = 100
    exact: bool = False
    greedy: bool = False
    output: Path | None = None

    @property
    def player(self) -> str:
        """The player: the agent's name, the checkpoint's path or the model's name."""
        return self.agent or str(self.checkpoint or self.config.model.model_name)

    def __post_init__(self) -> None:
        if self.checkpoint is not None and self.agent is not None:
            raise InvalidValueError("give either a checkpoint or an agent, and not both")
        if self.agent is not None:
            _check_agent(self.agent, self.config.env.env_type)
        if self.exact and self.greedy:
            raise InvalidValueError(
                "--exact shows the greedy policy beside the sampled one: leave --greedy out"
            )
        if self.num_episodes < 1:
            raise InvalidValueError(f"--num_episodes must be at least 1, not {self.num_episodes}")
        if self.output is not None and self.output.suffix != ".json":
            raise InvalidValueError(f"--output must end in .json, not {str(self.output)!r}")


def _check_agent(agent: str, env_type: str) -> None:
    if re.fullmatch(KINDS[env_type].agent_pattern, agent):
        return
    default = env_type == EnvConfig.env_type
    with_env = "" if default else f" with --env {env_type}"
    others = [name for name, kind in KINDS.items() if re.fullmatch(kind.agent_pattern, agent)]
    elsewhere = f"; {agent} goes with --env {others[0]}" if others and default else ""
    raise InvalidValueError(f"--agent must be {KINDS[env_type].agents}{with_env}, not {agent!r}{elsewhere}")
