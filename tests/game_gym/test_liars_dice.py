"""Liar's dice: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games.liars_dice import SPEC, describe
from game_gym.spec import load_variant


@pytest.mark.parametrize("rule", ["reset-face", "reset-quantity"])
@pytest.mark.parametrize(("dice", "sides"), [(5, 6), (2, 4)])
def test_the_rules_told_are_the_rules_played(rule: str, dice: int, sides: int) -> None:
    game = load_variant(SPEC, {"numdice": dice, "dice_sides": sides, "bidding_rule": rule}).game
    everything = [(count, face) for count in range(1, 2 * dice + 1) for face in range(1, sides + 1)]
    rng = random.Random(0)
    for _ in range(200):
        state = game.new_initial_state()
        rolled = [rng.randrange(sides) for _ in range(2 * dice)]
        for roll in rolled:
            state.apply_action(roll)
        bids: list[tuple[int, int]] = []
        while True:
            seat = len(bids) % 2
            assert state.current_player() == seat
            own = sorted(roll + 1 for roll in rolled[seat * dice : (seat + 1) * dice])
            said = [
                f"{'you' if turn % 2 == seat else f'Player {1 - seat}'} {count}-{face}"
                for turn, (count, face) in enumerate(bids)
            ]
            assert describe(state, seat) == (
                f"Your dice: {' '.join(map(str, own))}\nBids: {', '.join(said) or 'none'}"
            )
            key = (lambda bid: bid) if rule == "reset-face" else (lambda bid: bid[::-1])
            higher = [bid for bid in everything if not bids or key(bid) > key(bids[-1])]
            names = [f"{count}-{face}" for count, face in sorted(higher, key=key)] + ["Liar"] * bool(bids)
            legal = state.legal_actions()
            assert [state.action_to_string(seat, action) for action in legal] == names
            # Small steps, so that games last.
            index = len(names) - 1 if bids and rng.random() < 0.3 else rng.randrange(min(4, len(names)))
            state.apply_action(legal[index])
            if names[index] == "Liar":
                break
            bids.append(sorted(higher, key=key)[index])
        count, face = bids[-1]
        true = sum(roll + 1 in (face, sides) for roll in rolled) >= count
        winner = 1 - seat if true else seat
        assert state.is_terminal()
        assert state.returns() == [1.0 if player == winner else -1.0 for player in range(2)]
