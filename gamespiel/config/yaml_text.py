"""YAML as people read it: the core schema of YAML 1.2.

PyYAML follows YAML 1.1, where ``1e-5`` is text, ``no`` is false and ``1:30`` is 90. Here ``1e-5`` is a
number and the others are text, in reading and in writing. A key given twice is an error.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

MOST = 1 << 18
"""The most characters and the most values of a text."""

_RESOLVERS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own name, replaced on purpose)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            name = self.construct_object(key_node, deep=True)
            if not isinstance(name, Hashable):
                break  # which the other method refuses
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {name!r} is given twice", key_node.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)

    def construct_decimal(self, node: Any) -> int:
        return int(node.value)  # YAML 1.1 reads 010 as 8


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _class in (_Loader, _Dumper):
    for _tag, _pattern, _first in _RESOLVERS:
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first)
        )
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_decimal)


def read_yaml(text: str) -> Any:
    """Returns the plain data that ``text`` describes.

    Raises:
        yaml.YAMLError: The text is not YAML, a mapping has a key twice, or there are too many values.
    """
    if len(text) > MOST:
        raise yaml.YAMLError(f"it has more than {MOST:,} characters, which is the most")
    data = yaml.load(text, Loader=_Loader)
    count, left = 0, [data]
    while left:  # of aliases each time: a few lines of them can mean more than a memory holds
        value = left.pop()
        left += value.values() if isinstance(value, dict) else ()
        left += value if isinstance(value, (list, tuple, set)) else ()
        count += 1
        if count + len(left) > MOST:
            raise yaml.YAMLError(f"it has more than {MOST:,} values, which is the most")
    return data


def write_yaml(data: Any) -> str:
    """Returns ``data`` as YAML, with its keys in their order; ``read_yaml`` gives equal data back."""
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    assert isinstance(text, str)
    return text
