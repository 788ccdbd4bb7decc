"""``gamespiel eval``: baselines and checkpoints, by play and exactly."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from game_gym.task import encode
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.runs import checkpoint
from gamespiel.config import Config, ConfigError, InvalidValueError, resolve, saved_config, to_dict
from gamespiel.kinds import KINDS
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from gamespiel.report.results import reserve_results, write_json
from task_gym.errors import ArgumentError, OpponentError, SizeError, TaskGymError
from tests.consoles import quiet
from tests.gamespiel.runs import STEPS, evaluate_aloud, evaluate_to_file, small, train_quietly

Overrides = list[tuple[str, str]]
KUHN = [("env.task_id", "null"), ("env.game", "kuhn_poker")]
TIC_TAC_TOE = [("env.task_id", "null"), ("env.game", "tic_tac_toe")]
CONNECT_FOUR = [("env.task_id", "null"), ("env.game", "connect_four")]
TWO_GAMES = [("env.task_id", "null"), ("env.task_ids", "[200000000, 600000000]")]
SERVED = [("env.env_mode", "url"), ("env.base_url", "http://127.0.0.1:9")]
NO_MODEL = ("model.model_name", "/no/where")
WRITES = ("env.decode", "text")
EXACT = {"exact": True}
SEARCH = {"agent": "mcts:2"}


def config(*overrides: tuple[str, str]) -> Config:
    return resolve("tiny", overrides=[("run.device", "cpu"), *overrides])


def run(folder: Path, settings: Config, **options: Any) -> dict[str, Any]:
    return evaluate_to_file(folder, settings, nulls="NaN|-?Infinity", **options)[0]


# -- by play -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "game"), [("first", []), ("random", KUHN), ("mcts:20", TIC_TAC_TOE), ("ismcts:20", [])]
)
def test_every_seat_gets_its_games_and_twice_is_the_same(
    agent: str, game: list[tuple[str, str]], tmp_path: Path
) -> None:
    settings = config(*game)
    results = run(tmp_path, settings, agent=agent, num_episodes=6)
    sampled = results["sampled"]
    assert {name: row["episodes"] for name, row in sampled.items()} == {"seat 0": 6, "seat 1": 6, "all": 12}
    assert all(row["faults"] == 0 and row["illegal_rate"] == 0 for row in sampled.values())
    # The mean over all games is the mean of the seats, which have equally many games.
    for name in ("score", "success", "returns"):
        seats = [sampled[seat][name][0] for seat in ("seat 0", "seat 1")]
        assert sampled["all"][name][0] == pytest.approx(sum(seats) / 2)
    assert run(tmp_path, settings, agent=agent, num_episodes=6) == results


@pytest.mark.trains
@pytest.mark.sample
def test_first_in_kuhn_poker_by_hand(tmp_path: Path) -> None:
    """``first`` always passes; the values against uniform play are the same from both seats.

    The opponent bets with 1/2, at once or after our pass, and we fold: -1. It passes with 1/2, and the cards
    decide: +1 or -1, equally often over the deals. So a game pays -1 with 1/2 + 1/4 = 3/4 and +1 with 1/4:
    mean -1/2, variance 1 - 1/4 = 3/4. The score is (return + 2) / 4: 1/4 or 3/4, mean 3/8; success is 1/4.
    Seat 0 has one turn, and a second after a bet: 3/2 on average. Seat 1 always has one turn.
    """
    solved = run(tmp_path, config(*KUHN), agent="first", exact=True)["exact"]["policy"]
    assert solved["values"] == pytest.approx([-1 / 2, -1 / 2])
    assert solved["share"] == pytest.approx(-1 / (1 / 2 + 5 / 12))  # best responses: test_exact of game_gym

    games = 160
    sampled = run(tmp_path, config(*KUHN), agent="first", num_episodes=games)["sampled"]
    error = math.sqrt(3 / 4 / games)
    for name in ("seat 0", "seat 1"):
        mean, low, high = sampled[name]["returns"]
        assert low < -1 / 2 < high
        # The interval has 1.96 standard errors on each side.
        assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.1)
        score = sampled[name]["score"]
        # Bets need a little more: sqrt(2 log 40) = 2.7 standard errors at most, beside few deals' doubt.
        assert score[0] == pytest.approx((mean + 2) / 4) and score[1] < 3 / 8 < score[2]
        assert (high - low) / 4 < score[2] - score[1] < 1.4 * (high - low) / 4
        assert sampled[name]["success"][1] < 1 / 4 < sampled[name]["success"][2]
    assert sampled["seat 0"]["length"] == pytest.approx(3 / 2, abs=4 * math.sqrt(1 / 4 / games))
    assert sampled["seat 1"]["length"] == 1


def test_runs_solve_smaller_games_unasked_than_evaluations_do(monkeypatch: pytest.MonkeyPatch) -> None:
    explain_unsolved = KINDS["openspiel"].explain_unsolved
    liars_dice = config(("env.task_id", "null"), ("env.game", "liars_dice")).env
    assert "liars_dice was given, which has more than 50,000 histories" in explain_unsolved(liars_dice)
    monkeypatch.setattr("gamespiel.kinds.games.kind.QUICK", 50)  # kuhn_poker has 58
    kuhn = config(*KUHN).env
    assert "more than 50 histories" in explain_unsolved(kuhn) and not explain_unsolved(kuhn, asked=True)


# -- checkpoints -------------------------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.sample
def test_a_checkpoint_by_play(finished: Path, tmp_path: Path) -> None:
    settings = saved_config(finished)
    results = run(tmp_path, settings, checkpoint=finished, num_episodes=5)
    episodes = {name: row["episodes"] for name, row in results["sampled"].items()}
    assert episodes == {"seat 0": 5, "seat 1": 5, "all": 10}
    assert results["agent"] == str(finished)
    assert results["env"] == json.loads(json.dumps(to_dict(settings)["env"]))
    assert run(tmp_path, settings, checkpoint=finished, num_episodes=5) == results
    # A run's folder means its newest checkpoint. The run's measures after training used as many games.
    newest = finished / "checkpoints" / "step-000012"
    assert run(tmp_path, settings, checkpoint=str(newest), num_episodes=5)["sampled"] == results["sampled"]
    after = json.loads((finished / "summary.json").read_text())["after"]
    three = run(tmp_path, settings, checkpoint=finished, num_episodes=3)["sampled"]["all"]
    assert (three["score"][0], three["returns"][0]) == (after["score"], after["return"])


@pytest.mark.trains
@pytest.mark.sample
def test_a_checkpoint_exactly(finished: Path, tmp_path: Path) -> None:
    settings, summary = saved_config(finished), json.loads((finished / "summary.json").read_text())
    solved = run(tmp_path, settings, checkpoint=finished, exact=True)["exact"]
    assert solved["policy"]["share"] == summary["after"]["share of best response"]
    assert solved["greedy"]["share"] == summary["after"]["share, greedy"]
    # Without adapters it is the model that training began with: its adapters had no effect.
    assert solved["untrained"]["share"] == pytest.approx(
        summary["before"]["share of best response"], abs=1e-6
    )
    start = run(tmp_path, settings, checkpoint=finished / "checkpoints" / "step-000000", exact=True)["exact"]
    assert start["policy"]["share"] == summary["before"]["share of best response"]
    greedy = run(tmp_path, settings, checkpoint=finished, num_episodes=60, greedy=True)
    for seat in (0, 1):
        mean, low, high = greedy["sampled"][f"seat {seat}"]["returns"]
        assert abs(solved["greedy"]["values"][seat] - mean) <= 4 * max(high - low, 1e-9) / (2 * 1.96)


@pytest.mark.trains
@pytest.mark.sample
def test_nothing_is_overwritten_but_the_same_answer(finished: Path, here: Path) -> None:
    """Another game, seed, number of games, model or checkpoint is another evaluation."""
    first = EvalOptions(config(*KUHN), agent="random", num_episodes=2)
    questions = [
        first,
        EvalOptions(config(*TIC_TAC_TOE, ("env.opponent", "mcts:5")), agent="random", num_episodes=2),
        dataclasses.replace(first, num_episodes=3),
        EvalOptions(config(*KUHN, ("run.seed", "1")), agent="random", num_episodes=2),
        first,
        EvalOptions(config(*KUHN), num_episodes=1),
        EvalOptions(config(*KUHN, ("model.random_weights", "true")), num_episodes=1),
    ]
    for options in questions:
        evaluate(options, quiet())
    files = {
        "eval-random-sampled-kuhn_poker-random.json": [0, 2],
        "eval-random-sampled-tic_tac_toe-mcts-5.json": [0, 2],
        "eval-random-sampled-kuhn_poker-random-2.json": [0, 3],
        "eval-random-sampled-kuhn_poker-random-3.json": [1, 2],
        "eval-tiny-sampled-kuhn_poker-random.json": [0, 1],
        "eval-tiny-sampled-kuhn_poker-random-2.json": [0, 1],
    }
    results = {path.name: json.loads(path.read_text()) for path in Path("runs").iterdir()}
    assert {name: [data["seed"], data["num_episodes"]] for name, data in results.items()} == files

    copy = shutil.copytree(finished, here / "run")
    asked = EvalOptions(saved_config(copy), checkpoint=copy, num_episodes=1)
    for options in ({}, {"greedy": True}, {"exact": True}):
        evaluate(dataclasses.replace(asked, **options), quiet())
    shutil.rmtree(checkpoint.find(copy))
    evaluate(asked, quiet())
    steps = {path.name: json.loads(path.read_text())["checkpoint"] for path in copy.glob("eval-*")}
    assert steps == {
        "eval-sampled-kuhn_poker-random.json": f"step-{STEPS:06d}",
        "eval-sampled-kuhn_poker-random-greedy.json": f"step-{STEPS:06d}",
        "eval-exact-kuhn_poker-random.json": f"step-{STEPS:06d}",
        "eval-sampled-kuhn_poker-random-2.json": f"step-{STEPS - 1:06d}",
    }


@pytest.mark.usefixtures("here")
def test_evaluations_side_by_side_have_a_place_each() -> None:
    """All look for a place before any of them has results; a file that is no result is left alone."""
    first = Path("runs") / "eval.json"
    first.parent.mkdir()
    first.write_text("my notes")
    with ExitStack() as stack:
        places = [stack.enter_context(reserve_results({"seed": seed}, first, None)) for seed in range(3)]
        assert len({first, *places}) == 4
        for seed, place in enumerate(places):
            write_json({"seed": seed, "exact": seed}, place)
    with reserve_results({"seed": 2}, first, None) as place:
        assert place == places[2]
    assert [json.loads(place.read_text())["exact"] for place in places] == [0, 1, 2]
    assert first.read_text() == "my notes"


@pytest.mark.usefixtures("here")
def test_a_failed_evaluation_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error before play leaves not even the folder; a place is looked for before anything is played."""
    options = EvalOptions(config(*KUHN), agent="random", exact=True)
    monkeypatch.setattr("game_gym.walk.MAX_STATES", 57)
    with pytest.raises(SizeError):
        evaluate(options, quiet())
    assert not Path("runs").exists()
    monkeypatch.setattr("game_gym.walk.MAX_STATES", 58)
    monkeypatch.setattr("game_gym.exact.greedy", lambda policy: lambda texts, legal: [])
    with pytest.raises(ArgumentError, match="policy: 0 answers were given"):
        evaluate(options, quiet())
    assert list(Path("runs").iterdir()) == []
    Path("runs").rmdir()
    Path("runs").write_text("a file")
    for output, place in ((None, "runs"), (Path("runs/x.json"), r"runs/x\.json")):
        with pytest.raises(InvalidValueError, match=f"results cannot be written to '{place}'"):
            evaluate(dataclasses.replace(options, output=output), quiet())


def test_tables_are_whole_in_a_narrow_terminal(tmp_path: Path) -> None:
    """Rich would take brackets of a name for markup; one return has no interval.

    Leduc poker pays chips and hex ±1: a mean over both has no unit.
    """
    output = tmp_path / "[red]" / "result.json"
    options = EvalOptions(config(*TWO_GAMES), agent="random", num_episodes=7, output=output)
    results, text = evaluate_aloud(options, width=60)
    assert max(map(len, text.splitlines()[2:-2])) <= 60 and "…" not in text
    assert "random on hex, leduc_poker against random" in " ".join(text.split())
    sampled = results["sampled"]
    assert results["games"] == ["hex", "leduc_poker"]
    assert list(sampled) == ["hex", "leduc_poker", "seat 0", "seat 1", "all"]
    assert sampled["hex"]["episodes"] + sampled["leduc_poker"]["episodes"] == 14
    assert [name for name, row in sampled.items() if row["returns"] is not None] == ["hex", "leduc_poker"]
    assert all(abs(value) <= 1 for value in sampled["hex"]["returns"])
    for row in sampled.values():
        mean, low, high = row["success"]
        figures = [f"{mean:.1%}", f"{100 * low:.1f}–{100 * high:.1f}", f"{row['score'][0]:.3f}"]
        score, least, most = row["score"]
        figures += [f"± {max(score - least, most - score):.3f}", f"{row['length']:.2f}"]
        assert [figure for figure in figures if figure not in text] == []
    assert "illegal moves: share of moves that the game refused" in " ".join(text.split())
    _, text = evaluate_aloud(EvalOptions(config(*KUHN), agent="random", exact=True, output=output), width=60)
    assert all(word in text for word in ("exploitability", "response", "+0.4167"))
    _, text = evaluate_aloud(EvalOptions(config(*KUHN), agent="random", num_episodes=1, output=output))
    table, _, place = text.partition("written to ")
    assert place.startswith(str(output)) and "inf" not in table and "nan" not in table
    assert table.count("±") == 4  # scores of each seat and of both, and the return of both together


# -- errors ------------------------------------------------------------------------------------------------


def beside_hex(game: str) -> Overrides:
    return [("env.task_id", "null"), ("env.task_ids", f"[{encode('hex', 0)}, {encode(game, 0)}]")]


@pytest.mark.parametrize(
    ("overrides", "options", "error", "message"),
    [
        ([("env.opponent", "open")], {}, InvalidValueError, "'open' leaves every seat to the caller"),
        ([("env.task_id", "null")], {}, InvalidValueError, "chooses no game"),
        (SERVED, {}, InvalidValueError, "--agent first reads the state of a game"),
        ([], {"greedy": True}, InvalidValueError, "--greedy is for a checkpoint"),
        ([NO_MODEL], {"agent": None, "checkpoint": TINY}, TaskGymError, "which holds none"),
        # One such game in a set is enough, whether it would be drawn or not.
        (beside_hex("2048"), SEARCH, OpponentError, "for '2048', which pays move by move"),
        (beside_hex("goofspiel"), SEARCH, OpponentError, "for 'goofspiel', whose moves are simultaneous"),
        (beside_hex("hex"), {"agent": "mcts:1"}, OpponentError, "opponent argument: '1' was given"),
        ([], EXACT | {"agent": "mcts:20"}, InvalidValueError, "random, first or a checkpoint, not 'mcts:20'"),
        ([("env.opponent", "mcts:20")], EXACT, ArgumentError, "'mcts:20' was given, allowed: 'random'"),
        (CONNECT_FOUR, EXACT, SizeError, "connect_four was given, which has more than 5,000,000 histories"),
        (TWO_GAMES, EXACT, SizeError, "exact evaluation takes one game"),
        ([("env.max_turns", "2")], EXACT, InvalidValueError, "env.max_turns must be null, not 2"),
        # Before the model is loaded.
        ([*CONNECT_FOUR, NO_MODEL], EXACT | {"agent": None}, SizeError, "has more than 5,000,000 histories"),
        ([WRITES, NO_MODEL], EXACT | {"agent": None}, ConfigError, r"--exact computes .*env\.decode: text"),
        ([WRITES, NO_MODEL], {"agent": None, "unmasked": True}, ConfigError, "--unmasked compares replies"),
    ],
)
def test_what_is_refused_leaves_no_file(
    overrides: Overrides, options: dict[str, Any], error: type[TaskGymError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        run(tmp_path, config(*overrides), **{"agent": "first", **options})
    assert list(tmp_path.iterdir()) == []


MODEL = {"agent": "openai:m@http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unmasked": True, "exact": True}, r"--exact .* and --unmasked plays without one"),
        ({"unmasked": True, "agent": "random"}, r"--unmasked is for a model that writes replies"),
        ({"decode": "text", "agent": "first"}, r"--decode text is for a model .* not for --agent first"),
        ({"unmasked": True, "greedy": True}, r"--unmasked shows greedy replies beside sampled ones"),
        ({"unmasked": True, "decode": "text"}, r"either --unmasked .* or --decode text"),
        ({"decode": "txt"}, r"'txt' was given, allowed: 'choice', 'text'; did you mean 'text'"),
        ({"max_new_tokens": 5}, r"--max_new_tokens limits replies"),
        # An agent behind an endpoint.
        (MODEL | {"exact": True}, "--exact needs a model that is here"),
        ({"agent": "random", "whole_game": True}, "--whole_game is for an agent behind an endpoint"),
        (MODEL | {"save_games": Path("g.jsonl")}, "--save_games"),
        (MODEL | {"concurrency": 0}, "--concurrency must be at least 1"),
        (MODEL | {"request_s": math.nan}, "--request_s must be above 0, not nan"),
        (MODEL | {"temperature": math.nan}, "--temperature must be at least 0, not nan"),
        (MODEL | {"prices": (-1.0, math.inf)}, "--prices must be at least 0, not -1.0 and inf"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        EvalOptions(config(), **options)


@pytest.mark.trains
@pytest.mark.sample
def test_a_seed_for_the_games_leaves_random_base_weights_alone(tmp_path: Path) -> None:
    run = train_quietly(small(tmp_path / "run", model__random_weights="true", ppo__num_train_steps="1"))
    config = resolve(base=saved_config(run), overrides=[("run.seed", "9")])
    options = EvalOptions(config, checkpoint=run, num_episodes=5, exact=True, output=tmp_path / "out.json")
    measured = evaluate(options, quiet())["exact"]["policy"]["values"]
    summary = json.loads((run / "summary.json").read_text())["after"]
    assert measured[0] == pytest.approx(summary["exact return, seat 0"], abs=1e-6)
