"""Applies the faults of a sandbox: around its APIs, and to the deliveries of its worker."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from typing_extensions import override

from billfold.events.webhooks.http_client import GuardedConnection, GuardedWebhookClient, WebhookResponse
from billfold.http.api import Api
from billfold.http.edge import SECURITY_HEADERS
from billfold.http.raw_request import RawRequest, Receive, Scope, Send
from billfold.http.responses import ProblemWithHeaders, response_to, unauthorized
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, NotFound
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control.faults import FaultKind, FaultStore, ObservedRequest, SandboxFault

_OWN_PATHS = "/api/v1/sandbox"
_KEYS = {b"x-service-idempotency", b"idempotency-key"}
_DETAIL = "A fault of the sandbox."
_PAGE_LIMIT = "2"
_PAGE_SECONDS = 0.1
"""The time that a short page takes, so that rows arrive between two."""
_NEW_KIND, _NEW_FIELD = "NEW_KIND", "field_of_a_later_release"
_BEFORE = {FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE, FaultKind.TOKEN_EXPIRED}
_DONE = {FaultKind.ANSWER_LOST, FaultKind.CONNECTION_DROPPED, FaultKind.SLOW, FaultKind.NEW_FIELDS}


class FaultyApi:
    """ASGI: an API of a sandbox. Operations of the sandbox itself meet no faults."""

    def __init__(self, api: Api, state_dir: Path) -> None:
        self._api, self._faults = api, FaultStore(state_dir)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        target = self._target(scope) if self._faults.exist() else None
        if target is None:
            await self._api(scope, receive, send)
            return
        received_at, met, status = wall_now(), self._faults.take(target), None

        async def noting(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._serve(met, scope, receive, noting)
        except ConnectionResetError:
            status = None
            raise
        finally:
            key = next((value.decode("latin-1") for name, value in scope["headers"] if name in _KEYS), None)
            self._faults.record(
                ObservedRequest(
                    target=target,
                    idempotency_key=key,
                    status=status,
                    faults=[each.fault for each in met],
                    received_at=received_at,
                    answered_at=wall_now(),
                )
            )

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open it, and close it at the end."""
        return self._api.lifespan()

    def _target(self, scope: Scope) -> str | None:
        """Return the operationId of a request; None if there is none, or it belongs to the sandbox."""
        path = "/" + "/".join(filter(None, scope["path"].split("/")))
        try:
            offered, _ = self._api.router.find(path)
        except NotFound:
            return None
        found = offered.get(scope["method"])
        return None if found is None or path.startswith(_OWN_PATHS) else found.operation.name

    async def _serve(self, met: list[SandboxFault], scope: Scope, receive: Receive, send: Send) -> None:
        by_kind = {each.fault: each for each in met}
        if FaultKind.SHORT_PAGES in by_kind:
            query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
            scope["query_string"] = urlencode(query | {"limit": _PAGE_LIMIT}).encode()
            await asyncio.sleep(_PAGE_SECONDS)
        before = next((each for kind, each in by_kind.items() if kind in _BEFORE), None)
        after = [each for kind, each in by_kind.items() if kind in _DONE]
        if before is not None:
            await _refuse(_refusal(before), scope, send)
        elif after:
            await self._serve_faulty(after, scope, receive, send)
        else:
            await self._api(scope, receive, send)

    async def _serve_faulty(self, met: list[SandboxFault], scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request out, and do something else with its answer."""
        messages: list[Any] = []

        async def keep(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            messages.append(message)

        await self._api(scope, receive, keep)
        start, body = messages[0], b"".join(each.get("body", b"") for each in messages[1:])
        kinds = {each.fault for each in met}
        await asyncio.sleep(max((each.seconds for each in met if each.fault is FaultKind.SLOW), default=0))
        if FaultKind.ANSWER_LOST in kinds:
            await _refuse(BillfoldError("internal-error", _DETAIL), scope, send)
            return
        if FaultKind.NEW_FIELDS in kinds:
            body = _with_new_fields(body)
        others = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await send({**start, "headers": [*others, (b"content-length", str(len(body)).encode())]})
        if FaultKind.CONNECTION_DROPPED in kinds:
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            raise ConnectionResetError(_DETAIL)
        await send({"type": "http.response.body", "body": body, "more_body": False})


def _refusal(fault: SandboxFault) -> BillfoldError:
    if fault.fault is FaultKind.TOKEN_EXPIRED:
        return unauthorized(_DETAIL)
    return ProblemWithHeaders(fault.fault, _DETAIL, (b"retry-after", str(fault.seconds).encode()))


async def _refuse(error: BillfoldError, scope: Scope, send: Send) -> None:
    await response_to(error, RawRequest(scope, ids.new().hex, "")).send(send, SECURITY_HEADERS)


def _with_new_fields(body: bytes) -> bytes:
    """Return JSON with a new field in each object, and a new `type` in the first of a list's items."""

    def changed(value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, list):
            return [changed(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {name: changed(each) for name, each in value.items()} | {_NEW_FIELD: {"a": [1]}}

    try:
        answer = changed(msgspec.json.decode(body))
    except msgspec.DecodeError:
        return body
    items = answer.get("items") if isinstance(answer, dict) else None
    if items and isinstance(items[0], dict):
        items[0]["type"] = _NEW_KIND
    return msgspec.json.encode(answer)


class FaultyWebhookClient(GuardedWebhookClient):
    """Makes connections whose deliveries meet the faults of a sandbox."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(allowed=settings.webhook_allowed_networks, trusted_ca=settings.webhook_trusted_ca)
        self.faults = FaultStore(settings.state_dir)
        self.overtaken: set[asyncio.Task[WebhookResponse]] = set()

    @override
    def connection(self, url: str) -> GuardedConnection:
        return _FaultyConnection(self, url)


class _FaultyConnection(GuardedConnection):
    def __init__(self, client: FaultyWebhookClient, url: str) -> None:
        super().__init__(client, url)
        self._of, self._to = client, url

    @override
    async def post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        met = self._of.faults.take(msgspec.json.decode(body)["event_type"], delivery=True)
        kinds = {each.fault for each in met}
        seconds = max((each.seconds for each in met), default=0)
        if FaultKind.DELIVERY_LOST in kinds:
            return WebhookResponse(code=0, message="lost by a fault of the sandbox")
        if FaultKind.DELIVERY_OUT_OF_ORDER in kinds:
            task = asyncio.create_task(self._post_later(seconds, headers, body))
            self._of.overtaken.add(task)
            task.add_done_callback(self._of.overtaken.discard)
            return WebhookResponse(code=202, message="to be overtaken, by a fault of the sandbox")
        if FaultKind.DELIVERY_LATE in kinds:
            await asyncio.sleep(seconds)
        if FaultKind.DELIVERY_DOUBLED in kinds:
            await super().post(headers, body)
        return await super().post(headers, body)

    async def _post_later(self, seconds: float, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        await asyncio.sleep(seconds)
        connection = GuardedConnection(self._of, self._to)
        try:
            return await connection.post(headers, body)
        finally:
            await connection.disconnect()
