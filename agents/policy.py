"""The policy: a language model with adapters as actor and critic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from gamespiel.agents.decoding import ChatCodec, ChoiceDecoder, ChoiceEvaluation, Legal, NamedLegal
from gamespiel.agents.decoding.choice import Uniforms
from gamespiel.agents.engines import Engine, make_engine
from gamespiel.agents.models import LoraSettings, ModelSettings, add_adapters, load_base, load_tokenizer
from gamespiel.agents.optimizer import ScaledAdamW
from task_gym.errors import check_choice
from task_gym.wrappers import NamedText

Masks = npt.NDArray[Any] | Tensor
Tokens = tuple[int, ...]


class MissingMaskError(ValueError):
    """No action mask, or one of the wrong shape or without a legal action: legality is never guessed."""


class MissingNamesError(ValueError):
    """An observation without the names of its legal actions, given to a policy that answers by name."""


class PolicySample(NamedTuple):
    """A policy's decisions, one row per state; n rows.

    Attributes:
        actions: int64 (n,).
        values: The critic's estimates, float32 (n,).
        log_probs: Log-probabilities of the actions, float32 (n,).
        legal_mass: The unmasked model's mass on legal answers, float32 (n,).
    """

    actions: npt.NDArray[np.int64]
    values: Tensor
    log_probs: Tensor
    legal_mass: Tensor


class LLMPolicy(MaskableActorCriticPolicy):
    """A distribution over legal actions and a value, both read from one language model.

    The actor is the model with LoRA adapters on a frozen base, decoded over the legal actions' texts
    (``gamespiel.agents.decoding.choice``). The critic is a zero-initialised linear head on the last prompt
    token's hidden state, outside PEFT. The reference policy is the same model without its adapters.

    Observations are texts (a string, or a sequence or object array of them) or token ids. Token ids come from
    the tokens wrapper: int32 (n, length), padded on the right with the tokenizer's pad. Action masks are
    required when an action is drawn or scored: shape (n, n_actions), true = legal.

    An action is written as its number or, with ``answer="name"``, as its name in the state. Observations must
    then be ``task_gym.wrappers.NamedText``, which ``task_gym.wrappers.NamedActions`` returns.

    Its ``state_dict`` has the trained weights, adapters and head; the base is addressed by name.

    Args:
        observation_space: A Text space, or a Box of token ids.
        action_space: Discrete(n).
        lr_schedule: The actor's learning rate by progress remaining.
        use_sde: Must be False; Stable-Baselines3 passes it.
        model: ``ModelSettings``, or a mapping of its fields.
        lora: ``LoraSettings``, or a mapping of its fields.
        answer: "id" or "name": how an action is written.
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
        critic_lr_multiplier: float = 10.0,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if use_sde:
            raise ValueError("state-dependent exploration is for continuous actions, not for language models")
        if not isinstance(action_space, spaces.Discrete):
            raise ValueError(f"LLMPolicy chooses among Discrete actions, got {action_space}")
        if not _holds_texts(observation_space):
            raise ValueError(
                "LLMPolicy reads texts (a Text space) or token ids (a Box of integers of shape (length,)), "
                f"got {observation_space}"
            )
        check_choice("answer", answer, ("id", "name"))
        if answer == "name" and not isinstance(observation_space, spaces.Text):
            raise ValueError(
                f"names of actions come with texts, and not with {observation_space}: answer 'id'"
            )
        # Skip the parent's constructor, which builds multilayer perceptrons; its attributes are set below.
        BasePolicy.__init__(self, observation_space, action_space, optimizer_class=ScaledAdamW)
        self.model_settings = model if isinstance(model, ModelSettings) else ModelSettings(**(model or {}))
        self.lora_settings = lora if isinstance(lora, LoraSettings) else LoraSettings(**(lora or {}))
        self.answer, self.critic_lr_multiplier = answer, critic_lr_multiplier
        self.weight_decay, self.betas, self.seed = weight_decay, betas, seed
        base = load_base(self.model_settings, device, seed)
        self.model = add_adapters(base, self.lora_settings, seed)
        self.codec = ChatCodec(load_tokenizer(self.model_settings), numbers=answer == "id")
        self.engine: Engine = make_engine(
            self.model,
            self.model_settings.reading,
            gradient_checkpointing=self.model_settings.gradient_checkpointing,
        )
        self.decoder = ChoiceDecoder(self.codec, self.engine)
        hidden_size = base.config.get_text_config().hidden_size
        self.value_head = nn.utils.skip_init(nn.Linear, hidden_size, 1, device=device)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)
        self.optimizer = ScaledAdamW(
            [
                {"params": self.adapter_parameters(), "lr_scale": 1.0},
                {"params": list(self.value_head.parameters()), "lr_scale": critic_lr_multiplier},
            ],
            lr=lr_schedule(1.0),
            betas=betas,
            weight_decay=weight_decay,
        )

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
        """Returns token sequences of texts, or of right-padded token ids without their padding.

        Raises:
            ValueError: a row of token ids is all padding.
        """
        if isinstance(observations, str):
            return [self.codec.encode_prompt(str(observations))]
        if isinstance(observations, Tensor) or (
            isinstance(observations, np.ndarray) and np.issubdtype(observations.dtype, np.number)
        ):
            rows = np.atleast_2d(np.asarray(torch.as_tensor(observations).cpu())).astype(np.int64)
            filled = rows != self.codec.pad
            if not filled.any(-1).all():
                raise ValueError(f"rows {np.flatnonzero(~filled.any(-1)).tolist()} hold nothing but padding")
            lengths = rows.shape[1] - filled[:, ::-1].argmax(-1)
            return [tuple(row[:length].tolist()) for row, length in zip(rows, lengths, strict=True)]
        return [self.codec.encode_prompt(str(text)) for text in observations]

    def legal(self, action_masks: Masks | None, rows: int) -> list[Tokens]:
        """Returns legal sets, ascending, from masks of shape (rows, n_actions), true = legal.

        Raises:
            MissingMaskError: the masks are missing, of another shape, or one allows nothing.
        """
        if action_masks is None:
            raise MissingMaskError(
                "LLMPolicy needs action_masks: shape (n, n_actions), true = legal; "
                "gymnasium environments give them as env.unwrapped.action_masks()"
            )
        n = int(self.action_space.n)  # type: ignore[attr-defined]
        masks = np.atleast_2d(np.asarray(torch.as_tensor(action_masks).cpu()).astype(bool))
        if masks.shape != (rows, n):
            raise MissingMaskError(
                f"action masks of shape {masks.shape} came with {rows} observations and {n} actions, "
                f"expected {(rows, n)}"
            )
        if not masks.any(-1).all():
            empty = np.flatnonzero(~masks.any(-1)).tolist()
            raise MissingMaskError(f"the action masks of rows {empty} allow nothing: is the episode over?")
        return [tuple(np.flatnonzero(mask).tolist()) for mask in masks]

    def written(self, observations: Any, legal: list[Tokens]) -> list[Legal]:
        """Returns the legal sets, with the actions' names if actions are answered by name.

        Raises:
            MissingNamesError: an observation has no names, or not one per legal action.
        """
        if self.answer == "id":
            return list(legal)
        texts = [observations] if isinstance(observations, str) else observations
        named: list[Legal] = []
        for text, actions in zip(texts, legal, strict=True):
            given = len(text.names) if isinstance(text, NamedText) else "no"
            if given != len(actions) or list(actions) != sorted(actions):
                raise MissingNamesError(
                    f"an observation with {given} names came with the legal actions {list(actions)}, but "
                    "this policy answers by name, one a legal action in ascending order: put the environment "
                    "into task_gym.wrappers.NamedActions"
                )
            named.append(NamedLegal(actions, text.names))
        return named

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """Returns observations as a batch, and whether several were given; texts do not become tensors."""
        if isinstance(observation, str):
            return [observation], False
        if isinstance(observation, np.ndarray) and np.issubdtype(observation.dtype, np.number):
            return np.atleast_2d(observation), observation.ndim > 1
        return observation, True

    # -- Stable-Baselines3's verbs -------------------------------------------------------------------------

    def sample(self, observations: Any, action_masks: Masks | None, uniforms: Uniforms) -> PolicySample:
        """Draws actions with the given noise (see ``ChoiceDecoder.sample``)."""
        prompts = self.prompts(observations)
        legal = self.written(observations, self.legal(action_masks, len(prompts)))
        drawn = self.decoder.sample(prompts, legal, uniforms)
        with torch.no_grad():
            values = self.value_of(drawn.hidden)
        return PolicySample(drawn.actions, values, drawn.log_probs, drawn.legal_mass)

    def best(self, observations: Any, action_masks: Masks | None) -> PolicySample:
        """Returns the most probable legal actions, the lowest id of equals, in one pass of the model."""
        prompts = self.prompts(observations)
        legal = self.written(observations, self.legal(action_masks, len(prompts)))
        chosen = self.decoder.best(prompts, legal)
        with torch.no_grad():
            values = self.value_of(chosen.hidden)
        return PolicySample(chosen.actions, values, chosen.log_probs, chosen.legal_mass)

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Masks | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns actions int64 (n,), values float32 (n, 1) and log-probabilities float32 (n,)."""
        prompts = self.prompts(obs)
        if deterministic:
            drawn = self.best(obs, action_masks)
        else:
            drawn = self.sample(
                obs, action_masks, lambda depth: torch.rand(len(prompts), dtype=torch.float64).numpy()
            )
        return torch.from_numpy(drawn.actions).to(self.engine.device), drawn.values[:, None], drawn.log_probs

    def evaluate_actions(
        self, obs: Any, actions: Any, action_masks: Masks | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns values (n, 1), log-probabilities (n,) and entropies (n,), float32 and differentiable."""
        evaluation, values = self.evaluate(obs, actions, action_masks)
        return values[:, None], evaluation.log_probs, evaluation.entropy

    def evaluate(
        self, obs: Any, actions: Any, action_masks: Masks | None, *, mass: bool = False
    ) -> tuple[ChoiceEvaluation, Tensor]:
        """Returns the full evaluation of given actions (``log_mass`` if asked), and values float32 (n,)."""
        prompts = self.prompts(obs)
        chosen = np.asarray(torch.as_tensor(actions).cpu()).astype(np.int64).reshape(-1).tolist()
        legal = self.written(obs, self.legal(action_masks, len(prompts)))
        evaluation = self.decoder.evaluate(prompts, legal, chosen, mass=mass)
        return evaluation, self.value_of(evaluation.hidden)

    def split(
        self, obs: Any, actions: Any, action_masks: Masks | None, tokens: int, *, mass: bool = False
    ) -> list[npt.NDArray[np.int64]]:
        """Returns the turns in groups that ``evaluate`` reads within ``tokens`` tokens each, as positions.

        Turns with a common beginning come together. If one group is enough, it has the given order.
        """
        prompts = self.prompts(obs)
        chosen = np.asarray(torch.as_tensor(actions).cpu()).astype(np.int64).reshape(-1).tolist()
        legal = self.written(obs, self.legal(action_masks, len(prompts)))
        return self.decoder.split(prompts, legal, chosen, tokens, mass=mass)

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
        """Returns exact probabilities of every legal action, one float64 array per state."""
        written = self.written(observations, [tuple(actions) for actions in legal])
        return self.decoder.distribution(self.prompts(observations), written)

    def get_distribution(self, obs: Any, action_masks: Masks | None = None) -> Any:
        """Returns exact probabilities over all actions as a torch Categorical of shape (n, n_actions)."""
        prompts = self.prompts(obs)
        legal = self.legal(action_masks, len(prompts))
        probs = torch.zeros(len(prompts), int(self.action_space.n), dtype=torch.float64)  # type: ignore[attr-defined]
        for row, (actions, p) in enumerate(
            zip(legal, self.decoder.distribution(prompts, self.written(obs, legal)), strict=True)
        ):
            probs[row, list(actions)] = torch.from_numpy(p)
        return torch.distributions.Categorical(probs=probs)

    def _predict(
        self, observation: Any, deterministic: bool = False, action_masks: Masks | None = None
    ) -> Tensor:
        return self.forward(observation, deterministic, action_masks)[0]

    def value_of(self, hidden: Tensor) -> Tensor:
        values: Tensor = self.value_head(hidden.float()).squeeze(-1)
        return values

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Makes the policy the reference within the context: adapters off, no gradients."""
        with torch.no_grad(), self.engine.adapters_off():
            yield


def _holds_texts(space: spaces.Space[Any]) -> bool:
    token_ids = (
        isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer) and len(space.shape) == 1
    )
    return token_ids or isinstance(space, spaces.Text)
