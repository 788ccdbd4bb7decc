"""The embedded model of docs/play.md, as a script of the page: `python -m docs.generate`.

It has the embedding's rows for the tokens of the page's prompts and answers, and the tokens of these prompts'
pieces instead of a tokenizer.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from numpy.typing import NDArray

from docs.generate_play import GAMES, script, tree_of
from game_gym.exact import find_variant
from game_gym.spec import Variant
from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.models.loading import load_tokenizer
from gamespiel.agents.models.weights import TINY
from gamespiel.agents.tokens.codec import ChatCodec

PIECE = re.compile(r"<\|im_\w+\|>|\d|[^\n\d<]*\n|[^\n\d<]+")
"""Pieces between which the tokenizer merges nothing: control tokens, digits, and texts up to a line end."""


def model() -> str:
    """Returns the text of docs/assets/play/model.js: the embedded model, as far as these games need it."""
    from safetensors.numpy import load_file

    ids, pieces = find_tokens()
    weights = load_file(TINY / "model.safetensors")
    weights["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"][ids]
    config = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
    keys = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps")
    return script(
        "MODEL",
        {
            "config": {key: config[key] for key in keys}
            | {"rope_theta": config["rope_parameters"]["rope_theta"]},
            "ids": ids,
            "pieces": pieces,
            "weights": {shorten(name): pack(array) for name, array in sorted(weights.items())},
        },
    )


def shorten(name: str) -> str:
    """Returns a parameter's name without the modules around the layers."""
    return re.sub(r"^.*?model\.(?=layers|norm|embed)|\.weight$", "", name)


def find_tokens() -> tuple[list[int], dict[str, list[int]]]:
    """Returns the tokens of all prompts and answers, and each piece's, as places in that list.

    Raises:
        ValueError: pieces have other tokens together than apart, or an action is not one digit.
    """
    codec = ChatCodec(load_tokenizer(ModelSettings(model_name="tiny")))
    pieces: dict[str, tuple[int, ...]] = {}
    for game in GAMES:
        _check_answers(codec, find_variant(game=game))
        for state in tree_of(game).states:
            parts = PIECE.findall(codec.prompt_text(state.text))
            for part in set(parts) - set(pieces):
                pieces[part] = codec.encode_text(part)
            if sum((pieces[part] for part in parts), ()) != codec.encode_prompt(state.text):
                raise ValueError(f"these have other tokens together than apart: {parts}")
    ids = sorted({token for tokens in pieces.values() for token in tokens})
    place = {token: index for index, token in enumerate(ids)}
    return ids, {part: [place[token] for token in tokens] for part, tokens in sorted(pieces.items())}


def _check_answers(codec: ChatCodec, variant: Variant) -> None:
    """Raises ValueError if an action is more than one token: the page computes one softmax per choice."""
    for action in range(variant.game.num_distinct_actions()):
        if len(codec.encode_action(action)) != 2:  # the second ends the turn
            raise ValueError(f"{variant.spec.name}: action {action} is {codec.encode_action(action)}")


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Returns an array's shape, and its float32 values in base64."""
    return {"shape": array.shape, "data": base64.b64encode(array.astype("<f4").tobytes()).decode()}
