"""Words of other libraries for settings: those with the meaning of one of our keys, and those without.

A word that means the same, in the same unit, is taken as our key, with a notice. Any other word is refused:
the message says what differs and names the nearest key. The table of docs/configuration.md is this one.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gamespiel.errors import UnknownKeyError

HF, PEFT, SB3, TRL, CLEANRL = "Hugging Face", "PEFT", "Stable-Baselines3", "TRL", "CleanRL"


class Word(NamedTuple):
    """A setting's name in another library.

    Attributes:
        word: The name there.
        of: The libraries that have it.
        key: Our key with the same meaning, or the nearest one; "" if there is none.
        differs: The difference to ``key``, or the reason why there is no such key; "" if they mean the same.
        harmless: Values that ask for what is so here anyway: with them the word is left out.
    """

    word: str
    of: str
    key: str = ""
    differs: str = ""
    harmless: tuple[Any, ...] = ()


_STEP = "a step here plays ppo.batch_size episodes and learns from all their turns"
_SAMPLING = "the policy samples from its whole distribution, or PPO's ratios would be wrong"
_WHOLE = "a step plays a number of whole episodes, as many at once as fit"
_MIXED = "with weights in float32; the key is the type of the base model's weights"
_NO_DATA = "tasks come from the env section, not from a data set"
_WHOLE_BASE = (
    "a base model in 4 bits with adapters fits one card, up to 32 billion parameters, and ranks (`torchrun`) "
    "are data-parallel, each with the whole base"
)
_FILES = "each step is a row of metrics.jsonl in the run's folder"
_VLLM = "a server is started apart from the run, with the command of `gamespiel vllm-command`"
_ADAPTERS = "the adapters are plain LoRA, without further options"
_REPLIES = "it counts replies; the key, tokens per forward"
_REWARDS = "advantages are normalised, rewards not"
_TURNS = "it counts episodes; the key counts turns, and ppo.tokens_per_backward bounds memory"
_EACH = (
    "it counts turns per environment; the key counts whole episodes (batch_size there is ppo.mini_batch_size "
    "here, in turns)"
)
_ADAMW = "the optimizer is AdamW; its keys are ppo.adam_beta1 and ppo.adam_beta2"
_KL = "a fixed weight; set also ppo.adaptive_kl: false, or the weight is steered to ppo.target_kl"

_SAME = (
    ("lora_r", TRL, "lora.r"),
    ("lora_rank", TRL, "lora.r"),
    ("lora_target_modules", TRL, "lora.target_modules"),
    ("lr", "PyTorch", "ppo.learning_rate"),
    ("lr_scheduler_type", HF, "ppo.lr_schedule"),
    ("num_ppo_epochs", TRL, "ppo.ppo_epochs"),
    ("num_iterations", TRL, "ppo.ppo_epochs"),
    ("n_epochs", SB3, "ppo.ppo_epochs"),
    ("update_epochs", CLEANRL, "ppo.ppo_epochs"),
    ("num_mini_batches", TRL, "ppo.num_minibatches"),
    ("clip_range", SB3, "ppo.cliprange"),
    ("clip_coef", CLEANRL, "ppo.cliprange"),
    ("epsilon", TRL, "ppo.cliprange"),
    ("gae_lambda", f"{SB3}, {CLEANRL}", "ppo.lam"),
    ("adap_kl_ctrl", TRL, "ppo.adaptive_kl"),
    ("response_length", TRL, "ppo.max_new_tokens"),
    ("max_completion_length", TRL, "ppo.max_new_tokens"),
    ("missing_eos_penalty", TRL, "ppo.cut_penalty"),
    ("save_total_limit", HF, "run.keep_checkpoints"),
    ("model_name_or_path", f"{HF}, {TRL}", "model.model_name"),
    ("pretrained_model_name_or_path", HF, "model.model_name"),
    ("base_model_name_or_path", PEFT, "model.model_name"),
    ("torch_dtype", f"{HF}, {TRL}", "model.dtype"),
    ("load_in_4bit", f"{HF}, {TRL}", "model.use_4bit"),
    ("load_in_8bit", f"{HF}, {TRL}", "model.use_8bit"),
    ("use_bnb_nested_quant", TRL, "model.use_nested_quant"),
    ("bnb_4bit_use_double_quant", HF, "model.use_nested_quant"),
    ("torch_num_threads", "PyTorch", "run.num_threads"),
)
"""Words with the meaning and the unit of our key: the word, its library, the key."""

_OTHER = (
    # How long, and how much at once.
    Word("max_steps", HF, "ppo.num_train_steps", f"it counts optimizer steps; {_STEP}", (-1,)),
    Word("num_train_epochs", HF, "ppo.num_train_steps", f"it counts passes over a data set; {_STEP}"),
    Word("total_timesteps", f"{SB3}, {CLEANRL}", "ppo.num_train_steps", f"it counts turns; {_STEP}"),
    Word("total_episodes", TRL, "ppo.num_train_steps", f"it counts episodes; {_STEP}"),
    Word("per_device_train_batch_size", f"{HF}, {TRL}", "ppo.mini_batch_size", _TURNS),
    Word("num_envs", f"{SB3}, {CLEANRL}", "ppo.batch_size", _WHOLE),
    Word("n_envs", SB3, "ppo.batch_size", _WHOLE),
    Word("n_steps", SB3, "ppo.batch_size", _EACH),
    Word("num_steps", CLEANRL, "ppo.batch_size", "it counts turns per environment; the key, whole episodes"),
    Word("num_generations", TRL, "ppo.batch_size", "PPO has a critic, and no groups of replies"),
    Word("local_rollout_forward_batch_size", TRL, "ppo.tokens_per_forward", _REPLIES),
    # The learning rule.
    Word("kl_coef", TRL, "ppo.init_kl_coef", _KL),
    Word("beta", TRL, "ppo.init_kl_coef", _KL),
    Word("target", TRL, "ppo.target_kl", "it is the KL of a whole reply; the key, per decision"),
    Word("horizon", TRL, "ppo.kl_horizon", "it counts episodes; the key, turns"),
    Word("cliprange_value", TRL, "ppo.vf_coef", "the value loss is not clipped"),
    Word("clip_range_vf", SB3, "ppo.vf_coef", "the value loss is not clipped", (None,)),
    Word("epsilon_high", TRL, "ppo.cliprange", "the ratio is clipped alike on both sides", (None,)),
    Word("whiten_rewards", TRL, "ppo.normalize_advantage", _REWARDS, (False,)),
    Word("scale_rewards", TRL, "ppo.normalize_advantage", _REWARDS, (False, "none")),
    Word("warmup_steps", HF, "ppo.lr_warmup_steps", f"it counts optimizer steps; {_STEP}", (0,)),
    Word(
        "warmup_ratio", HF, "ppo.lr_warmup_steps", "it is a share of the run; the key counts steps", (0, 0.0)
    ),
    Word("weight_decay", HF, "", "adapters are trained without weight decay", (0, 0.0)),
    Word("adam_epsilon", HF, "", "it is 1e-8", (1e-8,)),
    Word("optim", HF, "", _ADAMW, ("adamw_torch", "adamw_torch_fused")),
    Word("loss_type", TRL, "", "the loss is PPO's"),
    Word("use_sde", SB3, "", "actions are discrete", (False,)),
    Word("reward_model_path", TRL, "env.reward", "games and programs pay the reward, no model does"),
    Word("reward_funcs", TRL, "env.reward", "games and programs pay the reward"),
    # Replies.
    Word("top_p", HF, "", _SAMPLING, (1, 1.0, None)),
    Word("top_k", HF, "", _SAMPLING, (0, -1, None)),
    Word("min_p", HF, "", _SAMPLING, (0, 0.0, None)),
    Word("repetition_penalty", HF, "", _SAMPLING, (1, 1.0, None)),
    Word("max_length", HF, "ppo.max_new_tokens", "it counts the prompt too", (None,)),
    Word("max_prompt_length", TRL, "", "prompts are never cut", (None,)),
    Word("stop_token", TRL, "", "a reply ends with the model's end of turn", ("eos", None)),
    Word("vllm_mode", TRL, "run.use_vllm", _VLLM),
    Word("vllm_server_base_url", TRL, "run.vllm_base_url", _VLLM, (None,)),
    Word("vllm_gpu_memory_utilization", TRL, "", _VLLM),
    # The model and its adapters.
    Word("bf16", HF, "model.dtype", f"it computes in bfloat16 {_MIXED}", (False, None)),
    Word("fp16", HF, "model.dtype", f"it computes in float16 {_MIXED}", (False, None)),
    Word("bnb_4bit_quant_type", f"{HF}, {TRL}", "model.use_4bit", "4 bits are always NF4", ("nf4",)),
    Word("attn_implementation", f"{HF}, {TRL}", "", "attention is PyTorch's own", ("sdpa", None)),
    Word("trust_remote_code", f"{HF}, {TRL}", "", "no code of a model's repository is run", (False,)),
    Word("use_peft", TRL, "", "adapters are always trained", (True,)),
    Word("bias", PEFT, "", _ADAPTERS, ("none",)),
    Word("task_type", PEFT, "", _ADAPTERS, ("CAUSAL_LM",)),
    Word("lora_task_type", TRL, "", _ADAPTERS, ("CAUSAL_LM",)),
    Word("peft_type", PEFT, "", _ADAPTERS, ("LORA",)),
    Word("use_rslora", f"{PEFT}, {TRL}", "lora.lora_alpha", _ADAPTERS, (False,)),
    Word("use_dora", f"{PEFT}, {TRL}", "", _ADAPTERS, (False,)),
    Word("modules_to_save", PEFT, "lora.target_modules", _ADAPTERS, (None,)),
    Word("init_lora_weights", PEFT, "", _ADAPTERS, (True,)),
    # The run.
    Word("save_steps", HF, "run.checkpoint_every", f"it counts optimizer steps; {_STEP}"),
    Word("save_strategy", HF, "run.checkpoint_every", "checkpoints are saved every so many steps"),
    Word("eval_strategy", HF, "run.eval_steps", "a run is evaluated every so many steps"),
    Word("per_device_eval_batch_size", HF, "run.eval_games", "it counts replies; the key, episodes per seat"),
    Word("logging_steps", HF, "", _FILES, (1,)),
    Word("logging_dir", HF, "run.output_dir", _FILES, (None,)),
    Word("logging_strategy", HF, "", _FILES, ("steps",)),
    Word("tensorboard_log", SB3, "run.output_dir", _FILES, (None,)),
    Word("wandb_project_name", CLEANRL, "", _FILES),
    Word("track", CLEANRL, "", _FILES, (False,)),
    Word("verbose", SB3, "", "a dashboard shows each step"),
    Word("run_name", HF, "run.output_dir", "a run is named by its folder", (None,)),
    Word("exp_name", f"{CLEANRL}, {TRL}", "run.output_dir", "a run is named by its folder"),
    Word("overwrite_output_dir", HF, "run.output_dir", "no run overwrites another", (False,)),
    Word("resume_from_checkpoint", HF, "", "the option --resume RUN goes on with a run", (None, False)),
    Word("load_best_model_at_end", HF, "run.eval_steps", "the best one is kept, as RUN@best", (False,)),
    Word("greater_is_better", HF, "run.metric_for_best_model", "more is better", (True,)),
    Word("push_to_hub", HF, "", "nothing is uploaded", (False,)),
    Word("use_cpu", HF, "run.device", "the key names the device, as run.device: cpu", (False,)),
    Word("no_cuda", HF, "run.device", "the key names the device, as run.device: cpu", (False,)),
    Word("deepspeed", HF, "model.use_4bit", _WHOLE_BASE, (None,)),
    Word("fsdp", HF, "model.use_4bit", _WHOLE_BASE, ("", None)),
    Word("fsdp_config", HF, "model.use_4bit", _WHOLE_BASE, (None,)),
    Word("shard", "FSDP", "model.use_4bit", _WHOLE_BASE),
    Word("ddp_find_unused_parameters", HF, "", "ranks add their gradients without DDP", (None,)),
    Word("torch_compile", HF, "", "models run as they are", (False,)),
    Word("dataset_name", TRL, "env.task_ids", _NO_DATA),
    Word("dataloader_num_workers", HF, "", _NO_DATA, (0,)),
    Word("remove_unused_columns", HF, "", _NO_DATA),
    Word("dataset_num_proc", TRL, "", _NO_DATA, (None,)),
    Word("num_sample_generations", TRL, "", "the dashboard shows an episode of each step", (0,)),
    Word("log_with", TRL, "", _FILES, (None,)),
    Word("kl_penalty", TRL, "ppo.kl_estimator", "the KL is exact, or estimated as the key says", ("full",)),
    Word("max_seq_length", TRL, "ppo.max_new_tokens", "it counts the prompt too", (None,)),
    Word("do_sample", HF, "", "the policy always samples in training", (True,)),
    Word("bnb_4bit_compute_dtype", HF, "model.dtype", "layers in 4 bits compute in the key's type"),
    Word("env_id", CLEANRL, "env.game", "the key is a game's name, not the id of an environment"),
    Word("policy", SB3, "model.model_name", "the policy is a language model"),
)

WORDS: Mapping[str, Word] = {word.word: word for word in (*(Word(*row) for row in _SAME), *_OTHER)}
"""Every word by itself."""

SAME_NAME = (
    Word("batch_size", SB3, "ppo.batch_size", "there turns per optimizer step (here ppo.mini_batch_size)"),
    Word("target_kl", SB3, "ppo.target_kl", "there the KL at which epochs end early (here ppo.max_step_kl)"),
    Word("eval_steps", HF, "run.eval_steps", "there optimizer steps (here of ppo.batch_size episodes)"),
    Word(
        "gradient_accumulation_steps",
        f"{HF}, {TRL}",
        "ppo.gradient_accumulation_steps",
        "there forwards of so many episodes (here mini-batches of ppo.mini_batch_size turns)",
    ),
)
"""Our keys that mean something else in another library. Beside a word of that library, a notice says so."""


SHORT = {"model": "model.model_name", "steps": "ppo.num_train_steps", "epochs": "ppo.ppo_epochs"}
"""Words that people write as an option, each with the key that they mean."""


def explain_word(given: str, source: str, word: Word) -> UnknownKeyError:
    """Returns the error for a word that differs from every key.

    Args:
        given: The key as it was given, with its section if it has one.
        source: "key in mine.json:" or "option".
        word: The table's row.
    """
    nearest = f"; the nearest key is {word.key!r}" if word.key else "; leave it out"
    return UnknownKeyError(f"unknown {source} {given!r} ({word.of}): {word.differs}{nearest}")


def notices_of_words(prefix: str, taken: Iterable[Word], keys: Iterable[str]) -> list[str]:
    """Returns a sentence for each word that was taken as a key, or left out, and for keys of two meanings.

    Args:
        prefix: Text before the word: "mine.json: " or "--".
        taken: The words that were taken or left out.
        keys: All keys that the layer sets, as "ppo.batch_size".
    """
    taken, keys = list(taken), set(keys)
    found = [
        f"{prefix}{word.word} is left out, because it changes nothing: {word.differs}."
        if word.differs
        else f"{prefix}{word.word} ({word.of}) is taken as {word.key}."
        for word in taken
    ]
    libraries = {library for word in taken for library in word.of.split(", ")}
    found += [
        f"{prefix}{word.word} means another thing in {word.of}: {word.differs}. It is taken as {word.key}."
        for word in SAME_NAME
        if word.key in keys and libraries & set(word.of.split(", "))
    ]
    return found


def render_words() -> str:
    """Returns the table of the docs in Markdown: word, libraries, our key or the nearest, what differs."""
    lines = ["| word | library | key | difference |", "|---|---|---|---|"]
    for word in sorted((*WORDS.values(), *SAME_NAME), key=lambda word: word.word):
        key = f"`{word.key}`" if word.key else "none"
        lines.append(
            f"| `{word.word}` | {word.of} | {key} | {word.differs or 'none: it is taken as the key'} |"
        )
    return "\n".join(lines) + "\n"
