"""The policy: a language model with adapters as actor and critic."""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from gamespiel.agents.decoding import (
    ChatCodec,
    ChoiceDecoder,
    ChoiceEvaluation,
    ChoiceSample,
    Legal,
    TextDecoder,
    TextEvaluation,
    TextSample,
)
from gamespiel.agents.engines import Engine, make_engine, memory, positions_of
from gamespiel.agents.fields import DECODERS
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.optimizer import ScaledAdamW
from gamespiel.agents.models import suitability
from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.loading import LOADING, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.sampling.drawing import Uniforms
from gamespiel.agents.sampling.samples import PolicySample, ReplySample
from gamespiel.agents.tokens import Tokens, inputs
from gamespiel.agents.tokens.inputs import Masks, MissingMaskError, MissingNamesError
from task_gym.errors import check_choice

Evaluation = ChoiceEvaluation | TextEvaluation

__all__ = [
    "Evaluation", "LLMPolicy", "MissingMaskError", "MissingNamesError", "PolicySample",
    "ReplySample",
]  # fmt: skip


class LLMPolicy(MaskableActorCriticPolicy):
    """A distribution over answers and a value, both read from one language model.

    The actor is the model with LoRA adapters on a frozen base. With ``decode="choice"`` it chooses among the
    legal actions' texts (``gamespiel.agents.decoding.choice``): a turn is one decision, and an action is a
    number. With ``decode="text"`` it writes (``gamespiel.agents.decoding.text``): each token of a turn is a
    decision, and masks are not read. An action to score is the tuple of a reply's tokens; a predicted one is
    the reply's text.

    The critic is a zero-initialised linear head on the last prompt token's hidden state, outside PEFT. The
    reference policy is the same model without its adapters.

    Observations are texts (a string, or a sequence or object array of them) or token ids. Token ids come from
    the tokens wrapper: int32 (n, length), padded on the right with the tokenizer's pad. Action masks are
    required when an action is chosen or scored: shape (n, n_actions), true = legal.

    A chosen action is written as its number or, with ``answer="name"``, as its name in the state.
    Observations must then be ``task_gym.wrappers.NamedText``, which ``task_gym.wrappers.NamedActions``
    returns.

    Its ``state_dict`` has the trained weights, adapters and head; the base is addressed by name.

    Args:
        observation_space: A Text space, or a Box of token ids.
        action_space: Discrete(n), or a Text space if the policy writes.
        lr_schedule: The actor's learning rate by progress remaining.
        use_sde: Must be False; Stable-Baselines3 passes it.
        model: ``ModelSettings``, or a mapping of its fields.
        lora: ``LoraSettings``, or a mapping of its fields.
        answer: "id" or "name": how a chosen action is written.
        decode: "choice" or "text"; None for what the action space takes.
        think: Whether the chat template's switch for thinking is on, if it has one; for "text" alone.
        max_new_tokens: The most tokens of a reply, its end included; for "text" alone.
        temperature: Divides the logits of replies, in sampling and in scoring; choices have temperature 1.
        critic_lr_multiplier: The critic's learning rate over the actor's.
        weight_decay: AdamW's weight decay.
        betas: AdamW's betas.
        seed: Draws the adapters, and the base if its weights are random.
        device: Device of the model.

    Raises:
        MissingMaskError: a mask is missing, of the wrong shape, or allows nothing.
        MissingNamesError: actions are answered by name, and an observation does not name the legal ones.
        ValueError: a space or a setting is not one of the above.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        *,
        model: ModelSettings | Mapping[str, Any] | None = None,
        lora: LoraSettings | Mapping[str, Any] | None = None,
        answer: str = "id",
        decode: str | None = None,
        think: bool = False,
        max_new_tokens: int = Hyperparameters.max_new_tokens,
        temperature: float = 1.0,
        critic_lr_multiplier: float = Hyperparameters.critic_lr_multiplier,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (Hyperparameters.adam_beta1, Hyperparameters.adam_beta2),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if use_sde:
            raise ValueError("state-dependent exploration is for continuous actions, not for language models")
        decode = _checked_decode(decode, action_space, think)
        if not inputs.is_readable(observation_space):
            raise ValueError(
                "LLMPolicy reads texts (a Text space) or token ids (a Box of integers of shape (length,)), "
                f"got {observation_space}"
            )
        check_choice("answer", answer, ("id", "name"))
        choosing = decode == "choice"
        if choosing and answer == "name" and not isinstance(observation_space, spaces.Text):
            raise ValueError(
                f"names of actions come with texts, and not with {observation_space}: answer 'id'"
            )
        # Skip the parent's constructor, which builds multilayer perceptrons; its attributes are set below.
        BasePolicy.__init__(self, observation_space, action_space, optimizer_class=ScaledAdamW)
        self.model_settings = model if isinstance(model, ModelSettings) else ModelSettings(**(model or {}))
        self.lora_settings = lora if isinstance(lora, LoraSettings) else LoraSettings(**(lora or {}))
        self.answer, self.critic_lr_multiplier = answer, critic_lr_multiplier
        self.decode, self.think = decode, think
        self.max_new_tokens, self.temperature = max_new_tokens, temperature
        self.weight_decay, self.betas, self.seed = weight_decay, betas, seed
        self._load(device)
        self.engine: Engine = make_engine(
            self.model,
            self.model_settings.reading,
            gradient_checkpointing=self.model_settings.gradient_checkpointing,
        )
        self.decoder = ChoiceDecoder(self.codec, self.engine)
        #: Writes replies; None if the policy chooses among legal actions.
        self.writer = None if choosing else self.make_writer(max_new_tokens)
        self.optimizer = self._make_optimizer(lr_schedule(1.0))

    def _load(self, device: str) -> None:
        """Loads the base model, and adds adapters and the value head.

        One thread at a time: transformers' loading, torch's seed and ``torch.nn.init``, which transformers
        replaces as it loads, belong to the whole process.
        """
        with LOADING:
            base = load_base(self.model_settings, device, self.seed)
            self.codec = self._make_codec(base.config)
            suitability.check(base, self.codec, self.model_settings.model_name)
            self.model = add_adapters(base, self.lora_settings, self.seed)
            hidden_size = base.config.get_text_config().hidden_size
            self.value_head = nn.utils.skip_init(nn.Linear, hidden_size, 1, device=device)
            nn.init.zeros_(self.value_head.weight)
            nn.init.zeros_(self.value_head.bias)

    def _make_codec(self, config: Any) -> ChatCodec:
        """Returns the codec, which keeps positions for the longest answer, unless it is a name."""
        choosing, numbers = self.decode == "choice", self.answer == "id"
        answer_tokens = 0 if choosing else self.max_new_tokens
        if choosing and numbers:
            answer_tokens = len(str(int(self.action_space.n) - 1))  # type: ignore[attr-defined]
        return ChatCodec(
            load_tokenizer(self.model_settings),
            numbers=choosing and numbers,
            think=self.think,
            positions=positions_of(config),
            answer_tokens=answer_tokens,
        )

    def _make_optimizer(self, rate: float) -> ScaledAdamW:
        return ScaledAdamW(
            [
                {"params": self.adapter_parameters(), "lr_scale": 1.0},
                {"params": list(self.value_head.parameters()), "lr_scale": self.critic_lr_multiplier},
            ],
            lr=rate,
            betas=self.betas,
            weight_decay=self.weight_decay,
        )

    def make_writer(self, max_new_tokens: int) -> TextDecoder:
        """Returns a writer of the model's replies, at this policy's temperature (1 if it chooses)."""
        temperature = self.temperature if self.decode == "text" else 1.0
        return TextDecoder(self.codec, self.engine, max_new_tokens=max_new_tokens, temperature=temperature)

    # -- parameters ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> torch.dtype:
        """Returns the type in which the base model computes."""
        return self.engine.dtype

    def adapter_parameters(self) -> list[nn.Parameter]:
        return [p for p in self.model.parameters() if p.requires_grad]

    def trainable_parameters(self) -> list[nn.Parameter]:
        return [*self.adapter_parameters(), *self.value_head.parameters()]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Returns the trained weights: adapters and value head, not the base model."""
        from peft import get_peft_model_state_dict

        # Without the flag, PEFT asks the model hub at every call whether the vocabulary was resized.
        adapters = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        head = self.value_head.state_dict()
        return {f"adapter.{k}": v for k, v in adapters.items()} | {
            f"value_head.{k}": v for k, v in head.items()
        }

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Loads what ``state_dict()`` returned; if ``strict``, the keys must be exactly the same.

        Raises:
            RuntimeError: a key is missing or unknown.
        """
        from peft import set_peft_model_state_dict

        own, given = set(self.state_dict()), set(state_dict)
        if strict and own != given:
            raise RuntimeError(
                f"this is no state of this policy: missing {sorted(own - given)[:4]}, "
                f"unknown {sorted(given - own)[:4]}"
            )
        parts = {
            part: {k.removeprefix(f"{part}."): v for k, v in state_dict.items() if k.startswith(f"{part}.")}
            for part in ("adapter", "value_head")
        }
        set_peft_model_state_dict(self.model, parts["adapter"])
        return self.value_head.load_state_dict(parts["value_head"], strict=strict)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "model": self.model_settings,
            "lora": self.lora_settings,
            "answer": self.answer,
            "decode": self.decode,
            "think": self.think,
            "max_new_tokens": self.max_new_tokens,
            "temperature": self.temperature,
            "critic_lr_multiplier": self.critic_lr_multiplier,
            "weight_decay": self.weight_decay,
            "betas": self.betas,
            "seed": self.seed,
        }

    def set_training_mode(self, mode: bool) -> None:
        """Keeps evaluation mode: an action's probability must be the same in all passes."""
        self.train(False)

    # -- inputs --------------------------------------------------------------------------------------------

    def prompts(self, observations: Any) -> list[Tokens]:
        """Returns token sequences of observations (see ``inputs.prompts``)."""
        return inputs.prompts(self.codec, observations)

    def legal(self, action_masks: Masks | None, rows: int) -> list[Tokens]:
        """Returns legal sets, ascending, from masks of shape (rows, n_actions), true = legal.

        Raises:
            MissingMaskError: the masks are missing, of another shape, or one allows nothing.
            ValueError: this policy writes replies, which no mask limits.
        """
        if self.writer is not None:
            raise ValueError("a policy that writes replies (decode='text') has no distribution under a mask")
        return inputs.legal_sets(action_masks, rows, int(self.action_space.n))  # type: ignore[attr-defined]

    def written(self, observations: Any, legal: list[Tokens]) -> list[Legal]:
        """Returns the legal sets, with the actions' names if actions are answered by name.

        Raises:
            MissingNamesError: an observation has no names, or not one per legal action.
        """
        return list(legal) if self.answer == "id" else inputs.named(observations, legal)

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """Returns observations as a batch, and whether several were given; texts do not become tensors."""
        return inputs.batched(observation)

    # -- Stable-Baselines3's verbs -------------------------------------------------------------------------

    def sample(
        self, observations: Any, action_masks: Masks | None, uniforms: Uniforms
    ) -> PolicySample | ReplySample:
        """Draws actions, or replies, with the given noise (see ``sample`` of the decoders)."""
        prompts = self.prompts(observations)
        if self.writer is not None:
            return self._replies(self.writer.sample(prompts, uniforms))
        legal = self.written(observations, self.legal(action_masks, len(prompts)))
        return self._choices(self.decoder.sample(prompts, legal, uniforms))

    def best(self, observations: Any, action_masks: Masks | None) -> PolicySample | ReplySample:
        """Returns the most probable legal actions, the lowest id of equals, or replies written greedily."""
        prompts = self.prompts(observations)
        if self.writer is not None:
            return self._replies(self.writer.best(prompts))
        legal = self.written(observations, self.legal(action_masks, len(prompts)))
        return self._choices(self.decoder.best(prompts, legal))

    @torch.no_grad()
    def _choices(self, drawn: ChoiceSample) -> PolicySample:
        values = self.value_of(drawn.hidden)
        return PolicySample(drawn.actions, values, drawn.log_probs, drawn.legal_mass)

    @torch.no_grad()
    def _replies(self, drawn: TextSample) -> ReplySample:
        return ReplySample(drawn.replies, self.value_of(drawn.hidden), drawn.log_probs)

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Masks | None = None
    ) -> tuple[Any, Tensor, Tensor]:
        """Returns actions, values float32 (n, 1) and log-probabilities float32 (n,).

        Actions are int64 (n,), or the replies' texts as an object array (n,).
        """
        if deterministic:
            drawn = self.best(obs, action_masks)
        else:
            n = len(self.prompts(obs))
            drawn = self.sample(obs, action_masks, lambda depth: torch.rand(n, dtype=torch.float64).numpy())
        values = drawn.values[:, None]
        if isinstance(drawn, PolicySample):
            return torch.from_numpy(drawn.actions).to(self.engine.device), values, drawn.log_probs
        texts = np.empty(len(drawn.replies), dtype=object)
        texts[:] = [reply.text for reply in drawn.replies]
        totals = [float(log_probs.sum()) for log_probs in drawn.log_probs]
        return texts, values, torch.tensor(totals, device=self.engine.device)

    def evaluate_actions(
        self, obs: Any, actions: Any, action_masks: Masks | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns values (n, 1), log-probabilities (n,) and entropies (n,), float32 and differentiable.

        Those of a reply are sums over its tokens.
        """
        evaluation, values = self.evaluate(obs, actions, action_masks)
        log_probs, entropy = evaluation.log_probs, evaluation.entropy
        if isinstance(evaluation, TextEvaluation):
            log_probs, entropy = evaluation.per_turn(log_probs), evaluation.per_turn(entropy)
        return values[:, None], log_probs, entropy

    def evaluate(
        self, obs: Any, actions: Any, action_masks: Masks | None, *, mass: bool = False
    ) -> tuple[Evaluation, Tensor]:
        """Returns the full evaluation of given actions, and values float32 (n,).

        Args:
            obs: The observations, n of them.
            actions: Legal actions, or the tokens of replies.
            action_masks: The masks of legal actions.
            mass: Whether ``log_mass`` of legal actions is computed too.
        """
        prompts = self.prompts(obs)
        evaluation: Evaluation
        if self.writer is not None:
            evaluation = self.writer.evaluate(prompts, actions)
        else:
            legal = self.written(obs, self.legal(action_masks, len(prompts)))
            evaluation = self.decoder.evaluate(prompts, legal, _listed(actions), mass=mass)
        return evaluation, self.value_of(evaluation.hidden)

    def split(
        self, obs: Any, actions: Any, action_masks: Masks | None, tokens: int, *, mass: bool = False
    ) -> list[npt.NDArray[np.int64]]:
        """Returns the turns in groups that ``evaluate`` reads within ``tokens`` tokens each, as positions.

        Turns with a common beginning come together. If one group is enough, it has the given order.
        """
        prompts = self.prompts(obs)
        if self.writer is not None:
            return self.writer.split(prompts, actions, tokens)
        legal = self.written(obs, self.legal(action_masks, len(prompts)))
        return self.decoder.split(prompts, legal, _listed(actions), tokens, mass=mass)

    def predict_values(self, obs: Any) -> Tensor:
        """Returns values float32 (n, 1); no mask is needed, since no action is chosen."""
        prompts = self.prompts(obs)
        distinct = list(dict.fromkeys(prompts))
        hidden = self.engine.read(distinct, list(range(len(distinct))), [len(p) - 1 for p in distinct])
        where = {prompt: i for i, prompt in enumerate(distinct)}
        index = torch.tensor([where[prompt] for prompt in prompts], device=hidden.device)
        return self.value_of(hidden.index_select(0, index))[:, None]

    def distribution(
        self, observations: Any, legal: Sequence[Sequence[int]]
    ) -> list[npt.NDArray[np.float64]]:
        """Returns exact probabilities of every legal action, one float64 array per state.

        Raises:
            MemoryLimitError: not even one state fits into memory.
        """
        prompts = self.prompts(observations)
        written = self.written(observations, [tuple(actions) for actions in legal])
        return memory.without_gradients(
            self, observations, lambda: self.decoder.distribution(prompts, written)
        )

    def get_distribution(self, obs: Any, action_masks: Masks | None = None) -> Any:
        """Returns exact probabilities over all actions as a torch Categorical of shape (n, n_actions)."""
        prompts = self.prompts(obs)
        legal = self.legal(action_masks, len(prompts))
        n = int(self.action_space.n)  # type: ignore[attr-defined]
        probs = torch.zeros(len(prompts), n, dtype=torch.float64)
        for row, (actions, p) in enumerate(
            zip(legal, self.decoder.distribution(prompts, self.written(obs, legal)), strict=True)
        ):
            probs[row, list(actions)] = torch.from_numpy(p)
        return torch.distributions.Categorical(probs=probs)

    def predict(
        self,
        observation: Any,
        state: tuple[npt.NDArray[Any], ...] | None = None,
        episode_start: npt.NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, tuple[npt.NDArray[Any], ...] | None]:
        """Returns actions, or replies as text, and the given state.

        One observation gets an action or a ``str``, several get an array of them.
        """
        if self.writer is None:
            return super().predict(observation, state, episode_start, deterministic, action_masks)
        observations, several = self.obs_to_tensor(observation)
        with torch.no_grad():
            texts = self.forward(observations, deterministic)[0]
        return (texts if several else texts[0]), state

    def _predict(
        self, observation: Any, deterministic: bool = False, action_masks: Masks | None = None
    ) -> Tensor:
        actions: Tensor = self.forward(observation, deterministic, action_masks)[0]
        return actions

    def value_of(self, hidden: Tensor) -> Tensor:
        values: Tensor = self.value_head(hidden.float()).squeeze(-1)
        return values

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Makes the policy the reference within the context: adapters off, no gradients."""
        with torch.no_grad(), self.engine.adapters_off():
            yield


def _listed(actions: Any) -> list[int]:
    chosen: list[int] = np.asarray(torch.as_tensor(actions).cpu()).astype(np.int64).reshape(-1).tolist()
    return chosen


def _checked_decode(decode: str | None, action_space: spaces.Space[Any], think: bool) -> str:
    """Returns the decoder's name, after checking that it goes with the action space."""
    takes = {"choice": spaces.Discrete, "text": spaces.Text}
    if decode is None:
        decode = "text" if isinstance(action_space, spaces.Text) else "choice"
    check_choice("decode", decode, DECODERS)
    if not isinstance(action_space, takes[decode]):
        raise ValueError(
            f"LLMPolicy chooses among Discrete actions (decode='choice') or writes into a Text space "
            f"(decode='text'), got decode={decode!r} and {action_space}"
        )
    if think and decode != "text":
        raise ValueError("think=True is for a policy that writes (decode='text'), not for one that chooses")
    return decode
