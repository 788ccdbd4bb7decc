"""Self-play: who plays which seat, what each is paid, and what the learner learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.wrappers import MixedOpponents
from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.rollout import Episode, play
from gamespiel.agents.sampling.decisions import Answer, Decision
from gamespiel.agents.self_play import Round, SeatsError, SelfPlay
from gamespiel.agents.starts import Starts
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.samplers import Failures
from tests.agents.toys import Quiet, collect, make_policy, make_ppo, randomise

pytestmark = [pytest.mark.trains, pytest.mark.sample]

PASS, BET = 0, 1


def kuhn() -> gym.Env[Any, Any]:
    return gym.make("GameSpiel-v0", game="kuhn_poker", opponent="open", rules=False)


def learner(games: int, envs: int = 4, learn: str = "both", seed: int = 0, **settings: Any) -> LLMPPO:
    return make_ppo(
        kuhn, envs, adapters=0.05, batch_size=games, gamma=1.0, lam=1.0, normalize_advantage=False, seed=seed,
        self_play=SelfPlaySettings(learn=learn, **settings), mini_batch_size=8,
    )  # fmt: skip


def scripted(*actions: int, value: float = 0.25) -> Callable[..., list[Answer]]:
    """Returns an agent that takes the given action in each turn, whoever moves."""

    trie = ActionTrie.build({PASS: (5,), BET: (6,)})

    def decide(texts: list[str], masks: Any, episodes: list[int], turn: int, adapters: Any) -> list[Answer]:
        tokens = trie.answer_tokens(actions[turn])
        chosen = Decision((1,), trie, tokens, np.array([-0.5], dtype=np.float32), 1.0, value=value)
        return [Answer(actions[turn], chosen)] * len(texts)

    return decide


def begin(model: LLMPPO, decide: Any, games: int) -> Round:
    """Returns the first step's games."""
    policy, env = model.policy, model.env
    return model.self_play.begin(policy.sampler, policy.adapters.learning, env, decide, 0, 0, games)  # type: ignore[arg-type]


def finish(round_: Round, games: Sequence[Episode]) -> tuple[list[Episode], dict[str, Any]]:
    """Returns what the learning seats saw of games, and metrics of the pool."""
    return round_.finish([round_.split_seats(game) for game in games])


def played(actions: Sequence[int], games: int = 1, learn: str = "both") -> tuple[list[Episode], LLMPPO]:
    """Plays games by a script, and fills the buffer with what the seats learn from."""
    model = learner(games, learn=learn)
    round_ = begin(model, scripted(*actions), games)
    whole_games = play(model.env, list(range(games)), round_.decide, lambda turns: True)  # type: ignore[arg-type]
    episodes, _ = finish(round_, whole_games)
    model.rollout_buffer.fill(episodes, 0.0)
    model.rollout_buffer.compute_returns_and_advantage()
    return episodes, model


def test_each_seat_is_paid_its_own_score() -> None:
    """Pass, bet, pass: seat 0 folds and loses 1 chip of at most 2, whatever the cards.

    Scores are (return + 2) / 4: 0.25 and 0.75. Seat 0 moved last, so the environment paid it; seat 1's only
    turn is paid afterwards. With λ = γ = 1 and values of 0.25, advantages are 0, 0 and 0.5. After bet, pass
    it is the other way round: seat 1 folds as the last to move.
    """
    (first, second), model = played((PASS, BET, PASS))
    assert [turn.action for turn in first.turns] == [PASS, PASS]
    assert [turn.action for turn in second.turns] == [BET]
    assert ["You are Player 0" in turn.observation for turn in first.turns] == [True, True]
    assert "You are Player 1" in second.turns[0].observation
    assert [turn.reward for turn in first.turns] == [0.0, 0.25]
    assert [turn.reward for turn in second.turns] == [0.75]
    assert [first.group, second.group] == [("kuhn_poker", 0), ("kuhn_poker", 1)]
    assert [e.info["score"] for e in (first, second)] == [0.25, 0.75]
    assert [e.info["result"] for e in (first, second)] == ["loss", "win"]
    assert [e.info["success"] for e in (first, second)] == [False, True]
    buffer = model.rollout_buffer
    assert np.allclose(buffer.advantages, [0.0, 0.0, 0.5])
    assert np.allclose(buffer.returns, [0.25, 0.25, 0.75])
    (first, second), _ = played((BET, PASS))
    assert [turn.reward for turn in (*first.turns, *second.turns)] == [0.75, 0.25]
    # If one seat learns, games 0 to 3 teach 0, 1, 0, 1, from its own turns alone: two, one, two, one.
    episodes, model = played((PASS, BET, PASS), games=4, learn="one")
    assert [e.info["seat"] for e in episodes] == [0, 1, 0, 1]
    assert [e.total_reward for e in episodes] == [0.25, 0.75, 0.25, 0.75]
    assert len(model.rollout_buffer) == 6


def fingerprint(model: LLMPPO) -> float:
    return float(sum(p.detach().double().sum() for p in model.policy.adapter_parameters()))


def test_snapshots_play_as_they_were() -> None:
    """The adapters in force say who decides: the learner in its seat, an earlier self elsewhere."""
    model = learner(6, learn="one", pool_every=1, pool_pick="newest")
    early = fingerprint(model)
    model.self_play.pool.grow(model.policy.adapters.learning, 0)
    randomise(model.policy, 0.3, seed=9)
    now = fingerprint(model)
    assert abs(now - early) > 1e-3
    asked: list[tuple[float, int, str]] = []
    script = scripted(PASS, BET, PASS)

    def decide(texts: list[str], masks: Any, episodes: list[int], turn: int, adapters: Any) -> list[Answer]:
        for name, episode, text in zip(adapters, episodes, texts, strict=True):
            with model.policy.adapters.use(name):
                asked.append((fingerprint(model), episode, text))
        return script(texts, masks, episodes, turn, adapters)

    round_ = begin(model, decide, 6)
    assert play(model.env, list(range(6)), round_.decide, lambda turns: True) is not None  # type: ignore[arg-type]
    assert len(asked) == 18 and fingerprint(model) == now
    for weights, episode, text in asked:
        assert weights == (now if f"You are Player {episode % 2}" in text else early)


def turns_of(model: LLMPPO) -> list[tuple[Any, Any, float]]:
    buffer = model.rollout_buffer
    answers = [(decision.prompt, decision.tokens) for decision in buffer.decisions]
    return [(*answer, reward) for answer, reward in zip(answers, buffer.rewards, strict=True)]


def test_the_number_of_environments_changes_nothing() -> None:
    runs = []
    for envs in (1, 3):
        model = learner(8, envs, "one", pool_every=1)
        for _ in range(2):
            assert collect(model)
            randomise(model.policy, 0.2, seed=model.step + 1)
            model.step += 1
        log_probs = [decision.log_probs.sum() for decision in model.rollout_buffer.decisions]
        runs.append((turns_of(model), log_probs))
    assert runs[0][0] == runs[1][0]
    assert np.allclose(runs[0][1], runs[1][1], atol=1e-5)


def test_an_interrupted_step_changes_nothing() -> None:
    """Played again, it has the same games, and its snapshot joins the pool once."""
    model, other = (learner(8, learn="one", pool_every=1) for _ in range(2))
    assert not collect(model, Quiet(rounds=2))
    assert model.num_timesteps == 0
    assert collect(model) and collect(other)
    assert turns_of(model) == turns_of(other)
    assert len(model.self_play.pool.members) == 1


def test_a_fault_counts_for_nothing() -> None:
    model = learner(2, learn="one")
    round_ = begin(model, scripted(), 2)
    fault = Episode(0, 0, {"result": "fault", "seat": 0, "game": "kuhn_poker"}, truncated=True)
    ended = Episode(1, 0, {"result": "win", "scores": [1.0, 0.0], "seat": 0, "game": "kuhn_poker"})
    episodes, logged = finish(round_, [fault, ended])
    assert [(e.fault, e.info["seat"], e.total_reward) for e in episodes] == [(True, 0, 0.0), (False, 1, 0.0)]
    assert logged["games"] == [1]
    (member,) = model.self_play.pool.members
    assert (member.games, member.win_rate) == (1, 0.0)  # seat 1 learned, and lost


@pytest.mark.parametrize("learn", ["both", "one"])
def test_games_against_others_are_played_as_they_are(learn: str) -> None:
    """All bet, "first" passes: seat 0 bets and the other folds; as seat 1 it bets after a pass, and wins too.

    A win against a fold is worth 3/4. In a game against itself the other bets as well: two turns.
    """

    def env() -> gym.Env[Any, Any]:
        return MixedOpponents(kuhn(), {"open": 0.5, "first": 0.5})

    settings = SelfPlaySettings(learn=learn)
    model = make_ppo(env, 4, batch_size=64, gamma=1.0, self_play=settings, mini_batch_size=8)
    assert model.self_play is not None and isinstance(model.env, TextVecEnv)
    round_ = begin(model, scripted(BET, BET, BET), 64)
    games = play(model.env, list(range(64)), round_.decide, lambda turns: True)
    theirs = [game for game in games if game.info["opponent"] == "first"]
    assert 0 < len(theirs) < 64
    assert {(len(game.turns), game.total_reward) for game in theirs} == {(1, 0.75)}
    episodes, metrics = finish(round_, games)
    assert [e.turns for e in episodes if e.info["opponent"] == "first"] == [game.turns for game in theirs]
    self_episodes = [e for e in episodes if e.info["opponent"] == "self"]
    assert len(self_episodes) == (64 - len(theirs)) * (2 if learn == "both" else 1)
    assert {len(e.turns) for e in self_episodes} == {1}
    assert {e.total_reward for e in self_episodes} == {0.0, 1.0}
    assert [e.index for e in episodes] == list(range(len(episodes)))
    if learn == "one":
        assert metrics["games"] == [len(self_episodes)]
        assert {e.info["seat"] for e in self_episodes} == {0, 1}


def test_games_that_are_not_learned_from() -> None:
    """In hearts the points of all four seats add up to 26, and a seat of 2048 has nobody to play against.

    A curriculum has no place in self-play, nor has a game that the caller does not play to the end. Such a
    game has scores too, one per seat.
    """

    def hearts() -> gym.Env[Any, Any]:
        return gym.make("GameSpiel-v0", game="hearts", opponent="open", rules=False)

    both = SelfPlaySettings(learn="both")
    with pytest.raises(SeatsError, match=r"do not sum to zero; allowed: zero-sum games, or .*learn='one'"):
        make_ppo(hearts, 1, self_play=both)
    assert make_ppo(hearts, 1, self_play=SelfPlaySettings(learn="one")).self_play is not None
    with pytest.raises(ArgumentError, match=r"starts: .* was given with self_play"):
        make_ppo(kuhn, 1, self_play=both, starts=Starts(failures=Failures()))
    alone = Episode(0, 0, {"result": "win", "scores": [1.0], "seat": 0, "game": "2048"})
    unscored = Episode(0, 0, {"seat": 0, "game": "stairs"})
    policy, env = make_policy(), TextVecEnv([kuhn])
    learning = policy.adapters.learning
    round_ = SelfPlay(both).begin(policy.sampler, learning, env, scripted(), 0, 0, 1)
    for game, message in ((alone, "'2048' has one seat"), (unscored, r"'stairs' .* info\['scores'\]")):
        with pytest.raises(SeatsError, match=message):
            finish(round_, [game])
    leduc = partial(gym.make, "GameSpiel-v0", game="leduc_poker", rules=False)
    for env, message in (
        (partial(leduc, opponent="random"), r"'leduc_poker' was played against opponent 'random'"),
        (partial(leduc, opponent="open", max_turns=2), r"'leduc_poker' was cut"),
    ):
        with pytest.raises(SeatsError, match=message):
            collect(make_ppo(env, 2, batch_size=2, self_play=SelfPlaySettings()))


def test_counting_anew_forgets_the_snapshots() -> None:
    """Or two of them would have one name in a checkpoint."""
    settings = SelfPlaySettings(learn="one", pool_every=1)
    model = make_ppo(kuhn, 2, 0.05, batch_size=2, self_play=settings, magnet_coef=0.1)
    model.learn(3)
    assert model.step > 1
    randomise(model.policy, 0.3, seed=9)
    model.learn(1, reset_num_timesteps=True)
    (member,) = model.self_play.pool.members
    assert (member.snapshot.step, member.games) == (0, 2)
    for name, weights in member.snapshot.adapters.items():
        assert torch.equal(weights, model.magnet.snapshot.adapters[name])
