"""Oware: the game plays by the rules in its text."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym.games import find_game
from game_gym.games.oware import describe
from game_gym.spec import load_variant
from tests.game_gym.play import make


class Oware:
    """The rules text, played: an implementation of its own."""

    def __init__(self, houses: int, seeds: int) -> None:
        self.houses, self.seeds, self.taken, self.mover = houses, [seeds] * (2 * houses), [0, 0], 0
        self.total, self.seen, self.over = 2 * houses * seeds, set(), False
        self.note()

    def side(self, player: int) -> range:
        return range(player * self.houses, (player + 1) * self.houses)

    def legal(self) -> list[int]:
        own, other = self.side(self.mover), self.side(1 - self.mover)
        some = [h for h in own if self.seeds[h]]
        if not any(self.seeds[h] for h in other):
            some = [h for h in some if self.seeds[h] > own[-1] - h]
        return [h - own[0] for h in some]

    def act(self, action: int) -> None:
        start = place = self.side(self.mover)[action]
        held, self.seeds[start] = self.seeds[start], 0
        while held:
            place = (place + 1) % len(self.seeds)
            if place != start:
                self.seeds[place] += 1
                held -= 1
        other = self.side(1 - self.mover)
        captured = []
        while place in other and self.seeds[place] in (2, 3):
            captured.append(place)
            place -= 1
        gain = sum(self.seeds[h] for h in captured)
        if gain < sum(self.seeds[h] for h in other):
            for h in captured:
                self.seeds[h] = 0
            self.taken[self.mover] += gain
        self.mover = 1 - self.mover
        if self.note() or not self.legal():
            for player in (0, 1):
                self.taken[player] += sum(self.seeds[h] for h in self.side(player))
            self.over = True
        half = self.total // 2
        self.over = self.over or max(self.taken) > half or min(self.taken) == half

    def note(self) -> bool:
        position = (self.mover, *self.taken, *self.seeds)
        known = position in self.seen
        self.seen.add(position)
        return known


@pytest.mark.parametrize(("houses", "seeds"), [(6, 4), (6, 3), (6, 5), (3, 2), (4, 3), (5, 6)])
def test_the_rules_told_are_the_rules_played(houses: int, seeds: int) -> None:
    params = {"num_houses_per_player": houses, "num_seeds_per_house": seeds}
    game = load_variant(find_game("oware"), params).game
    rng, results = random.Random(houses * seeds), set()
    for _ in range(60):
        state, ours = game.new_initial_state(), Oware(houses, seeds)
        while not ours.over:
            assert state.current_player() == ours.mover
            assert state.legal_actions() == ours.legal()
            shown = describe(state, ours.mover).replace(",", "").split("\n")
            assert shown[0] == f"You captured: {ours.taken[ours.mover]}"
            assert [int(n) for n in shown[2].split()[3::2]] == [ours.seeds[h] for h in ours.side(ours.mover)]
            action = rng.choice(ours.legal())
            state.apply_action(action)
            ours.act(action)
        assert state.is_terminal()
        sign = (ours.taken[0] > ours.taken[1]) - (ours.taken[0] < ours.taken[1])
        assert state.returns() == [sign, -sign]
        results.add(sign)
    assert {1, -1} <= results


def test_a_description_in_full() -> None:
    state = load_variant(find_game("oware"), {}).game.new_initial_state()
    state.apply_action(5)  # F: one seed each into a, b, c and d
    assert describe(state, 1) == (
        "You captured: 0\nPlayer 0 captured: 0\n"
        "Your houses: a 5, b 5, c 5, d 5, e 4, f 4\n"
        "Player 0's houses: A 4, B 4, C 4, D 4, E 4, F 0"
    )
    assert [state.action_to_string(1, a) for a in state.legal_actions()] == list("abcdef")


def test_variants_are_seeds_a_house() -> None:
    spec = find_game("oware")
    assert [spec.params(c)["num_seeds_per_house"] for c in range(4)] == [4, 3, 5, 4]


def test_a_game_that_never_ends_is_a_fault() -> None:
    """OpenSpiel refuses oware's 1001st move. Players who capture as little as they can get there."""
    env = make(game="oware", params={"num_seeds_per_house": 5}, opponent="open", rules=False)
    env.reset(seed=0)
    rng = random.Random(0)
    for _ in range(1000):
        children = [(env.state.child(action), action) for action in env.state.legal_actions()]
        going_on = [(child, action) for child, action in children if not child.is_terminal()]
        _, action = min(going_on, key=lambda pair: (captured(pair[0]), rng.random()))
        *_, terminated, truncated, info = env.step(action)
        assert not (terminated or truncated)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0, False, True)
    assert (info["result"], info["score"], len(info["history"])) == ("fault", None, 1000)
    assert "Result: fault" in text


def captured(state: Any) -> int:
    return sum(int(count) for count in state.observation_string(0).split("|")[1].split())
