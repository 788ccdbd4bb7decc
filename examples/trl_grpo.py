"""A GRPO step of TRL on the embedded model, which may play Kuhn poker by calling the tool ``play``."""

import tempfile
from functools import partial

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer, chat_template_utils

from game_gym.trl import GameSpielTRL
from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer

settings = ModelSettings("tiny")
tokenizer = load_tokenizer(settings)
tokenizer.chat_template = chat_template_utils.qwen3_chat_template  # the embedded model's has no tools
question = [{"role": "user", "content": "Play."}]
with tempfile.TemporaryDirectory() as folder:
    trainer = GRPOTrainer(
        load_base(settings, "cpu", 0),
        args=GRPOConfig(
            output_dir=folder, max_steps=1, per_device_train_batch_size=4, num_generations=2,
            max_completion_length=8, use_cpu=True, bf16=False, report_to=[], save_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"prompt": [question] * 2, "seed": [1, 2]}),
        processing_class=tokenizer,
        environment_factory=partial(GameSpielTRL, game="kuhn_poker", rules=False),
    )  # fmt: skip
    done = trainer.train()
print(f"{done.global_step} step, mean reward {done.metrics['rewards/GameSpielTRL/mean']:.3f}")

env = GameSpielTRL(game="kuhn_poker", opponent="first", rules=False)  # what a model that calls the tool sees
print(env.reset(seed=0), env.play(7), env.play(1), sep="\n\n")
print(f"reward {env.get_reward():.2f}")
