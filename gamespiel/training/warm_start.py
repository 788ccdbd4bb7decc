"""``gamespiel sft``: adapters learn the answers of recorded games, with TRL's trainer, before PPO."""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)
from gamespiel.report.console import make_console

# isort: split
import hashlib
import json
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel import runs
from gamespiel.agents.models.weights import describe_model
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.tokens import Tokens
from gamespiel.assembly import make_algorithm
from gamespiel.config import Config, InvalidValueError, import_own_modules
from gamespiel.environments.making import make_one_env, pin_tasks
from gamespiel.report.results import write_json
from gamespiel.report.text import print_plain
from gamespiel.training.callbacks import save_first
from gamespiel.usage import command
from task_gym.errors import MissingPackageError, TaskGymError
from task_gym.files import NO_JSON, read_file
from task_gym.wrappers import ConversationText

RESULTS = "warm_start.json"
"""The file of a run's folder that says what it learned before its first step."""


@dataclass(frozen=True)
class WarmStart:
    """The data and the settings of a warm start.

    Attributes:
        data: Files of ``gamespiel export``.
        epochs: Passes over the rows.
        learning_rate: AdamW's, which falls linearly to 0.
        batch_size: Rows of an update.
    """

    data: Sequence[Path]
    epochs: float = 2.0
    learning_rate: float = 2e-4
    batch_size: int = 32

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("learning_rate", self.learning_rate)):
            if not 0 < value < float("inf"):
                raise InvalidValueError(f"--{name}: {value} was given, allowed: a number above 0")
        if self.batch_size < 1:
            raise InvalidValueError(f"--batch_size: {self.batch_size} was given, allowed: at least 1")


class Row(NamedTuple):
    """A turn of a file.

    Attributes:
        observation: The text that was answered.
        answer: The answer.
        place: The file and the line, for errors.
    """

    observation: str
    answer: str
    place: str


class RowError(TaskGymError):
    """A row that this policy cannot learn."""


def warm_start(config: Config, start: WarmStart, console: Console | None = None) -> Path:
    """Trains the adapters on recorded answers, and writes them as a run before its first step.

    The loss is that of the answers' tokens, behind the prompts that PPO will use; prompts are not learned.
    Nothing is written before the end.

    Args:
        config: The configuration of the run that follows.
        start: What is learned.
        console: The console to print on.

    Returns:
        The run's folder, for ``--from`` and ``--resume``.

    Raises:
        MissingPackageError: TRL is not installed.
        RowError: a row is none of ``gamespiel export``, or is no answer to this configuration's prompts.
        TaskGymError: this version cannot run the configuration, or the folder is taken.
    """
    console = console or make_console()
    missing = [name for name in ("trl", "datasets") if find_spec(name) is None]
    if missing:
        raise MissingPackageError(f"sft: {' and '.join(missing)} not installed; pip install 'gamespiel[trl]'")
    config = pin_tasks(import_own_modules(config))
    runs.check_free(config)
    rows = [row for path in start.data for row in read_rows(path)]
    _check_form(config, rows)
    print_plain(console, f"loading {describe_model(config.model.model_name)}")
    model = make_algorithm(config)
    losses = _learn(model, encode_rows(model.policy, rows), start, config, console)
    with runs.create(config) as folder:
        save_first(config, model, folder)
        files = {str(path): hashlib.sha256(read_file(path)).hexdigest() for path in start.data}
        facts = {"rows": len(rows), "files": files, "losses": losses}
        numbers = {name: getattr(start, name) for name in ("epochs", "learning_rate", "batch_size")}
        write_json(facts | numbers, folder / RESULTS)
    print_plain(
        console,
        f"{len(rows):,} answers learned: loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last\n"
        f"{command('eval')} --checkpoint {folder}  # evaluate\n"
        f"{command('train')} --from {folder}  # go on with PPO",
    )
    return folder


def read_rows(path: Path) -> list[Row]:
    """Returns the rows of a file.

    Raises:
        RowError: a line is no row of ``gamespiel export``, or there is none.
    """
    rows = []
    # Not splitlines: a reply may hold a line separator that JSON writes as it is.
    for number, line in enumerate(read_file(path).removesuffix(b"\n").split(b"\n"), 1):
        place = f"{path}, line {number}"
        try:
            messages = json.loads(line.decode())["messages"]
            *asked, answer = ({"role": str(m["role"]), "content": str(m["content"])} for m in messages)
            roles = " ".join(message["role"] for message in (*asked, answer))
            if not re.fullmatch("(system )?user assistant( user assistant)*", roles):
                raise ValueError("its roles are others")
            # The last question, with the conversation before it if there is one.
            text = asked[-1]["content"]
            observation = text if len(asked) == 1 else ConversationText(text, tuple(asked))
            rows.append(Row(observation, answer["content"], place))
        except (*NO_JSON, KeyError, TypeError) as error:
            raise RowError(f"{place} is no row of `gamespiel export`: {error!r}") from error
    return rows


def _check_form(config: Config, rows: Sequence[Row]) -> None:
    """Raises RowError if the prompts begin otherwise than the configuration's, as with and without rules."""
    env = make_one_env(config.env)
    prompt, _ = env.reset(seed=0)
    env.close()
    for row in rows:
        opening, expected = _opening(row.observation), _opening(prompt)
        if _beginning(opening) != _beginning(expected):
            raise RowError(
                f"{row.place} begins with {opening[:40]!r}, and the run's prompts with "
                f"{expected[:40]!r}: record games with the same env.rules and env.conversation, or "
                "change them"
            )


def _opening(text: str) -> str:
    """Returns a text, or the first message of its conversation."""
    return text.messages[0]["content"] if isinstance(text, ConversationText) and text.messages else str(text)


def _beginning(text: str) -> str:
    """Returns a text's first words, without what differs between tasks."""
    return re.split(r"[:\d\n]", text.lstrip(), maxsplit=1)[0]


def encode_rows(policy: LLMPolicy, rows: Sequence[Row]) -> list[tuple[Tokens, Tokens]]:
    """Returns the tokens of each row's prompt and of its answer, as the policy reads and writes them.

    Raises:
        RowError: an answer is not one that the policy gives.
    """
    prompts = policy.prompts([row.observation for row in rows])
    return [(prompt, _encode_answer(policy, row)) for prompt, row in zip(prompts, rows, strict=True)]


def _encode_answer(policy: LLMPolicy, row: Row) -> Tokens:
    said = f"{row.place}: the answer is {row.answer!r:.60}"
    if policy.decode == "text":
        return policy.codec.encode_answer(row.answer)
    if policy.answer == "name":
        if row.answer not in row.observation:
            raise RowError(f"{said}, and the policy answers with a name that its prompt has")
        return policy.codec.encode_answer(row.answer)
    n_actions = int(policy.action_space.n)  # type: ignore[attr-defined]
    if not re.fullmatch(r"\d{1,9}", row.answer) or not int(row.answer) < n_actions:
        raise RowError(f"{said}, and the policy answers with a number below {n_actions}")
    return policy.codec.encode_action(int(row.answer))


def _learn(
    model: LLMPPO, rows: Sequence[tuple[Tokens, Tokens]], start: WarmStart, config: Config, console: Console
) -> list[float]:
    """Trains the adapters in place; returns the mean losses of parts of the training, in nats per token."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    longest = max(len(prompt) + len(answer) for prompt, answer in rows)
    parts = math.ceil(start.batch_size / max(1, config.ppo.tokens_per_backward // longest))
    at_once = math.ceil(start.batch_size / parts)
    updates = math.ceil(start.epochs * math.ceil(math.ceil(len(rows) / at_once) / parts))

    def make_settings(unused: str) -> SFTConfig:
        return SFTConfig(
            # A folder is made in any case, though there are no checkpoints and no reports.
            output_dir=unused, save_strategy="no", report_to="none", disable_tqdm=True,
            num_train_epochs=start.epochs, learning_rate=start.learning_rate, lr_scheduler_type="linear",
            per_device_train_batch_size=at_once, gradient_accumulation_steps=parts,
            logging_steps=max(1, updates // 20), seed=config.run.seed, max_length=None, packing=False,
            gradient_checkpointing=config.model.gradient_checkpointing,
            max_grad_norm=config.ppo.max_grad_norm,
            # The policy has its types already.
            bf16=False, fp16=False, use_cpu=model.device.type == "cpu",
        )  # fmt: skip

    data = Dataset.from_dict(
        {
            "input_ids": [[*prompt, *answer] for prompt, answer in rows],
            "labels": [[-100] * len(prompt) + [*answer] for prompt, answer in rows],
        }
    )
    losses: list[float] = []

    class Shown(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            logs = more["logs"]
            if "loss" in logs:  # or it is the last log, of the whole training
                losses.append(float(logs["loss"]))
                console.print(f"  update {state.global_step:,} of {updates:,}  loss {losses[-1]:.3f}")

    console.print(f"learning {len(rows):,} answers in {updates:,} updates")
    with TemporaryDirectory() as unused, warnings.catch_warnings():
        # TRL's own default has a name that transformers gives up.
        warnings.filterwarnings("ignore", message=".*gradient_checkpointing.* is deprecated")
        trainer = SFTTrainer(
            model.policy.model, make_settings(unused), train_dataset=data, callbacks=[Shown()],
            processing_class=model.policy.codec.tokenizer,
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    model.policy.set_training_mode(False)
    return losses
