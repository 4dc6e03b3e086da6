"""The two shapes of a list."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

Item = TypeVar("Item")


class CursorList(msgspec.Struct, Generic[Item], kw_only=True):
    """A page of a list and cursors to the pages beside it."""

    prev_page: str | None
    next_page: str | None
    items: list[Item]
    object_type: Literal["CursorList"] = "CursorList"


class OffsetList(msgspec.Struct, Generic[Item], kw_only=True):
    """A list that is short enough to be counted."""

    offset: int
    count: int
    items: list[Item]
    object_type: Literal["List"] = "List"
