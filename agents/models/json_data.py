"""Values as JSON data. Writing results needs it without a learning library."""

import math
from typing import Any


def to_json(value: Any) -> Any:
    """Returns ``value`` as JSON data; a number that is not finite becomes None.

    Raises:
        TypeError: JSON has no such type.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"a metric must be a number, text, or a list of them, not {type(value).__name__}: {value!r}"
    )
