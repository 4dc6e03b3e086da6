"""Applies the faults of a sandbox: around its APIs, and to the deliveries of its worker."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import msgspec
from typing_extensions import override

from billfold.apis.customer_api import CustomerApi
from billfold.apis.partner_api import PartnerApi
from billfold.events.webhooks.http_client import GuardedConnection, GuardedWebhookClient, WebhookResponse
from billfold.http.edge import SECURITY_HEADERS
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest, Receive, Scope, Send
from billfold.http.responses import ProblemWithHeaders, response_to, unauthorized
from billfold.oauth.caller import challenge
from billfold.oauth.dpop import Nonces
from billfold.oauth.rules.public_keys import parse_jws
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, NotFound
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control.faults import FaultKind, FaultStore, ObservedRequest

_KEYS = {b"x-service-idempotency", b"idempotency-key"}
_DETAIL = "A fault of the sandbox."
_NEW_FIELD = "field_of_a_later_release"
_OF_ANSWER = {FaultKind.ANSWER_LOST, FaultKind.CONNECTION_DROPPED, FaultKind.SLOW, FaultKind.NEW_FIELDS}


class FaultyApi:
    """ASGI: an API of a sandbox. Operations of the sandbox itself meet no faults."""

    def __init__(self, api: PartnerApi | CustomerApi) -> None:
        self._api, self._faults = api, FaultStore(api.bank.settings.state_dir)
        self.lifespan = api.lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._faults.is_empty or (operation := self._operation(scope)) is None:
            await self._api(scope, receive, send)
            return
        now, met = wall_now(), self._faults.take(operation.name)
        key = next((value[:36].decode("latin-1") for name, value in scope["headers"] if name in _KEYS), None)
        request = ObservedRequest(idempotency_key=key, faults=list(met), received_at=now, answered_at=now)

        async def noting(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            request.status_code = message.get("status", request.status_code)
            await send(message)

        try:
            await self._serve(operation, met, scope, receive=receive, send=noting)
        finally:
            request.status_code = None if FaultKind.CONNECTION_DROPPED in met else request.status_code
            request.answered_at = wall_now()
            self._faults.record(operation.name, request)

    def _operation(self, scope: Scope) -> Operation | None:
        """Return the operation of a request; None if there is none, or it is the sandbox's own."""
        path = "/" + "/".join(filter(None, scope["path"].split("/")))
        try:
            offered, _ = self._api.router.find(path)
        except NotFound:
            return None
        found = offered.get(scope["method"])
        return None if found is None or found.operation.path.startswith("/api/v1/sandbox/") else found.operation

    async def _serve(
        self, operation: Operation, met: Mapping[FaultKind, int], scope: Scope, *, receive: Receive, send: Send
    ) -> None:
        if FaultKind.SHORT_PAGES in met and "limit" in {each.name for each in operation.query}:
            query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
            scope["query_string"] = urlencode({**query, "limit": 2}, doseq=True).encode()
            await asyncio.sleep(0.1)  # rows arrive between two pages
        if refusal := self._refusal(met, scope):
            await _refuse(refusal, scope, send)
        elif _OF_ANSWER.isdisjoint(met):
            await self._api(scope, receive, send)
        else:
            await self._answer(met, scope, receive, send)

    def _refusal(self, met: Mapping[FaultKind, int], scope: Scope) -> BillfoldError | None:
        """Return the refusal of a request before it is carried out, if it meets one."""
        for kind in met.keys() & {FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE}:
            return ProblemWithHeaders(kind, _DETAIL, (b"retry-after", str(met[kind]).encode()))
        is_customer = isinstance(self._api, CustomerApi)
        if FaultKind.TOKEN_EXPIRED in met:
            return challenge("dpop", "invalid_token", _DETAIL) if is_customer else unauthorized(_DETAIL)
        if FaultKind.NONCE_REQUIRED in met and is_customer and not _has_nonce(scope):
            nonce = Nonces(self._api.bank.vault).current(wall_now())
            return challenge("dpop", "use_dpop_nonce", _DETAIL, (b"dpop-nonce", nonce.encode()))
        return None

    async def _answer(self, met: Mapping[FaultKind, int], scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request out, and do something else with its answer."""
        messages: list[Any] = []

        async def keep(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            messages.append(message)

        await self._api(scope, receive, keep)
        start, body = messages[0], b"".join(each.get("body", b"") for each in messages[1:])
        await asyncio.sleep(met.get(FaultKind.SLOW, 0))
        if FaultKind.ANSWER_LOST in met:
            await _refuse(BillfoldError("internal-error", _DETAIL), scope, send)
            return
        if FaultKind.NEW_FIELDS in met and body.startswith(b"{"):
            body = json.dumps(json.loads(body, object_hook=_with_new_field)).encode()
        others = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await send({**start, "headers": [*others, (b"content-length", str(len(body)).encode())]})
        if FaultKind.CONNECTION_DROPPED in met:
            await send({"type": "http.response.body", "body": body[:1], "more_body": True})
            raise ConnectionResetError(_DETAIL)
        await send({"type": "http.response.body", "body": body, "more_body": False})


def _has_nonce(scope: Scope) -> bool:
    """Tell whether a proof has a nonce; the bank says whether it is right."""
    proof = next((value for name, value in scope["headers"] if name == b"dpop"), b"")
    try:
        return "nonce" in parse_jws(proof.decode("latin-1")).claims
    except ValueError:
        return False


async def _refuse(error: BillfoldError, scope: Scope, send: Send) -> None:
    await response_to(error, RawRequest(scope, ids.new().hex, "")).send(send, SECURITY_HEADERS)


def _with_new_field(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object as a later release may send it; a list begins with a new type, events have a new kind."""
    if isinstance(own := fields.get("metadata"), dict):
        own.pop(_NEW_FIELD)  # its fields are the caller's
    if isinstance(items := fields.get("items"), list) and items and isinstance(items[0], dict):
        items[0]["type"] = "NEW_TYPE"
    if "event_type" in fields:
        fields["event_type"] = "new.kind.success"
    return fields | {_NEW_FIELD: {"a": [1]}}


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
    _client: FaultyWebhookClient

    @override
    async def post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        if self._client.faults.is_empty:
            return await super().post(headers, body)
        met = self._client.faults.take(msgspec.json.decode(body)["event_type"], delivery=True)
        if FaultKind.DELIVERY_LOST in met:
            return WebhookResponse(code=0, message="lost by a fault of the sandbox")
        if FaultKind.DELIVERY_OUT_OF_ORDER in met:
            task = asyncio.create_task(self._post_later(met[FaultKind.DELIVERY_OUT_OF_ORDER], headers, body))
            self._client.overtaken.add(task)
            task.add_done_callback(self._client.overtaken.discard)
            return WebhookResponse(code=202, message="will be overtaken by a fault of the sandbox")
        await asyncio.sleep(met.get(FaultKind.DELIVERY_LATE, 0))
        if FaultKind.DELIVERY_DOUBLED in met:
            await super().post(headers, body)
        return await super().post(headers, body)

    async def _post_later(self, seconds: float, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        await asyncio.sleep(seconds)
        connection = GuardedConnection(self._client, self._url)
        try:
            return await connection.post(headers, body)
        finally:
            await connection.disconnect()
