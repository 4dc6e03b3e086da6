"""Names, defaults and docstrings of the generated source."""

import keyword
import textwrap
from collections.abc import Mapping
from typing import Any

WIDTH = 116


def referred(schema: Mapping[str, Any]) -> str:
    """Return the name that a reference ends with."""
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def class_name(name: str) -> str:
    """Return a name as that of a class."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def noun_of(operation: str) -> str:
    """Return what an operation is about: `get_transaction` has a `transaction`."""
    return operation.partition("_")[2] or operation


def identifier(name: str) -> str:
    """Return a name that Python does not keep for itself."""
    return f"{name}_" if keyword.iskeyword(name) else name


def default_of(schema: Mapping[str, Any]) -> str:
    """Return the default of a field, as source."""
    value = schema.get("default")
    return repr(value) if isinstance(value, str | int | float | bool) else "UNSET"


def docstring(text: str, depth: int) -> list[str]:
    """Return a docstring; nothing for nothing."""
    if not text.strip():
        return []
    indent = "    " * depth
    escaped = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [
        line
        for paragraph in escaped.splitlines()
        for line in (textwrap.wrap(paragraph, WIDTH - len(indent), break_on_hyphens=False) or [""])
    ]
    if lines[-1].endswith('"'):
        lines[-1] += " "
    opened = [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:])]
    if len(opened) == 1:
        return [f'{opened[0]}"""']
    return [*opened, f'{indent}"""']
