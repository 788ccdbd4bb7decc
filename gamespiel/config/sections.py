"""The configuration: seven sections of typed data.

pydantic checks every section when it is made, also by ``dataclasses.replace``. The line of a key is the only
place for its type, range, default and help text. Error messages, ``--help`` and ``configs/schema.json`` are
derived from it.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, PositiveFloat
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import LISTED, ONE, STRICT, Count, Index, Many, Seed, Share, key
from gamespiel.agents.hyperparameters import Hyperparameters, LoraSettings, ModelSettings, SelfPlaySettings
from gamespiel.kinds import KINDS
from gamespiel.kinds.keys import EnvKeys, Name, Opponents, TaskRange
from task_gym.samplers.failures import REPLAYS
from task_gym.samplers.stages import THRESHOLD


@dataclass(frozen=True, config=STRICT)
class ModelConfig(ModelSettings):
    """The base model."""


@dataclass(frozen=True, config=STRICT)
class LoraConfig(LoraSettings):
    """The adapters that are trained."""

    lora_dropout: Share = key(0.0, "accepted; 0 wherever a probability ratio is taken")


if TYPE_CHECKING:
    EnvConfig = EnvKeys  # a kind's own keys are read only in its file
else:
    # Fields are in the order of the last base first.
    @dataclass(frozen=True, config=STRICT)
    class EnvConfig(*(kind.keys for kind in reversed(KINDS.values()))):
        """Tasks, and how they are played: the keys of all kinds of task."""

        env_type: Literal[tuple(KINDS)] = key(
            EnvKeys.env_type, f"kind of task: {' or '.join(kind.unit for kind in KINDS.values())}"
        )


# Strict, it would refuse the mapping that a file has.
@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Stage:
    """One stage of a curriculum."""

    name: str
    task_id_range: TaskRange | None = None
    opponent: Opponents | None = None
    threshold: Share | None = None
    task_ids: Many[Index | TaskRange] = ()
    level: Count | None = None
    family: str | None = None
    min_episodes: Count | None = None

    def __post_init__(self) -> None:
        if self.task_id_range is not None and self.task_ids:
            raise ValueError("must have task_id_range or task_ids, and not both")


def _check_rise(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] >= bounds[1]:
        raise ValueError("must be [first, last] with first < last")
    return bounds


@dataclass(frozen=True, config=STRICT)
class CurriculumConfig:
    """Which tasks, when: stages in order, and replay of failures."""

    failure_replay_prob: Share | None = key(
        None, f"chance that an episode replays a failure (null: {REPLAYS} with stages, else 0)"
    )
    failure_buffer_size: Count = key(1000, "failures that are kept")
    max_replays: Count | None = key(10, "replays after which a failure is dropped (null: never)")
    progression_window: Count = key(100, "episodes that a stage's success rate is taken over")
    stages: Many[Stage] = key(
        (),
        "of each stage: name; task_id_range or task_ids (null: those of env), in traces also level and "
        "family; opponent (null: that of env); "
        f"threshold (null: {THRESHOLD:.2f}); min_episodes (null: a window)",
    )
    sampler: Literal["stages", "uniform"] = key(
        "stages", "what draws from the stages: stages, one after the other; uniform, each equally often"
    )
    promote: Literal["rate", "confidence"] = key(
        "rate", "what must reach the threshold: the success rate, or the lower end of its 95% interval"
    )
    earlier_share: Share = key(0.0, "share of episodes from earlier stages")
    demote: Share | None = key(None, "success rate below which the stage before returns (null: none)")
    success_scores: dict[Name, Annotated[float, Field(ge=0, lt=1)]] = key(
        {}, "by game or task id: the score above which an episode is a success, in place of 0.5"
    )

    unlist_steps: Annotated[tuple[Index, Index], LISTED, AfterValidator(_check_rise)] | None = key(
        None,
        "[first, last]: the share of games whose prompts list the legal actions falls from 1 at the first "
        "step to 0 at the last, and env.list_actions must be false (null: as env.list_actions says)",
    )

    @property
    def replays(self) -> float:
        """The chance that an episode replays a failure, also if none was given."""
        if self.failure_replay_prob is not None:
            return self.failure_replay_prob
        return REPLAYS if self.stages else 0.0


@dataclass(frozen=True, config=STRICT)
class RunConfig:
    """The run itself."""

    seed: Seed = key(0, "seed of everything random")
    output_dir: str | None = key(None, "folder of the results (null: a new folder in runs/)")
    init_from: str | None = key(None, "a run or checkpoint whose weights are the start (null: untrained)")
    checkpoint_every: Count = key(500, "steps between checkpoints")
    checkpoint_minutes: PositiveFloat | None = key(
        None, "minutes after which a step ends with a checkpoint, too (null: only every so many steps)"
    )
    keep_checkpoints: Count = key(3, "checkpoints that are kept; older ones are removed")
    eval_games: Index = key(200, "episodes per seat before and after training (0: none)")
    eval_steps: Count | None = key(None, "steps between evaluations while training (null: none)")
    eval_episodes: Count = key(50, "episodes per seat, and per opponent, of an evaluation while training")
    eval_seconds: PositiveFloat | None = key(
        None, "seconds after which an evaluation while training begins no further episodes (null: no limit)"
    )
    eval_opponents: Many[Name] = key((), "opponents of evaluations while training (none: those of env)")
    eval_task_ids: Many[Index | TaskRange] = key(
        (), "task ids that training never draws, and evaluations while training do (none: those of env)"
    )
    metric_for_best_model: Literal["score", "success"] = key(
        "score", "the measure by which a checkpoint is the best, and is kept"
    )
    early_stopping_patience: Count | None = key(
        None, "evaluations without a better measure after which the run ends (null: it goes on)"
    )
    exact_every: Index | None = key(
        None,
        "steps between exact evaluations (null: only before and after training, in small games; 0: none)",
    )
    report_to: Annotated[Many[Literal["none", "tensorboard", "wandb", "trackio"]], ONE] = key(
        (), "where metrics go beside metrics.jsonl: tensorboard, wandb, trackio"
    )
    grace_seconds: PositiveFloat = key(
        8.0, "seconds that a step may take to end after SIGTERM (docker stop kills after 10)"
    )
    device: str = key("auto", "auto, cpu, cuda, cuda:1, ...")
    num_threads: Count | None = key(
        None, "CPU threads (null: torch decides; after a resume as many as before)"
    )
    env_threads: Count | None = key(None, "threads in which opponents search (null: one per core)")
    env_workers: Index = key(0, "processes that play the environments (0: this one does)")
    ray_address: str | None = key(
        None, "address of the Ray cluster on which they are: auto, or host:6379 (null: this machine)"
    )
    env_seconds: PositiveFloat = key(
        600.0,
        "seconds that a worker may take for a step of an environment, before another one plays it again",
    )
    use_vllm: bool = key(False, "sample from vLLM servers, whose adapters follow the run's")
    vllm_base_url: Many[str] | str | None = key(None, "URL of the server, or several of servers alike")
    vllm_adapter_dir: str | None = key(
        None, "folder of adapters that trainer and servers see at one path (null: one of this machine's)"
    )
    vllm_gap_limit: PositiveFloat | None = key(
        None, "mean gap to the servers' log-probabilities, in nats, that stops a run (null: by model.dtype)"
    )
    imports: Many[str] = key((), "modules of your own that register opponents, games and rewards")


@dataclass(frozen=True, config=STRICT)
class Config:
    """Everything that decides a run."""

    model: ModelConfig = ModelConfig()
    lora: LoraConfig = LoraConfig()
    ppo: Hyperparameters = Hyperparameters()
    env: EnvConfig = EnvConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    self_play: SelfPlaySettings = SelfPlaySettings()
    run: RunConfig = RunConfig()
