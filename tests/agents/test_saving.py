"""``save`` and ``load``: the same learner, of a file that has no pickles and runs no code."""

from __future__ import annotations

import io
import json
import random
import zipfile
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

from gamespiel.agents.archive import ArchiveError, describe_space, make_space
from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.learning.coefficients import AdaptiveKLController
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.spaces import UnicodeText
from tests.agents.test_checkpoint import counters_of, learner, state_of
from tests.agents.test_self_play import kuhn
from tests.agents.toys import TEXT, Bandit, make_policy, make_ppo

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
    own, theirs = state_of(one), state_of(other)
    assert own.keys() == theirs.keys()
    assert [name for name in own if not torch.equal(own[name], theirs[name])] == []


@pytest.mark.usefixtures("no_pickles")
def test_a_learner_goes_on_as_if_it_had_not_been_saved(tmp_path: Path) -> None:
    model = make_ppo(Bandit, 4, batch_size=4, lr_schedule="cosine", learning_rate=2e-3, total_steps=4)
    model.learn(8)
    model.save(tmp_path / "model")  # gets the ending .zip, as in Stable-Baselines3
    # Adapters, a head and their Adam moments, but not the base.
    assert (tmp_path / "model.zip").stat().st_size < (TINY / "model.safetensors").stat().st_size / 2
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
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = LLMPPO.load(file, env=TextVecEnv([kuhn] * 2))
    pools = [one.self_play.pool.members for one in (model, loaded)]  # type: ignore[union-attr]
    # One at the start of each of the two steps.
    assert [[m.snapshot.step for m in pool] for pool in pools] == [[0, 1], [0, 1]]
    assert [m.games for m in pools[0]] == [m.games for m in pools[1]] and sum(m.games for m in pools[0]) == 8
    for one, other in zip(pools[0], pools[1], strict=True):
        assert one.win_rate == other.win_rate
        assert all(torch.equal(t, other.snapshot.adapters[name]) for name, t in one.snapshot.adapters.items())
    for name in ("magnet", "average"):
        own, theirs = (getattr(one, name).snapshot for one in (model, loaded))
        assert own.step == theirs.step and own.adapters.keys() == theirs.adapters.keys()
    for one in (model, loaded):
        one.total_steps = 3
        one.learn()
    loaded.seconds = model.seconds
    assert_same(model, loaded)


@pytest.mark.usefixtures("no_pickles")
def test_a_policy(tmp_path: Path) -> None:
    policy = make_policy(adapters=0.1, critic_lr_multiplier=3.0, answer="name")
    policy.save(tmp_path / "policy")  # no ending is added, as in Stable-Baselines3
    loaded = LLMPolicy.load(str(tmp_path / "policy"))
    own, theirs = policy.state_dict(), loaded.state_dict()
    assert own.keys() == theirs.keys() and all(torch.equal(own[name], theirs[name]) for name in own)
    assert loaded.answer == "name" and loaded.betas == policy.betas
    assert loaded.observation_space == policy.observation_space and loaded.action_space == policy.action_space
    assert [group["lr_scale"] for group in loaded.optimizer.param_groups] == [1.0, 3.0]
    policy = make_policy(space=UnicodeText(1000), adapters=0.1, max_new_tokens=6, temperature=0.8)
    policy.save(tmp_path / "writer")
    loaded = LLMPolicy.load(tmp_path / "writer")
    assert (loaded.decode, loaded.max_new_tokens, loaded.temperature) == ("text", 6, 0.8)
    said, hidden = policy.predict(["x", "y"], deterministic=True)
    assert said.tolist() == loaded.predict(["x", "y"], deterministic=True)[0].tolist() and hidden is None
    assert loaded.predict("x", deterministic=True)[0] == said[0] and isinstance(said[0], str)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    """Stable-Baselines3's own ``save`` writes them."""
    trap, model, policy = tmp_path / "trap", tmp_path / "model.zip", tmp_path / "policy.pt"
    save_to_zip_file(model, data={"extra": Trap(trap)}, params={})
    torch.save({"state_dict": {}, "data": {"model": Trap(trap)}}, policy)
    reads: list[tuple[str, Callable[[], object]]] = [
        ("model.zip", lambda: LLMPPO.load(model)),
        ("model.zip", lambda: learner().set_parameters(model)),
        ("policy.pt", lambda: LLMPolicy.load(policy)),
    ]
    for name, read in reads:
        with pytest.raises(ArchiveError, match=rf"{name}': it is no archive that `save` has written"):
            read()
    assert not trap.exists()


def rate(remaining: float) -> float:
    return 1e-4 * remaining


class Controller(AdaptiveKLController):
    """A controller of someone else."""


class Policy(LLMPolicy):
    """A policy of someone else."""


def test_the_system_is_shown_without_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.zip"
    make_ppo(Bandit, 1).save(file)
    LLMPPO.load(rewritten(file, system="Linux\x1b]0;title\x07\n"), print_system_info=True)
    assert capsys.readouterr().out.endswith("there: Linux\\x1b]0;title\\x07\n")


def test_code_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "model.zip"
    model = make_ppo(Bandit, 1, learning_rate=rate, kl=Controller(0.1, 0.1))
    model.save(file)
    with pytest.raises(ArgumentError, match=r"with learning_rate <function rate .*, which is code"):
        LLMPPO.load(file)
    with pytest.raises(ArgumentError, match=r"with kl Controller\("):
        LLMPPO.load(file, learning_rate=rate)
    loaded = LLMPPO.load(file, learning_rate=rate, custom_objects={"kl": Controller(0.3, 0.1)})
    assert loaded.learning_rate is rate and loaded.kl == Controller(0.3, 0.1)
    model = LLMPPO(Policy, TextVecEnv([Bandit]), learning_rate=LinearSchedule(1e-3, 1e-4, 0.5))
    model.save(file)
    with pytest.raises(ArgumentError, match=r"policy_class tests\.agents\.test_saving\.Policy, which"):
        LLMPPO.load(file)
    loaded = LLMPPO.load(file, policy_class=Policy)
    assert type(loaded.policy) is Policy
    # A quarter of the way is half of the fall, which ends after half of the way.
    assert loaded.lr_schedule(0.75) == pytest.approx(5.5e-4)


def test_what_load_and_save_do_not_take(tmp_path: Path) -> None:
    file = tmp_path / "model.zip"
    model = make_ppo(Bandit, 1)
    model.save(file, exclude=["ep_info_buffer"])  # a callback of Stable-Baselines3 may say so
    with pytest.raises(ArgumentError, match=r"argument of load: 'learning_rat' .*mean 'learning_rate'"):
        LLMPPO.load(file, learning_rat=0.5)
    with pytest.raises(ArgumentError, match=r"policy_kwargs=\{'lora': \{'r': 8\}\} was given"):
        LLMPPO.load(file, policy_kwargs={"lora": {"r": 8}})
    with pytest.raises(ArgumentError, match=r"load: batch_size=4 was given, and a saved model keeps"):
        LLMPPO.load(file, batch_size=4)
    assert LLMPPO.load(file, learning_rate=0.5).learning_rate == 0.5
    assert LLMPPO.load(file, policy_kwargs={"lora": {"r": 4}}, verbose=1).verbose == 1
    with pytest.raises(ArgumentError, match=r"save: include=\['env'\] was given, allowed: nothing"):
        model.save(file, include=["env"])
    with pytest.raises(FileNotFoundError):
        LLMPPO.load(tmp_path / "nothing")
    make_policy().save(tmp_path / "policy.zip")
    with pytest.raises(ArchiveError, match=r"has a 'LLMPolicy', allowed: LLMPPO"):
        LLMPPO.load(tmp_path / "policy.zip")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(ArchiveError, match=r"no archive"):
        LLMPPO.load(tmp_path / "text.zip")


def rewritten(
    file: Path, compression: int = zipfile.ZIP_STORED, system: str | None = None, **changes: Any
) -> Path:
    """An archive with other data."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["system_info.txt"] = entries["system_info.txt"] if system is None else system.encode()
    data = json.loads(entries["gamespiel.json"]) | changes
    entries["gamespiel.json"] = json.dumps({k: v for k, v in data.items() if v is not ...}).encode()
    other = file.with_name("other.zip")
    with zipfile.ZipFile(other, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return other


def test_archives_that_no_save_wrote_and_damaged_ones_are_named(tmp_path: Path) -> None:
    """A flipped bit may be harmless: in a field of the zip that nobody reads, such as a date."""
    file, other = tmp_path / "model.zip", tmp_path / "other.zip"
    model = make_ppo(Bandit, 1)
    model.save(file)
    for changes, message in (
        ({"format": 2}, r"has the format 2, and this version of GameSpiel reads 1"),
        ({"kind": ["LLMPPO"]}, r"has a \['LLMPPO'\], allowed: LLMPPO"),
        ({"counters": ...}, r"does not have what LLMPPO needs: KeyError\('counters'\)"),
        ({"counters": 3}, r"does not have what LLMPPO needs: TypeError"),
        ({"action_space": {"type": "Dict"}}, r"no space is \{'type': 'Dict'\}"),
        ({"compression": zipfile.ZIP_DEFLATED}, r"'gamespiel.json' is compressed or too long"),
    ):
        with pytest.raises(ArchiveError, match=message):
            LLMPPO.load(rewritten(file, **changes))
    whole, draw = file.read_bytes(), random.Random(0)
    for _ in range(12):
        content = bytearray(whole)
        place = draw.randrange(len(whole))
        content[place] ^= 1 << draw.randrange(8)
        other.write_bytes(content if draw.random() < 0.8 else whole[:place])
        try:
            loaded = LLMPPO.load(other)
        except ArgumentError as error:
            assert "other.zip" in str(error)
        else:
            assert_same(model, loaded)


def test_spaces() -> None:
    for space in (
        TEXT,
        UnicodeText(90, min_length=2),
        spaces.Discrete(3, start=2),
        spaces.Box(0, 9, (4,), np.int32),
    ):
        made = make_space(json.loads(json.dumps(describe_space(space))))
        assert made == space and type(made) is type(space)
    with pytest.raises(ArgumentError, match=r"Dict\(.*was given, allowed: Text"):
        describe_space(spaces.Dict({"a": spaces.Discrete(2)}))
    with pytest.raises(ArgumentError, match=r"with one range"):
        describe_space(spaces.Box(np.array([0, 1]), np.array([2, 2]), dtype=np.int64))
