"""Runs a comparison: draws deals, finds what is exact, plays the rest, and writes what was found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gamespiel.comparison.analysis import (
    Column,
    Difference,
    Played,
    compare_all,
    count_results,
    decisive,
    make_column,
    rate_contenders,
)
from gamespiel.comparison.contenders import Contender
from gamespiel.comparison.exactness import Knowledge, Trees, find_knowledge
from gamespiel.comparison.hands import (
    EndpointPlayer,
    Hand,
    HandPlayer,
    list_hands,
    make_baseline_player,
    make_policy_player,
)
from gamespiel.comparison.options import CompareOptions
from gamespiel.comparison.table import print_comparison
from gamespiel.config import Config, InvalidValueError, import_own_modules, to_dict
from gamespiel.environments.making import evaluation_config, make_one_env, pin_tasks
from gamespiel.kinds import kind_of
from gamespiel.kinds.base import Deal
from gamespiel.measure.journal import Journal, Row, open_journal
from gamespiel.report.progress import report_progress
from gamespiel.report.results import name_results, reserve_results, write_json
from gamespiel.statistics.means import estimate_mean
from gamespiel.statistics.ratings import RatingIntervals

if TYPE_CHECKING:  # baselines are compared without a learning library
    from gamespiel.agents.policy import LLMPolicy

AT_ONCE = 64
"""Episodes of a block: those that play together, and are kept together. A block has whole rounds."""

VALUE = "exact: known policies, and best responses to them; uniform play if none is known"
"""The value function of estimates, where there are any; elsewhere scores count as they are."""


def compare(options: CompareOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays or solves, prints tables, and writes a JSON file; returns the results as plain data.

    Every episode is also written to a file as soon as its block is over. On Ctrl-C that file stays, and
    ``--resume`` plays the rest.

    Raises:
        EndpointError: an endpoint is away or refuses requests; the message says what is kept.
        TaskGymError: the contenders or the tasks cannot be compared as asked.
    """
    console = console or Console()
    options = _settle(options, console)
    kind = kind_of(options.config.env)
    deals = kind.player.draw_deals(options.config.env, options.num_episodes, options.config.run.seed)
    games = sorted({deal.game for deal in deals})
    question = _describe(options, games)
    names, label = (
        [one.name for one in options.contenders],
        kind.presenter.file_label(options.config.env, games),
    )
    first = options.output or name_results("compare", names, label)
    with (
        reserve_results(question, first, options.output) as path,
        open_journal(question, first, _find_key, _is_fault, options.resume, console) as journal,
    ):
        run = _Run(options, deals, journal, console)
        run.play()
        found = run.results()
        write_json(question | {"comparison": found}, path)
    where = kind.presenter.describe_tasks(options.config.env, games, None)
    print_comparison(console, found, where)
    console.print(f"written to {path}", soft_wrap=True, markup=False)
    return question | {"comparison": found}


def _settle(options: CompareOptions, console: Console) -> CompareOptions:
    """Returns the options as they are played: against a fixed opponent, and with an endpoint's protocol."""

    def settle(config: Config) -> Config:
        config = evaluation_config(import_own_modules(config))
        if not any(one.endpoint for one in options.contenders):
            return config
        env: Any = config.env
        if env.max_turns is not None:
            raise InvalidValueError(
                "env.max_turns cuts games, and an agent behind an endpoint plays to the end: leave it out"
            )
        return dataclasses.replace(config, env=dataclasses.replace(env, seeding="evaluate"))

    common = settle(options.config)
    if common.env != options.config.env:
        console.print(
            "the deals are those of seeding 'evaluate' or of a fixed opponent, which all contenders can play",
            soft_wrap=True,
            markup=False,
        )
    own = tuple(dataclasses.replace(one, config=settle(one.config)) for one in options.contenders)
    return dataclasses.replace(options, config=common, contenders=own)


def _describe(options: CompareOptions, games: Sequence[str]) -> dict[str, Any]:
    """Returns the results without their values: everything that decides them."""
    writes = any(one.track(options.decode) != "masked" and one.checkpoint for one in options.contenders)
    return {
        "compared": [one.to_dict(options.decode) for one in options.contenders],
        "greedy": options.greedy,
        "decode": options.decode,
        "max_new_tokens": options.reply_tokens if writes else options.max_new_tokens,
        "temperature": options.temperature,
        "episode_s": options.episode_s,
        "until_clear": options.until_clear,
        "detect": options.detect,
        "seed": options.config.run.seed,
        "num_episodes": options.num_episodes,
        "value": VALUE,
        "env": to_dict(pin_tasks(options.config))["env"],
        "games": list(games),
    }


Key = tuple[str, int]
"""The name of a contender, and the place of an episode."""


def _find_key(row: Row) -> Key:
    return str(row["contender"]), int(row["place"])


def _is_fault(row: Row) -> bool:
    return row["score"] is None


def _keep_hand(journal: Journal[Key], contender: str, hand: Hand, record: Row) -> None:
    deal = hand.deal
    journal.keep({
        "contender": contender, "place": hand.place, "game": deal.game, "deal": deal.number,
        "task_id": deal.address.task_id, "seed": deal.address.seed, "seat": hand.seat, **record,
    })  # fmt: skip


class _Run:
    """One comparison under way.

    Args:
        options: The options.
        deals: The deals.
        journal: Keeps the episodes.
        console: Shows progress.

    Attributes:
        known: Contender to what is known of it, by game.
        rounds: Rounds that were played.
    """

    def __init__(
        self, options: CompareOptions, deals: Sequence[Deal], journal: Journal[Key], console: Console
    ) -> None:
        self._options, self._journal, self._console = options, journal, console
        self._hands = list_hands(deals)
        self._deals: dict[str, list[Deal]] = {}
        for deal in deals:
            self._deals.setdefault(deal.game, []).append(deal)
        self._trees: Trees = {}
        self.known: dict[str, dict[str, Knowledge]] = {}
        self.rounds = 0

    def play(self) -> None:
        """Plays all rounds, or until it is clear."""
        contenders, blocks = self._options.contenders, self._list_blocks()
        if self._options.until_clear:
            with ExitStack() as stack:  # all are there at once
                players = [stack.enter_context(self._open(one)) for one in contenders]
                for block in blocks:
                    for one, player in zip(contenders, players, strict=True):
                        self._play_block(one, player, block)
                    self.rounds = block[-1].deal.number + 1
                    if all(difference.clear for difference in decisive(self.compare())):
                        break
            return
        for one in contenders:
            with self._open(one) as player:
                for block in blocks:
                    self._play_block(one, player, block)
        self.rounds = self._options.num_episodes

    def _list_blocks(self) -> list[list[Hand]]:
        """Returns the episodes in blocks of whole rounds."""
        blocks: list[list[Hand]] = [[]]
        for hand in self._hands:
            new_round = bool(blocks[-1]) and hand.deal.number > blocks[-1][-1].deal.number
            if new_round and len(blocks[-1]) >= AT_ONCE:
                blocks.append([])
            blocks[-1].append(hand)
        return blocks

    @contextmanager
    def _open(self, contender: Contender) -> Iterator[HandPlayer]:
        """Yields a contender that is ready to play, after finding what is known of it."""
        policy: LLMPolicy | None = None
        if contender.checkpoint is not None:
            policy = load_policy(contender, self._console)
        found = find_knowledge(contender, self._deals, self._options, policy, self._trees)
        self.known[contender.name] = found
        if contender.endpoint:
            player: HandPlayer = EndpointPlayer(contender, self._options)
        elif policy is None:
            player = make_baseline_player(contender)
        else:
            player = make_policy_player(contender, self._options, policy)
        try:
            yield player
        finally:
            player.close()

    def _play_block(self, contender: Contender, player: HandPlayer, block: Sequence[Hand]) -> None:
        """Plays what is missing of a block; exact games are not played."""
        name, played = contender.name, self._journal.played
        left = [
            hand
            for hand in block
            if self.known[name][hand.deal.game].cell is None and (name, hand.place) not in played
        ]
        if not left:
            return
        said = f"{name}: playing {len(left):,} episodes, rounds {block[0].deal.number + 1} … "
        said += f"{block[-1].deal.number + 1} of {self._options.num_episodes}"
        with report_progress(self._console, said, len(left)) as on_step:
            player.play(left, partial(_keep_hand, self._journal, name), on_step)

    def columns(self) -> dict[str, dict[str, Column]]:
        """Returns the results so far: game to contender to column."""
        return make_columns(self.known, self._hands, self._journal.played, self.rounds)

    def compare(self) -> list[Difference]:
        """Returns the differences so far."""
        names = [one.name for one in self._options.contenders]
        detect, anytime = self._options.detect, self._options.until_clear
        return compare_all(names, self.columns(), detect=detect, anytime=anytime)

    def results(self) -> dict[str, Any]:
        """Returns everything as plain data."""
        names, columns = list(self.known), self.columns()
        differences = self.compare()
        rated = rate_contenders(names, columns, self._options.config.run.seed)
        return {
            "rounds": self.rounds,
            "detect": self._options.detect,
            "anytime": self._options.until_clear,
            "stopped_early": self.rounds < self._options.num_episodes,
            "contenders": {
                name: {
                    game: _column_to_dict(self.known[name][game], own[name]) for game, own in columns.items()
                }
                for name in names
            },
            "differences": [one.to_dict() for one in differences],
            "ratings": None if rated is None else _ratings_to_dict(names, columns, rated),
            # By place, and then in the order in which they were played.
            "episodes": sorted(self._journal.played.values(), key=lambda row: row["place"]),
        }


def make_columns(
    known: Mapping[str, Mapping[str, Knowledge]], hands: Iterable[Hand], played: Played, rounds: int
) -> dict[str, dict[str, Column]]:
    """Returns every contender's results in every game: game to contender to column."""
    by_game: dict[str, list[Hand]] = {}
    for hand in hands:
        by_game.setdefault(hand.deal.game, []).append(hand)
    return {
        game: {name: make_column(name, own, played, games[game], rounds) for name, games in known.items()}
        for game, own in sorted(by_game.items())
    }


def _column_to_dict(known: Knowledge, column: Column) -> dict[str, Any]:
    if known.cell is not None:
        return {"exact": known.cell.to_dict()}
    kept = [value for value in column.estimates if value is not None]
    found: dict[str, Any] = {"deals": len(kept), "faults": len(column.estimates) - len(kept)}
    if kept:
        estimate = estimate_mean(kept, column.bounds)
        low, high = estimate.interval()
        found |= {"score": estimate.mean, "low": low, "high": high, "spread": estimate.spread}
    found |= {"estimates": list(column.estimates), "scores": list(column.scores)}
    return found | {"reduced": known.estimators is not None, "why_not_exact": known.reason}


def _ratings_to_dict(
    names: Sequence[str], columns: Mapping[str, Mapping[str, Column]], rated: RatingIntervals
) -> dict[str, Any]:
    matrix = {}
    for game, own in columns.items():
        wins, ties = count_results(names, own)
        matrix[game] = {
            "deals": len(wins),
            "wins": wins.sum(axis=0).tolist(),
            "ties": ties.sum(axis=0).tolist(),
        }
    return {
        "players": list(names),
        "points": list(rated.ratings.points),
        "intervals": [list(ends) for ends in rated.intervals],
        "ties": rated.ratings.ties,
        "penalised": rated.ratings.penalised,
        "penalised_share": rated.penalised_share,
        "matrix": matrix,
    }


def load_policy(contender: Contender, console: Console) -> LLMPolicy:
    """Returns a checkpoint's policy, which samples where its configuration says."""
    import torch

    from gamespiel.agents.models import NEWEST
    from gamespiel.agents.runs import checkpoint
    from gamespiel.assembly import connect_sampler, make_policy
    from gamespiel.config import saved_config

    config = contender.config
    assert contender.checkpoint is not None
    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    console.print(f"loading {contender.name}", soft_wrap=True, markup=False)
    # --seed is the games'; random base weights are still those of the run's own seed.
    trained = dataclasses.replace(config.run, seed=saved_config(contender.checkpoint).run.seed)
    env = make_one_env(config.env)
    policy = make_policy(dataclasses.replace(config, run=trained), env)
    env.close()
    checkpoint.load_newest(policy, contender.checkpoint)
    connect_sampler(config, policy)
    policy.sampler.publish(NEWEST, policy.adapters.learning)
    return policy
