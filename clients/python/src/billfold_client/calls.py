"""Calls of an API: a request is sent under its key of idempotency until it is answered, and the answer read."""

import asyncio
import random
import time
from collections.abc import Mapping
from datetime import date, datetime, timezone
from email.utils import parsedate_to_datetime
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote
from uuid import uuid4

import httpx
import msgspec
from typing_extensions import Self

from billfold_client.errors import ApiError
from billfold_client.paging import AsyncPages, Pages, Query
from billfold_client.shapes import UNSET, decode
from billfold_client.streams import AsyncEventStream, EventStream

File: TypeAlias = "bytes | tuple[str, bytes] | tuple[str, bytes, str]"
"""A file to upload: its bytes, or its name, bytes and media type."""
_FIRST_WAIT_SECONDS = 0.5
_UNAVAILABLE = frozenset({429, 502, 503, 504})
_OTHER_PATHS = frozenset({"", ".", ".."})


class Call(NamedTuple):
    """A request of an operation, and the types of its answers by their status."""

    method: str
    path: str
    kinds: Mapping[int, Any]
    query: Query = MappingProxyType({})
    body: Any = UNSET
    form: Query = MappingProxyType({})
    files: Mapping[str, Any] | None = None
    headers: Query = MappingProxyType({})
    key: object = None
    is_repeatable: bool = True
    """True if nothing happens twice when it is sent twice."""


def segment(value: object) -> str:
    """Return an id as a segment of a path. Raises ValueError if it would lead to another path."""
    text = str(value)
    if text in _OTHER_PATHS:
        raise ValueError(f"{text!r} is not an id.")
    return quote(text, safe="")


class _Attempts:
    """Says how long to wait before a request is sent again, or that its outcome is final."""

    def __init__(self, attempts: int, longest_wait_seconds: float, *, is_repeatable: bool) -> None:
        self._left, self._longest_wait = attempts, longest_wait_seconds
        self._is_repeatable = is_repeatable
        self._wait = _FIRST_WAIT_SECONDS

    def after(self, response: httpx.Response) -> float | None:
        """Return the seconds to wait after a response; None returns it to the caller."""
        self._left -= 1
        if self._left < 1 or response.status_code < httpx.codes.BAD_REQUEST or not self._may_succeed(response):
            return None
        said = _retry_after(response)
        wait = self._next_wait() if said is None else said
        return wait if wait <= self._longest_wait else None

    def after_failure(self, error: httpx.TransportError) -> float:
        """Return the seconds to wait after a failure; raise it if it is final."""
        self._left -= 1
        if self._left < 1 or not self._is_repeatable:
            raise error
        return self._next_wait()

    def _may_succeed(self, response: httpx.Response) -> bool:
        """Tell if the same request may succeed later: the bank says so, a proxy by its status."""
        said = ApiError(response).retryable
        return said if said is not None else self._is_repeatable and response.status_code in _UNAVAILABLE

    def _next_wait(self) -> float:
        wait = self._wait * random.uniform(0.5, 1)  # noqa: S311 - not a secret
        self._wait *= 2
        return min(wait, self._longest_wait)


def _retry_after(response: httpx.Response) -> float | None:
    said = response.headers.get("retry-after", "")
    if said.isdecimal():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except (TypeError, ValueError):
        return None
    now = datetime.now(timezone.utc)
    return max(0.0, (at - now).total_seconds())


class _Calls:
    """The part that both kinds of clients share."""

    _key_header: str

    def _request(self, http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
        headers = {name: str(value) for name, value in call.headers.items() if value is not UNSET}
        if call.key is not None or call.method != "GET":
            headers[self._key_header] = str(call.key or uuid4())
        content = None
        if call.body is not UNSET:
            content = msgspec.json.encode(_given(call.body) if isinstance(call.body, dict) else call.body)
            headers["content-type"] = "application/json"
        return http.build_request(
            call.method,
            call.path,
            params=_texts(call.query),
            content=content,
            files=call.files,
            data=_texts(call.form) or None,
            headers=headers,
        )


def _read(response: httpx.Response, kinds: Mapping[int, Any]) -> Any:  # noqa: ANN401 - the shape of any answer
    """Return an answer as the type of its status. Raises ApiError."""
    if response.is_error:
        raise ApiError(response)
    kind = kinds.get(response.status_code, next(iter(kinds.values())))
    if kind is str:
        return response.text
    if kind == "Location":
        return response.headers["location"]
    return None if kind is None else decode(response.content, kind)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not UNSET}


def _texts(fields: Query) -> dict[str, list[str]]:
    """Return a query or form; a list repeats its name, a mapping is `name[key]`, what was not given is left out."""
    given: dict[str, Any] = {}
    for name, value in _given(fields).items():
        if isinstance(value, Mapping):
            given |= {f"{name}[{key}]": each for key, each in value.items()}
        elif value is not None:
            given[name] = value
    return {
        name: [_text(each) for each in (value if isinstance(value, list | tuple | set) else [value])]
        for name, value in given.items()
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


class Api(_Calls):
    """Base of the clients that wait. `http` knows where the bank is and authenticates.

    A request is sent at most `attempts` times: again if it was not answered, or the answer says that it may succeed
    later and not to wait for longer than `longest_wait_seconds`. Its key makes sure that it does not run twice.
    """

    def __init__(self, http: httpx.Client, *, attempts: int = 4, longest_wait_seconds: float = 60.0) -> None:
        self.http = http
        self._limits = attempts, longest_wait_seconds

    def __enter__(self) -> Self:
        """Return the client, whose connections are closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.http.close()

    def _call(self, call: Call) -> Any:  # noqa: ANN401 - the shape of any answer
        request = self._request(self.http, call)
        plan = _Attempts(*self._limits, is_repeatable=call.is_repeatable)
        while True:
            try:
                response = self.http.send(request)
            except httpx.TransportError as error:
                wait: float | None = plan.after_failure(error)
            except ApiError as no_token:
                wait = plan.after(no_token.response)
                if wait is None:
                    raise
            else:
                wait = plan.after(response)
                if wait is None:
                    return _read(response, call.kinds)
            time.sleep(wait or 0.0)

    def _pages(self, call: Call) -> Pages[Any]:
        return Pages(lambda query: self._call(call._replace(query=query)), call.query)

    def _stream(self, call: Call) -> EventStream:
        return EventStream(self.http, call.path, _texts(call.query))


class AsyncApi(_Calls):
    """Base of the clients that await; as `Api`."""

    def __init__(self, http: httpx.AsyncClient, *, attempts: int = 4, longest_wait_seconds: float = 60.0) -> None:
        self.http = http
        self._limits = attempts, longest_wait_seconds

    async def __aenter__(self) -> Self:
        """Return the client, whose connections are closed at the end."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def _call(self, call: Call) -> Any:  # noqa: ANN401 - the shape of any answer
        request = self._request(self.http, call)
        plan = _Attempts(*self._limits, is_repeatable=call.is_repeatable)
        while True:
            try:
                response = await self.http.send(request)
            except httpx.TransportError as error:
                wait: float | None = plan.after_failure(error)
            except ApiError as no_token:
                wait = plan.after(no_token.response)
                if wait is None:
                    raise
            else:
                wait = plan.after(response)
                if wait is None:
                    return _read(response, call.kinds)
            await asyncio.sleep(wait or 0.0)

    def _pages(self, call: Call) -> AsyncPages[Any]:
        return AsyncPages(lambda query: self._call(call._replace(query=query)), call.query)

    def _stream(self, call: Call) -> AsyncEventStream:
        return AsyncEventStream(self.http, call.path, _texts(call.query))
