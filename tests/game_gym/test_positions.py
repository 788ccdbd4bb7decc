"""Positions of games: their moves in words, and questions about them with a scorer."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.dataset import PositionDataset
from game_gym.exact import find_variant
from game_gym.games import DECLARED, TABLE
from game_gym.task import encode
from game_gym.transcript import CHANCE, Move, moves, positions, show
from task_gym.errors import ArgumentError, OpponentError, SizeError


def test_simultaneous_moves_come_together() -> None:
    variant = find_variant(game="goofspiel", params={"num_cards": 8})
    # A prize card, and each player's bid: actions are cards less 1.
    turns = [turn for _, turn in positions(variant, [3, 0, 7])]
    assert turns == [
        [Move(CHANCE, 3, "Deal 4")],
        [Move(0, 0, "[P0]Bid: 1"), Move(1, 7, "[P1]Bid: 8")],
        [],
    ]


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_game_is_played_again_from_its_history(name: str) -> None:
    """No name or text is OpenSpiel's placeholder, as "Chance outcome:2" or -10000."""
    where = {"task_id": encode(name, 1)} if name in TABLE else {"game": name}
    env = gym.make("GameSpiel-v0", opponent="first", max_turns=40, **where)
    env.action_space.seed(1)
    _, info = env.reset(seed=2)
    while "result" not in info:
        *_, info = env.step(env.action_space.sample(info["action_mask"]))
    local: Any = env.unwrapped
    for state, turn in positions(local.variant, info["history"]):
        text = show(local.variant, state)
        assert "-10000" not in text and "-1 " not in text
        assert [move.name for move in turn if "chance outcome" in move.name.lower()] == []
    assert turn == [] and str(state) == str(local.state)


@pytest.mark.parametrize(
    ("game", "history", "pairs"),
    [
        # Deal K to Player 0 and Q to Player 1; a bet, and a pass.
        ("kuhn_poker", [2, 1, 1, 0], [(CHANCE, "K"), (CHANCE, "Q"), (0, "Bet"), (1, "Pass")]),
        ("leduc_poker", [5], [(CHANCE, "K♥")]),  # two of each rank, ♠ first
        ("liars_dice", [0], [(CHANCE, "Roll 1")]),
        ("gin_rummy", [0], [(CHANCE, "As")]),
        # The first roll says who starts; the others are only dice.
        (
            "backgammon",
            [0, 0, 15],
            [(CHANCE, "X starts, roll 12"), (0, "0 - 24/23 24/22"), (CHANCE, "roll 52")],
        ),
    ],
)
def test_moves_are_in_the_games_words(game: str, history: list[int], pairs: list[tuple[int, str]]) -> None:
    sequence = moves(find_variant(game=game), history)
    assert [(move.player, move.name) for move in sequence] == pairs
    assert [move.action for move in sequence] == history


def test_chance_may_draw_what_openspiel_does_not_call_legal() -> None:
    """Hearts without passing: four directions have a quarter each, and only the first is a legal action."""
    variant = find_variant(task_id=encode("hearts", 0))
    assert variant.game.new_initial_state().legal_actions() == [0]
    assert [move.action for move in moves(variant, [2])] == [2]


@pytest.mark.parametrize(
    ("game", "history", "text"),
    [
        (
            "leduc_poker",
            [1, 5, 1, 2],  # J♥ and K♥ are dealt; call, raise: 1 chip each, and 2 more
            "Player 0: J♥\nPlayer 1: K♥\nPublic card: none\nRound 1: Player 0 call, Player 1 raise\n"
            "Round 2: none\nPot: 4",
        ),
        ("kuhn_poker", [2], "Player 0: K\nPlayer 1: no card yet\nBetting: none\nPot: 2"),
        ("liars_dice", [3], "Player 0: 4\nPlayer 1: no dice yet\nBids: none"),
    ],
)
def test_a_spectator_sees_all_cards(game: str, history: list[int], text: str) -> None:
    variant = find_variant(game=game)
    *_, (state, _) = positions(variant, history)
    assert show(variant, state) == text


# -- PositionDataset -----------------------------------------------------------------------------------------


KUHN = {
    # Against a player who passes or bets with probability 1/2 each. Half of the time a bet earns 1 at once,
    # else it wins or loses 2: 1.5 with K, 0.5 with Q and -0.5 with J. A pass by seat 0 meets a pass or a bet,
    # after which K calls for 2, Q for 0 and J folds: 1.5, 0 and -1. The returns span 4.
    ("", "K"): [1, 1], ("", "Q"): [0.875, 1], ("", "J"): [0.875, 1],
    # Seat 1's pass is a showdown for 1: 1, 0 and -1 against 1.5, 0.5 and -0.5.
    ("p", "K"): [0.875, 1], ("p", "Q"): [0.875, 1], ("p", "J"): [0.875, 1],
    # After a bet: -1 for a pass, and 2, 0 and -2 for a call.
    ("b", "K"): [0.25, 1], ("b", "Q"): [0.75, 1], ("b", "J"): [1, 0.75],
    ("pb", "K"): [0.25, 1], ("pb", "Q"): [0.75, 1], ("pb", "J"): [1, 0.75],
}  # fmt: skip
"""(moves, card) to the scores of pass and bet."""


def test_exact_scores_of_kuhn_poker() -> None:
    data, met = PositionDataset(120, seed=1, game="kuhn_poker", rules=False), set()
    for entry in data:
        question, known = entry["question"], entry["metadata"]
        card = re.search(r"Your card: (\w)", question)
        betting = re.search(r"Betting: (.*)", question)
        assert card and betting
        moves = "".join(move[0] for move in re.findall(r"pass|bet", betting[1]))
        met.add((moves, card[1]))
        assert known["scores"] == KUHN[moves, card[1]] and known["legal_actions"] == [0, 1]
        assert known["scores"][int(entry["answer"])] == 1
    assert met == set(KUHN)


def test_entries_are_positions_of_the_environments_episodes() -> None:
    data = PositionDataset(6, seed=25, game="kuhn_poker")
    env = gym.make("GameSpiel-v0", game="kuhn_poker")
    first = [entry for entry in data if entry["metadata"]["turn"] == 0]
    assert first and len(first) < 6
    for entry in first:
        assert entry["question"] == env.reset(seed=entry["metadata"]["seed"])[0]
    assert list(data) == list(PositionDataset(6, seed=25, game="kuhn_poker"))
    assert data[np.int64(4)] == PositionDataset(1, seed=29, game="kuhn_poker")[0]
    with pytest.raises(TypeError):
        data["0"]


def test_an_illegal_reply_scores_nothing() -> None:
    data = PositionDataset(10, game="leduc_poker", rules=False)
    pairs = list(data.pairs())
    folding = [index for index, entry in enumerate(data) if entry["metadata"]["legal_actions"][0] != 0]
    assert folding  # nothing to fold to: 0 is not legal
    for index in folding:
        prompt, scorer = pairs[index]
        assert "  0 -> Fold" not in prompt and scorer("0") == scorer("Fold") == 0
    for entry in data:
        known = entry["metadata"]
        scores = [data.score_answer(f"<think>0?</think>I play {a}.", entry) for a in known["legal_actions"]]
        assert scores == known["scores"] and min(scores) > 0 and max(scores) == 1
        assert data.score_answer(known["admissible_commands"][0], entry) == scores[0]
        assert data.score_answer(None, entry) == data.score_answer("I pass.", entry) == 0


def test_a_search_finds_the_win() -> None:
    data = PositionDataset(12, seed=2, judge="mcts:300", game="tic_tac_toe", rules=False)
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    won = 0
    for entry in data:
        board = "".join(re.findall(r"^([xo.]{3})$", entry["question"], re.M))
        mark = "xo"[entry["metadata"]["seat"]]
        wins = {
            line[i]
            for line in lines
            for i in range(3)
            if board[line[i]] == "." and all(board[line[j]] == mark for j in range(3) if j != i)
        }
        if wins:
            won += 1
            assert int(entry["answer"]) in wins
            scores = dict(zip(entry["metadata"]["legal_actions"], entry["metadata"]["scores"], strict=True))
            assert all(scores[action] == 1 for action in wins)
    assert won


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])
@pytest.mark.parametrize("judge", ["exact", "mcts:30"])
def test_a_copy_has_the_same_entries(clone: Any, judge: str) -> None:
    """Loaders send a data set to their workers."""
    data = PositionDataset(3, judge=judge, game="tic_tac_toe" if judge != "exact" else "kuhn_poker")
    assert list(clone(data)) == list(data)


@pytest.mark.families
@pytest.mark.sample
def test_huggingface() -> None:
    pytest.importorskip("datasets")
    data = PositionDataset(3, game="kuhn_poker")
    rows = data.to_huggingface()
    assert rows.column_names == ["prompt", "answer", "metadata"]
    assert rows[0]["prompt"] == [{"role": "user", "content": data[0]["question"]}]
    # A row has all that its score needs.
    assert data.score_answer(rows[2]["answer"], rows[2]) == 1


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"judge: 'exakt' was given.*did you mean 'exact'"):
        PositionDataset(judge="exakt", game="kuhn_poker")
    for wrong in ("exact:3", "mcts:", 5, None):
        with pytest.raises(ArgumentError, match=f"judge: {wrong!r} was given, allowed: 'exact', 'mcts:SIMS'"):
            PositionDataset(judge=wrong, game="kuhn_poker")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"judge: 'mcts' was given, allowed: .*mcts:SIMS"):
        PositionDataset(judge="mcts", game="tic_tac_toe")
    with pytest.raises(OpponentError, match=r"opponent argument: 'x' was given"):
        PositionDataset(judge="mcts:x", game="tic_tac_toe")
    with pytest.raises(ArgumentError, match=r"judge: 'mcts' was given for 'leduc_poker'.*nothing is hidden"):
        PositionDataset(judge="mcts:100", game="leduc_poker")
    with pytest.raises(SizeError, match=r"chess was given, which has more than 5,000,000 histories"):
        PositionDataset(game="chess")
    with pytest.raises(ArgumentError, match=r"judge: 5 simulations were given, allowed: more than .* legal"):
        PositionDataset(2, judge="mcts:5", game="hex")[0]
