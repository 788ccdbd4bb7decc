"""Ways to train: on replies as text, on whole conversations, against itself, and from recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, from_dict, saved_config
from gamespiel.environments.making import evaluation_config, make_envs, make_one_env
from gamespiel.kinds.wrappers import THINK
from gamespiel.measure.episodes import measure_agent, play_policy
from gamespiel.measure.options import EvalOptions
from gamespiel.measure.records import read_records
from gamespiel.replay.page import make_rows
from gamespiel.training.warm_start import RowError, WarmStart, encode_rows, read_rows, warm_start
from task_gym.errors import MissingPackageError
from task_gym.wrappers import ConversationText
from tests.consoles import quiet
from tests.gamespiel.runs import assert_repeated, evaluate_aloud, rows_of, small, steps_of, train_quietly

KUHN = {"game": "kuhn_poker", "decode": "text"}
TRACE = {"env_type": "trace", "level": 1, "decode": "text"}


def env_of(**env: Any) -> Any:
    return make_one_env(from_dict({"env": env}).env)


# -- replies as text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (KUHN | {"answer": "name"}, "GameSpielText-v0"),
        (TRACE, "CodeTrace-v0"),
        (TRACE | {"by_line": True}, "CodeTraceLines-v0"),
    ],
)
def test_thinking_asks_for_it_before_the_question(env: dict[str, Any], name: str) -> None:
    plain, thinking = env_of(**env), env_of(**env, think=True)
    assert plain.spec.id == thinking.spec.id == name
    (before, _), (asked, _) = plain.reset(seed=4), thinking.reset(seed=4)
    *state, question = before.split("\n")
    assert asked.split("\n") == [*state, THINK, question]
    if env.get("answer") == "name":
        assert asked.names == before.names


def test_the_answer_comes_after_the_thoughts() -> None:
    """Upstream's rule would read the 1 of the thoughts, a bet; the answer is 0, a pass."""
    thinking = env_of(**KUHN, think=True)
    thinking.reset(seed=4)
    _, _, _, _, info = thinking.step("<think>1 or 0? I take 1.</think> 0")
    assert "error" not in info and thinking.unwrapped.state.history_str().split(", ")[2] == "0"


@pytest.mark.parametrize("reply", ["x" * 2**21, "", "\ufffd\x00", "1" * 2**20])
def test_any_reply_can_be_given(reply: str) -> None:
    """Longer than the space's own limit, empty, without text, or one number of a million digits."""
    env = make_envs(from_dict({"env": KUHN}).env, 1)
    env.reset_one(0, 4)
    _, reward, over, _, info = env.step_one(0, reply)
    assert reward == -0.01 and not over and "error" in info


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_is_evaluated_as_it_was_trained(tmp_path: Path) -> None:
    more = {"env__decode": "text", "ppo__num_train_steps": "1", "ppo__max_new_tokens": "5"}
    run = train_quietly(small(tmp_path / "run", **more, run__eval_games="0"))
    (row,) = rows_of(run)
    assert 1 <= row["rollout/reply_tokens"] <= 5 and 0 <= row["rollout/illegal"] <= 1
    main(["eval", "--checkpoint", str(run), "--num_episodes", "2", "--output", str(tmp_path / "e.json")])
    results = json.loads((tmp_path / "e.json").read_text())
    assert (results["decode"], results["max_new_tokens"], results["temperature"]) == ("text", 5, 0.7)
    assert results["replies"]["sampled"]["all"]["tokens_per_reply"] <= 5


@pytest.mark.parametrize(
    ("env", "agent"), [(KUHN, "random"), (TRACE | {"by_line": True}, "oracle"), (TRACE, "first")]
)
def test_baselines_play_as_ever(env: dict[str, Any], agent: str) -> None:
    """Baselines choose, or write a whole output, whatever a policy would do."""
    choosing = {key: value for key, value in env.items() if key not in ("decode", "by_line")}
    asked, plain = (from_dict({"env": keys}) for keys in (env, choosing))
    assert measure_agent(asked, agent, 2, quiet()) == measure_agent(plain, agent, 2, quiet())


# -- conversations -----------------------------------------------------------------------------------------


TALK = {"env__conversation": "true", "env__game": "kuhn_poker"}
WAYS: dict[str, dict[str, str]] = {
    "openenv": {},
    "evaluate": {"env__seeding": "evaluate"},
    "shared": {"model__reading": "shared", "ppo__tokens_per_forward": "200"},
    "names": {"env__answer": "name"},
    "texts": {"env__decode": "text", "ppo__max_new_tokens": "4", "env__seeding": "evaluate"},
    "self-play": {"env__opponent": "self"},
    "cut": {"env__context_tokens": "80"},
}


@pytest.mark.trains
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.sample] * (way == "cut")) for way in WAYS]
)
def test_a_conversation_run_goes_on_bit_for_bit(way: str, tmp_path: Path) -> None:
    """Its state as after the first of three steps, and resumed, it is the run that was not stopped."""
    more: dict[str, Any] = TALK | WAYS[way] | {"run__eval_games": "0", "ppo__batch_size": "12"}
    whole = train_quietly(small(tmp_path / "whole", **more, ppo__num_train_steps="3"))
    assert_repeated(whole, tmp_path / "run", 1)
    assert steps_of(tmp_path / "run") == [0, 1, 2, 3]
    assert any(row["rollout/conversations_cut"] for row in rows_of(whole)) == (way == "cut")


@pytest.mark.trains
@pytest.mark.sample
def test_games_are_recorded_exported_and_learned_as_conversations(tmp_path: Path) -> None:
    """Their first message is the system's, of protocol "evaluate"."""
    more = {"ppo__num_train_steps": "1", "env__seeding": "evaluate", "env__rules": "true"}
    config = small(tmp_path / "run", **TALK, **more)
    games = read_records(train_quietly(config))
    for game in games:
        said = [message["content"] for message in game["conversation"]]
        assert said[1:] == [text for turn in game["turns"] for text in (turn["observation"], turn["answer"])]
    rows = list(make_rows(games))
    assert len(rows) == sum(len(game["turns"]) for game in games)
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row, read in zip(rows, read_rows(file), strict=True):
        *asked, answer = row["messages"]
        assert read.answer == answer["content"] and read.observation == asked[-1]["content"]
        assert isinstance(read.observation, ConversationText) and list(read.observation.messages) == asked
    first, _ = make_one_env(config.env).reset(seed=games[0]["seed"])
    assert [m["content"] for m in first.messages] == [m["content"] for m in games[0]["conversation"][:2]]


def test_a_turn_that_can_never_fit_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **TALK, env__rules="true", env__context_tokens="60")
    with pytest.raises(ValueError, match=r"at most 60: env.context_tokens"):
        train_quietly(config)
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.trains
@pytest.mark.sample
def test_replies_without_a_mask_are_measured_in_conversations(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **TALK, env__seeding="evaluate", env__rules="true")
    policy = make_policy(config, make_one_env(config.env))
    episodes = play_policy(config, policy, 2, quiet(), free=policy.free_text(3))
    assert episodes and all(
        isinstance(turn.observation, ConversationText) and turn.observation.messages[0]["role"] == "system"
        for episode in episodes
        for turn in episode.turns
    )
    refused = [turn for episode in episodes for turn in episode.turns[1:] if episode.illegal]
    assert any("names no legal action" in turn.observation for turn in refused)


# -- self-play ---------------------------------------------------------------------------------------------


ONE = {
    "env__opponent": "self",
    "self_play__learn": "one",
    "self_play__pool_every": "2",
    "self_play__pool_size": "3",
    "self_play__pool_pick": "win_rate",
    "ppo__magnet_coef": "0.1",
    "ppo__magnet_every": "3",
    "ppo__magnet_rate": "0.5",
    "ppo__average_decay": "0.5",
    "ppo__num_train_steps": "8",
    "run__exact_every": "4",
    "run__eval_games": "0",
}


@pytest.fixture(scope="module")
def self_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_quietly(small(tmp_path_factory.mktemp("self") / "run", **ONE))


@pytest.mark.trains
@pytest.mark.sample
def test_self_play_resumes_bit_for_bit(self_run: Path, tmp_path: Path) -> None:
    """Between moves of the magnet and growth of the pool, too: their weights are in the checkpoint.

    So are the learner's own beside the average.
    """
    assert_repeated(self_run, tmp_path / "run", 5)


@pytest.mark.trains
@pytest.mark.sample
def test_rows_and_checkpoints_name_the_snapshots(self_run: Path) -> None:
    """Snapshots every 2 steps, of which 3 are kept; the magnet moves before steps 3 and 6 (from 0)."""
    rows = rows_of(self_run)
    assert [row["pool/steps"] for row in rows[:7]] == [
        [0], [0], [0, 2], [0, 2], [0, 2, 4], [0, 2, 4], [2, 4, 6],
    ]  # fmt: skip
    assert [row["train/magnet_step"] for row in rows] == [0, 0, 0, 3, 3, 3, 6, 6]
    assert [i for i, row in enumerate(rows) if "eval/exploitability" in row] == [0, 4]
    assert rows[0]["eval/exploitability"] == pytest.approx(11 / 24, abs=0.02)  # uniform play has 11/24
    state = json.loads((checkpoint.find(self_run) / "state.json").read_text())
    assert [member["step"] for member in state["pool"]] == [2, 4, 6]
    assert state["magnet"] == {"step": 6}
    files = sorted(path.name for path in (checkpoint.find(self_run) / "snapshots").iterdir())
    pool = [f"pool-{step:06d}.safetensors" for step in (2, 4, 6)]
    assert files == ["learner.safetensors", "magnet.safetensors", *pool]
    assert "exploitability" in json.loads((self_run / "summary.json").read_text())["after"]


@pytest.mark.trains
@pytest.mark.sample
def test_evaluations_are_against_random(self_run: Path) -> None:
    results, text = evaluate_aloud(EvalOptions(saved_config(self_run), self_run, exact=True))
    assert "opponent 'self' is for training: evaluated against random" in text
    assert results["env"]["opponent"] == results["exact"]["policy"]["opponent"] == "random"
    assert 0 < results["exact"]["policy"]["exploitability"] < 2


@pytest.mark.trains
@pytest.mark.sample
def test_a_mixture_of_itself_and_others(tmp_path: Path) -> None:
    """A game against itself has an episode per seat, one against another opponent has one."""
    mixture = {"env__opponent": "{random: 0.5, self: 0.5}", "run__eval_games": "2"}
    run = train_quietly(small(tmp_path / "run", **mixture, ppo__num_train_steps="2", ppo__batch_size="32"))
    for row in rows_of(run):
        against = {name: row[f"rollout/against/{name}/episodes"] for name in ("random", "self")}
        assert against["random"] + against["self"] / 2 == 32
        assert against["random"] > 0 and against["self"] > 0
        assert row["rollout/against/self/reward"] == pytest.approx(0.5)  # the seats' scores sum to 1
        assert not [name for name in row if name.startswith(("pool/", "train/magnet"))]
    assert not (checkpoint.find(run) / "snapshots").exists()
    assert saved_config(run).env.opponent == {"random": 0.5, "self": 0.5}


def test_evaluations_leave_itself_out() -> None:
    trained: dict[str, float]
    for trained, measured in (
        ({"self": 1.0}, "random"),
        ({"mcts:10": 0.3, "self": 0.7}, "mcts:10"),
        ({"mcts:10": 0.3, "self": 0.5, "random": 0.2}, {"mcts:10": 0.3, "random": 0.2}),
    ):
        assert evaluation_config(from_dict({"opponent": trained})).env.opponent == measured


# -- recorded answers --------------------------------------------------------------------------------------


def write_rows(path: Path, *rows: tuple[str, str]) -> Path:
    lines = [
        json.dumps({"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]})
        for a, b in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def first_texts(config: Any, count: int) -> list[str]:
    env = make_one_env(config.env)
    return sorted({str(env.reset(seed=seed)[0]) for seed in range(count)})


@pytest.mark.trains
@pytest.mark.sample
def test_what_was_played_becomes_likely_and_ppo_goes_on(tmp_path: Path) -> None:
    """In Kuhn poker: the answer is always 1, bet."""
    config = small(tmp_path / "run", ppo__num_train_steps="1", run__eval_games="0")
    texts = first_texts(config, 60)
    data = write_rows(tmp_path / "rows.jsonl", *[(text, "1") for text in texts] * 6)
    start = WarmStart([data], epochs=4, learning_rate=5e-3, batch_size=len(texts))
    run = warm_start(config, start, quiet())
    told = json.loads((run / "warm_start.json").read_text())
    assert told["rows"] == 6 * len(texts) and told["losses"][0] > told["losses"][-1]
    env = make_one_env(config.env)
    policy = make_policy(config, env)

    def probability_of_betting() -> np.ndarray[Any, Any]:
        with torch.no_grad():
            return np.array([odds[1] for odds in policy.distribution(texts, [[0, 1]] * len(texts))])

    before = np.mean(probability_of_betting())
    checkpoint.load_policy(policy, checkpoint.find(run))
    after = probability_of_betting()
    assert before < 0.8 and min(after) > 0.95
    # The run stands before its first step, and PPO begins from there.
    assert checkpoint.step_of(checkpoint.find(run)) == 0
    assert checkpoint.step_of(checkpoint.find(train_quietly(saved_config(run), resume=run))) == 1


def test_the_loss_is_of_the_answers_as_the_policy_writes_them(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    texts = first_texts(config, 40)[:3]
    policy = make_policy(config, make_one_env(config.env))
    rows = read_rows(write_rows(tmp_path / "rows.jsonl", *[(text, "1") for text in texts]))
    encoded = encode_rows(policy, rows)
    assert [prompt for prompt, _ in encoded] == policy.prompts(texts)
    # The digit and the end of the turn; under a mask of both actions, the tokens of action 1.
    trie = policy.answers.make_tries(texts, [[0, 1]])[0]
    assert {answer for _, answer in encoded} == {trie.tokens[1]} and len(trie.tokens[1]) == 2


def row_of(roles: str) -> str:
    names = {"u": "user", "a": "assistant", "s": "system"}
    return json.dumps({"messages": [{"role": names[role], "content": "x"} for role in roles]})


@pytest.mark.parametrize(
    "line", ["{}", '{"messages": [{"role": "user"}]}', *map(row_of, ("u", "us", "suua", "su", "uau"))]
)
def test_lines_that_are_no_rows(line: str, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", ("a", "b"))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RowError, match=r"rows.jsonl, line 2 is no row of `gamespiel export`"):
        read_rows(path)


def test_rows_of_other_prompts_and_other_answers_are_refused(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    (text, *_) = first_texts(config, 1)
    with_rules = "# Game Rules\nKuhn poker.\n\n" + text
    for row, message in (
        ((with_rules, "1"), r"line 1 begins with '# Game Rules.*env.rules"),
        ((text, "bet"), r"line 1: the answer is 'bet', .* a number below 2"),
        ((text, "2"), r"the answer is '2', and"),
        ((text, "01" * 9), r"the answer is '0101"),
    ):
        with pytest.raises(RowError, match=message):
            warm_start(config, WarmStart([write_rows(tmp_path / "rows.jsonl", row)]), quiet())
    assert not (tmp_path / "run").exists()


def test_numbers_out_of_range() -> None:
    for name, value in (("epochs", 0.0), ("epochs", float("nan")), ("learning_rate", float("inf"))):
        with pytest.raises(InvalidValueError, match=rf"--{name}: {value} was given"):
            WarmStart([], **{name: value})
    with pytest.raises(InvalidValueError, match=r"--batch_size: 0 was given"):
        WarmStart([], batch_size=0)


def test_without_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamespiel.training.warm_start.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install 'gamespiel\[trl\]'"):
        warm_start(small(tmp_path / "run"), WarmStart([]), quiet())


@pytest.mark.trains
@pytest.mark.sample
def test_from_recorded_games_to_a_run_by_commands(here: Path) -> None:
    game = ["--game", "kuhn_poker"]
    rules = ["--env.rules", "false"]
    played = ["eval", "--agent", "ismcts:10", *game, *rules, "--num_episodes", "4", "--save_games", "g.jsonl"]
    assert main(played) == 0
    assert main(["export", "g.jsonl", "--output", "rows.jsonl"]) == 0
    learned = ["sft", "--preset", "tiny", *game, "--output_dir", "warm", "--epochs", "1", "--data"]
    assert main([*learned, "rows.jsonl"]) == 0
    assert (here / "warm" / "warm_start.json").exists()
    assert sorted(path.name for path in here.iterdir()) == ["g.jsonl", "rows.jsonl", "runs", "warm"]
    assert main([*learned, "rows.jsonl"]) == 2  # the folder has a run
