"""Ids as callers spell them, into UUIDs; anything else is a mistake at its place."""

from __future__ import annotations

from uuid import UUID

from billfold.http.raw_request import is_uuid
from billfold.platform.errors import InvalidInput

_EXPECTED = "must be a UUID of 36 characters"


def path_uuid(name: str, text: str) -> UUID:
    """Return the id in a path. Raises InvalidInput at path.`name`."""
    return _uuid("path", name, text)


def query_uuid(name: str, text: str) -> UUID:
    """Return the id in a query. Raises InvalidInput at query.`name`."""
    return _uuid("query", name, text)


def _uuid(source: str, name: str, text: str) -> UUID:
    if not is_uuid(text):
        raise InvalidInput.at(source, name, msg=_EXPECTED, kind="uuid_parsing")
    return UUID(text)
