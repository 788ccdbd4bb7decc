"""Words of other libraries for settings. They are no keys here: the error names the nearest key.

Most count in another unit (a step here plays ``ppo.batch_size`` episodes and learns from all their turns),
so that none is taken as a key.
"""

from collections.abc import Mapping

SYNONYMS: Mapping[str, str] = {
    word: key
    for key, words in {
        "ppo.learning_rate": "lr",
        "ppo.lr_schedule": "lr_scheduler_type",
        "ppo.lr_warmup_steps": "warmup_steps warmup_ratio",
        "ppo.num_train_steps": "steps max_steps num_train_epochs total_timesteps total_episodes",
        "ppo.batch_size": "num_envs n_envs n_steps num_steps num_generations",
        "ppo.mini_batch_size": "per_device_train_batch_size",
        "ppo.ppo_epochs": "epochs num_ppo_epochs num_iterations n_epochs update_epochs",
        "ppo.num_minibatches": "num_mini_batches",
        "ppo.cliprange": "clip_range clip_coef epsilon",
        "ppo.lam": "gae_lambda",
        "ppo.init_kl_coef": "kl_coef beta",
        "ppo.adaptive_kl": "adap_kl_ctrl",
        "ppo.kl_horizon": "horizon",
        "ppo.kl_estimator": "kl_penalty",
        "ppo.normalize_advantage": "whiten_rewards scale_rewards",
        "ppo.max_new_tokens": "response_length max_completion_length max_length max_seq_length",
        "ppo.cut_penalty": "missing_eos_penalty",
        "ppo.tokens_per_forward": "local_rollout_forward_batch_size",
        "lora.r": "lora_r lora_rank",
        "lora.target_modules": "lora_target_modules modules_to_save",
        "model.model_name": "model policy model_name_or_path pretrained_model_name_or_path "
        "base_model_name_or_path",
        "model.dtype": "torch_dtype bf16 fp16 bnb_4bit_compute_dtype",
        "model.use_4bit": "load_in_4bit bnb_4bit_quant_type fsdp fsdp_config deepspeed shard",
        "model.use_8bit": "load_in_8bit",
        "model.use_nested_quant": "use_bnb_nested_quant bnb_4bit_use_double_quant",
        "env.game": "env_id",
        "env.task_ids": "dataset_name",
        "env.reward": "reward_funcs reward_model_path",
        "run.output_dir": "run_name exp_name logging_dir tensorboard_log",
        "run.keep_checkpoints": "save_total_limit",
        "run.checkpoint_every": "save_steps save_strategy",
        "run.eval_steps": "eval_strategy load_best_model_at_end",
        "run.eval_games": "per_device_eval_batch_size",
        "run.metric_for_best_model": "greater_is_better",
        "run.device": "use_cpu no_cuda",
        "run.num_threads": "torch_num_threads",
        "run.report_to": "log_with track wandb_project_name",
        "run.use_vllm": "vllm_mode",
        "run.vllm_base_url": "vllm_server_base_url",
    }.items()
    for word in words.split()
}
"""Words of Hugging Face's libraries, PEFT, TRL, Stable-Baselines3, CleanRL and PyTorch, by themselves."""

_WHOLE_BASE = (
    ": a base model in 4 bits with adapters fits one card, up to 32 billion parameters, and ranks (torchrun)"
    " are data-parallel, each with the whole base"
)
_SAMPLING = ": the policy samples from its whole distribution, or PPO's ratios would be wrong"

REASONS: Mapping[str, str] = {
    **dict.fromkeys(("fsdp", "fsdp_config", "deepspeed", "shard"), _WHOLE_BASE),
    **dict.fromkeys(("top_p", "top_k", "min_p", "repetition_penalty"), _SAMPLING),
    **dict.fromkeys(
        ("bias", "init_lora_weights", "peft_type", "task_type", "use_dora", "use_peft", "use_rslora"),
        ": adapters are always trained, and are plain LoRA",
    ),
    **dict.fromkeys(("cliprange_value", "clip_range_vf"), ": the value loss is not clipped"),
    **dict.fromkeys(("logging_steps", "logging_strategy"), ": each step is a row of metrics.jsonl"),
    "resume_from_checkpoint": ": the option --resume RUN goes on with a run",
    "weight_decay": ": adapters are trained without weight decay",
}
"""Words that no key replaces in full, and why."""


def explain(word: str, option: bool = False) -> str | None:
    """Returns what an error says of a word after naming it; None if it is not known.

    Args:
        word: The word, without its section.
        option: Whether it was given as an option.
    """
    key, reason = SYNONYMS.get(word), REASONS.get(word)
    if key is None and reason is None:
        return None
    named = "; leave it out" if key is None else f"; did you mean '{'--' if option else ''}{key}'?"
    return f"{reason or ''}{named}"
