"""Rollouts: a step's episodes played to the end, in waves that take their turns together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from gamespiel.agents.envs import Step, TextEnvs
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
        if self.action_mask.size and isinstance(self.observation, NamedText) and self.observation.names:
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
        last_value: The critic's estimate of the last state, if the episode was cut.
    """

    index: int
    seed: int
    info: dict[str, Any] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    final_observation: str = ""
    truncated: bool = False
    options: dict[str, Any] | None = None
    last_value: float = 0.0

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
    parts: int = 1,
    numbers: Sequence[int] | None = None,
) -> list[Episode] | None:
    """Plays one episode per seed; the i-th runs in environment i mod n_envs.

    Environments work in waves, and the episodes of a wave's part take their turns together. So the index
    decides which turns share a forward, not the order in which episodes finish. The parts take turns: while
    the opponents of one think in threads, ``decide`` is called for the next.

    Args:
        env: The environments.
        seeds: One per episode, passed to ``reset(seed=)``.
        decide: Chooses actions for texts and masks; its third and fourth argument address the noise.
        on_turns: Called with the number of decisions after each round; False stops.
        on_step: Called after each reset and each single step. A round against a slow opponent takes minutes,
            a step does not.
        options: One per episode, passed to ``reset(options=)``; none if left out.
        parts: Parts of a wave; see ``TextEnvs.parts``.
        numbers: The episodes' numbers, one per seed, if these are not all of a step; 0, 1, … if left out.

    Returns:
        The episodes in order, or None if ``on_turns`` stopped. Then, and after Ctrl-C, opponents that still
        search go on until their moves are made; after an error they are waited for.
    """
    all_options = [None] * len(seeds) if options is None else options
    each = zip(range(len(seeds)) if numbers is None else numbers, seeds, all_options, strict=True)
    episodes = [Episode(number, seed, options=episode_options) for number, seed, episode_options in each]
    try:
        for start in range(0, len(episodes), env.num_envs):
            wave = episodes[start : start + env.num_envs]
            slots = list(enumerate(wave))
            all_parts = [_Part(env, dict(slots[first::parts]), decide, on_step) for first in range(parts)]
            for part in all_parts:
                part.begin()
            for part in all_parts:
                part.open()
                part.act()
            while live_parts := [part for part in all_parts if part.live]:
                for part in live_parts:
                    if not on_turns(part.finish()):
                        return None
                    part.act()
    except Exception:
        env.give_up_calls(join=True)
        raise
    finally:
        env.give_up_calls()
    return episodes


def takes_replies(env: TextEnvs) -> bool:
    """Returns whether the environments' actions are replies as text."""
    return isinstance(env.action_space, spaces.Text)


def _read_masks(env: TextEnvs, slots: list[int]) -> Masks:
    if takes_replies(env):
        return np.zeros((len(slots), 0), dtype=np.bool_)
    return np.stack(env.env_method(ACTION_MASKS, indices=slots)).astype(bool)


class _Part:
    """The episodes of a wave that take their turns together.

    Args:
        env: The environments.
        live: The part's episodes, by their environments.
        decide: As ``play`` has it.
        on_step: As ``play`` has it.

    Attributes:
        live: The episodes that are not over, by their environments.
    """

    def __init__(self, env: TextEnvs, live: dict[int, Episode], decide: Decide, on_step: OnStep) -> None:
        self._env, self.live, self._decide, self._on_step = env, live, decide, on_step
        self._texts: dict[int, str] = {}
        self._turn = 0
        self._openings: Iterator[tuple[str, dict[str, Any]]]
        self._decided: list[Turn]
        self._steps: Iterator[Step]

    def begin(self) -> None:
        """Begins the episodes."""
        episodes = self.live.values()
        seeds, options = ([getattr(episode, name) for episode in episodes] for name in ("seed", "options"))
        self._openings = self._env.reset_many(list(self.live), seeds, options)

    def open(self) -> None:
        """Takes the episodes' first states.

        Raises:
            ArgumentError: there is nothing to decide in one that is not over.
        """
        for (slot, episode), opened in zip(list(self.live.items()), self._openings, strict=True):
            self._texts[slot], episode.info = opened
            over = "result" in episode.info
            # A game can be over, or a backend can fail, before the first turn: there is nothing to decide.
            begun = not over if takes_replies(self._env) else bool(_read_masks(self._env, [slot]).any())
            if not begun and not over:
                raise ArgumentError(
                    f"env: an episode (seed {episode.seed}) began without a legal action, allowed: at least "
                    'one, or info["result"] if it is over already'
                )
            if not begun:
                del self.live[slot]
            self._on_step(not begun, 0)

    def act(self) -> None:
        """Decides for the episodes that are not over, and begins their steps."""
        if not self.live:
            return
        slots = list(self.live)
        masks = _read_masks(self._env, slots)
        shown = [self._texts[slot] for slot in slots]
        answers = self._decide(shown, masks, [episode.index for episode in self.live.values()], self._turn)
        self._decided = [Turn(*row[:2], *row[2]) for row in zip(shown, masks, answers, strict=True)]
        self._steps = self._env.step_many(slots, [taken.action for taken in self._decided])

    def finish(self) -> int:
        """Takes the steps that ``act`` began; returns their number."""
        rows = zip(list(self.live.items()), self._decided, self._steps, strict=True)
        self._turn += 1
        for (slot, episode), taken, step in rows:
            self._texts[slot], taken.reward, terminated, truncated, episode.info = step
            taken.refused = "error" in episode.info
            episode.turns.append(taken)
            self._on_step(terminated or truncated, self._turn)
            if terminated or truncated:
                episode.final_observation = self._texts[slot]
                episode.truncated = truncated and not terminated
                del self.live[slot]
        return len(self._decided)
