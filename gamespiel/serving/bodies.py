"""The JSON object that a request's body is. What JSON of other kinds than ours could say is refused."""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, NoReturn

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_object(body: bytes) -> dict[str, Any]:
    """Returns the object.

    Raises:
        ValueError: the body is no JSON in UTF-8, or no object, or it has a number that is not finite, or a
            text that no UTF-8 can have. The message goes on from "the request".
    """
    try:
        asked = json.loads(body.decode(), parse_constant=_refuse_constant, parse_float=_read_float)
        if _SURROGATE.search(body):
            json.dumps(asked, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not in UTF-8: {error}") from error
    except UnicodeEncodeError as error:
        raise ValueError("has half a surrogate pair (\\ud800 to \\udfff), which is no character") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(asked, dict):
        raise ValueError("is no object")
    return asked


def _refuse_constant(given: str) -> NoReturn:
    raise ValueError(f"{given} was given, allowed: finite numbers")


def _read_float(given: str) -> float:
    found = float(given)
    if isinf(found):
        raise ValueError(f"{given:.40} was given, allowed: finite numbers")
    return found
