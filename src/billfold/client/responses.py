"""Calls declared by method, path and shape; responses parsed into shapes, errors as one exception."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import httpx
import msgspec

from billfold.http.schemas import CursorList

Shape = TypeVar("Shape")
Query = Mapping[str, Any]


class ItemList(msgspec.Struct, Generic[Shape]):
    """An unpaged list, as far as it is read."""

    items: list[Shape]


class ApiError(Exception):
    """The bank refused. `code` is the problem's, or "invalid" if the request had errors."""

    def __init__(self, response: httpx.Response) -> None:
        body_fields = _json_body(response)
        self.status = response.status_code
        self.code = str(body_fields.get("code") or body_fields.get("error") or "invalid")
        self.detail = body_fields.get("detail") or body_fields.get("error_description") or ""
        self.trace_id = response.headers.get("x-service-trace-id", "")
        super().__init__(f"{self.status} {self.code}: {self.detail}")


class ApiClient:
    """Base class of the typed clients of both APIs."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def _get(self, path: str, kind: type[Shape], query: Query | None = None) -> Shape:
        return read(self._http.get(path, params=_query_params(query)), kind)

    def _change(self, method: str, path: str, body: Query, kind: type[Shape], *, key: str | None = None) -> Shape:
        headers = {} if key is None else {self._key_header: key}
        content = msgspec.json.encode(body)
        request_headers = {"content-type": "application/json", **headers}
        return read(self._http.request(method, path, content=content, headers=request_headers), kind)

    def _iterate(self, path: str, kind: type[Shape], query: Query | None = None) -> Iterator[Shape]:
        """Iterate over a cursor list, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            page_query = {**(query or {}), **({"cursor": cursor} if cursor else {})}
            page = self._get(path, CursorList[kind], page_query)  # type: ignore[valid-type]
            yield from page.items
            cursor = page.next_page

    _key_header = "idempotency-key"


def gets(path: str, kind: type[Shape]) -> Callable[..., Shape]:
    """Declare a call that returns one thing: `{}` in the path are its arguments, its keywords are the query."""

    def call(self: ApiClient, *ids: object, **query: Any) -> Shape:
        return self._get(path.format(*ids), kind, query)

    return call


def items_of(path: str, kind: Any) -> Callable[..., list[Any]]:  # noqa: ANN401 - a shape
    """Declare a call that returns the items of a list that has no pages; arguments as of `gets`."""

    def call(self: ApiClient, *ids: object, **query: Any) -> list[Any]:
        return self._get(path.format(*ids), ItemList[kind], query).items

    return call


def lists(path: str, kind: Any) -> Callable[..., Iterator[Any]]:  # noqa: ANN401 - a shape, or one of several
    """Declare a call that iterates over a list, newest first; arguments as of `gets`."""

    def call(self: ApiClient, *ids: object, **query: Any) -> Iterator[Any]:
        return self._iterate(path.format(*ids), kind, query)

    return call


def changes(method: str, path: str, kind: type[Shape]) -> Callable[..., Shape]:
    """Declare a call that changes something: its keywords are the body, `key` makes it repeatable."""

    def call(self: ApiClient, *ids: object, key: str | None = None, **fields: Any) -> Shape:
        return self._change(method, path.format(*ids), fields, kind=kind, key=key)

    return call


def read(response: httpx.Response, kind: type[Shape]) -> Shape:
    """Return the body of an answer as its shape. Raises ApiError."""
    if response.is_error:
        raise ApiError(response)
    return msgspec.json.decode(response.content or b"null", type=kind)


def _query_params(query: Query | None) -> dict[str, list[str]]:
    """Return a query; a list repeats its name, None is left out."""
    values_by_name = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in (query or {}).items()
        if value is not None
    }
    return {name: [str(each) for each in values] for name, values in values_by_name.items()}


def _json_body(response: httpx.Response) -> dict[str, Any]:
    try:
        body_fields = response.json()
    except ValueError:
        return {"detail": response.text}
    return body_fields if isinstance(body_fields, dict) else {"detail": body_fields}
