"""A learner's settings: the sections ``model``, ``lora``, ``ppo`` and ``self_play`` of a configuration.

Each number has its type, range, default and help text here, and nowhere else.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, PositiveFloat, ValidationError
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import STRICT, Count, Index, Many, Shape, Share, key
from task_gym.errors import nearest

S = TypeVar("S")

ALL_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear layers of a decoder block, by the names that most families give them."""


@dataclass(frozen=True, config=STRICT)
class ModelSettings:
    """The base model, by name: a policy can be rebuilt from its settings."""

    model_name: str = key("tiny", "'tiny' (comes with GameSpiel), a hub name, a folder or a .gguf file")
    use_4bit: bool = key(False, "keep the base model's linear layers in 4 bits (NF4)")
    use_8bit: bool = key(False, "keep them in 8 bits (int8)")
    use_nested_quant: bool = key(False, "with use_4bit: keep the constants of 4 bits in 8 bits")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = key("auto", "type of the base model's weights")
    random_weights: bool = key(False, "same architecture, freshly initialised")
    reading: Literal["auto", "shared", "padded"] = key(
        "auto", "shared: read once what prompts begin with; padded: read each alone; auto: shared if it can"
    )
    gradient_checkpointing: bool = key(False, "less memory in updates, for a third more time")


@dataclass(frozen=True, config=STRICT)
class LoraSettings:
    """The low-rank adapters that are trained (Hu et al. 2021, arXiv:2106.09685).

    There is no dropout: it would make old and new log-probabilities differ with no update at all.
    """

    r: Count = key(16, "rank of the adapters")
    lora_alpha: PositiveFloat = key(32.0, "scale: alpha / r multiplies the adapter")
    target_modules: Many[str] = key(ALL_LINEAR, "layers that get an adapter")


@dataclass(frozen=True, config=STRICT)
class Hyperparameters:
    """The learning rule."""

    learning_rate: PositiveFloat = key(1e-5, "learning rate of the adapters")
    critic_lr_multiplier: PositiveFloat = key(10.0, "the value head's learning rate / learning_rate")
    batch_size: Count = key(8, "episodes per step")
    mini_batch_size: Count = key(1, "an optimizer step has this × gradient_accumulation_steps turns")
    gradient_accumulation_steps: Count = key(
        16, "mini-batches per optimizer step; tokens_per_backward alone splits its forwards"
    )
    num_minibatches: Index = key(
        0, "optimizer steps per pass, whatever the number of turns (0: by mini_batch_size)"
    )
    minibatch_unit: Literal["turn", "prompt"] = key(
        "turn", "what optimizer steps draw: turns, or prompts with all their turns, each read once a pass"
    )
    tokens_per_forward: Count = key(16384, "most tokens per forward pass without gradients")
    tokens_per_backward: Count = key(4096, "most tokens per forward pass with gradients")
    ppo_epochs: Count = key(4, "passes over a step's turns")
    cliprange: PositiveFloat = key(0.2, "the ratio is clipped to 1 ± this")
    sampler_weight_cap: PositiveFloat | None = key(
        None, "cap of the importance weight between sampler and scorer (null: no weight)"
    )
    vf_coef: NonNegativeFloat = key(0.1, "weight of the value loss")
    ent_coef: NonNegativeFloat = key(0.0, "weight of the entropy bonus")
    ent_schedule: Shape = key("constant", "schedule of the entropy bonus")
    legal_coef: NonNegativeFloat = key(0.1, "weight of the loss of probability on illegal answers")
    legal_target: Annotated[float, Field(gt=0, le=1)] = key(
        0.999, "probability of legal answers that is enough"
    )
    init_kl_coef: NonNegativeFloat = key(0.2, "first weight of the KL to the base model")
    target_kl: PositiveFloat = key(0.1, "KL to the base model that adaptive_kl steers to")
    max_step_kl: PositiveFloat | None = key(
        None, "KL from the policy that played the step, at which its epochs end early (null: never)"
    )
    adaptive_kl: bool = key(True, "steer the KL weight to target_kl")
    kl_horizon: Count = key(10000, "turns over which the KL weight reacts")
    magnet_coef: NonNegativeFloat = key(0.0, "weight of the KL to the magnet, a slower copy of the policy")
    magnet_schedule: Shape = key("constant", "schedule of that weight, down to magnet_end")
    magnet_end: NonNegativeFloat = key(0.0, "the weight at the end of the schedule")
    magnet_every: Index = key(0, "steps between the magnet's moves (0: it stays where the run began)")
    magnet_rate: Annotated[float, Field(gt=0, le=1)] = key(
        1.0, "share of the way to the policy that a move of the magnet goes"
    )
    average_decay: Annotated[float, Field(ge=0, lt=1)] = key(
        0.0, "decay of the moving average of adapters that is the run's result (0: the newest is)"
    )
    gamma: Annotated[float, Field(gt=0, le=1)] = key(0.99, "discount")
    lam: Share = key(0.95, "GAE's lambda")
    adam_beta1: Annotated[float, Field(ge=0, lt=1)] = key(0.9, "how long Adam remembers gradients")
    adam_beta2: Annotated[float, Field(ge=0, lt=1)] = key(0.999, "how long Adam remembers squared gradients")
    num_train_steps: Count = key(10000, "steps to train")
    max_grad_norm: PositiveFloat = key(1.0, "actor's and critic's gradients are each clipped to this")
    critic_warmup_steps: Index = key(0, "first steps that train the critic alone")
    lr_warmup_steps: Index = key(0, "steps after them in which the learning rate rises from 0")
    lr_schedule: Shape = key("constant", "schedule of the learning rate")
    temperature: PositiveFloat = key(0.7, "temperature of text replies; games choose at temperature 1")
    max_new_tokens: Count = key(256, "tokens at which a text reply is cut")
    cut_penalty: NonNegativeFloat = key(0.0, "what a text reply that is cut loses of its reward")
    kl_estimator: Literal["exact", "k3"] = key(
        "exact", "KL of text replies: over the vocabulary, or estimated from the sampled tokens (k3)"
    )
    advantages: Literal["auto", "gae", "exact"] = key(
        "auto", "from what: the critic (gae), or the whole game's tree (exact); auto: exact if it can be"
    )
    all_actions: bool = key(
        False, "with exact advantages: learn from every legal action of a turn, not from the sampled one"
    )
    action_floor: Annotated[float, Field(ge=0, le=1)] = key(
        0.0,
        "with ppo.all_actions: an action better than the policy counts as one of this probability at least",
    )
    advantage_scale: PositiveFloat = key(0.2, "what exact advantages are divided by, in units of the reward")
    tree_share: Annotated[float, Field(gt=0, le=1)] = key(
        1.0,
        "with exact advantages: the part of the tree that a step reads anew, besides the states it played",
    )
    terms: Many[str] = key((), "your own terms of the loss, as my_module:my_term (docs/own.md)")
    normalize_advantage: bool = key(True, "normalise advantages of gae to mean 0 and deviation 1")


@dataclass(frozen=True, config=STRICT)
class SelfPlaySettings:
    """Self-play: who plays the other seats."""

    learn: Literal["both", "one"] = key(
        "both", "seats that learn: both (all of a zero-sum game), or one, against snapshots from a pool"
    )
    pool_pick: Literal["newest", "uniform", "win_rate"] = key(
        "uniform", "how a game's snapshot is drawn (win_rate: those that win against the policy, more often)"
    )
    pool_every: Count = key(10, "steps between snapshots that join the pool")
    pool_size: Count = key(20, "snapshots in the pool; beyond it the oldest leaves")


def with_changes(settings: S, changes: Mapping[str, Any], caller: str) -> S:
    """Returns settings of any kind with some of them changed.

    Args:
        settings: One of the classes of this module.
        changes: Values by name.
        caller: Who was given them, for the message.

    Raises:
        TypeError: a name that none of them has.
        ValueError: a value out of its range.
    """
    known = [field.name for field in dataclasses.fields(settings)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            raise TypeError(f"{caller} got an unexpected keyword argument {name!r}{nearest(name, known)}")
    try:
        return dataclasses.replace(settings, **changes)  # type: ignore[type-var]
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ValueError(f"{name}: {first['msg']}, got {first['input']!r}") from error
