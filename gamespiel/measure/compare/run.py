"""``gamespiel eval --compare``: draws deals, finds what is exact, plays the rest, and writes the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pyspiel
from rich.console import Console

from gamespiel.config import Config, InvalidValueError, import_own_modules, to_dict
from gamespiel.endpoints.chat import Chat
from gamespiel.environments.making import evaluation_config, pin_tasks
from gamespiel.kinds import kind_of
from gamespiel.kinds.kind import Deal
from gamespiel.measure.agents import Agent, load_policy
from gamespiel.measure.compare.known import Knowledge, Trees, find_knowledge
from gamespiel.measure.compare.options import CompareOptions, describe
from gamespiel.measure.compare.table import print_comparison
from gamespiel.measure.differences import Bounds, Column, Difference, compare_all, decisive
from gamespiel.measure.journal import Journal, Row, open_journal
from gamespiel.measure.means import estimate_mean
from gamespiel.measure.play import (
    EndpointPlayer,
    Match,
    MatchPlayer,
    list_matches,
    make_baseline_player,
    make_policy_player,
    require_played,
)
from gamespiel.report.console import make_console
from gamespiel.report.progress import report_progress
from gamespiel.report.results import name_results, reserve_results, write_json
from gamespiel.report.text import print_plain
from task_gym.contract import result_of

AT_ONCE = 64
"""Matches of a block: those that play together, and are kept together. A block has whole rounds."""

VALUE = "exact: known policies, and best responses to them; uniform play if none is known"
"""The value function of estimates, where there are any; elsewhere scores count as they are."""


def compare(options: CompareOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays or solves, prints tables, and writes a JSON file; returns the results as plain data.

    Every match is also written to a file as soon as its block is over. On Ctrl-C that file stays, and
    ``--resume`` plays the rest.

    Raises:
        EndpointError: an endpoint is away or refuses requests; the message says what is kept.
        TaskGymError: the agents or the tasks cannot be compared as asked.
    """
    console = console or make_console()
    options = _settle(options, console)
    kind = kind_of(options.config.env)
    deals = kind.draw_deals(options.config.env, options.num_episodes, options.config.run.seed)
    games = sorted({deal.game for deal in deals})
    question = _describe(options, games)
    names = [agent.name for agent in options.agents]
    label = kind.file_label(options.config.env, games)
    first = options.output or name_results("compare", names, label)

    def find_key(row: Row) -> Key:
        return str(row["agent"]), int(row["place"])

    with (
        reserve_results(question, first, options.output) as path,
        open_journal(
            question, first, find_key, lambda row: row["score"] is None, options.resume, console
        ) as journal,
    ):
        run = _Run(options, deals, journal, console)
        run.play()
        comparison = run.results()
        write_json(question | {"comparison": comparison}, path)
    print_comparison(console, comparison, kind.describe_tasks(options.config.env, games))
    console.print(f"written to {path}", soft_wrap=True, markup=False)
    return question | {"comparison": comparison}


def _settle(options: CompareOptions, console: Console) -> CompareOptions:
    """Returns the options as they are played: against a fixed opponent, and with an endpoint's protocol."""

    def settle(config: Config) -> Config:
        config = evaluation_config(import_own_modules(config))
        if not any(agent.kind == "endpoint" for agent in options.agents):
            return config
        env: Any = config.env
        if env.max_turns is not None:
            raise InvalidValueError(
                "env.max_turns cuts games, and an agent behind an endpoint plays to the end: leave it out"
            )
        return dataclasses.replace(config, env=dataclasses.replace(env, seeding="evaluate"))

    common = settle(options.config)
    if common.env != options.config.env:
        said = "the deals are those of seeding 'evaluate' or of a fixed opponent, which all agents can play"
        print_plain(console, said)
    agents = tuple(dataclasses.replace(agent, config=settle(agent.config)) for agent in options.agents)
    return dataclasses.replace(options, config=common, agents=agents)


def _describe(options: CompareOptions, games: Sequence[str]) -> dict[str, Any]:
    """Returns the results without their values: everything that decides them."""
    writes = any(agent.checkpoint and options.track(agent) != "masked" for agent in options.agents)
    return {
        "compared": [describe(options, agent) for agent in options.agents],
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
"""The name of an agent, and the place of a match."""


class _Run:
    """One comparison under way.

    Args:
        options: The options.
        deals: The deals.
        journal: Keeps the matches.
        console: Shows progress.

    Attributes:
        known: Agent to what is known of it, by game.
        rounds: Rounds that were played.
    """

    def __init__(
        self, options: CompareOptions, deals: Sequence[Deal], journal: Journal[Key], console: Console
    ) -> None:
        self._options, self._journal, self._console = options, journal, console
        self._matches = list_matches(deals)
        self._deals: dict[str, list[Deal]] = {}
        for deal in deals:
            self._deals.setdefault(deal.game, []).append(deal)
        self._by_deal: dict[tuple[str, int], list[Match]] = {}
        for match in self._matches:
            self._by_deal.setdefault((match.task, match.deal), []).append(match)
        self._trees: Trees = {}
        self.known: dict[str, dict[str, Knowledge]] = {}
        self.rounds = 0

    def play(self) -> None:
        """Plays all rounds, or until it is clear."""
        agents, blocks = self._options.agents, self._list_blocks()
        if self._options.until_clear:
            with ExitStack() as stack:  # all are there at once
                players = [stack.enter_context(self._open(agent)) for agent in agents]
                for block in blocks:
                    for agent, player in zip(agents, players, strict=True):
                        self._play_block(agent.name, player, block)
                    self.rounds = block[-1].deal + 1
                    if all(difference.clear for difference in decisive(self.compare())):
                        break
            return
        for agent in agents:
            with self._open(agent) as player:
                for block in blocks:
                    self._play_block(agent.name, player, block)
        self.rounds = self._options.num_episodes

    def _list_blocks(self) -> list[list[Match]]:
        """Returns the matches in blocks of whole rounds."""
        blocks: list[list[Match]] = [[]]
        for match in self._matches:
            new_round = bool(blocks[-1]) and match.deal > blocks[-1][-1].deal
            if new_round and len(blocks[-1]) >= AT_ONCE:
                blocks.append([])
            blocks[-1].append(match)
        return blocks

    @contextmanager
    def _open(self, agent: Agent) -> Iterator[MatchPlayer]:
        """Yields an agent that is ready to play, after finding what is known of it."""
        options, policy = self._options, None
        if agent.checkpoint is not None:
            policy, _ = load_policy(agent.config, agent.checkpoint, self._console)
        self.known[agent.name] = {
            game: find_knowledge(agent, deals, options, policy, self._trees)
            for game, deals in self._deals.items()
        }
        if policy is not None:
            player: MatchPlayer = make_policy_player(
                policy,
                agent.config,
                lambda match: options.config.run.seed,
                replies=options.decode == "text",
                max_new_tokens=options.max_new_tokens,
                greedy=options.greedy,
            )
        elif agent.kind == "endpoint":
            chat = options.open_chat(agent.spec)
            player = EndpointPlayer(
                chat, options.concurrency, partial(_play_endpoint, agent.config, options.episode_s)
            )
        else:
            player = make_baseline_player(agent.spec, agent.config)
        try:
            yield player
        finally:
            player.close()

    def _play_block(self, name: str, player: MatchPlayer, block: Sequence[Match]) -> None:
        """Plays what is missing of a block; exact games are not played."""
        known, played = self.known[name], self._journal.played
        left = [
            match for match in block if known[match.task].cell is None and (name, match.place) not in played
        ]
        if not left:
            return

        def keep(match: Match, record: Row) -> None:
            self._journal.keep({
                "agent": name, "place": match.place, "game": match.task, "deal": match.deal,
                "task_id": match.task_id, "seed": match.seed, "seat": match.seat, **record,
            })  # fmt: skip

        title = f"{name}: playing {len(left):,} episodes, rounds {block[0].deal + 1} … "
        title += f"{block[-1].deal + 1} of {self._options.num_episodes}"
        with report_progress(self._console, title, len(left)) as on_step:
            player.play(left, keep, on_step)

    def columns(self) -> dict[str, dict[str, Column]]:
        """Returns the results so far: game to agent to column."""
        played, columns = self._journal.played, dict[str, dict[str, Column]]()
        for game in sorted(self._deals):
            deals = [self._by_deal[game, number] for number in range(self.rounds)]
            columns[game] = {
                name: make_column(
                    known[game],
                    [[(match.seat, played.get((name, match.place))) for match in deal] for deal in deals],
                )
                for name, known in self.known.items()
            }
        return columns

    def compare(self) -> list[Difference]:
        """Returns the differences so far."""
        options = self._options
        return compare_all(
            list(self.known), self.columns(), detect=options.detect, anytime=options.until_clear
        )

    def results(self) -> dict[str, Any]:
        """Returns everything as plain data."""
        columns = self.columns()
        return {
            "rounds": self.rounds,
            "detect": self._options.detect,
            "anytime": self._options.until_clear,
            "stopped_early": self.rounds < self._options.num_episodes,
            "agents": {
                name: {
                    game: _column_to_dict(known[game], by_agent[name], planned=not self._options.until_clear)
                    for game, by_agent in columns.items()
                }
                for name, known in self.known.items()
            },
            "differences": [difference.to_dict() for difference in self.compare()],
            # By place, and then in the order in which they were played.
            "episodes": sorted(self._journal.played.values(), key=lambda row: row["place"]),
        }


def _play_endpoint(config: Config, seconds: float | None, chat: Chat, match: Match) -> Row:
    """Plays a match by upstream's ``evaluate``; returns its record."""
    kind = kind_of(config.env)
    episode = require_played(kind.play_endpoint(chat, config.env, match.address, seconds))
    extra, failed = episode["extra"], episode.get("error") is not None
    simultaneous = pyspiel.GameType.Dynamics.SIMULTANEOUS  # each seat sees only its own moves
    sequential = match.game.variant.game.get_type().dynamics != simultaneous
    record: Row = {
        "score": None if failed else episode["score"],
        "result": "fault" if failed else "loss" if extra["given_up"] else result_of(episode["score"] - 0.5),
        "returns": extra["all_returns"],
        "history": [int(move["action"]) for move in extra["action_history"]] if sequential else None,
        "conversation": extra["conversation"],
        "illegal": extra["refused_replies"],
        "usage": extra["usage"],
    }
    return record | ({"error": episode["error"]} if failed else {})


def make_column(known: Knowledge, deals: Sequence[Sequence[tuple[int | None, Row | None]]]) -> Column:
    """Returns an agent's results in one game.

    Args:
        known: What is known of the agent in this game.
        deals: Per deal, its seats with their records; None for what was not played.
    """
    if known.cell is not None:
        nothing = (None,) * len(deals)
        return Column(nothing, nothing, (known.cell.score, known.cell.score), known.cell.score)
    bounds: Bounds = (0.0, 1.0)
    if known.estimators is not None:
        ends = [estimator.bounds for estimator in known.estimators]
        bounds = sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)
    estimates: list[float | None] = []
    scores: list[float | None] = []
    for seats in deals:
        rows = [(seat, row) for seat, row in seats if row is not None and row["score"] is not None]
        whole = len(rows) == len(seats)
        scores.append(sum(float(row["score"]) for _, row in rows) / len(rows) if whole else None)
        values = [_estimate_score(known, seat, row) for seat, row in rows]
        estimates.append(sum(values) / len(values) if whole else None)
    return Column(tuple(estimates), tuple(scores), bounds)


def _estimate_score(known: Knowledge, seat: int | None, row: Row) -> float:
    score = float(row["score"])
    if known.estimators is None:
        return score
    assert seat is not None, "games that are enumerated have seats"
    return known.estimators[seat].estimate(row["history"], score)


def _column_to_dict(known: Knowledge, column: Column, *, planned: bool) -> dict[str, Any]:
    if known.cell is not None:
        return {"exact": known.cell.to_dict()}
    values = [value for value in column.estimates if value is not None]
    cell: dict[str, Any] = {"deals": len(values), "faults": len(column.estimates) - len(values)}
    if values:
        estimate = estimate_mean(values, column.bounds)
        low, high = estimate.interval(planned=planned)
        cell |= {"score": estimate.mean, "low": low, "high": high, "spread": estimate.spread}
    cell |= {"estimates": list(column.estimates), "scores": list(column.scores)}
    return cell | {"reduced": known.estimators is not None, "why_not_exact": known.reason}
