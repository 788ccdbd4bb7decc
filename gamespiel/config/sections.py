"""The configuration: six sections of plain, typed data. Each key says what it does and its range."""

from dataclasses import dataclass, field
from typing import Any, Literal

GameParam = str | int | float | bool
TaskRange = tuple[int, int]


def key(
    default: Any,
    doc: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> Any:
    """A field with its help text and the range its value (or each of its values) must lie in."""
    limits = {"at_least": at_least, "above": above, "at_most": at_most}
    metadata = {"doc": doc, **{name: limit for name, limit in limits.items() if limit is not None}}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class ModelConfig:
    """The base model."""

    model_name: str = key("tiny", "'tiny' (comes with GameSpiel), a hub name or a folder")
    use_4bit: bool = key(False, "load the base in 4 bits (NF4)")
    use_nested_quant: bool = key(False, "quantise the quantisation constants too")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = key("auto", "of the base's weights")
    random_weights: bool = key(False, "same architecture, freshly initialised")


@dataclass(frozen=True)
class LoraConfig:
    """The adapters that are trained."""

    r: int = key(16, "rank", at_least=1)
    lora_alpha: float = key(32.0, "scale: alpha / r multiplies the adapter", above=0)
    lora_dropout: float = key(0.0, "accepted; 0 wherever a probability ratio is taken", at_least=0, at_most=1)
    target_modules: tuple[str, ...] = key(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"), "layers that get one"
    )


@dataclass(frozen=True)
class PPOConfig:
    """The learning rule."""

    learning_rate: float = key(1e-5, "of the adapters", above=0)
    critic_lr_multiplier: float = key(10.0, "the value head's rate / learning_rate", above=0)
    batch_size: int = key(8, "episodes a step", at_least=1)
    mini_batch_size: int = key(1, "turns a forward pass", at_least=1)
    gradient_accumulation_steps: int = key(16, "forward passes an optimizer step", at_least=1)
    ppo_epochs: int = key(4, "passes over a step's turns", at_least=1)
    cliprange: float = key(0.2, "the ratio is clipped to 1 ± this", above=0)
    vf_coef: float = key(0.1, "weight of the value loss", at_least=0)
    ent_coef: float = key(0.0, "weight of the entropy bonus", at_least=0)
    ent_schedule: Literal["constant", "linear", "cosine"] = key("constant", "of the entropy bonus")
    init_kl_coef: float = key(0.2, "first weight of the KL to the base model", at_least=0)
    target_kl: float = key(0.1, "KL to the base that adaptive_kl steers to", above=0)
    adaptive_kl: bool = key(True, "steer the KL weight to target_kl")
    kl_horizon: int = key(10000, "turns over which the KL weight reacts", at_least=1)
    gamma: float = key(0.99, "discount", above=0, at_most=1)
    lam: float = key(0.95, "GAE's lambda", at_least=0, at_most=1)
    num_train_steps: int = key(10000, "steps to train", at_least=1)
    max_grad_norm: float = key(1.0, "actor's and critic's gradients are each clipped to this", above=0)
    critic_warmup_steps: int = key(0, "first steps that train the critic alone", at_least=0)
    lr_schedule: Literal["constant", "linear", "cosine"] = key("constant", "of the learning rate")
    temperature: float = key(0.7, "of text replies; games choose at temperature 1", above=0)
    normalize_advantage: bool = key(True, "to mean 0 and deviation 1")


@dataclass(frozen=True)
class EnvConfig:
    """What is played (task_id, task_ids, game or allowed_game_indices says), and how."""

    env_type: Literal["openspiel", "trace"] = key("openspiel", "games or code tracing")
    env_mode: Literal["local", "docker", "url"] = key("local", "where the environment runs")
    task_id: int | None = key(None, "one task", at_least=0)
    task_ids: tuple[int | TaskRange, ...] = key((), "tasks and [first, last] ranges", at_least=0)
    game: str | None = key(None, "an OpenSpiel game by name")
    params: dict[str, GameParam] = key({}, "the game's parameters")  # noqa: RUF009
    allowed_game_indices: tuple[int, ...] = key((), "games by index (modulo 22)", at_least=0)
    opponent: str = key("random", "random, first, or mcts, ismcts, mcts-python, also with :SIMS[xROLLOUTS]")
    seeding: Literal["openenv", "evaluate"] = key("openenv", "the protocol that expands a seed")
    rules: bool = key(True, "put the rules into each prompt")
    reward: Literal["score", "upstream"] = key("score", "what an episode pays")
    answer: Literal["id", "name"] = key(
        "id", "how actions are written: their number, or what they are called"
    )
    illegal: Literal["penalize", "forfeit", "raise"] = key("penalize", "what an illegal action does")
    max_turns: int | None = key(None, "cut an episode after so many turns", at_least=2)
    source: str = key("builtin", "traces: builtin, hub, or a JSONL or Parquet file of programs")
    level: int | None = key(None, "traces: builtin programs of this level alone", at_least=1, at_most=10)
    family: str | None = key(None, "traces: builtin programs of this family alone")
    injector: Literal["safe", "affine"] = key("safe", "traces: who puts in the debug prints")
    scoring: Literal["affine", "exact", "lines"] = key("affine", "traces: the score that is paid")
    use_vllm: bool = key(False, "sample from a vLLM server")
    vllm_base_url: str | None = key(None, "where that server is")


@dataclass(frozen=True)
class Stage:
    """One stage of a curriculum."""

    name: str
    task_id_range: TaskRange = field(metadata={"at_least": 0})
    opponent: str = "random"
    threshold: float | None = field(default=None, metadata={"at_least": 0, "at_most": 1})


@dataclass(frozen=True)
class CurriculumConfig:
    """Which tasks, when: stages that follow one another, and replay of failures."""

    failure_replay_prob: float = key(0.0, "chance that an episode replays a failure", at_least=0, at_most=1)
    failure_buffer_size: int = key(1000, "failures that are kept", at_least=1)
    progression_window: int = key(100, "episodes a stage's success rate is taken over", at_least=1)
    stages: tuple[Stage, ...] = key((), "name, task_id_range, opponent, threshold each")


@dataclass(frozen=True)
class RunConfig:
    """The run itself."""

    seed: int = key(0, "of everything random", at_least=0)
    output_dir: str | None = key(None, "where results go (null: a new folder in runs/)")
    init_from: str | None = key(None, "a run or checkpoint whose weights are the start (null: untrained)")
    checkpoint_every: int = key(500, "steps", at_least=1)
    keep_checkpoints: int = key(3, "older ones are removed", at_least=1)
    eval_games: int = key(200, "games a seat, or traces, before and after training (0: none)", at_least=0)
    exact_every: int = key(0, "steps between exact evaluations, in games small enough (0: none)", at_least=0)
    device: str = key("auto", "auto, cpu, cuda, cuda:1, ...")
    num_threads: int | None = key(None, "CPU threads (null: torch decides)", at_least=1)


@dataclass(frozen=True)
class Config:
    """Everything that decides a run."""

    model: ModelConfig = ModelConfig()
    lora: LoraConfig = LoraConfig()
    ppo: PPOConfig = PPOConfig()
    env: EnvConfig = EnvConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    run: RunConfig = RunConfig()
