"""``gamespiel eval --unmasked`` and ``--decode text``: replies as text, beside the same games masked."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from gamespiel import evaluation
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.evaluation import measure_replies, play_seeds, policy_agent
from gamespiel.agents.runs.stats import mean_interval, wilson
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.assembly import make_policy
from gamespiel.cli import main
from gamespiel.config import Config, InvalidValueError, resolve
from gamespiel.environments import make_envs
from gamespiel.episodes import measure_agent, measure_written, reply_constraint
from gamespiel.evaluation import evaluate
from gamespiel.kinds import DECLARATIONS, kind_of
from gamespiel.options import EvalOptions
from gamespiel.report.tables import replies_note, replies_table
from tests.agents.toys import randomise, same_noise
from tests.gamespiel.runs import quiet

KUHN = [("env.task_id", "null"), ("env.game", "kuhn_poker")]
TIC_TAC_TOE = [("env.task_id", "null"), ("env.game", "tic_tac_toe")]
TRACE = [("env.env_type", "trace"), ("env.task_id", "null")]


Script = Callable[[str, int], str] | str
"""The reply to a prompt's text and the number of earlier calls; a text is always the same."""


@dataclass(frozen=True)
class Scripted(FreeText):
    """Replies by a script. Their tokens are their characters.

    Attributes:
        sampled: The script of sampled replies.
        greedy: That of greedy ones.
        cut: Whether replies count as cut.
        calls: The prompts of earlier calls.
    """

    ends: frozenset[int] = frozenset()
    max_new_tokens: int = 9
    sampled: Script = ""
    greedy: Script = ""
    cut: bool = False
    calls: list[int] = field(default_factory=list, compare=False)

    def is_cut(self, tokens: tuple[int, ...]) -> bool:
        return self.cut

    def read_answer(self, tokens: tuple[int, ...], codec: Any) -> str:
        return "".join(map(chr, tokens))

    def write(self, prompts: Sequence[str], uniforms: Any) -> list[tuple[int, ...]]:
        """Returns the replies' tokens."""
        assert uniforms is None or uniforms(0).shape == (len(prompts),)
        script = self.greedy if uniforms is None else self.sampled
        texts = [script if isinstance(script, str) else script(text, len(self.calls)) for text in prompts]
        self.calls.append(len(prompts))
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
        log_probs = [np.full(len(own), -1.0, dtype=np.float32) for own in tokens]
        return WrittenAnswers(tokens, log_probs, [None] * len(prompts), hidden)

    monkeypatch.setattr(TextSampler, "write", written)


def config(*overrides: tuple[str, str]) -> Config:
    return resolve("tiny", overrides=[("run.device", "cpu"), *overrides])


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(config(), make_envs(config().env, 1))


def first_legal(prompt: str, call: int) -> str:
    """Returns the first number that the prompt lists."""
    listed = re.search(r"^ *(\d+) *->", prompt.partition("Legal Actions:")[2], re.MULTILINE)
    assert listed is not None
    return listed.group(1)


# -- play by hand ------------------------------------------------------------------------------------------


def test_a_reply_of_0_in_kuhn_poker_plays_as_first_does(policy: LLMPolicy) -> None:
    """Action 0 is always legal there, and ``first`` always takes it: the very same games."""
    given = config(*KUHN)
    rows = measure_written(given, policy, Scripted(sampled="0"), 20, quiet())
    masked = measure_agent(given, "first", 20, quiet())
    assert list(rows) == list(masked) == ["seat 0", "seat 1", "all"]
    for name, row in rows.items():
        for measured in ("episodes", "score", "success", "returns", "length"):
            assert getattr(row, measured) == getattr(masked[name], measured)
        assert (row.illegal_replies, row.given_up, row.cut_replies) == (0, 0, 0)
        assert row.replies == round(row.length * row.episodes) and row.tokens_per_reply == 1
        assert row.illegal_share == wilson(0, row.replies) and row.legal_mass is None


@pytest.mark.parametrize("game", [KUHN, TIC_TAC_TOE, []], ids=["kuhn", "tic_tac_toe", "leduc"])
def test_seeds_seats_and_opponent_are_those_behind_the_mask(
    game: list[tuple[str, str]], policy: LLMPolicy
) -> None:
    given = config(*game, ("env.opponent", "mcts:5"), ("run.seed", "3"))
    rows = measure_written(given, policy, Scripted(sampled=first_legal), 8, quiet())
    masked = measure_agent(given, "first", 8, quiet())
    for name, row in rows.items():
        assert (row.score, row.returns, row.length) == (
            masked[name].score,
            masked[name].returns,
            masked[name].length,
        )
        assert row.illegal_replies == 0


@pytest.mark.parametrize(("rule", "replies"), [("penalize", 3), ("forfeit", 1)])
@pytest.mark.parametrize("reply", ["none of them", "7", "", "9" * 100_000])
def test_nothing_but_illegal_replies_gives_every_game_up(
    reply: str, rule: str, replies: int, policy: LLMPolicy
) -> None:
    """The third in a row ends the game with score 0; with ``forfeit`` the first does."""
    given = config(*KUHN, ("env.illegal", rule))
    row = measure_written(given, policy, Scripted(sampled=reply, cut=True), 10, quiet())["all"]
    assert (row.episodes, row.replies, row.illegal_replies) == (20, 20 * replies, 20 * replies)
    assert row.illegal_share == wilson(20 * replies, 20 * replies)
    assert (row.given_up, row.given_up_share) == (20, wilson(20, 20))
    assert (row.score, row.success) == (mean_interval([0.0] * 20), wilson(0, 20))
    assert (row.cut_replies, row.cut_share) == (20 * replies, wilson(20 * replies, 20 * replies))
    assert row.tokens_per_reply == len(reply) and row.length == replies


def test_two_illegal_replies_before_each_legal_one_give_no_game_up(policy: LLMPolicy) -> None:
    """A wave's games take their turns together: the calls 0, 1, 3, 4, ... of the writer are illegal."""
    given = config(*KUHN)
    row = measure_written(
        given, policy, Scripted(sampled=lambda prompt, call: "0" if call % 3 == 2 else "hm"), 20, quiet()
    )["all"]
    masked = measure_agent(given, "first", 20, quiet())["all"]
    legal = round(masked.length * 40)
    assert (row.replies, row.illegal_replies, row.given_up) == (3 * legal, 2 * legal, 0)
    assert row.illegal_share == wilson(2 * legal, 3 * legal)
    # The score is the game's; 0.01 per illegal reply is only in the reward.
    assert (row.score, row.returns) == (masked.score, masked.returns)


def test_upstreams_rule_reads_the_first_number(policy: LLMPolicy) -> None:
    given = config(*KUHN)
    bet = measure_written(given, policy, Scripted(sampled="1"), 10, quiet())["all"]
    said = measure_written(given, policy, Scripted(sampled="I choose 1, greedy=not 0."), 10, quiet())["all"]
    assert (said.score, said.returns, said.illegal_replies) == (bet.score, bet.returns, 0)
    # With the other protocol, a reply with words names the first action in it in legal order: 0.
    other = config(*KUHN, ("env.seeding", "evaluate"))
    passed = measure_written(other, policy, Scripted(sampled="0"), 10, quiet())["all"]
    said = measure_written(other, policy, Scripted(sampled="I choose 1, greedy=not 0."), 10, quiet())["all"]
    assert (said.score, said.returns) == (passed.score, passed.returns)


def test_games_that_are_over_before_the_first_turn_have_no_reply(policy: LLMPolicy) -> None:
    """Euchre: when a partner goes alone, the seat sits out. Such a game counts, and gives nothing up."""
    given = config(("env.task_id", "null"), ("env.game", "euchre"))
    rows = measure_written(given, policy, Scripted(sampled="none"), 30, quiet())
    row, masked = rows["all"], measure_agent(given, "first", 30, quiet())["all"]
    assert row.episodes == masked.episodes and row.given_up < row.episodes
    assert row.replies == row.illegal_replies == 3 * row.given_up


def test_names_are_replies_where_actions_are_answered_by_name(policy: LLMPolicy) -> None:
    """A number within a name is not read as an id: x(1,1) is action 4 in tic_tac_toe."""
    env: Any = kind_of(config().env).player.make_reply_env(config(*TIC_TAC_TOE, ("env.answer", "name")).env)
    text, info = env.reset(seed=0)
    assert text.endswith("Your choice (action name only):") and "x(1,1)" in text.names
    for reply, action in (
        ("x(1,1)", 4),
        ("<think>centre?</think> x(1,1)\n", 4),
        ("My move is x(1,1)", 1),  # any other reply: the last id named
        ("4", 4),
    ):
        env.reset(seed=0)
        _, _, _, _, info = env.step(reply)
        assert env.unwrapped.state.history()[env.unwrapped.seat] == action
    env.reset(seed=0)
    _, reward, _, _, info = env.step("nowhere")
    assert reward == -0.01 and "names no legal action" in info["error"]["message"]


# -- the model's own replies -------------------------------------------------------------------------------


def test_replies_are_as_legal_as_the_legal_mass_says() -> None:
    """Leduc's actions are single digits: an illegal reply is one without mass, but for its later tokens."""
    given = config()
    policy = make_policy(given, make_envs(given.env, 1))
    randomise(policy, 0.1)
    envs = TextVecEnv([lambda: kind_of(given.env).player.make_reply_env(given.env)] * 200)
    seeds = kind_of(given.env).player.seeds(envs, 100, 0)
    free = reply_constraint(policy, 32)
    episodes = play_seeds(envs, policy_agent(policy, 0, 200, constraint=free), seeds)
    turns = [turn for episode in episodes for turn in episode.turns]
    masks = np.array([[f" {action} ->" in turn.observation for action in range(3)] for turn in turns])
    drawn = policy.decide([t.observation for t in turns], masks, same_noise(0.5, len(turns)))
    measured = measure_replies(episodes)
    assert measured is not None and measured.illegal_share is not None and measured.replies == len(turns)
    illegal = 1 - float(np.mean([decision.legal_mass for decision in drawn]))
    assert illegal > 0.02 and measured.illegal_share.low < illegal < measured.illegal_share.high
    assert [turn.reward for turn in turns].count(-0.01) == measured.illegal_replies


def test_with_all_mass_on_legal_answers_the_mask_changes_nothing(policy: LLMPolicy) -> None:
    """Both policies use the same noise. The untrained model gives 0.999 to the legal answers."""
    given = config()
    masked_envs = make_envs(given.env, 200)
    seeds = kind_of(given.env).player.seeds(masked_envs, 100, 0)
    masked = play_seeds(masked_envs, policy_agent(policy, 0, 200), seeds)
    envs = TextVecEnv([lambda: kind_of(given.env).player.make_reply_env(given.env)] * 200)
    free = reply_constraint(policy, 32)
    written = play_seeds(envs, policy_agent(policy, 0, 200, constraint=free), seeds)
    assert [[e.seed, e.info["seat"]] for e in masked] == [[e.seed, e.info["seat"]] for e in written]
    same = [
        [turn.answer for turn in a.turns] == [turn.answer for turn in b.turns]
        for a, b in zip(masked, written, strict=True)
    ]
    assert sum(same) >= 195


def test_a_short_limit_cuts_and_a_long_one_does_not(policy: LLMPolicy) -> None:
    """An answer in leduc poker is a digit and the end of turn: two tokens. A cut digit is still read."""
    given = config()
    for limit, cut in ((1, 1.0), (2, 0.0)):
        row = measure_written(given, policy, reply_constraint(policy, limit), 10, quiet(), greedy=True)
        own = row["all"]
        assert own.cut_share is not None and own.illegal_replies == 0
        assert (own.cut_share.mean, own.tokens_per_reply) == (cut, limit)


# -- results and table -------------------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples pass in kuhn poker, and greedy replies are illegal and cut."""

    def writer(policy: LLMPolicy, max_new_tokens: int) -> Any:
        assert max_new_tokens in (32, 5, 1024)
        return Scripted(sampled="0", greedy="none")

    monkeypatch.setattr(evaluation, "reply_constraint", writer)


@pytest.mark.usefixtures("scripted")
def test_results_have_the_masked_policy_and_replies_of_both_ways(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    options = EvalOptions(config(*KUHN), num_episodes=6, unmasked=True, output=output)
    results = evaluate(options, quiet())
    written = json.loads(output.read_text())
    assert written == json.loads(json.dumps(results))
    assert (written["decode"], written["max_new_tokens"]) == ("choice and text", 32)
    alone = evaluate(EvalOptions(config(*KUHN), num_episodes=6, output=output), quiet())
    assert written["sampled"] == json.loads(json.dumps(alone))["sampled"]
    sampled, greedy = written["replies"]["sampled"], written["replies"]["greedy"]
    assert list(sampled) == list(greedy) == ["seat 0", "seat 1", "all"]
    assert set(greedy["all"]) - set(written["sampled"]["all"]) == {
        "replies",
        "illegal_replies",
        "illegal_share",
        "given_up",
        "given_up_share",
        "cut_replies",
        "cut_share",
        "tokens_per_reply",
    }
    assert (sampled["all"]["given_up"], greedy["all"]["given_up"]) == (0, 12)
    assert greedy["all"]["given_up_share"] == list(wilson(12, 12))
    assert greedy["all"]["illegal_share"] == list(wilson(36, 36))

    text = EvalOptions(config(*KUHN), num_episodes=6, decode="text", max_new_tokens=5, output=output)
    results = evaluate(text, quiet())
    assert (results["decode"], results["max_new_tokens"]) == ("text", 5) and "sampled" not in results
    assert list(results["replies"]["sampled"]["all"]["score"]) == sampled["all"]["score"]


@pytest.mark.usefixtures("scripted")
def test_each_way_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ways: list[dict[str, Any]] = [
        {},
        {"unmasked": True},
        {"unmasked": True},
        {"decode": "text"},
        {"decode": "text", "max_new_tokens": 5},
    ]
    for way in ways:
        evaluate(EvalOptions(config(*KUHN), num_episodes=1, **way), quiet())
    assert {path.name for path in Path("runs").iterdir()} == {
        "eval-tiny-sampled-kuhn_poker-random.json",
        "eval-tiny-unmasked-kuhn_poker-random.json",
        "eval-tiny-text-kuhn_poker-random.json",
        "eval-tiny-text-kuhn_poker-random-2.json",
    }


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.usefixtures("scripted")
def test_the_table_is_whole_in_any_terminal(width: int, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=width)
    games = config(("env.task_ids", "[200000000, 1600000000]"))
    options = EvalOptions(games, num_episodes=50, unmasked=True, output=tmp_path / "result.json")
    results = evaluate(options, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line for line in text.splitlines() if "written to" not in line and "loading" not in line]
    assert max(map(len, lines)) <= width and "…" not in text
    words = " ".join(text.split())
    assert "tiny on leduc_poker, phantom_ttt against random" in words
    for how in ("sampled", "greedy"):
        for row in results["replies"][how].values():
            shares = [row["illegal_share"], row["given_up_share"], row["success"]]
            figures = [f"{mean:.1%}" for mean, _, _ in shares]
            figures += [f"{100 * low:.1f}–{100 * high:.1f}" for _, low, high in shares]
            figures += [f"({row['given_up']:,})", f"{row['score'][0]:.3f}", f"{row['episodes']} games"]
            assert [figure for figure in figures if figure not in text] == []
    assert "masked" in text and "masked policy's interval" in words
    assert "games given up: ended by illegal replies (their number)." in words


def row(policy: LLMPolicy, reply: str) -> Any:
    return measure_written(config(*KUHN), policy, Scripted(sampled=reply), 10, quiet())


def test_the_note_says_whether_the_scores_agree(policy: LLMPolicy) -> None:
    masked = measure_agent(config(*KUHN), "first", 10, quiet())
    same, given_up = row(policy, "0"), row(policy, "none")
    low, high = masked["all"].score.low, masked["all"].score.high
    assert replies_note(masked, {"sampled": same}).startswith(
        f"sampled replies score {same['all'].score.mean:.3f}, within the masked policy's interval "
        f"{low:.3f}–{high:.3f}."
    )
    assert "score 0.000, outside the masked" in replies_note(masked, {"sampled": given_up})
    alone = replies_note({}, {"sampled": same})
    assert "masked" not in alone and alone.startswith("sampled, greedy:")


def test_faults_alone_leave_rows_out(policy: LLMPolicy) -> None:
    rows = row(policy, "0")
    assert replies_table("t", {}, {"sampled": {}, "greedy": rows}).row_count == 6
    assert replies_note(rows, {"sampled": {}, "greedy": rows}).startswith("masked: an action")


# -- code tracing ------------------------------------------------------------------------------------------


def test_traces_are_answered_with_the_output_itself(
    policy: LLMPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty replies and the truth score as the baselines do that give them, on the same programs."""
    given = resolve("tiny-trace", overrides=[("run.device", "cpu"), ("env.task_ids", "[[0, 50]]")])
    empty = measure_agent(given, "empty", 12, quiet())
    monkeypatch.setattr(
        evaluation, "reply_constraint", lambda policy, tokens: Scripted(sampled="", greedy="", cut=True)
    )
    console = Console(file=io.StringIO(), width=60)
    options = EvalOptions(given, num_episodes=12, decode="text", output=tmp_path / "result.json")
    results = evaluate(options, console)
    assert results["max_new_tokens"] == 1024
    for how in ("sampled", "greedy"):
        rows = results["replies"][how]
        assert list(rows) == list(empty)
        for name, own in rows.items():
            assert own["by_scoring"] == empty[name].to_dict()["by_scoring"]
            assert (own["episodes"], own["replies"]) == (empty[name].episodes, empty[name].episodes)
            assert (own["illegal_replies"], own["given_up"]) == (0, 0)
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "on CodeTrace-v0, sampled" in text and "on CodeTrace-v0, greedy" in text
    assert "replies cut by the token limit: sampled 100.0%, greedy 100.0%" in text


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"unmasked": True, "exact": True},
            r"--exact computes values of the policy behind its mask, and --unmasked plays without one: leave",
        ),
        ({"decode": "text", "exact": True}, r"and --decode text plays without one: leave one of them out"),
        ({"unmasked": True, "agent": "random"}, r"--unmasked is for a model that writes replies, not for"),
        ({"decode": "text", "agent": "first"}, r"--decode text is for a model .* not for --agent first"),
        ({"unmasked": True, "greedy": True}, r"--unmasked shows greedy replies beside sampled ones: leave"),
        ({"unmasked": True, "decode": "text"}, r"either --unmasked \(masked beside text\) or --decode text"),
        ({"decode": "txt"}, r"--decode: 'txt' was given, allowed: 'choice', 'text'; did you mean 'text'"),
        ({"max_new_tokens": 5}, r"--max_new_tokens limits replies: give --unmasked or --decode text too"),
        ({"unmasked": True, "max_new_tokens": 0}, r"--max_new_tokens must be at least 1, not 0"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        EvalOptions(config(), **options)


def test_traces_have_no_pair_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    given = resolve("tiny-trace", overrides=[])
    with pytest.raises(
        InvalidValueError, match=r"CodeTraceChoice-v0 has no such pair: give --decode text, which plays Code"
    ):
        EvalOptions(given, unmasked=True)
    assert EvalOptions(given, decode="text").reply_tokens == 1024
    monkeypatch.setattr(type(DECLARATIONS["trace"]), "replies", None)
    with pytest.raises(InvalidValueError, match=r"--decode text is for games, not for traces"):
        EvalOptions(given, decode="text")


def test_a_rule_that_raises_is_refused_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamespiel.assembly.make_policy", None)
    options = EvalOptions(config(("env.illegal", "raise")), unmasked=True)
    with pytest.raises(InvalidValueError, match=r"env\.illegal must be penalize or forfeit .* not 'raise'"):
        evaluate(options, quiet())


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[EvalOptions] = []
    monkeypatch.setattr(evaluation, "evaluate", asked.append)
    model = ["eval", "--model.model_name", "tiny"]
    assert main([*model, "--unmasked", "--max_new_tokens", "8"]) == 0
    assert main([*model, "--decode", "text"]) == 0
    assert [(o.unmasked, o.decode, o.reply_tokens) for o in asked] == [
        (True, "choice", 8),
        (False, "text", 32),
    ]
    assert main([*model, "--unmasked", "--exact"]) == 2
    assert "--exact computes values of the policy behind its mask" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["eval", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "tokens that cut a reply [games 32, traces 1024]" in shown
