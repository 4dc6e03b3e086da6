"""Ids as callers spell them, into UUIDs; anything else is a mistake at its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from billfold.platform.errors import FieldError, InvalidInput

_CANONICAL = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_EXPECTED = "must be a UUID of 36 characters"


def is_uuid(text: str) -> bool:
    """Tell whether a text is the canonical form of a UUID, in either case."""
    return _CANONICAL.fullmatch(text) is not None


def is_token(text: str) -> bool:
    """Tell whether a text is made of visible ASCII only, and of at least one character."""
    return _TOKEN.fullmatch(text) is not None


def path_uuid(name: str, text: str) -> UUID:
    """Return the id in a path. Raises InvalidInput at path.`name`."""
    return _uuid(("path", name), text)


def query_uuid(name: str, text: str) -> UUID:
    """Return the id in a query. Raises InvalidInput at query.`name`."""
    return _uuid(("query", name), text)


def query_uuids(name: str, texts: Iterable[str]) -> list[UUID]:
    """Return the ids of a repeated query name. Raises InvalidInput with every wrong one."""
    texts = list(texts)
    wrong = [
        FieldError(("query", name, place), _EXPECTED, "uuid_parsing")
        for place, text in enumerate(texts)
        if not is_uuid(text)
    ]
    if wrong:
        raise InvalidInput(wrong)
    return [UUID(text) for text in texts]


def _uuid(loc: tuple[str, str], text: str) -> UUID:
    if not is_uuid(text):
        raise InvalidInput([FieldError(loc, _EXPECTED, "uuid_parsing")])
    return UUID(text)
