"""The options of ``gamespiel eval --compare``."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path

from gamespiel.agents.fields import DECODERS
from gamespiel.comparison.contenders import Contender, check_contenders
from gamespiel.config import Config, InvalidValueError
from gamespiel.kinds import declaration_of
from task_gym.errors import check_choice


@dataclass(frozen=True)
class CompareOptions:
    """The options of one comparison.

    Attributes:
        config: The tasks, the opponent and the seed, which all contenders share.
        contenders: The agents.
        num_episodes: Deals of each game, each played from every seat; with ``until_clear``, the most.
        until_clear: Whether play stops as soon as every pooled difference is clear.
        detect: The difference in score for which the deals that would be needed are said.
        greedy: Whether checkpoints always take their most probable action.
        decode: "choice", or "text": checkpoints answer by replies.
        max_new_tokens: The most tokens of a reply; None for the kind's own.
        output: The file of results; None for one in ``runs``.
        resume: Whether the episodes of a comparison that was stopped are kept, and the rest is played.
        concurrency: Episodes at once of an agent behind an endpoint. What follows is for it alone.
        temperature: The temperature; None for the endpoint's own.
        request_s: Seconds until a reply begins, and between two pieces of it.
        episode_s: Seconds that an episode may take; None for upstream's limits.

    Raises:
        InvalidValueError: options that exclude one another, or a value out of range.
    """

    config: Config
    contenders: tuple[Contender, ...]
    num_episodes: int = 100
    until_clear: bool = False
    detect: float = 0.05
    greedy: bool = False
    decode: str = DECODERS[0]
    max_new_tokens: int | None = None
    output: Path | None = None
    resume: bool = False
    concurrency: int = 8
    temperature: float | None = None
    request_s: float = 120.0
    episode_s: float | None = None

    @property
    def reply_tokens(self) -> int:
        """The most tokens of a reply."""
        replies = declaration_of(self.config.env).replies
        assert replies is not None, "games take replies"
        return replies.max_new_tokens if self.max_new_tokens is None else self.max_new_tokens

    def __post_init__(self) -> None:
        check_choice("--decode", self.decode, DECODERS, InvalidValueError)
        check_contenders(self.contenders, self.decode)
        if self.num_episodes < 1:
            raise InvalidValueError(f"--num_episodes must be at least 1, not {self.num_episodes}")
        if not 0 < self.detect <= 1:  # NaN is neither
            raise InvalidValueError(f"--detect must be above 0 and at most 1, not {self.detect}")
        if self.output is not None and self.output.suffix != ".json":
            raise InvalidValueError(f"--output must end in .json, not {str(self.output)!r}")
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise InvalidValueError(f"--max_new_tokens must be at least 1, not {self.max_new_tokens}")
        if (
            self.concurrency < 1
            or not self.request_s > 0
            or not (self.episode_s is None or self.episode_s > 0)
        ):
            raise InvalidValueError("--concurrency must be at least 1, --request_s and --episode_s above 0")
        if self.temperature is not None and not 0 <= self.temperature < inf:
            raise InvalidValueError(f"--temperature must be at least 0, not {self.temperature}")
