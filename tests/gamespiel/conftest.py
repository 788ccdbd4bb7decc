"""A finished run, made once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamespiel.serving.options import ServeOptions
from tests.gamespiel.serving.servers import serving


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of the small configuration. Tests must not change it."""
    from gamespiel.agents.models.quantization import replace_names
    from gamespiel.overview.plots import plot_run
    from gamespiel.training import run as training
    from tests.gamespiel.runs import small, train_quietly

    with replace_names(training, plot_run=plot_run):
        return train_quietly(small(tmp_path_factory.mktemp("finished") / "run"))


@pytest.fixture(scope="module", autouse=True)
def no_decoration() -> Iterator[None]:
    """Runs draw no learning curve, which takes as long as their steps. Only ``finished`` has one.

    PEFT writes no model card with each checkpoint, either. Nobody waits until files are on the disk:
    a process that is killed leaves them to the system, and no test switches the machine off.

    Modules that do not import the trainer do not wait for it.
    """
    training = sys.modules.get("gamespiel.training.run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)
        if training is not None:
            from gamespiel.agents.models.quantization import plain_peft

            with plain_peft():
                from peft import PeftModel
            patch.setattr(training, "plot_run", lambda folder, picture: None)
            patch.setattr(PeftModel, "create_or_update_model_card", lambda model, folder: None)
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of games in this process."""
    pytest.importorskip("uvicorn")
    with serving(ServeOptions(port=0)) as (url, _):
        yield url


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
