"""Shapes of answers. What a newer bank adds is no error: fields are ignored, texts of closed lists are kept."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from typing_extensions import override

__all__ = ["UNSET", "OneOf", "Shape", "Unset", "decode", "union"]
Unset = UnsetType
"""What was not given: `None` is a value, null."""


class Shape(msgspec.Struct):
    """Base of all shapes that the bank answers with."""


class OneOf:
    """Stands for Literal at run time, where any text is accepted."""

    def __class_getitem__(cls, texts: object) -> type[str]:
        """Return the type that is decoded."""
        return str


class _AnyMember(type):
    @override
    def __instancecheck__(cls, instance: object) -> bool:
        """Tell that a member is of the union, and so is what is not known."""
        return True


class _Union(metaclass=_AnyMember):
    told_by: str
    members: Mapping[str, type[Shape]]


def union(told_by: str, members: Mapping[str, type[Shape]]) -> _AnyMember:
    """Return the type of values that a field tells apart. One that is not known stays a dictionary."""
    return _AnyMember("Union", (_Union,), {"told_by": told_by, "members": members})


def decode(content: bytes, kind: Any) -> Any:  # noqa: ANN401 - a shape, or a union of them
    """Return JSON as its shape."""
    return msgspec.json.decode(content, type=kind, dec_hook=_member)


def _member(kind: type[_Union], value: Any) -> Any:  # noqa: ANN401 - any JSON
    if not issubclass(kind, _Union):
        raise NotImplementedError(kind)
    member = kind.members.get(str(value.get(kind.told_by))) if isinstance(value, dict) else None
    return value if member is None else msgspec.convert(value, member, dec_hook=_member)
