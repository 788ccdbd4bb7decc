"""Types of configuration fields: ranges, lists, and whole numbers that may be written as 1e4."""

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BeforeValidator, ConfigDict, Field


def _whole(value: Any) -> Any:
    """Returns a float such as 1e4 as an integer, and every other value unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Validators come after ranges: pydantic leaves a later range out of the JSON schema (pydantic issue 11576).
WHOLE = BeforeValidator(_whole)
LISTED = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)

ONE = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
"""For a list of names of which one may be given by itself."""

T = TypeVar("T")
Many = Annotated[tuple[T, ...], LISTED]
Count = Annotated[int, Field(ge=1), WHOLE]
Index = Annotated[int, Field(ge=0, strict=True), WHOLE]
Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True), WHOLE]  # NumPy's own generator takes no larger one
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Shape = Literal["constant", "linear", "cosine"]
Decode = Literal["choice", "text"]

DECODERS: tuple[str, ...] = get_args(Decode)
"""The ways to answer: by choosing among the legal actions, or by writing."""

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


def key(default: Any, doc: str) -> Any:
    """Returns a field with its default and its help text."""
    return Field(default=default, description=doc)
