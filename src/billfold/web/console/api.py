"""An API as the visitor of a page uses it: its operations called in this process, as the member of a team.

    pocket = await api.get(get_pocket, pocket_id=pocket_id)
    await api.send(update_pocket, {"pocket_name": name}, key=page.form_key, pocket_id=pocket_id)

A call is counted, authorized and, under the key of its form, carried out once, as a request of the API is. It returns
what the operation's function returns, and raises what it raises.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from typing import Any

import msgspec
from litestar.response import Stream
from litestar.types import HTTPScope

from billfold.http.api import Api, Identity
from billfold.http.operations import MAY_NEED_APPROVAL, Operation, Proof
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, StreamedResponse
from billfold.pages.theme import page_headers
from billfold.platform.dates import format_day
from billfold.platform.errors import (
    BillfoldError,
    FieldError,
    InvalidInput,
    InvariantError,
    NotFound,
    Refused,
    Unavailable,
)
from billfold.web.page_context import PageContext, PageResponse

Identify = Callable[[Operation, RawRequest], Awaitable[Identity]]
"""Authenticates the sender of a request."""
_ACCEPTED = 202
_FIRST_ERROR = 400
_INVALID = 422
_OF_EVERY_PROBLEM = frozenset({"type", "title", "status", "detail", "instance", "code", "trace_id", "retryable"})


class ApiClient:
    """The operations of one API for one request of a browser."""

    def __init__(self, api: Api, page: PageContext, *, proofs: frozenset[Proof], host: str, identify: Identify) -> None:
        self._api, self._page, self._proofs = api, page, proofs
        self._host, self._identify = host, identify
        self.as_of: date | None = None
        """The earlier day at whose close reads answer, where they can; None: as they are now."""

    async def get(self, operation: Operation, /, **names: object) -> Any:  # noqa: ANN401 - what the operation returns
        """Return what an operation returns that only reads; `names` are those of its path and its query."""
        offered = self._offered(operation)
        if self.as_of is None or not offered.as_of or names.get("as_of"):
            return await self._call(offered, names)
        try:
            return await self._call(offered, {**names, "as_of": self.as_of})
        except NotFound:
            raise NotFound(f"This was not there yet at the close of {format_day(self.as_of)}.") from None

    async def send(
        self, operation: Operation, body: Mapping[str, Any] | None = None, /, *, key: str = "", **names: object
    ) -> Any:  # noqa: ANN401 - as above
        """Make a change under the key of its form, so that a form that is sent twice counts once.

        The body has the fields that the operation declares. Returns None when another member has to approve the change
        first.
        """
        return await self._call(operation, names, body=body, key=key)

    async def send_file(self, operation: Operation, file: RawRequest, /, *, key: str, **names: object) -> Any:  # noqa: ANN401 - as above
        """Send a file, the body and headers of a request, with the key of its form."""
        return await self._call(operation, names, file=file, key=key)

    async def download(self, operation: Operation, /, **names: object) -> PageResponse:
        """Return the file that an operation writes, to be sent to the browser as it is."""
        found = await self._call(operation, names)
        assert isinstance(found, StreamedResponse)
        headers = {name.decode(): value.decode("latin-1") for name, value in found.headers}
        return Stream(found.chunks, media_type=found.content_type, headers={**headers, **page_headers()})

    async def location_of(self, operation: Operation, /, **names: object) -> str:
        """Return the address that an operation redirects to."""
        found = await self._call(operation, names)
        assert isinstance(found, HttpResponse)
        return dict(found.headers)[b"location"].decode()

    async def _call(
        self,
        operation: Operation,
        names: Mapping[str, object],
        *,
        body: Mapping[str, Any] | None = None,
        file: RawRequest | None = None,
        key: str = "",
    ) -> Any:  # noqa: ANN401 - as above
        offered = self._offered(operation)
        request = self._request(offered, names, key)
        if file is not None:
            request.headers, request.body = {**request.headers, **file.headers}, file.body
        request.values = body
        try:
            found = await self._api.call(offered, request, await self._identify(offered, request))
        except (InvalidInput, InvariantError, NotFound, Refused, Unavailable):
            raise
        except BillfoldError as error:
            raise Refused(error.code, error.detail, **error.facts) from error
        return _value_of(offered, found) if isinstance(found, HttpResponse) else found

    def _offered(self, operation: Operation) -> Operation:
        """Return a function's operation in this API; the other API may have it under another path."""
        found: Operation | None = operation
        while found is not None and found.access_by(self._proofs) is None:
            found = found.also
        assert found is not None, operation.name
        return found

    def _request(self, operation: Operation, names: Mapping[str, object], key: str) -> RawRequest:
        in_path = {name: str(names[name]) for name in operation.path_names}
        sent = self._page.request
        headers = [(b"host", self._host.encode())]
        headers += [(b"idempotency-key", key.encode())] if key else []
        headers += [(b"user-agent", sent.headers[b"user-agent"])] if b"user-agent" in sent.headers else []
        scope: Any = {
            "method": operation.method,
            "path": operation.path.format_map(in_path),
            "query_string": b"",
            "headers": headers,
        }
        request = RawRequest(_as_scope(scope), sent.trace_id, sent.client)
        request.path_params = in_path
        request.query_values = {
            name: [str(each) for each in (value if isinstance(value, list | tuple) else [value])]
            for name, value in names.items()
            if name not in in_path and value is not None and value != ""
        }
        return request


def _as_scope(scope: Any) -> HTTPScope:  # noqa: ANN401 - the fields of a scope that a request is read from
    return scope  # type: ignore[no-any-return]


def _value_of(operation: Operation, response: HttpResponse) -> Any:  # noqa: ANN401 - what the operation returns
    """Return what a response holds that was stored, or made by the operation itself. Raises the error it stands for."""
    if response.status >= _FIRST_ERROR:
        raise _error_of(response)
    if response.status == _ACCEPTED and operation.documented is MAY_NEED_APPROVAL:
        return None
    if not response.body:
        return None if operation.returns is None else response
    return msgspec.json.decode(response.body, type=operation.returns or Any)


def _error_of(response: HttpResponse) -> BillfoldError:
    body = msgspec.json.decode(response.body)
    if response.status == _INVALID and isinstance(body["detail"], list):
        return InvalidInput(FieldError(tuple(each["loc"]), each["msg"], each["type"]) for each in body["detail"])
    code, detail = body["code"], body["detail"]
    facts = {name: value for name, value in body.items() if name not in _OF_EVERY_PROBLEM}
    match code:
        case "not-found":
            return NotFound(detail, **facts)
        case "unavailable":
            return Unavailable(detail, **facts)
        case _:
            return Refused(code, detail, **facts)
