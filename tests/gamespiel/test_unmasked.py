"""``gamespiel eval --unmasked``, ``--decode text`` and ``--track``: replies as text, and tracks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.evaluation import MeasuredReplies, measure_replies
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.assembly import make_policy
from gamespiel.cli import main
from gamespiel.config import Config, InvalidValueError, resolve, saved_config
from gamespiel.environments.making import make_envs
from gamespiel.kinds import KINDS
from gamespiel.measure import evaluation
from gamespiel.measure.episodes import measure_agent, measure_groups, play_policy
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from gamespiel.report.tables import replies_note, replies_table
from gamespiel.tracks import TrackError, find_track, list_changes, require_one_track
from task_gym.stats import mean_interval, wilson
from tests.consoles import quiet
from tests.gamespiel.endpoints.models import Body, ModelStub
from tests.gamespiel.runs import assert_repeated, evaluate_aloud, rows_of, small, train_quietly
from tests.gamespiel.test_evaluation import KUHN, config

UNLISTED = {"env__list_actions": "false", "env__answer": "name"}
Script = Callable[[str], str] | str
"""The reply to a prompt's text; a text is always the same."""


@dataclass(frozen=True)
class Scripted(FreeText):
    """Replies by a script. Their tokens are their characters.

    Attributes:
        sampled: The script of sampled replies.
        greedy: That of greedy ones.
        cut: Whether replies count as cut.
    """

    ends: frozenset[int] = frozenset()
    max_new_tokens: int = 9
    sampled: Script = ""
    greedy: Script = ""
    cut: bool = False

    def is_cut(self, tokens: tuple[int, ...]) -> bool:
        return self.cut

    def read_answer(self, tokens: tuple[int, ...], codec: Any) -> str:
        return "".join(map(chr, tokens))

    def write(self, prompts: Sequence[str], uniforms: Any) -> list[tuple[int, ...]]:
        """Returns the replies' tokens."""
        assert uniforms is None or uniforms(0).shape == (len(prompts),)
        script = self.greedy if uniforms is None else self.sampled
        texts = [script if isinstance(script, str) else script(text) for text in prompts]
        return [tuple(map(ord, text)) for text in texts]


@pytest.fixture(autouse=True)
def follow_scripts(policy: LLMPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes scripted replies by their scripts, and all others by the model."""
    write = TextSampler.write

    def written(
        self: TextSampler, prompts: Any, free: FreeText, uniforms: Any, *reading: Any
    ) -> WrittenAnswers:
        if not isinstance(free, Scripted):
            return write(self, prompts, free, uniforms, *reading)
        tokens = free.write([policy.codec.tokenizer.decode(prompt) for prompt in prompts], uniforms)
        hidden = torch.zeros(len(prompts), policy.value_head.in_features)
        log_probs = [np.full(len(reply), -1.0, dtype=np.float32) for reply in tokens]
        return WrittenAnswers(tokens, log_probs, [None] * len(prompts), hidden)

    monkeypatch.setattr(TextSampler, "write", written)


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(config(), make_envs(config().env, 1))


def measure_written(
    settings: Config, policy: LLMPolicy, free: FreeText, count: int, *, greedy: bool = False
) -> Mapping[str, MeasuredReplies]:
    """Returns the measures of episodes that were played by replies."""
    episodes = play_policy(settings, policy, count, quiet(), free=free, greedy=greedy)
    return measure_groups(settings, episodes, measure_replies)


def first_legal(prompt: str) -> str:
    """Returns the first number that the prompt lists."""
    listed = re.search(r"^ *(\d+) *->", prompt.partition("Legal Actions:")[2], re.MULTILINE)
    assert listed is not None
    return listed.group(1)


# -- play by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [KUHN, []], ids=["kuhn", "leduc"])
def test_the_first_legal_reply_plays_as_first_does(game: list[tuple[str, str]], policy: LLMPolicy) -> None:
    """Seeds, seats and the opponent are those behind the mask: the very same games."""
    settings = config(*game, ("env.opponent", "mcts:5"), ("run.seed", "3"))
    rows = measure_written(settings, policy, Scripted(sampled=first_legal), 8)
    masked = measure_agent(settings, "first", 8, quiet())
    assert list(rows) == list(masked) == ["seat 0", "seat 1", "all"]
    for name, row in rows.items():
        for measured in ("episodes", "score", "success", "returns", "length"):
            assert getattr(row, measured) == getattr(masked[name], measured)
        assert (row.illegal_replies, row.given_up, row.cut_replies) == (0, 0, 0)
        assert row.replies == round(row.length * row.episodes) and row.tokens_per_reply == 1
        assert row.illegal_share == wilson(0, row.replies) and row.legal_mass is None


@pytest.mark.parametrize(
    ("reply", "rule", "replies"),
    [("", "penalize", 3), ("9" * 100_000, "forfeit", 1)],
)
def test_nothing_but_illegal_replies_gives_every_game_up(
    reply: str, rule: str, replies: int, policy: LLMPolicy
) -> None:
    """The third in a row ends the game with score 0; with ``forfeit`` the first does."""
    settings = config(*KUHN, ("env.illegal", rule))
    row = measure_written(settings, policy, Scripted(sampled=reply, cut=True), 10)["all"]
    assert (row.episodes, row.replies, row.illegal_replies) == (20, 20 * replies, 20 * replies)
    assert row.illegal_share == wilson(20 * replies, 20 * replies)
    assert (row.given_up, row.given_up_share) == (20, wilson(20, 20))
    assert (row.score, row.success) == (mean_interval([0.0] * 20, (0.0, 1.0)), wilson(0, 20))
    assert (row.cut_replies, row.cut_share) == (20 * replies, wilson(20 * replies, 20 * replies))
    assert row.tokens_per_reply == len(reply) and row.length == replies


# -- results and table -------------------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples pass in kuhn poker, and greedy replies are illegal and cut."""

    def writer(policy: LLMPolicy, max_new_tokens: int) -> Any:
        assert max_new_tokens in (32, 5, 1024)
        return Scripted(sampled="0", greedy="none")

    monkeypatch.setattr(evaluation, "reply_constraint", writer)


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.usefixtures("scripted", "here")
def test_results_have_the_masked_policy_and_replies_of_both_ways_and_a_file_each() -> None:
    options = EvalOptions(config(*KUHN), num_episodes=6, unmasked=True)
    results = evaluate(options, quiet())
    written = json.loads(Path("runs/eval-tiny-unmasked-kuhn_poker-random.json").read_text())
    assert written == json.loads(re.sub("-?Infinity", "null", json.dumps(results)))
    assert (written["decode"], written["max_new_tokens"]) == ("choice and text", 32)
    alone = evaluate(EvalOptions(config(*KUHN), num_episodes=6), quiet())
    assert written["sampled"] == json.loads(json.dumps(alone))["sampled"]
    sampled, greedy = written["replies"]["sampled"], written["replies"]["greedy"]
    assert list(sampled) == list(greedy) == ["seat 0", "seat 1", "all"]
    assert set(greedy["all"]) - set(written["sampled"]["all"]) == {
        "replies", "illegal_replies", "illegal_share", "given_up", "given_up_share", "cut_replies",
        "cut_share", "tokens_per_reply",
    }  # fmt: skip
    assert (sampled["all"]["given_up"], greedy["all"]["given_up"]) == (0, 12)
    assert greedy["all"]["given_up_share"] == list(wilson(12, 12))
    assert greedy["all"]["illegal_share"] == list(wilson(36, 36))

    command = ["eval", "--model.model_name", "tiny", "--game", "kuhn_poker", "--num_episodes", "6"]
    for way in ("--unmasked", "--decode text", "--decode text --max_new_tokens 5"):
        assert main([*command, *way.split()]) == 0
    outputs = {path.name: json.loads(path.read_text()) for path in Path("runs").iterdir()}
    assert {name: data.get("max_new_tokens") for name, data in outputs.items()} == {
        "eval-tiny-sampled-kuhn_poker-random.json": None,
        "eval-tiny-unmasked-kuhn_poker-random.json": 32,
        "eval-tiny-text-kuhn_poker-random.json": 32,
        "eval-tiny-text-kuhn_poker-random-2.json": 5,
    }
    results = outputs["eval-tiny-text-kuhn_poker-random-2.json"]
    assert (results["decode"], results["max_new_tokens"]) == ("text", 5) and "sampled" not in results
    assert list(results["replies"]["sampled"]["all"]["score"]) == sampled["all"]["score"]


def test_the_note_says_whether_the_scores_agree(policy: LLMPolicy) -> None:
    masked = measure_agent(config(*KUHN), "first", 10, quiet())
    scripts = Scripted(sampled="0"), Scripted(sampled="none")
    same, given_up = (measure_written(config(*KUHN), policy, script, 10) for script in scripts)
    interval = f"{masked['all'].score.low:.3f}–{masked['all'].score.high:.3f}"
    said = f"sampled replies score {same['all'].score.mean:.3f}, within the masked policy's interval "
    assert replies_note(masked, {"sampled": same}).startswith(f"{said}{interval}.")
    assert "score 0.000, outside the masked" in replies_note(masked, {"sampled": given_up})
    alone = replies_note({}, {"sampled": same})
    assert "masked" not in alone and alone.startswith("sampled, greedy:")
    # Games that were all faults leave rows out.
    assert replies_table("t", {}, {"sampled": {}, "greedy": same}).row_count == 6
    assert replies_note(same, {"sampled": {}, "greedy": same}).startswith("masked: an action")


# -- code tracing ------------------------------------------------------------------------------------------


def test_traces_are_answered_with_the_output_itself(
    policy: LLMPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty replies and the truth score as the baselines do that give them, on the same programs."""
    settings = resolve("tiny-trace", overrides=[("run.device", "cpu"), ("env.task_ids", "[[0, 50]]")])
    empty = measure_agent(settings, "empty", 12, quiet())
    monkeypatch.setattr(
        evaluation, "reply_constraint", lambda policy, tokens: Scripted(sampled="", greedy="", cut=True)
    )
    options = EvalOptions(settings, num_episodes=12, decode="text", output=tmp_path / "result.json")
    results, text = evaluate_aloud(options)
    assert results["max_new_tokens"] == 1024
    for how in ("sampled", "greedy"):
        rows = results["replies"][how]
        assert list(rows) == list(empty)
        for name, row in rows.items():
            assert row["by_scoring"] == empty[name].to_dict()["by_scoring"]
            assert (row["episodes"], row["replies"]) == (empty[name].episodes, empty[name].episodes)
            assert (row["illegal_replies"], row["given_up"]) == (0, 0)
    assert "on CodeTrace-v0, sampled" in text and "on CodeTrace-v0, greedy" in text
    assert "replies cut by the token limit: sampled 100.0%, greedy 100.0%" in text


def test_games_and_rules_that_have_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = resolve("tiny-trace", overrides=[])
    with pytest.raises(InvalidValueError, match=r"CodeTraceChoice-v0 has no such pair: give --decode text"):
        EvalOptions(settings, unmasked=True)
    assert EvalOptions(settings, decode="text").reply_tokens == 1024
    raising = config(("env.illegal", "raise"), ("model.model_name", "/no/where"))
    with pytest.raises(InvalidValueError, match=r"env\.illegal must be penalize or forfeit .* not 'raise'"):
        evaluate(EvalOptions(raising, unmasked=True), quiet())
    monkeypatch.setattr(type(KINDS["trace"]), "replies", None)
    with pytest.raises(InvalidValueError, match=r"--decode text is for games, not for traces"):
        EvalOptions(settings, decode="text")


# -- tracks ------------------------------------------------------------------------------------------------


def test_the_three_tracks() -> None:
    assert find_track(writes=False, list_actions=False) == "masked"
    assert find_track(writes=True, list_actions=True) == "unmasked"
    assert find_track(writes=True, list_actions=False) == "unlisted"
    assert require_one_track({"a": "masked", "random": None}) == "masked"
    assert require_one_track({"random": None}) is None
    with pytest.raises(TrackError, match=r"'a' \(masked\) and 'c' \(unlisted\) are on different tracks"):
        require_one_track({"a": "masked", "b": "masked", "c": "unlisted"})
    with pytest.raises(TrackError, match="did you mean 'unlisted'"):
        list_changes("unlistd")


@pytest.mark.trains
@pytest.mark.sample
def test_training_takes_the_list_away_and_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Steps 0 to 3 with the plan [0, 3]: shares 1, 2/3, 1/3, 0 of six games each, drawn by their address."""
    settings = UNLISTED | {
        "curriculum__unlist_steps": "[0, 3]", "ppo__num_train_steps": "4", "run__exact_every": "2",
        "ppo__legal_coef": "0.5", "run__eval_games": "0",
    }  # fmt: skip
    whole = train_quietly(small(tmp_path / "whole", **settings))
    listed = [row["curriculum/listed"] for row in rows_of(whole)]
    assert listed[0] == 1 and listed[3] == 0 and all(0 <= share <= 1 for share in listed)
    # Exact values are those of prompts without the list, answered by name.
    assert any("eval/share" in row for row in rows_of(whole))
    assert_repeated(whole, tmp_path / "part", 2)


@pytest.mark.trains
@pytest.mark.sample
def test_results_say_their_track(finished: Path, tmp_path: Path, capsys: Any) -> None:
    games = tmp_path / "games.jsonl"
    common = ["--num_episodes", "2", "--output", str(tmp_path / "found.json")]
    command = ["eval", "--checkpoint", str(finished), *common]
    for track, part in (("masked", "sampled"), ("unmasked", "replies"), ("unlisted", "replies")):
        assert main([*command, "--track", track, "--save_games", str(games)]) == 0
        results = json.loads((tmp_path / "found.json").read_text())
        assert results["tracks"] == {part: track} and part in results
        rows = [json.loads(line) for line in games.read_text().splitlines()]
        assert {row["track"] for row in rows} == {track}
        assert ("Legal Actions" in rows[0]["turns"][0]["observation"]) == (track != "unlisted")
    options = EvalOptions(
        saved_config(finished), checkpoint=finished, num_episodes=1, unmasked=True, output=tmp_path / "u.json"
    )
    assert evaluate(options, quiet())["tracks"] == {"sampled": "masked", "replies": "unmasked"}
    assert EvalOptions(resolve("tiny"), agent="random").tracks == {}
    assert main([*command, "--track", "unlisted", "--decode", "text"]) == 2
    assert main(["eval", "--agent", "random", "--track", "masked", *common]) == 2
    assert main(["eval", "--env", "trace", "--model.model_name", "tiny", "--track", "unlisted"]) == 2
    assert "--track is for games, not for traces" in capsys.readouterr().err
    assert main([*command, "--track", "listed"]) == 2
    assert "allowed: 'masked', 'unmasked', 'unlisted'" in capsys.readouterr().err


def test_an_endpoint_plays_without_the_list(tmp_path: Path) -> None:
    """It says "Bet" each time, and then a number, which nobody showed it."""

    def answer(body: Body) -> str:
        assert all("Legal Actions" not in message["content"] for message in body["messages"])
        assert "How to write an action: Pass or Bet." in body["messages"][0]["content"]
        return "I say bet."

    with ModelStub(answer) as stub:
        options = ["--game", "kuhn_poker", "--track", "unlisted", "--num_episodes", "2"]
        output = tmp_path / "found.json"
        assert main(["eval", "--agent", f"openai:m@{stub.url}", *options, "--output", str(output)]) == 0
        results = json.loads(output.read_text())
    assert results["tracks"] == {"endpoint": "unlisted"} and results["env"]["list_actions"] is False
    assert results["endpoint"]["all"]["episodes"] == 4
