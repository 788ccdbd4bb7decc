"""Rollouts: a step's episodes played to the end, in waves that take their turns together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.sampling.decisions import Answer, Decision
from task_gym.errors import ArgumentError
from task_gym.wrappers import NamedText

ACTION_MASKS = "action_masks"
"""The method that returns an environment's mask: sb3-contrib's ``EXPECTED_METHOD_NAME``."""

Masks = npt.NDArray[np.bool_]


Decide = Callable[[list[str], Masks, list[int], int], Sequence[Answer]]
"""Texts, masks (n, n_actions), episodes and turn number to answers, n of them.

In environments that take replies as text, nothing is masked: the masks have the shape (n, 0).
"""


OnStep = Callable[[bool, int], None]
"""(whether the episode is over, turns that it has had) -> None. After a reset it has had none."""


@dataclass
class Turn:
    """One turn of an episode.

    Attributes:
        observation: The text before the answer.
        action_mask: bool (n_actions,), true = legal; (0,) if nothing is masked.
        action: What the environment was given: an action's number, or a reply's text.
        decision: The policy's decision; None if a baseline answered.
        reward: The reward of the action.
        refused: Whether the environment refused the action as illegal.
    """

    observation: str
    action_mask: Masks
    action: int | str
    decision: Decision | None = None
    reward: float = 0.0
    refused: bool = False

    @property
    def measures(self) -> dict[str, float]:
        """Returns what metrics report of the policy's decision; nothing of a baseline's."""
        return {} if self.decision is None else self.decision.measures

    @property
    def answer(self) -> str:
        """The answer: the reply, or the action's name if the observation has names, else its number."""
        if self.action_mask.size and isinstance(self.observation, NamedText):
            return self.observation.names[int(self.action_mask[: int(self.action)].sum())]
        return str(self.action)


@dataclass
class Episode:
    """One episode as it was played.

    Attributes:
        index: Position among the step's episodes.
        seed: Seed of the environment's reset.
        info: The last step's info, which says how the episode ended.
        turns: The agent's turns.
        final_observation: The observation after the last action.
        truncated: Whether the episode was cut, by a limit or by a fault.
        options: Options of the environment's reset.
    """

    index: int
    seed: int
    info: dict[str, Any] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    final_observation: str = ""
    truncated: bool = False
    options: dict[str, Any] | None = None

    @property
    def fault(self) -> bool:
        """Whether a backend failed. Such an episode counts as a fault and for nothing else."""
        return self.info.get("result") == "fault"

    @property
    def group(self) -> tuple[Any, Any]:
        """Game and seat, within which advantages are normalised."""
        return self.info.get("game"), self.info.get("seat")

    @property
    def illegal(self) -> int:
        """Number of actions that the environment refused."""
        return sum(turn.refused for turn in self.turns)

    @property
    def total_reward(self) -> float:
        return sum(turn.reward for turn in self.turns)

    def transcript(self) -> str:
        """Returns the last observation with its answer, and the final observation."""
        if not self.turns:
            return self.final_observation
        last = self.turns[-1]
        return f"{last.observation} {last.answer}\n\n{self.final_observation}"


def play(
    env: TextEnvs,
    seeds: Sequence[int],
    decide: Decide,
    on_turns: Callable[[int], bool],
    on_step: OnStep = lambda over, turns: None,
    options: Sequence[dict[str, Any] | None] | None = None,
) -> list[Episode] | None:
    """Plays one episode per seed; episode i runs in environment i mod n_envs.

    Environments work in waves, and a wave's episodes take their turns together. So the index decides which
    turns share a forward, not the order in which episodes finish.

    Args:
        env: The environments.
        seeds: One per episode, passed to ``reset(seed=)``.
        decide: Chooses actions for texts and masks; its third and fourth argument address the noise.
        on_turns: Called with the number of decisions after each round; False stops.
        on_step: Called after each reset and each single step. A round against a slow opponent takes minutes,
            a step does not.
        options: One per episode, passed to ``reset(options=)``; none if left out.

    Returns:
        The episodes in order, or None if ``on_turns`` stopped.
    """
    given = [None] * len(seeds) if options is None else options
    each = enumerate(zip(seeds, given, strict=True))
    episodes = [Episode(index, seed, options=own) for index, (seed, own) in each]
    for start in range(0, len(episodes), env.num_envs):
        wave = episodes[start : start + env.num_envs]
        for stopped in _play_wave(env, wave, decide, on_turns, on_step):
            if stopped:
                return None
    return episodes


def takes_replies(env: TextEnvs) -> bool:
    """Returns whether the environments' actions are replies as text."""
    return isinstance(env.action_space, spaces.Text)


def _read_masks(env: TextEnvs, slots: list[int]) -> Masks:
    if takes_replies(env):
        return np.zeros((len(slots), 0), dtype=np.bool_)
    return np.stack(env.env_method(ACTION_MASKS, indices=slots)).astype(bool)


def _play_wave(
    env: TextEnvs,
    wave: list[Episode],
    decide: Decide,
    on_turns: Callable[[int], bool],
    on_step: OnStep,
) -> Iterator[bool]:
    texts: dict[int, str] = {}
    live: list[int] = []
    seeds, options = ([getattr(episode, name) for episode in wave] for name in ("seed", "options"))
    openings = env.reset_many(range(len(wave)), seeds, options)
    for slot, (episode, opened) in enumerate(zip(wave, openings, strict=True)):
        texts[slot], episode.info = opened
        # A game can be over, or a backend can fail, before the first turn: then there is nothing to decide.
        begun = "result" not in episode.info if takes_replies(env) else bool(_read_masks(env, [slot]).any())
        if not begun and "result" not in episode.info:
            raise ArgumentError(
                f"env: an episode (seed {episode.seed}) began without a legal action, allowed: at least one, "
                'or info["result"] if it is over already'
            )
        live += [slot] * begun
        on_step(not begun, 0)
    turn = 0
    while live:
        masks = _read_masks(env, live)
        shown = [texts[slot] for slot in live]
        answers = decide(shown, masks, [wave[slot].index for slot in live], turn)
        decided = [Turn(*row[:2], *row[2]) for row in zip(shown, masks, answers, strict=True)]
        still = []
        stepped = env.step_many(live, [taken.action for taken in decided])
        for slot, taken, step in zip(live, decided, stepped, strict=True):
            episode = wave[slot]
            texts[slot], taken.reward, terminated, truncated, episode.info = step
            taken.refused = "error" in episode.info
            episode.turns.append(taken)
            on_step(terminated or truncated, turn + 1)
            if terminated or truncated:
                episode.final_observation, episode.truncated = texts[slot], truncated and not terminated
            else:
                still.append(slot)
        yield not on_turns(len(live))
        live, turn = still, turn + 1
