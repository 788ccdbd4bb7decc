"""Every wrapper, and some on top of each other: what Gymnasium and its users expect of all of them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from game_gym.wrappers import (
    EvaluateConversation,
    MixedOpponents,
    RawReturns,
    TensorObservation,
    UpstreamLayout,
)
from task_gym.errors import ArgumentError
from task_gym.samplers import Failures, Stage, Stages
from task_gym.wrappers import (
    Conversation,
    Curriculum,
    DictObservation,
    FailureReplay,
    NamedActions,
    TokenObservation,
    ZeroCentredReward,
)
from tests.game_gym.play import finish
from tests.task_gym.scripts import Script, turn

Wrap = Callable[[Any], Any]


def encode(text: str) -> list[int]:
    return list(text.encode())


def tokens(env: Any) -> Any:
    return TokenObservation(env, encode, 4096, 256, 256)


def curriculum(env: Any) -> Any:
    return Curriculum(env, Stages([Stage("only")]))


def replay(env: Any) -> Any:
    return FailureReplay(env, Failures(failure_replay_prob=1.0))


ONE: dict[str, Wrap] = {
    "dict": DictObservation,
    "named": NamedActions,
    "conversation": Conversation,
    "tokens": tokens,
    "zero-centred": ZeroCentredReward,
    "curriculum": curriculum,
    "replay": replay,
    "tensor": TensorObservation,
    "upstream layout": UpstreamLayout,
    "raw": RawReturns,
    "mixed": lambda env: MixedOpponents(env, {"random": 1.0, "first": 1.0}),
}
SEVERAL: dict[str, Wrap] = {
    "conversation of names": lambda env: Conversation(NamedActions(UpstreamLayout(env))),
    "dict of tensor": lambda env: DictObservation(TensorObservation(env)),
    "dict of tokens, nothing told twice": lambda env: DictObservation(
        tokens(UpstreamLayout(ZeroCentredReward(env)))
    ),
    "conversation of a curriculum of replays": lambda env: Conversation(curriculum(replay(env))),
}
ALL = {**ONE, **SEVERAL}
#: Those whose spec has a sampler that learns from both the environment and the one made again.
SAMPLED = {"curriculum", "replay", "conversation of a curriculum of replays"}

every = pytest.mark.parametrize("wrap", ALL.values(), ids=ALL)


def record(env: Any, seed: int) -> list[Any]:
    """The turns of two episodes, the second of which has the environment's own seed."""
    shown: list[Any] = []
    for reset_seed in (seed, None):
        observation, info = env.reset(seed=reset_seed)
        shown += [(observation, info), *finish(env, info["legal_actions"])]
    return shown


@pytest.mark.parametrize("name", ALL)
def test_the_checker_passes_without_a_warning(name: str) -> None:
    # Samplers count episodes in the info: the checker's one step must not end them.
    game = "tic_tac_toe" if name in SAMPLED else "leduc_poker"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Gymnasium asks whether a wrapper was meant to be checked.
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(ALL[name](gym.make("GameSpiel-v0", game=game).unwrapped))


@every
def test_the_mask_is_the_infos(wrap: Wrap) -> None:
    env = wrap(gym.make("GameSpiel-v0", game="leduc_poker"))
    for seed in range(5):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            assert np.flatnonzero(env.action_masks()).tolist() == info["legal_actions"]
            assert np.array_equal(env.get_wrapper_attr("action_masks")(), info["action_mask"].astype(bool))
            observation, _, over, _, info = env.step(info["legal_actions"][-1])
            assert observation in env.observation_space
        assert not env.action_masks().any()


@pytest.mark.parametrize("wrap", [ALL[name] for name in ALL if name not in SAMPLED])
def test_the_spec_makes_it_again(wrap: Wrap) -> None:
    env = wrap(gym.make("GameSpiel-v0", game="leduc_poker", opponent="first"))
    twin = gym.make(env.spec)
    assert str(twin) == str(env) and twin.spec == env.spec
    assert twin.observation_space == env.observation_space
    assert data_equivalence(record(twin, 5), record(env, 5), exact=True)


@every
def test_a_copy_made_in_mid_game_continues_identically(wrap: Wrap) -> None:
    env = wrap(gym.make("GameSpiel-v0", game="leduc_poker"))
    for seed in range(4):
        _, info = env.reset(seed=seed)
        env.step(99)
        *_, info = env.step(info["legal_actions"][-1])
        twin = pickle.loads(pickle.dumps(env))
        rest = [finish(game, info["legal_actions"]) for game in (twin, env)]
        assert data_equivalence(*rest, exact=True)
        assert data_equivalence(record(twin, 9), record(env, 9), exact=True)


@every
def test_an_episode_that_is_over_at_reset(wrap: Wrap) -> None:
    env = wrap(gym.make("GameSpiel-v0", game="nim", params={"pile_sizes": "1"}))
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info["result"] == "win" and info["legal_actions"] == [] and not env.action_masks().any()


@every
def test_reset_options_reach_the_game(wrap: Wrap) -> None:
    env = wrap(gym.make("GameSpiel-v0", task_ids=[(200_000_000, 200_000_009)]))
    _, info = env.reset(seed=1, options={"task_id": 200_000_007, "opponent": "first"})
    assert (info["task_id"], info["opponent"], info["seed"]) == (200_000_007, "first", 1)


CARTPOLE = {"id": "CartPole-v1"}
KUHN = {"id": "GameSpiel-v0", "game": "kuhn_poker"}


@pytest.mark.parametrize(
    ("wrap", "arguments", "message"),
    [
        (UpstreamLayout, CARTPOLE, "UpstreamLayout: .*Box.*, allowed: text observations"),
        (lambda _: UpstreamLayout(Script(turn("a"))), KUHN, "Script.* allowed: GameSpiel-v0"),
        (UpstreamLayout, {**KUHN, "rules": False}, "rules=False was given, allowed: rules=True"),
        (TensorObservation, CARTPOLE, "TensorObservation: .*Box.*, allowed: text observations"),
        (RawReturns, CARTPOLE, r"RawReturns: .*CartPole.* was given, allowed: GameSpiel-v0 and"),
        (EvaluateConversation, KUHN, r"seeding='openenv' was given, allowed: seeding=\"evaluate\""),
    ],
)
def test_what_cannot_be_wrapped_is_refused(wrap: Wrap, arguments: dict[str, Any], message: str) -> None:
    env = gym.make(**arguments)
    with pytest.raises(ArgumentError, match=message):
        wrap(env)
