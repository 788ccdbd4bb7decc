"""GGUF files: corrections of transformers' reading, and reasons why one cannot be read."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gamespiel.agents.models.patches import replace_names
from gamespiel.agents.models.weights import ModelError

VERSIONS = (2, 3)
SPLITS_DIGITS = ("refact", "smollm", "starcoder")
"""Values of ``tokenizer.ggml.pre`` whose tokenizers make each digit a word, then split as GPT-2's does."""

_SCALARS: Mapping[int, str] = dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))) | {
    10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32


class Header(NamedTuple):
    """The metadata of a GGUF file, without its weights.

    Attributes:
        metadata: Numbers and texts by key. Arrays, such as the vocabulary, are left out.
        end: The size in bytes that the file must have for its tensors.
    """

    metadata: Mapping[str, Any]
    end: int


def read_header(model_name: str, path: Path) -> Header:
    """Returns the header of a GGUF file that can be read as a whole.

    Raises:
        ModelError: the file is damaged, cut off, in parts, or no GGUF file, or the package gguf is missing.
    """
    _require_package(model_name)
    with open(path, "rb") as file:
        beginning = file.read(8)
        if beginning[:4] != b"GGUF" or len(beginning) < 8:
            raise ModelError(f"model_name {model_name!r} is no GGUF file: it begins with {beginning[:4]!r}")
        version = int.from_bytes(beginning[4:], "little")
        if version not in VERSIONS:
            raise ModelError(
                f"model_name {model_name!r} is a GGUF file of version {version}; allowed: "
                f"{', '.join(map(str, VERSIONS))}"
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                header = _Cursor(content).header()
            except (struct.error, ValueError, TypeError, ArithmeticError, LookupError, MemoryError) as error:
                raise ModelError(
                    f"model_name {model_name!r} is cut off or damaged in its header ({error}); copy or "
                    "download it again"
                ) from error
            if header.end > len(content):
                raise ModelError(
                    f"model_name {model_name!r} is cut off: its header announces {header.end:,} bytes, the "
                    f"file has {len(content):,}; copy or download it again"
                )
    if (parts := header.metadata.get("split.count", 1)) != 1 and parts != 0:
        raise ModelError(
            f"model_name {model_name!r} is one of {parts} parts of a GGUF file; join them with "
            "llama-gguf-split --merge"
        )
    return header


def _require_package(model_name: str) -> None:
    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"model_name {model_name!r} is a GGUF file, which needs the package gguf: pip install gguf"
        ) from error


class _Cursor:
    """Reads the parts of a GGUF file in their order."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.at = content, 8

    def header(self) -> Header:
        tensors, entries = self._read_numbers("QQ")
        metadata = {}
        for _ in range(entries):
            key = self._read_text()
            (kind,) = self._read_numbers("I")
            if (value := self._read_value(kind)) is not None:
                metadata[key] = value
        ends = [self._tensor_end() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", _ALIGNMENT)
        if type(alignment) is not int or alignment < 1:
            raise ValueError(f"general.alignment is {alignment!r:.40}, allowed: whole numbers from 1")
        return Header(metadata, -(-self.at // alignment) * alignment + max(ends, default=0))

    def _read_numbers(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.content, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def _read_text(self) -> str:
        (length,) = self._read_numbers("Q")
        self._skip_value(length)
        return self.content[self.at - length : self.at].decode()

    def _skip_value(self, length: int) -> None:
        self.at += length
        if self.at > len(self.content):
            raise ValueError(f"an entry ends at byte {self.at:,} of {len(self.content):,}")

    def _read_value(self, kind: int) -> Any:
        """Returns a number or text, or None after an array."""
        if kind == _STRING:
            return self._read_text()
        if kind != _ARRAY:
            return self._read_numbers(_layout(kind))[0]
        inner, count = self._read_numbers("IQ")
        if inner == _STRING:
            for _ in range(count):
                self._skip_value(self._read_numbers("Q")[0])
        else:
            self._skip_value(count * struct.calcsize(f"<{_layout(inner)}"))
        return None

    def _tensor_end(self) -> int:
        """Returns where a tensor ends, counted from the first one's beginning."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        self._read_text()
        (dimensions,) = self._read_numbers("I")
        shape = self._read_numbers(f"{dimensions}Q")
        kind, offset = self._read_numbers("IQ")
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        return int(offset + prod(shape) // block * size)


def _layout(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"an entry has the unknown type {kind}")
    return _SCALARS[kind]


def restore_digit_splits(model_name: str, path: Path, tokenizer: Any) -> Any:
    """Returns the tokenizer with the file's way of splitting digits, which transformers leaves behind.

    Without it, "\\n  1" has other tokens than those that the model has learned.
    """
    from tokenizers import pre_tokenizers

    if read_header(model_name, path).metadata.get("tokenizer.ggml.pre") in SPLITS_DIGITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return tokenizer


def patch_reader(path: Path) -> dict[str, Any]:
    """Returns the arguments with which ``from_pretrained`` reads the file."""
    # An absolute name: a file of that name in the working directory would be read in its place.
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": str(path.absolute())}


@contextmanager
def read_faster() -> Iterator[None]:
    """Makes transformers read a file several times faster within the context.

    transformers makes the table of tensors' names for every module. Its reader takes each word of the
    vocabulary from a memmap, whose slices cost several times those of a plain array.
    """
    import gguf

    class Reader(gguf.GGUFReader):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, np.asarray(value) if name == "data" else value)

    with replace_names(gguf, GGUFReader=Reader, get_tensor_name_map=cache(gguf.get_tensor_name_map)):
        yield


def unpacked_config() -> Any:
    """Returns the configuration that makes plain weights of the file's blocks.

    On some devices transformers would keep the blocks, through which no gradient goes.
    """
    from transformers import GgufConfig

    return GgufConfig(dequantize=True)


def strip_format(model: Any) -> Any:
    """Returns the model without the traces of the file's format, with which it could not be saved."""
    for holder, name in (
        (model.config, "quantization_config"),
        (model, "hf_quantizer"),
        (model, "is_quantized"),
        (model, "quantization_method"),
    ):
        if name in vars(holder):
            delattr(holder, name)
    return model
