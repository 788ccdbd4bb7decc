"""The configuration: six sections of typed data.

pydantic checks every section when it is made, also by ``dataclasses.replace``. The line of a key is the only
place for its type, range, default and help text. Error messages, ``--help`` and ``configs/schema.json`` are
derived from it.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PositiveFloat
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import LISTED, STRICT, WHOLE, Count, Index, Many, Share, key
from gamespiel.agents.hyperparameters import Hyperparameters


def _in_order(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError("must be [first, last] with first <= last")
    return bounds


Level = Annotated[int, Field(ge=1, le=10), WHOLE]
TaskRange = Annotated[tuple[Index, Index], LISTED, AfterValidator(_in_order)]
GameParam = str | int | float | bool
Name = Annotated[str, BeforeValidator(str)]


@dataclass(frozen=True, config=STRICT)
class ModelConfig:
    """The base model."""

    model_name: str = key("tiny", "'tiny' (comes with GameSpiel), a hub name or a folder")
    use_4bit: bool = key(False, "load the base model in 4 bits (NF4)")
    use_nested_quant: bool = key(False, "quantise the quantisation constants too")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = key("auto", "type of the base model's weights")
    random_weights: bool = key(False, "same architecture, freshly initialised")


@dataclass(frozen=True, config=STRICT)
class LoraConfig:
    """The adapters that are trained."""

    r: Count = key(16, "rank of the adapters")
    lora_alpha: PositiveFloat = key(32.0, "scale: alpha / r multiplies the adapter")
    lora_dropout: Share = key(0.0, "accepted; 0 wherever a probability ratio is taken")
    target_modules: Many[str] = key(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "layers that get an adapter",
    )


@dataclass(frozen=True, config=STRICT)
class EnvConfig:
    """Tasks (by task_id, task_ids, game or allowed_game_indices), and how they are played."""

    env_type: Literal["openspiel", "trace"] = key("openspiel", "games or code tracing")
    env_mode: Literal["local", "docker", "url"] = key("local", "where the environment runs")
    task_id: Index | None = key(None, "one task")
    task_ids: Many[Index | TaskRange] = key((), "tasks and [first, last] ranges")
    game: str | None = key(None, "an OpenSpiel game by name")
    params: dict[Name, GameParam] = key({}, "the game's parameters")
    allowed_game_indices: Many[Index] = key((), "games by index (modulo 22)")
    opponent: str = key("random", "random, first, or mcts, ismcts, mcts-python, also with :SIMS[xROLLOUTS]")
    seeding: Literal["openenv", "evaluate"] = key("openenv", "the protocol that expands a seed")
    rules: bool = key(True, "put the rules into each prompt")
    reward: Literal["score", "upstream"] = key("score", "what an episode pays")
    answer: Literal["id", "name"] = key("id", "how an action is written: its number or its name")
    illegal: Literal["penalize", "forfeit", "raise"] = key("penalize", "what an illegal action does")
    max_turns: Annotated[int, Field(ge=2), WHOLE] | None = key(None, "cut an episode after this many turns")
    source: str = key("builtin", "traces: builtin, hub, or a JSONL or Parquet file of programs")
    level: Level | None = key(None, "traces: builtin programs of this level alone")
    family: str | None = key(None, "traces: builtin programs of this family alone")
    injector: Literal["safe", "affine"] = key("safe", "traces: who puts in the debug prints")
    scoring: Literal["affine", "exact", "lines"] = key("affine", "traces: the score that is paid")
    use_vllm: bool = key(False, "sample from a vLLM server")
    vllm_base_url: str | None = key(None, "URL of that server")


# Strict, it would refuse the mapping that a file has.
@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Stage:
    """One stage of a curriculum."""

    name: str
    task_id_range: TaskRange
    opponent: str = "random"
    threshold: Share | None = None


@dataclass(frozen=True, config=STRICT)
class CurriculumConfig:
    """Which tasks, when: stages that follow one another, and replay of failures."""

    failure_replay_prob: Share = key(0.0, "chance that an episode replays a failure")
    failure_buffer_size: Count = key(1000, "failures that are kept")
    progression_window: Count = key(100, "episodes that a stage's success rate is taken over")
    stages: Many[Stage] = key((), "name, task_id_range, opponent and threshold of each stage")


@dataclass(frozen=True, config=STRICT)
class RunConfig:
    """The run itself."""

    seed: Index = key(0, "seed of everything random")
    output_dir: str | None = key(None, "folder of the results (null: a new folder in runs/)")
    init_from: str | None = key(None, "a run or checkpoint whose weights are the start (null: untrained)")
    checkpoint_every: Count = key(500, "steps between checkpoints")
    keep_checkpoints: Count = key(3, "checkpoints that are kept; older ones are removed")
    eval_games: Index = key(200, "games per seat, or traces, before and after training (0: none)")
    exact_every: Index = key(0, "steps between exact evaluations, in games small enough (0: none)")
    device: str = key("auto", "auto, cpu, cuda, cuda:1, ...")
    num_threads: Count | None = key(None, "CPU threads (null: torch decides)")


@dataclass(frozen=True, config=STRICT)
class Config:
    """Everything that decides a run."""

    model: ModelConfig = ModelConfig()
    lora: LoraConfig = LoraConfig()
    ppo: Hyperparameters = Hyperparameters()
    env: EnvConfig = EnvConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    run: RunConfig = RunConfig()
