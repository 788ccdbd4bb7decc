"""The measures of a run's policy: by play, and exactly where the game is small enough."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.rollout import Episode
from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies, group_by, measure
from gamespiel.config import Config, InvalidValueError
from gamespiel.environments.held_out import evaluation_configs, find_taken_seeds
from gamespiel.environments.making import evaluation_config
from gamespiel.kinds import kind_of
from gamespiel.kinds.kind import ShowProgress
from gamespiel.measure.episodes import Limits, measure_played, play_policy
from gamespiel.measure.records import GAMES, add_records, records
from gamespiel.report.results import write_json
from gamespiel.runs import SHARE, SUMMARY
from task_gym.files import read_json
from task_gym.stats import Interval, mean_interval

KEPT_GAMES = 8
"""Episodes that a run keeps of an evaluation, to show how play changed."""

Scores = Sequence[tuple[str, float | None]]
"""Game and score of each episode; the score of a fault is None."""


class Measures(NamedTuple):
    """The measures of a policy by name, and the scores that they are from if there are several games."""

    rows: dict[str, float | str]
    scores: Scores = ()

    def to_dict(self) -> dict[str, Any]:
        scores = {"scores_before": self.scores} if self.scores else {}
        return {"before": self.rows, **scores}


def measure_before(
    config: Config, model: LLMPPO, folder: Path, console: Console, *, resumed: bool
) -> Measures:
    """Returns the measures before training: a resumed run's from disk, or none if the file is missing."""
    path = folder / SUMMARY
    if resumed and path.exists():
        stored = read_json(path, InvalidValueError)
        if not isinstance(stored.get("before"), dict):
            raise InvalidValueError(f"{str(path)!r} lacks 'before', the measures before training")
        return Measures(stored["before"], stored.get("scores_before", ()))
    if model.step:
        return Measures({})
    measures = measure_result(config, model, console, "before training", folder)
    write_json(measures.to_dict(), path)
    return measures


def measure_result(config: Config, model: LLMPPO, console: Console, when: str, folder: Path) -> Measures:
    """Returns the measures of the run's result so far: by play, and exactly unless ``exact_every`` is 0.

    The first ``KEPT_GAMES`` episodes are kept in the run's folder.
    """
    adapters = model.publish_result()
    games, kind = config.run.eval_games, kind_of(config.env)
    itself = kind.plays_itself(config.env)
    limits = Limits(partial(find_taken_seeds, config, model.step))
    config = evaluation_config(config)
    rows: dict[str, float | str] = {}
    everyone: Measured | None = None
    scores: Scores = ()
    if games:
        episodes = play_policy(
            config, model.policy, games, console, when=f"{when}: ", adapters=adapters, limits=limits
        )
        everyone = measure_played(config, model.policy, episodes).get("all")
        scores = [(str(episode.info.get("game")), episode.info.get("score")) for episode in episodes]
        game_rows = records(episodes[:KEPT_GAMES], config.env, str(folder), model.policy, adapters=adapters)
        add_records(folder / GAMES, model.step, game_rows)
    if config.run.exact_every != 0:
        console.print(f"{when}: exact values")
        exact_game = kind.exact_game(config.env)
        comparison = exact_game.compare_policy(model.policy, trained=False, adapters=adapters)
        if itself:
            rows["exploitability"] = comparison.policy.exploitability
        rows[SHARE] = comparison.policy.share
        rows["share, greedy"] = comparison.greedy.share
        for seat, value in enumerate(comparison.policy.values):
            rows[f"exact return, seat {seat}"] = value
    if everyone is not None:
        rows["score"] = everyone.score.mean
        rows["success rate"] = everyone.success.mean
        if everyone.returns is not None:
            rows["return"] = everyone.returns.mean
        rows["illegal rate"] = everyone.illegal_rate
        if isinstance(everyone, MeasuredReplies) and everyone.replies:
            rows["cut replies"] = everyone.cut_replies / everyone.replies
        if everyone.legal_mass is not None:
            rows["legal mass"] = everyone.legal_mass
    several = len({game for game, _ in scores}) > 1
    return Measures(rows, scores if several else ())


class Paired(NamedTuple):
    """Scores of the same episodes before and after.

    Attributes:
        episodes: Number of episodes that were no fault either time.
        before: Their mean score before.
        after: Their mean score after.
        change: Mean of their differences with its 95% interval.
    """

    episodes: int
    before: float
    after: float
    change: Interval


def pair_scores(before: Scores, after: Scores) -> dict[str, Paired]:
    """Returns the pairs by game, and of all games as "all".

    It is empty for fewer than two games, for which the summary says enough, and if the episodes differ.
    """
    games = sorted({game for game, _ in before})
    if len(games) < 2 or [game for game, _ in before] != [game for game, _ in after]:
        return {}
    pairs = [
        (game, old, new)
        for (game, old), (_, new) in zip(before, after, strict=True)
        if old is not None and new is not None
    ]
    groups = {name: [pair[1:] for pair in pairs if name in (pair[0], "all")] for name in [*games, "all"]}
    return {
        name: Paired(
            len(scores),
            sum(old for old, _ in scores) / len(scores),
            sum(new for _, new in scores) / len(scores),
            mean_interval([new - old for old, new in scores], (-1.0, 1.0)),
        )
        for name, scores in groups.items()
        if scores
    }


def measure_held_out(config: Config, model: LLMPPO, progress: ShowProgress) -> dict[str, float]:
    """Returns the metrics of an evaluation while training.

    ``eval/score`` and ``eval/success`` are means over the opponents; where there are several opponents or
    games, ``eval/score/NAME`` is that of one. ``eval/interval`` is the distance from the score to the farther
    end of its 95% interval over all episodes, ``eval/episodes`` their number, ``time/eval`` the seconds it
    took.

    Args:
        config: The run's configuration.
        model: The learner, whose result is measured.
        progress: Shows how far it is.
    """
    began, adapters = time.monotonic(), model.publish_result()
    plays, quiet = evaluation_configs(config), Console(quiet=True)
    seconds = None if config.run.eval_seconds is None else config.run.eval_seconds / len(plays)
    limits = Limits(partial(find_taken_seeds, config, model.step), seconds)
    values: dict[str, float] = {}
    everything: list[Episode] = []
    means: list[Measured] = []
    for name, play in plays:
        episodes = play_policy(
            play, model.policy, config.run.eval_episodes, quiet,
            adapters=adapters, limits=limits, progress=progress,
        )  # fmt: skip
        everything += episodes
        if (measured := measure(episodes)) is None:  # faults, all of them
            continue
        means.append(measured)
        if len(plays) > 1:
            values[f"eval/score/{name}"] = measured.score.mean
    groups = group_by("game", everything)
    for game, episodes in groups.items() if len(groups) > 1 else ():
        if (measured := measure(episodes)) is not None:
            values[f"eval/score/{game}"] = measured.score.mean
    if means and (whole := measure(everything)) is not None:
        values["eval/score"] = sum(one.score.mean for one in means) / len(means)
        values["eval/success"] = sum(one.success.mean for one in means) / len(means)
        values["eval/interval"] = whole.score.half_width
        values["eval/episodes"] = whole.episodes
    return values | {"time/eval": time.monotonic() - began}
