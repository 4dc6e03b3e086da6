"""An API as the visitor of a page uses it: its operations in this process, proven by the session of the browser.

    pocket = await api.get(get_pocket, pocket_id=pocket_id)
    await api.send(update_pocket, {"pocket_name": name}, key=page.form_key, pocket_id=pocket_id)

A response is decoded into the type that its operation returns. One that is an error is raised as the error it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from billfold.http.api import Api, Identity
from billfold.http.operations import MAY_NEED_APPROVAL, Operation, Proof
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, StreamedResponse
from billfold.web.page_context import PageContext
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from litestar.types import HTTPScope

Identify = Callable[[Operation, RawRequest], Awaitable[Identity]]
"""Says who sends a request."""
_ACCEPTED = 202
_FIRST_ERROR = 400
_INVALID = 422
_OF_EVERY_PROBLEM = frozenset({"type", "title", "status", "detail", "instance", "code", "trace_id", "retryable"})


class ApiClient:
    """The operations of one API for one request of a browser."""

    def __init__(self, api: Api, page: PageContext, *, proofs: frozenset[Proof], host: str, identify: Identify) -> None:
        self._api, self._page, self._proofs = api, page, proofs
        self._host, self._identify = host, identify

    async def get(self, operation: Operation, /, **names: object) -> Any:  # noqa: ANN401 - what the operation returns
        """Return what an operation answers that only reads; `names` are those of its path and its query."""
        return _decoded(operation, _whole(await self.answer(operation, names)))

    async def send(self, operation: Operation, body: object = None, /, *, key: str = "", **names: object) -> Any:  # noqa: ANN401 - as above
        """Send a change under the key of its form, so that a form that is sent twice counts once.

        Returns None when another member has to approve the change first.
        """
        response = _whole(await self.answer(operation, names, body=body, key=key))
        waits = response.status == _ACCEPTED and self._offered(operation).documented is MAY_NEED_APPROVAL
        return None if waits else _decoded(operation, response)

    async def send_file(self, operation: Operation, file: RawRequest, /, *, key: str, **names: object) -> Any:  # noqa: ANN401 - as above
        """Send a file, the body and headers of a request, under the key of its form."""
        return _decoded(operation, _whole(await self.answer(operation, names, file=file, key=key)))

    async def answer(
        self,
        operation: Operation,
        names: Mapping[str, object],
        *,
        body: object = None,
        file: RawRequest | None = None,
        key: str = "",
    ) -> HttpResponse | StreamedResponse:
        """Return the response of an operation, whatever its status."""
        offered = self._offered(operation)
        request = self._request(offered, names, body=body, key=key)
        if file is not None:
            request.headers, request.body = {**request.headers, **file.headers}, file.body
        identity = await self._identify(offered, request)
        response, _ = await self._api.answer(offered, request, identity, wall=wall_now())
        return response

    def _offered(self, operation: Operation) -> Operation:
        """Return a function's operation as this API offers it; the other API may have it under another path."""
        found: Operation | None = operation
        while found is not None and found.access_by(self._proofs) is None:
            found = found.also
        assert found is not None, operation.name
        return found

    def _request(self, operation: Operation, names: Mapping[str, object], *, body: object, key: str) -> RawRequest:
        in_path = {name: str(names[name]) for name in operation.path_names}
        in_query = [
            (name, str(each))
            for name, value in names.items()
            if name not in in_path and value is not None and value != ""
            for each in (value if isinstance(value, list | tuple) else [value])
        ]
        sent = self._page.request
        headers = [(b"host", self._host.encode()), (b"content-type", b"application/json")]
        headers += [(b"idempotency-key", key.encode())] if key else []
        headers += [(b"user-agent", sent.headers[b"user-agent"])] if b"user-agent" in sent.headers else []
        scope: Any = {
            "method": operation.method,
            "path": operation.path.format_map(in_path),
            "query_string": urlencode(in_query).encode(),
            "headers": headers,
        }
        request = RawRequest(_as_scope(scope), sent.trace_id, sent.client)
        request.path_params = in_path
        request.body = b"" if body is None else msgspec.json.encode(body)
        return request


def _as_scope(scope: Any) -> HTTPScope:  # noqa: ANN401 - the fields of a scope that a request is read from
    return scope  # type: ignore[no-any-return]


def _whole(response: HttpResponse | StreamedResponse) -> HttpResponse:
    assert isinstance(response, HttpResponse)
    if response.status >= _FIRST_ERROR:
        raise error_of(response)
    return response


def _decoded(operation: Operation, response: HttpResponse) -> Any:  # noqa: ANN401 - the type that the operation returns
    if not response.body:
        return None
    return msgspec.json.decode(response.body, type=operation.returns or Any)


def error_of(response: HttpResponse) -> BillfoldError:
    """Return the error that a response stands for."""
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
