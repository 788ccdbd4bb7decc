"""``save`` and ``load``: the same learner, of a folder that has no pickles and runs no code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo  # derives a class from pickle.Unpickler, which ``no_pickles`` forbids
from gymnasium import spaces
from stable_baselines3.common.save_util import save_to_zip_file
from stable_baselines3.common.utils import LinearSchedule

from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.learning.coefficients import AdaptiveKLController
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs.arguments import describe_space, make_space
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.manifest import replace_file
from gamespiel.agents.starts import Starts
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError, TaskGymError
from task_gym.samplers import Failures
from task_gym.spaces import UnicodeText
from tests.agents.test_checkpoint import counters_of, learner, state_of
from tests.agents.test_self_play import kuhn
from tests.agents.toys import TEXT, Bandit, make_policy, make_ppo
from tests.task_gym.tasks import Tenths

pytestmark = [pytest.mark.trains, pytest.mark.sample]


class Trap:
    """An object whose pickle makes a file as it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.fixture
def no_pickles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes every way to read a pickle fail."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a pickle was read")

    for place in ("cloudpickle.loads", "pickle.loads", "pickle.load", "pickle.Unpickler", "torch.load"):
        monkeypatch.setattr(place, refuse)
    yield


def assert_same(one: LLMPPO, other: LLMPPO) -> None:
    assert counters_of(one) == counters_of(other)
    state, theirs = state_of(one), state_of(other)
    assert state.keys() == theirs.keys()
    assert [name for name in state if not torch.equal(state[name], theirs[name])] == []


@pytest.mark.usefixtures("no_pickles")
def test_a_learner_goes_on_as_if_it_had_not_been_saved(tmp_path: Path) -> None:
    model = make_ppo(Bandit, 4, batch_size=4, lr_schedule="cosine", learning_rate=2e-3, total_steps=4)
    model.learn(8)
    model.save(tmp_path / "model.zip")  # a folder has no ending, which Stable-Baselines3's callbacks add
    # Adapters, a head and their Adam moments, but not the base.
    written = sum(path.stat().st_size for path in (tmp_path / "model").rglob("*"))
    assert written < (TINY / "model.safetensors").stat().st_size / 2
    assert "`LLMPPO.load(FOLDER)` loads the learner" in (tmp_path / "model/adapter/README.md").read_text()
    loaded = LLMPPO.load(tmp_path / "model", env=TextVecEnv([Bandit] * 3))
    assert_same(model, loaded)
    new = learner(seed=5)
    new.set_parameters(tmp_path / "model")
    assert all(torch.equal(tensor, state_of(new)[name]) for name, tensor in state_of(model).items())
    assert loaded.n_envs == 3 and loaded.total_steps == 4 and loaded.hyperparameters == model.hyperparameters
    # Half of the four steps are left: the cosine from 0.002 is at 0.001.
    assert loaded.lr_schedule(0.5) == pytest.approx(1e-3)
    for one in (model, loaded):
        one.learn()
    assert loaded.step == 4
    loaded.seconds = model.seconds
    assert_same(model, loaded)


@pytest.mark.usefixtures("no_pickles")
def test_self_play_keeps_its_pool_magnet_and_average(tmp_path: Path) -> None:
    settings = SelfPlaySettings(learn="one", pool_every=1)
    model = make_ppo(
        kuhn, 2, adapters=0.05, batch_size=4, self_play=settings, magnet_coef=0.1, average_decay=0.9,
        magnet_every=1, total_steps=2,
    )  # fmt: skip
    model.learn()
    model.save(tmp_path / "model")
    loaded = LLMPPO.load(tmp_path / "model", env=TextVecEnv([kuhn] * 2))
    pools = [one.self_play.pool.members for one in (model, loaded)]  # type: ignore[union-attr]
    # One at the start of each of the two steps.
    assert [[m.snapshot.step for m in pool] for pool in pools] == [[0, 1], [0, 1]]
    assert [m.games for m in pools[0]] == [m.games for m in pools[1]] and sum(m.games for m in pools[0]) == 8
    for one, other in zip(pools[0], pools[1], strict=True):
        assert one.win_rate == other.win_rate
        assert all(torch.equal(t, other.snapshot.adapters[name]) for name, t in one.snapshot.adapters.items())
    for name in ("magnet", "average"):
        snapshot, theirs = (getattr(one, name).snapshot for one in (model, loaded))
        assert snapshot.step == theirs.step and snapshot.adapters.keys() == theirs.adapters.keys()
    new = make_ppo(kuhn, 2, batch_size=4)  # the weights that learn, and not their average
    new.set_parameters(tmp_path / "model")
    assert all(torch.equal(tensor, state_of(new)[name]) for name, tensor in state_of(model).items())
    for one in (model, loaded):
        one.total_steps = 3
        one.learn()
    loaded.seconds = model.seconds
    assert_same(model, loaded)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    """Stable-Baselines3's own ``save`` writes them."""
    trap, model, policy = tmp_path / "trap", tmp_path / "model.zip", tmp_path / "policy.pt"
    save_to_zip_file(model, data={"extra": Trap(trap)}, params={})
    torch.save({"state_dict": {}, "data": {"model": Trap(trap)}}, policy)
    reads: list[tuple[str, Callable[[], object]]] = [
        ("model.zip' was given, which is a file; allowed: a folder; pickles", lambda: LLMPPO.load(model)),
        ("model.zip' was given, which is a file", lambda: learner().set_parameters(model)),
        ("LLMPolicy.load was called", lambda: LLMPolicy.load(policy)),
    ]
    for message, read in reads:
        with pytest.raises(TaskGymError, match=message):
            read()
    assert not trap.exists()
    with pytest.raises(ArgumentError, match=r"LLMPolicy\.save was called, allowed: LLMPPO\.save"):
        make_policy().save(policy)


def rate(remaining: float) -> float:
    return 1e-4 * remaining


class Controller(AdaptiveKLController):
    """A controller of someone else."""


class Policy(LLMPolicy):
    """A policy of someone else."""


def change(folder: Path, **changes: Any) -> None:
    """Writes other arguments, and a manifest that agrees."""
    data = json.loads((folder / "learner.json").read_text()) | changes
    replace_file(folder, "learner.json", json.dumps({k: v for k, v in data.items() if v is not ...}))


def test_the_system_is_shown_without_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_ppo(Bandit, 1).save(tmp_path)
    change(tmp_path, system="Linux\x1b]0;title\x07")
    LLMPPO.load(tmp_path, print_system_info=True)
    assert capsys.readouterr().out.endswith("there: Linux\\x1b]0;title\\x07\n")


def test_code_is_asked_for(tmp_path: Path) -> None:
    model = make_ppo(Bandit, 1, learning_rate=rate, kl=Controller(0.1, 0.1))
    model.save(tmp_path)
    with pytest.raises(ArgumentError, match=r"with learning_rate <function rate .*, which is code"):
        LLMPPO.load(tmp_path)
    with pytest.raises(ArgumentError, match=r"with kl Controller\("):
        LLMPPO.load(tmp_path, learning_rate=rate)
    loaded = LLMPPO.load(tmp_path, learning_rate=rate, custom_objects={"kl": Controller(0.3, 0.1)})
    assert loaded.learning_rate is rate and loaded.kl == Controller(0.3, 0.1)
    model = LLMPPO(Policy, TextVecEnv([Bandit]), learning_rate=LinearSchedule(1e-3, 1e-4, 0.5))
    model.save(tmp_path)  # in the place of the first
    with pytest.raises(ArgumentError, match=r"policy_class tests\.agents\.test_saving\.Policy, which"):
        LLMPPO.load(tmp_path)
    loaded = LLMPPO.load(tmp_path, policy_class=Policy)
    assert type(loaded.policy) is Policy
    # A quarter of the way is half of the fall, which ends after half of the way.
    assert loaded.lr_schedule(0.75) == pytest.approx(5.5e-4)


def test_what_load_and_save_do_not_take(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model = make_ppo(Bandit, 1)
    model.save(folder, exclude=["ep_info_buffer"])  # a callback of Stable-Baselines3 may say so
    with pytest.raises(ArgumentError, match=r"argument of load: 'learning_rat' .*mean 'learning_rate'"):
        LLMPPO.load(folder, learning_rat=0.5)
    with pytest.raises(ArgumentError, match=r"policy_kwargs=\{'lora': \{'r': 8\}\} was given"):
        LLMPPO.load(folder, policy_kwargs={"lora": {"r": 8}})
    with pytest.raises(ArgumentError, match=r"load: batch_size=4 was given, and a saved model keeps"):
        LLMPPO.load(folder, batch_size=4)
    assert LLMPPO.load(folder, learning_rate=0.5).learning_rate == 0.5
    assert LLMPPO.load(folder, policy_kwargs={"lora": {"r": 4}}, verbose=1).verbose == 1
    with pytest.raises(ArgumentError, match=r"save: include=\['env'\] was given, allowed: nothing"):
        model.save(folder, include=["env"])
    with (tmp_path / "open").open("wb") as file, pytest.raises(ArgumentError, match="the path of a folder"):
        model.save(file)
    with pytest.raises(ArgumentError, match="open' was given, which is a file"):
        model.save(tmp_path / "open")
    (tmp_path / "learner.json").write_text("of mine")
    (folder / "notes").write_text("of mine")
    for place in (tmp_path, folder):
        with pytest.raises(CheckpointError, match="a new or empty folder, or one that `save` has written"):
            model.save(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["learner.json", "model", "open"]
    assert (folder / "notes").is_file()
    with pytest.raises(CheckpointError, match="none' was given, allowed: a folder that `save` has written"):
        LLMPPO.load(tmp_path / "none")


def test_a_move_that_a_kill_cut_is_finished(tmp_path: Path) -> None:
    model = make_ppo(Bandit, 1)
    folder = tmp_path / "model"
    model.save(folder)
    for read in (LLMPPO.load, model.set_parameters, model.save):
        folder.rename(tmp_path / ".model.partial")
        (tmp_path / ".model.removed").mkdir(exist_ok=True)
        read(folder)
        assert LLMPPO.load(folder).step == 0


def test_starts_begin_or_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_ppo(Tenths, 2, batch_size=4, total_steps=np.int64(4))
    model.save(tmp_path)
    monkeypatch.chdir(tmp_path)  # which a save would move away
    with pytest.raises(CheckpointError, match="a folder that this process does not work in"):
        model.save(".")
    new = Starts(failures=Failures())
    loaded = LLMPPO.load(".", starts=new, env=TextVecEnv([Tenths] * 2))
    assert loaded.total_steps == 4 and loaded.starts is new
    loaded.learn(4)
    loaded.save(tmp_path / "next")
    again = LLMPPO.load("next", starts=Starts(failures=Failures()))
    assert again.starts is not None
    assert again.starts.state_dict() == new.state_dict() != Starts(failures=Failures()).state_dict()


def test_changed_folders_are_named(tmp_path: Path) -> None:
    model, refused = make_ppo(Bandit, 1), "LLMPPO takes no such arguments, saved or given: "
    for changes, message in (
        ({"hyperparameters": ...}, rf"{refused}KeyError\('hyperparameters'\)"),
        ({"self_play": 3}, f"{refused}TypeError"),
        ({"seed": "x"}, refused),
        ({"policy_kwargs": {"nonsense": 1}}, f"{refused}TypeError"),
        ({"hyperparameters": {"gamma": "x"}}, refused),
        ({"action_space": {"type": "Dict"}}, r"no space is \{'type': 'Dict'\}"),
        ({"action_space": {"type": "Discrete", "n": 10**30}}, r"no space is"),
        ({"action_space": 3}, r"no space is 3"),
    ):
        model.save(tmp_path)
        change(tmp_path, **changes)
        with pytest.raises(CheckpointError, match=message):
            LLMPPO.load(tmp_path)
    for name in ("learner.json", "value_head.safetensors"):
        model.save(tmp_path)
        os.truncate(tmp_path / name, 40)
        with pytest.raises(CheckpointError, match=rf"{name}' cannot be read|{name} has another content"):
            LLMPPO.load(tmp_path)


def test_spaces() -> None:
    for space in (TEXT, UnicodeText(90, min_length=2), spaces.Discrete(3, start=2)):
        copy = make_space(json.loads(json.dumps(describe_space(space))))
        assert copy == space and type(copy) is type(space)
    with pytest.raises(ArgumentError, match=r"Dict\(.*was given, allowed: UnicodeText, Text, Discrete"):
        describe_space(spaces.Dict({"a": spaces.Discrete(2)}))
