"""The policy: a language model with adapters as actor and critic.

One class, in one file: texts and masks become requests, decisions become actions, and Stable-Baselines3 finds
all of a policy's verbs.
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from gamespiel.agents.engines import Budgets, Engine, is_small, make_engine, positions_of
from gamespiel.agents.fields import DECODERS
from gamespiel.agents.hyperparameters import Hyperparameters, LoraSettings, ModelSettings, with_changes
from gamespiel.agents.models import NEWEST, memory
from gamespiel.agents.models.adapters import AdapterSets, add_adapters
from gamespiel.agents.models.loading import check_base, load_base, load_tokenizer
from gamespiel.agents.models.optimizer import ScaledAdamW
from gamespiel.agents.sampling.decisions import Answer, Decision, Request
from gamespiel.agents.sampling.local import EngineSampler
from gamespiel.agents.sampling.noise import DrawnNoise, Noise
from gamespiel.agents.sampling.sampler import Sampler
from gamespiel.agents.scoring import Scores
from gamespiel.agents.scoring.scorer import Scorer
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.answers import (
    Answers,
    GivenMasks,
    LegalAnswers,
    MissingMaskError,
    MissingNamesError,
    Replies,
)
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import Constraint, FreeText
from gamespiel.agents.tokens.conversations import ConversationCodec, is_readable
from task_gym.errors import ArgumentError, check_choice

__all__ = ["LLMPolicy", "MissingMaskError", "MissingNamesError"]


class LLMPolicy(MaskableActorCriticPolicy):
    """A distribution over answers and a value, both read from one language model.

    The actor is the model with LoRA adapters on a frozen base. With ``decode="choice"`` it chooses among the
    legal actions' texts: a turn is one ratio unit, and an action is a number. With ``decode="text"`` it
    writes: each token of a turn is a unit, and masks are not read. An action to score is the tuple of a
    reply's tokens; a predicted one is the reply's text.

    Its ``sampler`` answers requests, and its ``scorer`` scores decisions, both under adapters by name. By
    default the sampler is in this process; another ``Sampler`` may take its place before the first step.

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
        think: Whether the chat template's switch for thinking is on, if it has one; only for "text".
        max_new_tokens: The most tokens of a reply, its end included; only for "text".
        temperature: Divides the logits of replies, in sampling and in scoring; choices have temperature 1.
        context_tokens: The most tokens of a conversation, whose oldest turns are left out then; None for as
            many as the model reads. Observations of ``task_gym.wrappers.Conversation`` are conversations.
        critic_lr_multiplier: The critic's learning rate over the actor's.
        weight_decay: AdamW's weight decay.
        betas: AdamW's betas.
        seed: Draws the adapters, and the base if its weights are random.
        device: Device of the model.

    Attributes:
        sampler: Answers requests.
        scorer: Scores decisions.
        budgets: The most tokens per forward, of both.
        adapters: The adapters by name.
        answers: The answers that the policy may give.

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
        context_tokens: int | None = None,
        critic_lr_multiplier: float = Hyperparameters.critic_lr_multiplier,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (Hyperparameters.adam_beta1, Hyperparameters.adam_beta2),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if use_sde:
            raise ValueError("state-dependent exploration is for continuous actions, not for language models")
        decode = _check_decode(decode, action_space, think)
        if not is_readable(observation_space):
            raise ValueError(
                "LLMPolicy reads texts (a Text space) or token ids (a Box of integers of shape (length,)), "
                f"got {observation_space}"
            )
        check_choice("answer", answer, ("id", "name"))
        choosing = decode == "choice"
        if choosing and answer == "name" and not isinstance(observation_space, spaces.Text):
            raise ValueError(f"names of actions come with texts, not with {observation_space}: answer 'id'")
        # Skip the parent's constructor, which builds multilayer perceptrons; its attributes are set below.
        BasePolicy.__init__(self, observation_space, action_space, optimizer_class=ScaledAdamW)
        self.model_settings = (
            model if isinstance(model, ModelSettings) else with_changes(ModelSettings(), model or {}, "model")
        )
        self.lora_settings = (
            lora if isinstance(lora, LoraSettings) else with_changes(LoraSettings(), lora or {}, "lora")
        )
        self.answer, self.decode, self.think = answer, decode, think
        self.max_new_tokens, self.temperature = max_new_tokens, temperature
        self.context_tokens, self.seed = context_tokens, seed
        self._load_model(device)
        self.budgets = Budgets()
        self.engine: Engine = make_engine(
            self.model,
            self.model_settings.reading,
            self.budgets,
            gradient_checkpointing=self.model_settings.gradient_checkpointing,
        )
        self.adapters = AdapterSets(self.model)
        self.sampler: Sampler = EngineSampler(self.engine, self.adapters, self.value_of)
        self.scorer = Scorer(self.engine, self.adapters, self.value_of)
        self.answers: Answers
        if choosing:
            n_actions = int(action_space.n)  # type: ignore[attr-defined]
            self.answers = LegalAnswers(self.codec, n_actions, by_name=answer == "name")
        else:
            self.answers = Replies(self.free_text(max_new_tokens, temperature))
        self.optimizer = ScaledAdamW(
            [
                {"params": self.adapter_parameters(), "lr_scale": 1.0},
                {"params": list(self.value_head.parameters()), "lr_scale": critic_lr_multiplier},
            ],
            lr=lr_schedule(1.0),
            betas=betas,
            weight_decay=weight_decay,
        )

    def _load_model(self, device: str) -> None:
        """Loads the base model, and adds adapters and the value head."""
        base = load_base(self.model_settings, device, self.seed)
        # Positions are kept for the longest answer, unless it is a name.
        choosing, numbers = self.decode == "choice", self.answer == "id"
        answer_tokens = 0 if choosing else self.max_new_tokens
        if choosing and numbers:
            answer_tokens = len(str(int(self.action_space.n) - 1))  # type: ignore[attr-defined]
        self.codec = ChatCodec(
            load_tokenizer(self.model_settings),
            numbers=choosing and numbers,
            think=self.think,
            positions=positions_of(base.config),
            answer_tokens=answer_tokens,
        )
        self.conversations = ConversationCodec(self.codec, self.context_tokens)
        check_base(base, self.codec, self.model_settings.model_name)
        self.model = add_adapters(base, self.lora_settings, self.seed)
        hidden_size = base.config.get_text_config().hidden_size
        self.value_head = nn.utils.skip_init(nn.Linear, hidden_size, 1, device=device)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)
        if torch.device(device).type == "cpu" and is_small(self.model):
            memory.keep_freed()

    def free_text(self, max_new_tokens: int, temperature: float = 1.0) -> FreeText:
        """Returns the constraint of replies over the whole vocabulary."""
        return FreeText(self.codec.end_tokens(self.engine.end_tokens), max_new_tokens, temperature)

    # -- parameters ----------------------------------------------------------------------------------------

    def adapter_parameters(self) -> list[nn.Parameter]:
        return self.adapters.parameters

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

        policy_keys, state_keys = set(self.state_dict()), set(state_dict)
        if strict and policy_keys != state_keys:
            raise RuntimeError(
                f"this is no state of this policy: missing {sorted(policy_keys - state_keys)[:4]}, "
                f"unknown {sorted(state_keys - policy_keys)[:4]}"
            )
        parts = {
            part: {k.removeprefix(f"{part}."): v for k, v in state_dict.items() if k.startswith(f"{part}.")}
            for part in ("adapter", "value_head")
        }
        set_peft_model_state_dict(self.model, parts["adapter"])
        return self.value_head.load_state_dict(parts["value_head"], strict=strict)

    def save(self, path: Any) -> None:
        """Stable-Baselines3's own would write a pickle.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError("LLMPolicy.save was called, allowed: LLMPPO.save, which writes the policy too")

    @classmethod
    def load(cls, path: Any, device: torch.device | str = "auto") -> LLMPolicy:
        """Stable-Baselines3's own would read a pickle, which runs what its author put in.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(
            "LLMPolicy.load was called, allowed: LLMPPO.load(folder).policy, or gamespiel.load_policy of a "
            "run of `gamespiel train`"
        )

    def set_training_mode(self, mode: bool) -> None:
        """Keeps evaluation mode: an action's probability must be the same in all passes."""
        self.train(False)

    # -- inputs --------------------------------------------------------------------------------------------

    def prompts(self, observations: Any) -> list[Tokens]:
        """Returns token sequences of observations (see ``ConversationCodec.read_prompts``)."""
        return [prompt.tokens for prompt in self.conversations.read_prompts(observations)]

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """Returns observations as a batch, and whether several were given; texts do not become tensors."""
        if isinstance(observation, str):
            return [observation], False
        if isinstance(observation, np.ndarray) and np.issubdtype(observation.dtype, np.number):
            return np.atleast_2d(observation), observation.ndim > 1
        return observation, True

    # -- requests and decisions ----------------------------------------------------------------------------

    def decide(
        self,
        observations: Any,
        action_masks: GivenMasks | None,
        noise: Sequence[Noise] | None,
        *,
        adapters: str | Sequence[str] = NEWEST,
        constraint: Constraint | None = None,
    ) -> list[Decision]:
        """Returns a decision per observation.

        Args:
            observations: The observations, n of them.
            action_masks: The masks of legal actions, (n, n_actions), true = legal; not read if the policy
                writes.
            noise: Where each decision's noise is drawn; None for the most probable action, the lowest id of
                equals, or the most probable token each time.
            adapters: Name of the adapters that decide, or one name per observation.
            constraint: Limits the answers in the place of the policy's own constraint.

        Raises:
            MissingMaskError: see the class.
            MissingNamesError: see the class.
            NotFiniteError: the model's logits are not finite.
            MemoryLimitError: not even one turn fits into memory.
        """
        prompts = self.conversations.read_prompts(observations)
        n = len(prompts)
        if constraint is None:
            constraints = self.answers.constraints(observations, action_masks, n)
        else:
            constraints = [constraint] * n
        noises = [None] * n if noise is None else noise
        names = [adapters] * n if isinstance(adapters, str) else adapters
        rows = zip(prompts, constraints, noises, names, strict=True)
        return self.sampler.sample([Request(p.tokens, c, at, name, p.left_out) for p, c, at, name in rows])

    def answer_of(self, decision: Decision) -> Answer:
        """Returns what an environment is given for a decision."""
        return Answer(decision.constraint.read_answer(decision.tokens, self.codec), decision)

    def distribution(
        self, observations: Any, legal: Sequence[Sequence[int]], *, adapters: str = NEWEST
    ) -> list[npt.NDArray[np.float64]]:
        """Returns exact probabilities of every legal action, one float64 array per state.

        Args:
            observations: The observations, n of them.
            legal: Legal actions, ascending, n sets of them.
            adapters: Name of the adapters.

        Raises:
            ValueError: the policy writes.
            MemoryLimitError: not even one state fits into memory.
        """
        tries = self.answers.make_tries(observations, legal)
        prompts = self.prompts(observations)
        requests = [Request(p, trie, None, adapters) for p, trie in zip(prompts, tries, strict=True)]
        return self.sampler.distribution(requests)

    def make_decisions(self, obs: Any, actions: Any, action_masks: GivenMasks | None) -> list[Decision]:
        """Returns given actions as decisions, whose log-probabilities are not known.

        Raises:
            ValueError: an action is not legal.
        """
        prompts = self.conversations.read_prompts(obs)
        turns = zip(
            prompts,
            self.answers.constraints(obs, action_masks, len(prompts)),
            self.answers.list_actions(actions),
            strict=True,
        )
        return [
            Decision.from_answer(prompt.tokens, c, c.answer_tokens(action), prompt.left_out)
            for prompt, c, action in turns
        ]

    # -- Stable-Baselines3's verbs -------------------------------------------------------------------------

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: GivenMasks | None = None
    ) -> tuple[Any, Tensor, Tensor]:
        """Returns actions, values float32 (n, 1) and log-probabilities float32 (n,).

        Actions are int64 (n,), or the replies' texts as an object array (n,).
        """
        noise = None if deterministic else DrawnNoise.for_batch(_draw_from_torch, len(self.prompts(obs)))
        decisions = self.decide(obs, action_masks, noise)
        actions = [self.answer_of(decision).action for decision in decisions]
        log_probs = [float(decision.log_probs.sum()) for decision in decisions]
        device = self.engine.device
        return (
            self.answers.batch_actions(actions, device),
            torch.tensor(self.values_of(decisions), device=device)[:, None],
            torch.tensor(log_probs, device=device),
        )

    def values_of(self, decisions: Sequence[Decision]) -> list[float]:
        """Returns the critic's values of decisions: the sampler's, if it gave all of them."""
        values = [decision.value for decision in decisions if decision.value is not None]
        if len(values) == len(decisions):
            return values
        with torch.no_grad():
            estimates: list[float] = self.scorer.values([decision.prompt for decision in decisions]).tolist()
        return estimates

    def evaluate_actions(
        self, obs: Any, actions: Any, action_masks: GivenMasks | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns values (n, 1), log-probabilities (n,) and entropies (n,), float32 and differentiable.

        The two latter are sums over an answer's decided tokens.
        """
        scores = self.score(obs, actions, action_masks)
        return scores.values[:, None], scores.sum(scores.log_probs), scores.sum(scores.entropy)

    def score(
        self, obs: Any, actions: Any, action_masks: GivenMasks | None = None, *, mass: bool = False
    ) -> Scores:
        """Returns the scores of given actions, or of the tokens of replies (see ``Scorer.score``)."""
        return self.scorer.score(self.make_decisions(obs, actions, action_masks), mass=mass)

    def predict_values(self, obs: Any) -> Tensor:
        """Returns values float32 (n, 1); no mask is needed, since no action is chosen."""
        return self.scorer.values(self.prompts(obs))[:, None]

    def get_distribution(self, obs: Any, action_masks: GivenMasks | None = None) -> Any:
        """Returns exact probabilities over all actions as a torch Categorical of shape (n, n_actions)."""
        legal = self.answers.legal_sets(action_masks, len(self.prompts(obs)))
        n_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        probs = torch.zeros(len(legal), n_actions, dtype=torch.float64)
        for row, (actions, p) in enumerate(zip(legal, self.distribution(obs, legal), strict=True)):
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

        Raises:
            ValueError: the observation is what ``reset`` of a Gymnasium environment returns.
        """
        if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
            raise ValueError(
                "predict() was given a tuple of an observation and an info, as reset() of a Gymnasium "
                "environment returns it; allowed: the observation"
            )
        observations, several = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self.forward(observations, deterministic, action_masks)[0]
        return self.answers.format_prediction(actions, several), state

    def _predict(
        self, observation: Any, deterministic: bool = False, action_masks: GivenMasks | None = None
    ) -> Tensor:
        actions: Tensor = self.forward(observation, deterministic, action_masks)[0]
        return actions

    def value_of(self, hidden: Tensor) -> Tensor:
        values: Tensor = self.value_head(hidden.float()).squeeze(-1)
        return values


def _draw_from_torch(size: int) -> npt.NDArray[np.float64]:
    """Returns uniforms in [0, 1) of torch's own generator, float64 (size,)."""
    drawn: npt.NDArray[np.float64] = torch.rand(size, dtype=torch.float64).numpy()
    return drawn


def _check_decode(decode: str | None, action_space: spaces.Space[Any], think: bool) -> str:
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
