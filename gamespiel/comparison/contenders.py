"""The agents of a comparison: what each is, and on which track it plays."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from gamespiel.agents.runs import kept, manifest
from gamespiel.config import Config, InvalidValueError
from gamespiel.endpoints import PREFIX
from gamespiel.kinds import DECLARATIONS, declaration_of
from gamespiel.tracks import require_one_track
from task_gym.errors import nearest, shown
from task_gym.files import read_json


@dataclass(frozen=True)
class Contender:
    """One agent of a comparison.

    Attributes:
        name: The name as it was given.
        config: The configuration with which it plays: the comparison's tasks and opponent, and of a
            checkpoint the prompts and the model of its own run.
        checkpoint: The checkpoint; None for a baseline or an endpoint.
    """

    name: str
    config: Config
    checkpoint: Path | None = None

    @property
    def endpoint(self) -> bool:
        """Whether it is a model behind an endpoint."""
        return self.checkpoint is None and self.name.startswith(PREFIX)

    def track(self, decode: str) -> str | None:
        """Returns its track; None for a baseline, whose actions are always legal.

        Args:
            decode: "text" if checkpoints answer by replies, else "choice".
        """
        if self.checkpoint is None and not self.endpoint:
            return None
        env = self.config.env
        return declaration_of(env).track(env, writes=self.endpoint or "text" in (decode, env.decode))

    def to_dict(self, decode: str) -> dict[str, Any]:
        """Returns what identifies it: of a checkpoint, the digest of its files too."""
        found: dict[str, Any] = {"name": self.name, "track": self.track(decode)}
        if self.checkpoint is not None:
            found |= {"checkpoint": self.checkpoint.name, "sha256": digest_checkpoint(self.checkpoint)}
        return found


def find_checkpoint(name: str, env_type: str) -> Path | None:
    """Returns the checkpoint that a name means; None if it names a baseline or an endpoint.

    Raises:
        InvalidValueError: it names neither.
    """
    baselines = DECLARATIONS[env_type].baselines
    if re.fullmatch(baselines.pattern, name):
        return None
    place = kept.read_place(name)
    if not place.exists():
        raise InvalidValueError(
            f"--compare {shown(name)}: there is no such run, and no such baseline; allowed: RUN, RUN@STEP, "
            f"RUN@best, {baselines.names}{nearest(name, ('random', 'first', 'mcts', 'ismcts'))}"
        )
    return kept.find(place)


def enter(name: str, common: Config, own: Config | None, checkpoint: Path | None) -> Contender:
    """Returns a contender, which plays what all play.

    Args:
        name: Its name as it was given.
        common: The configuration of the tasks, the opponent and the seed.
        own: The configuration of a checkpoint's run, which says how it is asked; None for others.
        checkpoint: The checkpoint; None for others.
    """
    if own is None:  # baselines choose, also if a policy would write
        env = dataclasses.replace(common.env, answer="id", decode="choice", think=False)
        return Contender(name, dataclasses.replace(common, env=env))
    asking: Any = {key: getattr(own.env, key) for key in declaration_of(own.env).asking}
    if own.env.env_type != common.env.env_type:
        raise InvalidValueError(
            f"--compare {shown(name)}: it was trained on env.env_type {own.env.env_type}, and "
            f"{common.env.env_type} is played"
        )
    env = dataclasses.replace(common.env, **asking)
    run = dataclasses.replace(own.run, seed=common.run.seed)
    return Contender(name, dataclasses.replace(own, env=env, run=run), checkpoint)


def check_contenders(contenders: Sequence[Contender], decode: str) -> None:
    """Raises InvalidValueError unless there are several, all different, and on one track.

    Raises:
        TrackError: they are on different tracks.
    """
    names = [one.name for one in contenders]
    if len(names) < 2:
        raise InvalidValueError(f"--compare takes two agents or more, not {len(names)}: --compare A B")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidValueError(f"--compare names {shown(twice[0])} twice")
    tracks = {one.name: one.track(decode) for one in contenders}
    require_one_track(tracks, "; --track has all of them play on one: masked, unmasked or unlisted")


def digest_checkpoint(checkpoint: Path) -> str:
    """Returns the digest of a checkpoint's manifest, which has those of its files.

    Raises:
        CheckpointError: it has none.
    """
    files = read_json(checkpoint / manifest.NAME, kept.CheckpointError)
    return sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
