"""``gamespiel eval``: baselines and checkpoints, by play and exactly."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from game_gym.task import encode
from gamespiel import assembly, evaluation
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.evaluation import group_by_seat, play_seeds
from gamespiel.agents.runs.seats import draw_balanced_seeds
from gamespiel.config import Config, InvalidValueError, resolve, save, saved_config, to_dict
from gamespiel.environments import make_envs
from gamespiel.evaluation import evaluate
from gamespiel.kinds.games.baselines import baseline_agent
from gamespiel.kinds.games.exact import explain_unsolved
from gamespiel.options import EvalOptions
from gamespiel.report.results import reserve_results, write_json
from task_gym.errors import ArgumentError, OpponentError, SizeError, TaskGymError
from tests.gamespiel.runs import STEPS, quiet, small, train_quietly

KUHN = [("env.task_id", "null"), ("env.game", "kuhn_poker")]
TIC_TAC_TOE = [("env.task_id", "null"), ("env.game", "tic_tac_toe")]


def config(*overrides: tuple[str, str]) -> Config:
    return resolve("tiny", overrides=[("run.device", "cpu"), *overrides])


def run(folder: Path, given: Config, **options: Any) -> dict[str, Any]:
    """Returns the results, after a check that the file has the returned results."""
    output = folder / "result.json"
    results = evaluate(EvalOptions(config=given, output=output, **options), quiet())
    written: dict[str, Any] = json.loads(output.read_text())
    assert written == json.loads(json.dumps(results).replace("NaN", "null"))
    return written


# -- by play -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["first", "random", "mcts:20"])
@pytest.mark.parametrize("game", [[], KUHN, TIC_TAC_TOE], ids=["leduc", "kuhn", "tic_tac_toe"])
def test_every_seat_gets_its_games_and_twice_is_the_same(
    agent: str, game: list[tuple[str, str]], tmp_path: Path
) -> None:
    given = config(*game)
    results = run(tmp_path, given, agent=agent, num_episodes=6)
    sampled = results["sampled"]
    assert {name: row["episodes"] for name, row in sampled.items()} == {"seat 0": 6, "seat 1": 6, "all": 12}
    assert all(row["faults"] == 0 and row["illegal_rate"] == 0 for row in sampled.values())
    # The mean over all games is the mean of the seats, which have equally many games.
    for name in ("score", "success", "returns"):
        seats = [sampled[seat][name][0] for seat in ("seat 0", "seat 1")]
        assert sampled["all"][name][0] == pytest.approx(sum(seats) / 2)
    assert run(tmp_path, given, agent=agent, num_episodes=6) == results


def test_another_seed_plays_other_games(tmp_path: Path) -> None:
    one = run(tmp_path, config(), agent="random", num_episodes=10)
    two = run(tmp_path, config(("run.seed", "1")), agent="random", num_episodes=10)
    assert one["sampled"] != two["sampled"] and (one["seed"], two["seed"]) == (0, 1)


def test_first_in_kuhn_poker_by_hand(tmp_path: Path) -> None:
    """``first`` always passes; the values against uniform play are the same from both seats.

    The opponent bets with 1/2, at once or after our pass, and we fold: -1. It passes with 1/2, and the cards
    decide: +1 or -1, equally often over the deals. So a game pays -1 with 1/2 + 1/4 = 3/4 and +1 with 1/4:
    mean -1/2, variance 1 - 1/4 = 3/4. The score is (return + 2) / 4: 1/4 or 3/4, mean 3/8; success is 1/4.
    Seat 0 has one turn, and a second after a bet: 3/2 on average. Seat 1 always has one turn.
    """
    solved = run(tmp_path, config(*KUHN), agent="first", exact=True)["exact"]["policy"]
    assert solved["values"] == pytest.approx([-1 / 2, -1 / 2])
    assert solved["share"] == pytest.approx(
        -1 / (1 / 2 + 5 / 12)
    )  # best responses: see test_exact of game_gym

    games = 1000
    sampled = run(tmp_path, config(*KUHN), agent="first", num_episodes=games)["sampled"]
    error = math.sqrt(3 / 4 / games)
    for name in ("seat 0", "seat 1"):
        mean, low, high = sampled[name]["returns"]
        assert low < -1 / 2 < high
        # The interval has 1.96 standard errors on each side.
        assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.1)
        score = sampled[name]["score"]
        assert score == pytest.approx([(bound + 2) / 4 for bound in (mean, low, high)])
        assert sampled[name]["success"][1] < 1 / 4 < sampled[name]["success"][2]
    assert sampled["seat 0"]["length"] == pytest.approx(3 / 2, abs=4 * math.sqrt(1 / 4 / games))
    assert sampled["seat 1"]["length"] == 1


def test_the_honest_search_is_an_agent_too(tmp_path: Path) -> None:
    row = run(tmp_path, config(), agent="ismcts:20", num_episodes=6)["sampled"]["all"]
    assert (row["episodes"], row["faults"], row["illegal_rate"]) == (12, 0, 0)


def test_mcts_beats_random_at_tic_tac_toe(tmp_path: Path) -> None:
    """A search two moves deep takes wins and stops losses, so it rarely loses."""
    results = run(tmp_path, config(*TIC_TAC_TOE), agent="mcts:100x5", num_episodes=20)
    assert results["sampled"]["all"]["score"][0] > 0.9


def test_a_baseline_plays_as_the_opponent_of_its_name(tmp_path: Path) -> None:
    """``first`` against ``first`` in kuhn poker: nobody bets, so each seat has one turn."""
    envs = make_envs(config(*KUHN, ("env.opponent", "first")).env, 8)
    seeds = draw_balanced_seeds(envs.envs[0], 10, seed=1)
    episodes = play_seeds(envs, baseline_agent("first", envs, seeds), seeds)
    assert {seat: len(own) for seat, own in group_by_seat(episodes).items()} == {0: 10, 1: 10}
    assert all([turn.action for turn in episode.turns] == [0] for episode in episodes)
    assert {abs(episode.info["returns"][0]) for episode in episodes} == {1.0}


@pytest.mark.parametrize(
    ("agent", "game", "message"),
    [
        (
            "mcts:2",
            "goofspiel",
            "'mcts' was given for 'goofspiel', whose moves are simultaneous",
        ),
        ("mcts:2", "2048", "'mcts' was given for '2048', which pays move by move"),
        ("ismcts:2", "hex", "'ismcts' was given for 'hex', where nothing is hidden"),
        ("mcts:1", "hex", "opponent argument: '1' was given"),
    ],
)
def test_a_game_that_an_agent_cannot_play_is_refused_before_any_is_played(
    agent: str, game: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One such game in a set is enough, whether it would be drawn or not.
    tasks = [("env.task_id", "null"), ("env.task_ids", f"[{encode('hex', 0)}, {encode(game, 0)}]")]
    monkeypatch.setattr("gamespiel.episodes.play_seeds", None)
    with pytest.raises(OpponentError, match=message):
        evaluate(EvalOptions(config(*tasks), agent=agent), quiet())


# -- exactly -----------------------------------------------------------------------------------------------


def test_random_in_leduc_poker_has_no_share(tmp_path: Path) -> None:
    """Both seats play uniformly in a zero-sum game, so the values of the two seats cancel."""
    solved = run(tmp_path, config(), agent="random", exact=True)["exact"]
    assert sum(solved["policy"]["values"]) == pytest.approx(0, abs=1e-12)
    assert solved["policy"]["share"] == pytest.approx(0, abs=1e-12)
    assert solved["policy"]["best"] == pytest.approx([2.0875, 2.6597], abs=1e-4)
    assert solved["untrained"] is None


def test_exact_values_agree_with_play(tmp_path: Path) -> None:
    """Sampled and exact values of ``first`` in leduc poker agree within four standard errors."""
    solved = run(tmp_path, config(), agent="first", exact=True)["exact"]["policy"]
    sampled = run(tmp_path, config(), agent="first", num_episodes=300)["sampled"]
    for seat in (0, 1):
        mean, low, high = sampled[f"seat {seat}"]["returns"]
        assert abs(solved["values"][seat] - mean) <= 4 * max(high - low, 1e-9) / (2 * 1.96)


@pytest.mark.parametrize(
    ("agent", "overrides", "error", "message"),
    [
        ("mcts:20", [], InvalidValueError, "known exactly: random, first or a checkpoint, not 'mcts:20'"),
        (
            "random",
            [("env.opponent", "mcts:20")],
            ArgumentError,
            "'mcts:20' was given, allowed: 'random', 'f",
        ),
        ("random", TIC_TAC_TOE, SizeError, "tic_tac_toe was given, which has more than 300,000 histories"),
        (
            "random",
            [("env.task_id", "null"), ("env.task_ids", "[[200000000, 200000009]]")],
            SizeError,
            "exact evaluation takes one game: give env.task_id or env.game",
        ),
        ("random", [("env.max_turns", "2")], InvalidValueError, "env.max_turns must be null, not 2"),
    ],
)
def test_what_cannot_be_solved_is_refused(
    agent: str, overrides: list[tuple[str, str]], error: type[TaskGymError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        run(tmp_path, config(*overrides), agent=agent, exact=True)
    assert not (tmp_path / "result.json").exists()
    assert agent == "mcts:20" or explain_unsolved(config(*overrides).env)


def test_what_can_be_solved_is_known() -> None:
    for overrides in ([], KUHN, [("env.opponent", "first")]):
        assert not explain_unsolved(config(*overrides).env)
    # Few enough for --exact, and too many for runs that did not ask.
    liars_dice = config(("env.task_id", "null"), ("env.game", "liars_dice")).env
    assert "liars_dice was given, which has more than 50,000 histories" in explain_unsolved(liars_dice)


# -- checkpoints -------------------------------------------------------------------------------------------


def test_a_checkpoint_by_play(finished: Path, tmp_path: Path) -> None:
    given = saved_config(finished)
    results = run(tmp_path, given, checkpoint=finished, num_episodes=5)
    assert {name: row["episodes"] for name, row in results["sampled"].items()} == {
        "seat 0": 5,
        "seat 1": 5,
        "all": 10,
    }
    assert results["agent"] == str(finished) and results["env"] == json.loads(
        json.dumps(to_dict(given)["env"])
    )
    assert run(tmp_path, given, checkpoint=finished, num_episodes=5) == results
    # A run's folder means its newest checkpoint. The run's measures after training used as many games.
    newest = finished / "checkpoints" / "step-000012"
    assert run(tmp_path, given, checkpoint=newest, num_episodes=5)["sampled"] == results["sampled"]
    after = json.loads((finished / "summary.json").read_text())["after"]
    three = run(tmp_path, given, checkpoint=finished, num_episodes=3)["sampled"]["all"]
    assert (three["score"][0], three["returns"][0]) == (after["score"], after["return"])


def test_a_checkpoint_exactly(finished: Path, tmp_path: Path) -> None:
    given, summary = saved_config(finished), json.loads((finished / "summary.json").read_text())
    solved = run(tmp_path, given, checkpoint=finished, exact=True)["exact"]
    assert solved["policy"]["share"] == summary["after"]["share of best response"]
    assert solved["greedy"]["share"] == summary["after"]["share, greedy"]
    # Without adapters it is the model that training began with: its adapters had no effect.
    assert solved["untrained"]["share"] == pytest.approx(
        summary["before"]["share of best response"], abs=1e-6
    )
    start = run(tmp_path, given, checkpoint=finished / "checkpoints" / "step-000000", exact=True)["exact"]
    assert start["policy"]["share"] == summary["before"]["share of best response"]


def test_greedy_plays_as_its_exact_value_says(finished: Path, tmp_path: Path) -> None:
    given = saved_config(finished)
    greedy = run(tmp_path, given, checkpoint=finished, num_episodes=200, greedy=True)
    solved = run(tmp_path, given, checkpoint=finished, exact=True)["exact"]["greedy"]
    assert greedy["greedy"] is True
    for seat in (0, 1):
        mean, low, high = greedy["sampled"][f"seat {seat}"]["returns"]
        assert abs(solved["values"][seat] - mean) <= 4 * max(high - low, 1e-9) / (2 * 1.96)


def test_results_go_beside_the_checkpoint_unless_told_otherwise(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(finished, copy)
    given = saved_config(copy)
    for options in ({}, {"greedy": True}, {"exact": True}):
        evaluate(EvalOptions(config=given, checkpoint=copy, num_episodes=1, **options), quiet())
    assert {path.name for path in copy.glob("eval-*")} == {
        "eval-sampled-kuhn_poker-random.json",
        "eval-sampled-kuhn_poker-random-greedy.json",
        "eval-exact-kuhn_poker-random.json",
    }
    monkeypatch.chdir(tmp_path)
    against = config(*TIC_TAC_TOE, ("env.opponent", "mcts:5"))
    evaluate(EvalOptions(config=against, agent="first", num_episodes=1), quiet())
    assert (tmp_path / "runs" / "eval-first-sampled-tic_tac_toe-mcts-5.json").is_file()


def test_nothing_is_overwritten_but_the_same_answer(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another game, seed, number of games or checkpoint is another evaluation."""
    monkeypatch.chdir(tmp_path)
    first = EvalOptions(config(*KUHN), agent="random", num_episodes=2)
    questions = [
        first,
        EvalOptions(config(*TIC_TAC_TOE), agent="random", num_episodes=2),
        dataclasses.replace(first, num_episodes=3),
        EvalOptions(config(*KUHN, ("run.seed", "1")), agent="random", num_episodes=2),
        first,
    ]
    for options in questions:
        evaluate(options, quiet())
    files = {
        "eval-random-sampled-kuhn_poker-random.json": [0, 2],
        "eval-random-sampled-tic_tac_toe-random.json": [0, 2],
        "eval-random-sampled-kuhn_poker-random-2.json": [0, 3],
        "eval-random-sampled-kuhn_poker-random-3.json": [1, 2],
    }
    found = {path.name: json.loads(path.read_text()) for path in Path("runs").iterdir()}
    assert {name: [data["seed"], data["num_episodes"]] for name, data in found.items()} == files

    copy = tmp_path / "run"
    shutil.copytree(finished, copy)
    asked = EvalOptions(saved_config(copy), checkpoint=copy, num_episodes=1)
    evaluate(asked, quiet())
    shutil.rmtree(checkpoint.find(copy))
    evaluate(asked, quiet())
    steps = {path.name: json.loads(path.read_text())["checkpoint"] for path in copy.glob("eval-*")}
    assert steps == {
        "eval-sampled-kuhn_poker-random.json": f"step-{STEPS:06d}",
        "eval-sampled-kuhn_poker-random-2.json": f"step-{STEPS - 1:06d}",
    }


def test_models_are_part_of_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for overrides in ([], [("model.random_weights", "true")]):
        evaluate(EvalOptions(config(*KUHN, *overrides), num_episodes=1), quiet())
    assert len(list(Path("runs").iterdir())) == 2


def test_evaluations_side_by_side_have_a_place_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All look for a place before any of them has results."""
    monkeypatch.chdir(tmp_path)
    first = Path("runs") / "eval.json"
    with ExitStack() as stack:
        places = [stack.enter_context(reserve_results({"seed": seed}, first, None)) for seed in range(4)]
        assert len(set(places)) == 4
        for seed, place in enumerate(places):
            write_json({"seed": seed, "exact": seed}, place)
    with reserve_results({"seed": 2}, first, None) as place:
        assert place == places[2]
    assert [json.loads(place.read_text())["exact"] for place in places] == [0, 1, 2, 3]


def test_a_place_is_found_before_anything_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("a file")
    with pytest.raises(InvalidValueError, match="results cannot be written to 'runs'"):
        evaluate(EvalOptions(config(*KUHN), agent="random"), quiet())
    with pytest.raises(InvalidValueError, match=r"results cannot be written to 'runs/x\.json'"):
        evaluate(EvalOptions(config(*KUHN), agent="random", output=Path("runs/x.json")), quiet())


def test_a_failed_evaluation_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be known before play leaves not even the folder."""
    monkeypatch.chdir(tmp_path)
    options = EvalOptions(config(*KUHN), agent="random", exact=True)
    monkeypatch.setattr("game_gym.exact.MAX_STATES", 57)
    with pytest.raises(SizeError):
        evaluate(options, quiet())
    assert not Path("runs").exists()
    monkeypatch.setattr("game_gym.exact.MAX_STATES", 58)
    monkeypatch.setattr("gamespiel.exact.exact.greedy", lambda policy: lambda texts, legal: [])
    with pytest.raises(ArgumentError, match="policy: 0 answers were given"):
        evaluate(options, quiet())
    assert list(Path("runs").iterdir()) == []


def test_too_large_a_game_is_refused_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    chess = config(("env.task_id", "null"), ("env.game", "chess"))
    monkeypatch.setattr(evaluation, "_load_policy", lambda *arguments: pytest.fail("a model was loaded"))
    with pytest.raises(SizeError, match="chess was given, which has more than 300,000 histories"):
        evaluate(EvalOptions(chess, exact=True), quiet())


def test_the_step_that_was_loaded_is_the_one_in_the_results(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest checkpoint may be another once the model is loaded."""
    run, make = tmp_path / "run", assembly.make_policy
    shutil.copytree(finished, run)

    def slow(*arguments: Any) -> Any:
        shutil.rmtree(checkpoint.find(run))
        return make(*arguments)

    monkeypatch.setattr(assembly, "make_policy", slow)
    results = evaluate(EvalOptions(saved_config(run), checkpoint=run, num_episodes=1), quiet())
    assert results["checkpoint"] == f"step-{STEPS - 1:06d}"


def test_a_file_that_is_no_result_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    notes = Path("runs/eval-random-sampled-kuhn_poker-random.json")
    notes.write_text("my notes")
    evaluate(EvalOptions(config(*KUHN), agent="random", num_episodes=1), quiet())
    assert notes.read_text() == "my notes" and notes.with_stem(notes.stem + "-2").is_file()


def test_several_games_have_a_row_each_and_no_common_return(tmp_path: Path) -> None:
    """Leduc poker pays chips and hex ±1: a mean over both has no unit."""
    two = config(("env.task_ids", "[200000000, 600000000]"))
    results = run(tmp_path, two, agent="first", num_episodes=8)
    assert results["games"] == ["hex", "leduc_poker"]
    sampled = results["sampled"]
    assert list(sampled) == ["hex", "leduc_poker", "seat 0", "seat 1", "all"]
    assert sampled["hex"]["episodes"] + sampled["leduc_poker"]["episodes"] == 16
    assert [name for name, row in sampled.items() if row["returns"] is not None] == ["hex", "leduc_poker"]
    assert all(abs(value) <= 1 for value in sampled["hex"]["returns"])


def test_a_model_without_a_run(tmp_path: Path) -> None:
    """The untrained embedded model imitates random play: exact values near 0, and no second untrained row."""
    given = config(*KUHN)
    sampled = run(tmp_path, given, num_episodes=4)
    assert (sampled["agent"], sampled["sampled"]["all"]["episodes"]) == ("tiny", 8)
    assert 0.9 < sampled["sampled"]["all"]["legal_mass"] <= 1
    solved = run(tmp_path, given, exact=True)["exact"]
    assert solved["untrained"] is None and abs(solved["policy"]["share"]) < 0.05


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_are_whole_in_any_terminal(width: int, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=width)
    games = config(("env.task_ids", "[200000000, 1600000000]"))
    output = tmp_path / "result.json"
    results = evaluate(EvalOptions(games, agent="random", num_episodes=7, output=output), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines()[2:-2])) <= width and "…" not in text
    assert "random on leduc_poker, phantom_ttt against random" in " ".join(text.split())
    for row in results["sampled"].values():
        mean, low, high = row["success"]
        figures = [f"{mean:.1%}", f"{100 * low:.1f}–{100 * high:.1f}", f"{row['score'][0]:.3f}"]
        figures += [f"± {(row['score'][2] - row['score'][0]):.3f}", f"{row['length']:.2f}"]
        assert [figure for figure in figures if figure not in text] == []
    assert "illegal moves: share of moves that the game refused" in " ".join(text.split())
    console = Console(file=io.StringIO(), width=width)
    evaluate(EvalOptions(config(*KUHN), agent="random", exact=True, output=output), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(word in text for word in ("exploitability", "response", "+0.4167"))


def test_brackets_in_a_name_are_shown_as_they_are(tmp_path: Path) -> None:
    """Rich would take them for markup."""
    console = Console(file=io.StringIO(), width=120)
    output = tmp_path / "[red]" / "result.json"
    evaluate(EvalOptions(config(*KUHN), agent="random", num_episodes=1, output=output), console)
    assert f"written to {output}" in console.file.getvalue()  # type: ignore[attr-defined]


def test_one_game_has_no_interval(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    options = EvalOptions(config(*KUHN), agent="random", num_episodes=1, output=tmp_path / "result.json")
    evaluate(options, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "inf" not in text and "nan" not in text
    assert text.count("±") == 2  # score and return of the two games together


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "options", "error", "message"),
    [
        ([("env.opponent", "open")], {}, InvalidValueError, "'open' leaves every seat to the caller"),
        ([("env.task_id", "null")], {}, InvalidValueError, "chooses no game"),
        (
            [("env.env_mode", "url"), ("env.base_url", "http://127.0.0.1:9")],
            {},
            InvalidValueError,
            "--agent first reads the state of a game",
        ),
        ([], {"greedy": True}, InvalidValueError, "--greedy is for a checkpoint"),
        (
            [("model.model_name", "/no/where")],
            {"agent": None, "checkpoint": TINY},
            TaskGymError,
            "which holds none",
        ),
    ],
)
def test_named_errors(
    overrides: list[tuple[str, str]],
    options: dict[str, Any],
    error: type[TaskGymError],
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message):
        run(tmp_path, config(*overrides), **{"agent": "first", **options})


def test_a_run_of_another_shape_is_refused(finished: Path, tmp_path: Path) -> None:
    other = resolve(base=saved_config(finished), overrides=[("lora.r", "8")])
    with pytest.raises(TaskGymError, match="does not fit this policy"):
        run(tmp_path, other, checkpoint=finished, num_episodes=1)


def test_the_configuration_of_a_run_is_what_evaluation_starts_from(tmp_path: Path) -> None:
    save(small(tmp_path), tmp_path / "config.yaml")
    assert saved_config(tmp_path) == small(tmp_path)


def test_a_seed_for_the_games_leaves_random_base_weights_alone(tmp_path: Path) -> None:
    run = train_quietly(small(tmp_path / "run", model__random_weights="true", ppo__num_train_steps="1"))
    config = resolve(base=saved_config(run), overrides=[("run.seed", "9")])
    options = EvalOptions(config, checkpoint=run, num_episodes=5, exact=True, output=tmp_path / "out.json")
    measured = evaluate(options, quiet())["exact"]["policy"]["values"]
    summary = json.loads((run / "summary.json").read_text())["after"]
    assert measured[0] == pytest.approx(summary["exact return, seat 0"], abs=1e-6)


def test_paths_may_be_texts(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.json"
    texts: Any = {"checkpoint": str(finished), "output": str(path)}
    options = EvalOptions(saved_config(finished), num_episodes=1, **texts)
    assert evaluate(options, quiet())["checkpoint"] == f"step-{STEPS:06d}"
    assert path.is_file()
