"""The registry: anyone may add an opponent, and nobody gets another than was asked for."""

from collections.abc import Iterator

import pytest

from task_gym import opponents
from task_gym.errors import OpponentError
from task_gym.opponents import (
    Seating,
    SeatView,
    find_opponent,
    make_opponent,
    opponent_names,
    register_opponent,
)


class Fixed:
    def __init__(self, seating: Seating) -> None:
        self.seating = seating

    def restart(self, seed: int) -> None: ...

    def act(self, view: SeatView) -> int:
        return view.legal_actions()[-1]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(opponents, "REGISTRY", {})
    register_opponent("policy", Fixed, usage="policy:PATH", takes_argument=True, why_not_replayable="remote")
    register_opponent("last", Fixed)
    yield


def test_what_an_opponent_is_built_from() -> None:
    built = make_opponent("policy:a/b:c", "game", "spec", 1)
    assert isinstance(built, Fixed)
    assert built.seating == Seating("game", "spec", 1, "a/b:c")
    assert find_opponent("policy:x").why_not_replayable == "remote"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polcy:x", "'polcy:x' was given, allowed: last, open, policy:PATH; did you mean 'policy'"),
        ("openai:m", "policy:PATH; import gamespiel.endpoints.opponent registers 'openai'"),
        ("last:3", "'last' takes no argument"),
        ("policy:", "nothing after the colon; write 'policy:PATH'"),
        ("open", "'open' was given"),  # played by nobody
        (None, "None was given"),
        (3, "3 was given"),
    ],
)
def test_unknown_opponents_are_named(text: str, message: str) -> None:
    with pytest.raises(OpponentError, match=message):
        find_opponent(text)


def test_a_name_is_registered_once_with_a_factory_and_a_rule() -> None:
    register_opponent("last", Fixed)  # the same again is no conflict
    for name in ("last", "open", "a:b", "", "a b", " a", 5, None):
        with pytest.raises(OpponentError, match=f"opponent name {name!r} is taken or not a word"):
            register_opponent(name, lambda seating: Fixed(seating))  # type: ignore[arg-type]
    with pytest.raises(OpponentError, match=r"'made': the factory .* was given"):
        register_opponent("made", None)  # type: ignore[arg-type]
    with pytest.raises(OpponentError, match=r"illegal: 'forfiet' was given, .*; did you mean 'forf"):
        register_opponent("made", Fixed, illegal="forfiet")
    assert "made" not in opponent_names()


class Forgetful:
    """An opponent whose author has forgotten ``restart``."""

    def __init__(self, seating: Seating) -> None: ...

    def act(self, view: SeatView) -> int:
        return view.legal_actions()[0]


def test_what_lacks_a_method_is_refused() -> None:
    lacks = r"lacks restart\(self, seed\)"
    with pytest.raises(OpponentError, match=rf"'forgetful': <class .*Forgetful'> .* {lacks};"):
        register_opponent("forgetful", Forgetful)  # type: ignore[arg-type]
    assert "forgetful" not in opponent_names()
    # An opponent is checked when its function makes it.
    register_opponent("made", lambda seating: Forgetful(seating))  # type: ignore[arg-type, return-value]
    with pytest.raises(OpponentError, match=rf"opponent 'made': <.*Forgetful object.* {lacks}"):
        make_opponent("made", "game", "spec", 0)
