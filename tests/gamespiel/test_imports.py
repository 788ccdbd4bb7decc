"""``--import``: a user's own opponents, games and rewards in every command that plays."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from game_gym.games import DECLARED
from gamespiel.assembly import make_algorithm, make_env
from gamespiel.cli import main
from gamespiel.config import ConfigError, from_dict, saved_config
from gamespiel.config.imports import import_modules, import_own_modules
from gamespiel.environments.making import make_one_env
from gamespiel.serving.games import GameActor
from gamespiel.serving.options import ServeOptions
from task_gym import opponents, rewards
from task_gym.errors import ArgumentError, OpponentError, TaskGymError
from task_gym.rewards import find_reward, register_reward, reward_names
from task_gym.wrappers.base import MaskedWrapper

MINE = """
from game_gym.games import register_game
from game_gym.spec import GameSpec
from task_gym.opponents import register_opponent
from task_gym.rewards import register_reward
from task_gym.wrappers.base import MaskedWrapper


class Last:
    def __init__(self, seating):
        pass

    def restart(self, seed):
        pass

    def act(self, view):
        return view.legal_actions()[-1]


class Hurry(MaskedWrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward - 0.125, terminated, truncated, info


register_opponent("last", Last)
register_game(
    GameSpec(name="nim", rules=lambda params: "OWN RULES", describe=lambda state, seat: "OWN STATE")
)
register_reward("hurry", Hurry)
"""

OWN = ("mine", "other", "bad")
OPTIONS = ["--import", "mine", "--game", "nim", "--opponent", "last"]
SMALL = [
    "--ppo.batch_size", "4", "--ppo.num_train_steps", "1", "--run.eval_games", "0", "--run.exact_every", "0",
    "--run.device", "cpu",
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(here: Path, registries: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a user's module, which nothing has imported yet."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (here / "mine.py").write_text(MINE)
    for name in OWN:  # tests of other files may have modules of these names, too
        sys.modules.pop(name, None)
    yield here
    for name in OWN:
        sys.modules.pop(name, None)


def forget(patch: pytest.MonkeyPatch) -> None:
    """As in a new process: the module is not imported, and what it registered is not there."""
    sys.modules.pop("mine", None)
    DECLARED.pop("nim", None)
    built_in = {name: entry for name, entry in opponents.REGISTRY.items() if name != "last"}
    patch.setattr(opponents, "REGISTRY", built_in)
    patch.setattr(rewards, "REGISTRY", {})


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_and_its_evaluation_import_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *OPTIONS, "--env.reward", "hurry", "--output_dir", "run", *SMALL]) == 0
    assert ", --import mine\n" in capsys.readouterr().out
    assert saved_config("run").run.imports == ("mine",)
    forget(monkeypatch)
    assert main(["eval", "--checkpoint", "run", "--num_episodes", "2"]) == 0
    assert "nim against last" in capsys.readouterr().out
    forget(monkeypatch)
    assert main(["train", "--resume", "run", "--ppo.num_train_steps", "2"]) == 0
    forget(monkeypatch)
    env = make_env("run")
    _, info = env.reset(seed=1)
    assert env.step(info["legal_actions"][0])[1] == -0.125  # nim pays at its end
    forget(monkeypatch)
    (folder / "mine.py").unlink()
    capsys.readouterr()
    assert main(["eval", "--checkpoint", "run"]) == 2
    assert "--import: 'mine' was given, and there is no such module" in capsys.readouterr().err


def test_the_other_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("quit\n"))
    assert main(["play", *OPTIONS, "--seed", "1"]) == 0
    assert "OWN STATE" in capsys.readouterr().out
    forget(monkeypatch)
    assert main(["games", "--import", "mine"]) == 0
    assert "nim" in capsys.readouterr().out
    forget(monkeypatch)
    assert main(["eval", "--agent", "first", *OPTIONS, "--num_episodes", "2"]) == 0
    assert main(["train", "--plan", "12", *OPTIONS, "--env.reward", "hurry"]) == 0
    assert main(["train", "--plan", "12", *OPTIONS, "--env.reward", "hury"]) == 2
    assert "env.reward: 'hury' was given, allowed: 'score', 'upstream', 'hurry'" in capsys.readouterr().err


def test_a_server_lets_requests_name_an_imported_opponent(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[ServeOptions] = []
    monkeypatch.setattr("gamespiel.serving.run.serve", options.append)
    assert main(["serve", "--import", "mine"]) == 0
    assert options[0].opponents == ("last",)
    request = {"opponent": "last"}
    assert GameActor(options[0]).reset(200_000_000, 1, **request)
    with pytest.raises(OpponentError, match=r"opponent: 'last' was given, allowed: 'random', 'first'"):
        GameActor(ServeOptions()).reset(200_000_000, 1, **request)


def test_imports_of_a_file_and_of_options_are_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.py").write_text("")
    (folder / "a.yaml").write_text("{imports: [other], game: nim, opponent: last}")
    assert main(["train", "--plan", "12", "--config", "a.yaml", "--import", "mine", "--import", "other"]) == 0
    assert capsys.readouterr().out.startswith("configuration: defaults, a.yaml, --import mine other\n")
    assert {"mine", "other"} <= set(sys.modules)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("mien", "", r"--import: 'mien' was given, and there is no such module, .*; did you mean 'mine'\?"),
        ("mine.py", "", r"'mine.py' was given, needed: a module's name, .*; did you mean 'mine'\?"),
        ("bad", "import nowhere_at_all", r"'bad' cannot be imported: ModuleNotFoundError: .*bad.py, line 1"),
        ("bad", "raise SystemExit(3)", r"'bad' cannot be imported: SystemExit: 3"),
        ("bad", "def", r"'bad' cannot be imported: SyntaxError: .*bad.py, line 1"),
    ],
)
def test_modules_that_cannot_be_imported(name: str, code: str, message: str, folder: Path) -> None:
    (folder / "bad.py").write_text(code)
    with pytest.raises(ConfigError, match=message):
        import_modules([name])


class Twice(MaskedWrapper):
    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, 2 * float(reward), *rest


def test_a_reward_is_registered_once_and_returns_its_environment() -> None:
    with pytest.raises(ArgumentError, match=r"did you mean 'score'.* needs --import"):
        make_one_env(from_dict({"game": "kuhn_poker", "reward": "scor"}).env)
    register_reward("twice", Twice)
    register_reward("twice", Twice)
    register_reward("broken", lambda env: None)
    assert reward_names() == ("score", "upstream", "broken", "twice")
    assert find_reward("score") is None and find_reward("twice") is Twice
    for name in ("twice", "score", "", "a b", 3):
        with pytest.raises(ArgumentError, match=f"reward name {name!r} is taken or not a word"):
            register_reward(name, lambda env: env)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"reward 'new': 'x' was given, needed: a wrapper's class"):
        register_reward("new", "x")  # type: ignore[arg-type]
    with pytest.raises(TaskGymError, match=r"env.reward 'broken' returned None"):
        make_one_env(from_dict({"game": "kuhn_poker", "reward": "broken"}).env)


def test_terms_of_the_loss_are_needed_for_training_alone() -> None:
    """A run is evaluated where the module of its own terms is not."""
    config = from_dict({"game": "kuhn_poker", "terms": ["no_such_module:term"]})
    assert import_own_modules(config) is config
    with pytest.raises(ConfigError, match=r"ppo\.terms: 'no_such_module' was given"):
        make_algorithm(config)
