"""Playing a step's episodes to the end, all turns of one depth in one forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sb3_contrib.common.maskable.utils import EXPECTED_METHOD_NAME

from gamespiel.agents.policy import PolicySample
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.wrappers import NamedText

Masks = npt.NDArray[np.bool_]
# (texts, masks (n, n_actions), episodes, turn number) -> decisions
Decide = Callable[[list[str], Masks, list[int], int], PolicySample]


@dataclass
class Turn:
    """One decision and what it paid."""

    observation: str
    action_mask: Masks
    action: int
    value: float
    log_prob: float
    legal_mass: float
    reward: float = 0.0

    @property
    def answer(self) -> str:
        """What was answered: the action's name where the observation carries names, else its number."""
        if not isinstance(self.observation, NamedText):
            return str(self.action)
        return self.observation.names[int(self.action_mask[: self.action].sum())]


@dataclass
class Episode:
    """One episode as it was played.

    info: the last step's info, where the environment says how it ended.
    final_observation: what the environment showed after the last action.
    truncated: cut from outside, not over. illegal: actions the environment refused.
    """

    index: int
    seed: int
    info: dict[str, Any] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    final_observation: str = ""
    truncated: bool = False
    illegal: int = 0

    @property
    def fault(self) -> bool:
        """A backend that failed: nobody's doing, so it counts for nothing but the count of faults."""
        return self.info.get("result") == "fault"

    @property
    def group(self) -> tuple[Any, Any]:
        """What its advantages are normalised with: game and seat."""
        return self.info.get("game"), self.info.get("seat")

    @property
    def total_reward(self) -> float:
        return sum(turn.reward for turn in self.turns)

    def transcript(self) -> str:
        """The last decision as it was shown, what was answered, and what came of it."""
        if not self.turns:
            return self.final_observation
        last = self.turns[-1]
        return f"{last.observation} {last.answer}\n\n{self.final_observation}"


def play(
    env: TextVecEnv,
    seeds: Sequence[int],
    decide: Decide,
    on_turns: Callable[[int], bool],
    on_step: Callable[[bool], None] = lambda over: None,
) -> list[Episode] | None:
    """Play one episode a seed; episode i runs in environment i mod n_envs.

    Environments work in waves: a wave's episodes take their turns together, so which turns share a forward is
    decided by index and not by who finishes first.

    Args:
        env: the environments. seeds: one a episode, passed to `reset(seed=)`.
        decide: chooses actions for texts and masks; its third and fourth argument address the noise.
        on_turns: called with the number of decisions after each round; False stops.
        on_step: called after each single step with whether it ended its episode, and for an episode that was
            over at its reset; a round against a slow opponent takes minutes, a step does not.

    Returns:
        The episodes in order, or None where `on_turns` stopped.
    """
    episodes = [Episode(index, seed) for index, seed in enumerate(seeds)]
    for start in range(0, len(episodes), env.num_envs):
        wave = episodes[start : start + env.num_envs]
        for stopped in _play_wave(env, wave, decide, on_turns, on_step):
            if stopped:
                return None
    return episodes


def _masks(env: TextVecEnv, slots: list[int]) -> Masks:
    return np.stack(env.env_method(EXPECTED_METHOD_NAME, indices=slots)).astype(bool)


def _play_wave(
    env: TextVecEnv,
    wave: list[Episode],
    decide: Decide,
    on_turns: Callable[[int], bool],
    on_step: Callable[[bool], None],
) -> Iterator[bool]:
    texts: dict[int, str] = {}
    for slot, episode in enumerate(wave):
        texts[slot], episode.info = env.reset_one(slot, episode.seed)
    turn = 0
    # A game can be over, or a backend fail, before the first turn: there is nothing to decide then.
    live = [slot for slot in range(len(wave)) if _masks(env, [slot]).any()]
    for _ in range(len(wave) - len(live)):
        on_step(True)
    while live:
        masks = _masks(env, live)
        shown = [texts[slot] for slot in live]
        drawn = decide(shown, masks, [wave[slot].index for slot in live], turn)
        values, log_probs, mass = (
            t.cpu().tolist() for t in (drawn.values, drawn.log_probs, drawn.legal_mass)
        )
        still = []
        for i, slot in enumerate(live):
            episode, action = wave[slot], int(drawn.actions[i])
            texts[slot], reward, terminated, truncated, episode.info = env.step_one(slot, action)
            episode.illegal += "error" in episode.info
            episode.turns.append(Turn(shown[i], masks[i], action, values[i], log_probs[i], mass[i], reward))
            on_step(terminated or truncated)
            if terminated or truncated:
                episode.final_observation, episode.truncated = texts[slot], truncated and not terminated
            else:
                still.append(slot)
        yield not on_turns(len(live))
        live, turn = still, turn + 1
