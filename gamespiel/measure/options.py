"""The options of ``gamespiel eval``, and those that all commands have for models behind endpoints."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamespiel.agents.fields import DECODERS
from gamespiel.config import Config, EnvConfig, InvalidValueError
from gamespiel.endpoints import PREFIX, USAGE
from gamespiel.kinds import KINDS, kind_of
from task_gym.errors import check_choice

if TYPE_CHECKING:
    from gamespiel.endpoints.chat import Chat


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """The options of requests to models behind endpoints.

    Attributes:
        concurrency: Episodes at once.
        temperature: The temperature; None for the endpoint's own.
        max_new_tokens: The most tokens of a reply; None for no limit of ours. Of a model that is here: None
            for those of its training, if it was trained to write, else for what the kind of task needs.
        request_s: Seconds until a reply begins, and between two pieces of it.
        episode_s: Seconds that an episode may take; None for upstream's limits.

    Raises:
        InvalidValueError: a value out of range.
    """

    concurrency: int = 8
    temperature: float | None = None
    max_new_tokens: int | None = None
    request_s: float = 120.0
    episode_s: float | None = None

    def __post_init__(self) -> None:
        check_least(self, concurrency=1, max_new_tokens=1)
        for name in ("request_s", "episode_s"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:  # NaN is neither above nor at most
                raise InvalidValueError(f"--{name} must be above 0, not {seconds}")
        if self.temperature is not None and not 0 <= self.temperature < inf:
            raise InvalidValueError(f"--temperature must be at least 0, not {self.temperature}")

    def open_chat(self, agent: str) -> Chat:
        """Returns a client for the agent ``openai:MODEL@URL``."""
        from gamespiel.endpoints.chat import Chat, Sampling
        from gamespiel.endpoints.endpoint import parse_endpoint
        from gamespiel.endpoints.patience import patience_of_agents

        sampling = Sampling(self.temperature, self.max_new_tokens)
        return Chat(parse_endpoint(agent), sampling, patience_of_agents(self.request_s))


_OF_ENDPOINTS = (
    "whole_game", "resume", "prices",
    *(field.name for field in fields(EndpointOptions) if field.name != "max_new_tokens"),
)  # fmt: skip


def check_least(options: Any, **least: int) -> None:
    """Raises InvalidValueError for a number below its least value; None is none."""
    for name, low in least.items():
        value = getattr(options, name)
        if value is not None and value < low:
            raise InvalidValueError(f"--{name} must be at least {low}, not {value}")


def check_output(output: Path | None) -> None:
    """Raises InvalidValueError unless a file of results, if it is named, ends in .json."""
    if output is not None and output.suffix != ".json":
        raise InvalidValueError(f"--output must end in .json, not {str(output)!r}")


@dataclass(frozen=True)
class EvalOptions(EndpointOptions):
    """The options of one evaluation. Paths may be given as texts.

    Attributes:
        config: The configuration with overrides applied, on top of the run's own for a checkpoint.
            ``--opponent`` is in ``config.env`` and ``--seed`` in ``config.run``.
        checkpoint: A run's folder or one of its checkpoints. Without checkpoint and agent, the untrained
            model plays.
        agent: Name of a baseline.
        num_episodes: Episodes per seat.
        exact: Whether values are computed exactly instead of by play.
        greedy: Whether the policy always takes its most probable action.
        unmasked: Whether the model also plays the same games without a mask, by replies as text.
        decode: "choice" among the legal actions, or "text": only replies, without a mask.
        output: The file of results; None for one beside the checkpoint, or in ``runs``.
        save_games: The file of the episodes that are played, one JSON object per line; None for none.
        whole_game: Whether a server plays whole episodes with the agent. This and what follows is only for
            an agent behind an endpoint.
        resume: Whether the episodes of a run that was stopped are kept, and the rest is played.
        prices: Dollars per million tokens of prompts and of replies.

    Raises:
        InvalidValueError: options that exclude one another, or a value out of range.
    """

    config: Config
    checkpoint: Path | None = None
    agent: str | None = None
    num_episodes: int = 100
    exact: bool = False
    greedy: bool = False
    unmasked: bool = False
    decode: str = DECODERS[0]
    output: Path | None = None
    save_games: Path | None = None
    whole_game: bool = False
    resume: bool = False
    prices: tuple[float, float] | None = None

    @property
    def endpoint(self) -> bool:
        """Whether the agent is a model behind an endpoint."""
        return self.agent is not None and self.agent.startswith(PREFIX)

    @property
    def player(self) -> str:
        """The player: the agent's name, the checkpoint's path or the model's name."""
        return self.agent or str(self.checkpoint or self.config.model.model_name)

    @property
    def tracks(self) -> dict[str, str | None]:
        """The track of each part of the results; none for baselines, whose actions are always legal."""
        if self.agent is not None and not self.endpoint:
            return {}
        kind, env = kind_of(self.config.env), self.config.env
        masked = {"exact" if self.exact else "sampled": kind.track(env, writes=False)}
        written = {"endpoint" if self.endpoint else "replies": kind.track(env, writes=True)}
        if self.unmasked:
            return masked | written
        return written if self.replies or self.endpoint else masked

    @property
    def way(self) -> str:
        """The way to find values, for names of files."""
        if self.endpoint:
            return "whole-game" if self.whole_game else "evaluate"
        if self.exact:
            return "exact"
        return "unmasked" if self.unmasked else "text" if self.replies else "sampled"

    @property
    def replies(self) -> bool:
        """Whether replies as text are played, by a model that is here."""
        return self.unmasked or self.decode == "text" or (self._writes and self.agent is None)

    @property
    def _writes(self) -> bool:
        """Whether the policy was configured to write."""
        return self.config.env.decode == "text"

    @property
    def reply_tokens(self) -> int:
        """The most tokens of a reply."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if self._writes:
            return self.config.ppo.max_new_tokens
        replies = kind_of(self.config.env).replies
        assert replies is not None, "options of replies are refused where there are none"
        return replies.max_new_tokens

    def __post_init__(self) -> None:
        for name in ("checkpoint", "output", "save_games"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, Path(value))
        if self.checkpoint is not None and self.agent is not None:
            raise InvalidValueError("give either a checkpoint or an agent, and not both")
        if self.agent is not None:
            _check_agent(self.agent, self.config.env.env_type)
        if self.exact and self.greedy:
            raise InvalidValueError(
                "--exact shows the greedy policy beside the sampled one: leave --greedy out"
            )
        check_choice("--decode", self.decode, DECODERS, InvalidValueError)
        self._check_endpoint()
        if self.replies:
            text = "--decode text" if self.decode == "text" else "env.decode: text"
            self._check_replies("--unmasked" if self.unmasked else text)
        elif self.max_new_tokens is not None and not self.endpoint:
            raise InvalidValueError("--max_new_tokens limits replies: give --unmasked or --decode text too")
        super().__post_init__()
        check_least(self, num_episodes=1)
        check_output(self.output)
        if self.save_games is not None:
            if self.save_games.suffix != ".jsonl":
                raise InvalidValueError(f"--save_games must end in .jsonl, not {str(self.save_games)!r}")
            if self.exact:
                raise InvalidValueError("--save_games keeps what is played, and --exact plays nothing")
            if self.endpoint:
                raise InvalidValueError(
                    "--save_games is not for an agent behind an endpoint, whose episodes are kept beside the "
                    "results"
                )

    def _check_endpoint(self) -> None:
        """Raises InvalidValueError if options do not fit an agent behind an endpoint, or need one."""
        plain = {field.name: field.default for field in fields(self) if field.name in _OF_ENDPOINTS}
        if not self.endpoint:
            for name, default in plain.items():
                if getattr(self, name) != default:
                    raise InvalidValueError(f"--{name} is for an agent behind an endpoint: --agent {USAGE}")
            return
        wrong = [name for name in ("exact", "greedy", "unmasked") if getattr(self, name)]
        wrong += ["decode text"] * (self.decode == "text")
        if wrong:
            raise InvalidValueError(
                f"--{wrong[0]} needs a model that is here: an agent behind an endpoint shows only replies"
            )
        if self.prices is not None and not all(0 <= price < inf for price in self.prices):
            raise InvalidValueError(f"--prices must be at least 0, not {' and '.join(map(str, self.prices))}")

    def _check_replies(self, option: str) -> None:
        kind = kind_of(self.config.env)
        if self.unmasked and self.decode == "text":
            raise InvalidValueError(
                "give either --unmasked (masked beside text) or --decode text (only text), and not both"
            )
        if self.unmasked and self._writes:
            raise InvalidValueError(
                "--unmasked compares replies with choices behind a mask, and this policy writes (env.decode: "
                "text): leave it out"
            )
        if self.agent is not None:
            raise InvalidValueError(
                f"{option} is for a model that writes replies, not for --agent {self.agent}"
            )
        if self.exact:
            raise InvalidValueError(
                f"--exact computes values of the policy behind its mask, and {option} plays without one: "
                "leave one of them out"
            )
        if self.greedy:
            raise InvalidValueError(f"{option} shows greedy replies beside sampled ones: leave --greedy out")
        if kind.replies is None:
            others = " or ".join(other.unit for other in KINDS.values() if other.replies)
            raise InvalidValueError(f"{option} is for {others}, not for {kind.unit}")
        if self.unmasked and not kind.replies.same_tasks:
            raise InvalidValueError(
                "--unmasked plays the same games with and without a mask, and "
                f"{kind.environment} has no such pair: give --decode text, which plays "
                f"{kind.replies.environment}"
            )


def place(label: str, options: EvalOptions) -> Path:
    """Returns the first choice of a result file's name; ``label`` says what is played."""
    parts = [options.way, label]
    if options.greedy:
        parts.append("greedy")
    if options.checkpoint is None:
        parts.insert(0, options.player.strip("/").rpartition("/")[2])
    folder = options.checkpoint or Path("runs")
    return folder / f"eval-{re.sub(r'[^A-Za-z0-9_.-]+', '-', '-'.join(parts))}.json"


def _check_agent(agent: str, env_type: str) -> None:
    baselines = KINDS[env_type].baselines
    if re.fullmatch(baselines.pattern, agent):
        return
    default = env_type == EnvConfig.env_type
    with_env = "" if default else f" with --env {env_type}"
    others = [name for name, other in KINDS.items() if re.fullmatch(other.baselines.pattern, agent)]
    elsewhere = f"; {agent} goes with --env {others[0]}" if others and default else ""
    raise InvalidValueError(f"--agent must be {baselines.names}{with_env}, not {agent!r}{elsewhere}")
