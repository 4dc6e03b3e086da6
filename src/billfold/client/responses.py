"""Answers read into shapes, and refusals as one exception."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import httpx
import msgspec

from billfold.http.schemas.pages import CursorList

Shape = TypeVar("Shape")
Query = Mapping[str, Any]


class ApiError(Exception):
    """The bank refused. `code` is the problem's, or "invalid" when the request had mistakes."""

    def __init__(self, answer: httpx.Response) -> None:
        told = _told(answer)
        self.status = answer.status_code
        self.code = str(told.get("code") or told.get("error") or "invalid")
        self.detail = told.get("detail") or told.get("error_description") or ""
        self.trace_id = answer.headers.get("x-service-trace-id", "")
        super().__init__(f"{self.status} {self.code}: {self.detail}")


class Api:
    """What the typed calls of both APIs stand on."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def _get(self, path: str, kind: type[Shape], query: Query | None = None) -> Shape:
        return read(self._http.get(path, params=_sent(query)), kind)

    def _change(
        self, method: str, path: str, body: Query, kind: type[Shape], *, key: str | None = None
    ) -> Shape:
        headers = {} if key is None else {self._key_header: key}
        content = msgspec.json.encode(body)
        sent = {"content-type": "application/json", **headers}
        return read(self._http.request(method, path, content=content, headers=sent), kind)

    def _each(self, path: str, kind: type[Shape], query: Query | None = None) -> Iterator[Shape]:
        """Go through a cursor list, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            asked = {**(query or {}), **({"cursor": cursor} if cursor else {})}
            page = self._get(path, CursorList[kind], asked)  # type: ignore[valid-type]
            yield from page.items
            cursor = page.next_page

    _key_header = "idempotency-key"


def read(answer: httpx.Response, kind: type[Shape]) -> Shape:
    """Return the body of an answer as its shape. Raises ApiError."""
    if answer.is_error:
        raise ApiError(answer)
    return msgspec.json.decode(answer.content or b"null", type=kind)


def _sent(query: Query | None) -> dict[str, list[str]]:
    """Return a query; a list repeats its name, None is left out."""
    every = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in (query or {}).items()
        if value is not None
    }
    return {name: [str(each) for each in values] for name, values in every.items()}


def _told(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {"detail": answer.text}
    return told if isinstance(told, dict) else {"detail": told}
