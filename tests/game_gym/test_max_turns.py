"""A cut: truncated, score 0, and only if the game could have gone on."""

from __future__ import annotations

from tests.game_gym.play import episode, make


def test_a_cut_game() -> None:
    env = make(game="tic_tac_toe", max_turns=2)
    text, info = env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (terminated, truncated) == (False, False)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["score"], info["success"], info["result"], info["turn"]) == (0.0, False, "cut", 2)
    assert info["returns"] == [0, 0]
    assert not env.state.is_terminal()
    # A learner bootstraps from this position: text, mask and legal actions are its own.
    assert "Your choice" in text
    assert info["legal_actions"] == env.state.legal_actions()
    assert info["action_mask"].sum() == len(info["legal_actions"])


def test_a_game_that_ends_at_the_limit_is_not_cut() -> None:
    for seed in range(30):
        whole = episode(make(game="kuhn_poker"), seed)
        limited = episode(make(game="kuhn_poker", max_turns=2), seed)
        assert limited == whole  # kuhn asks nobody more than twice


def test_illegal_actions_are_no_turns() -> None:
    env = make(game="tic_tac_toe", max_turns=2)
    _, info = env.reset(seed=0)
    env.step(99)
    env.step(99)
    _, _, _, truncated, info = env.step(info["legal_actions"][0])
    assert not truncated and info["turn"] == 1
