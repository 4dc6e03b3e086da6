"""Previews of operations that move money: `Prefer: preview` (RFC 7240) shows what a request would do.

`Preview-Id` carries it out as shown, or not at all: for a minute, by the same caller, with the same path and body, and
once. The first request that names a preview binds it to its idempotency key, under which one command is carried out.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.http.caller import Call
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.ledger.bank import Bank
from billfold.ledger.preview import ConfirmingEngine, Previewed, PreviewEngine, standing_in
from billfold.platform import ids
from billfold.platform.crypto import associated_data
from billfold.platform.database.shortage import patiently
from billfold.platform.errors import InvalidInput, InvariantError, Refused

Render = Callable[[Bank, Previewed, str, datetime], Awaitable[object]]
"""Renders a preview with its id and the end of its validity."""
VALID_FOR: Final = timedelta(minutes=1)
PREVIEW_ID: Final = b"preview-id"
_APPLIED: Final = (b"preference-applied", b"preview")
_BIND = """
INSERT INTO idempotency_key AS k (caller, key, fingerprint, claimed_at, lease_until) VALUES ($1, $1, $2, $3, $3)
    ON CONFLICT (caller, key) DO UPDATE SET lease_until = k.lease_until RETURNING fingerprint
"""


def is_previewed(operation: Operation, request: RawRequest) -> bool:
    """Tell whether a request is a preview, or carries one out."""
    return operation.previews and (request.prefers_preview or PREVIEW_ID in request.headers)


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """The effect that was shown, the wall time until which it may be carried out, and the id of the preview."""

    effect: bytes
    until: datetime
    preview_id: UUID


class Previews:
    """Previews of one API."""

    def __init__(self, bank: Bank, render: Render) -> None:
        self._bank, self._render = bank, render

    async def handle(self, operation: Operation, request: RawRequest, services: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any type
        """Return the preview of a request, or what its handler returns when it is carried out as shown."""
        if request.prefers_preview:
            return await self._preview(operation, request, services)
        assert request.caller is not None
        shown = self._open(request, request.header(PREVIEW_ID) or "")
        await self._bind(shown.preview_id, request.caller)
        # Without an effect the engine answers only from an earlier run: a request that was carried out is not denied.
        effect = shown.effect if request.caller.wall <= shown.until else b""
        bank = standing_in(self._bank, ConfirmingEngine(self._bank, effect))
        return await operation.call(request, {**services, "bank": bank})

    async def _preview(self, operation: Operation, request: RawRequest, services: Mapping[str, Any]) -> HttpResponse:
        bank = standing_in(self._bank, PreviewEngine(self._bank))
        try:
            await operation.call(request, {**services, "bank": bank})
        except Previewed as found:
            assert request.caller is not None
            until = request.caller.wall + VALID_FOR
            plain = msgspec.msgpack.encode(Shown(found.effect, until, ids.new()))
            sealed = self._bank.vault.seal(plain, _bound_to(request))
            preview_id = urlsafe_b64encode(sealed).rstrip(b"=").decode()
            return json_response(await self._render(self._bank, found, preview_id, until), 200, _APPLIED)
        raise Refused("duplicate-id", "A request with this id was carried out before: there is nothing to preview.")

    def _open(self, request: RawRequest, preview_id: str) -> Shown:
        try:
            sealed = urlsafe_b64decode(preview_id + "=" * (-len(preview_id) % 4))
            return msgspec.msgpack.decode(self._bank.vault.open(sealed, _bound_to(request)), type=Shown)
        except (InvariantError, ValueError, msgspec.MsgspecError):
            raise InvalidInput.at(
                "header", PREVIEW_ID.decode(), msg="is not the id of a preview of this request by this caller"
            ) from None

    async def _bind(self, preview_id: UUID, caller: Call) -> None:
        """Bind a preview to the key of a request, for as long as keys are kept. Refuses: preview-used."""
        key = await patiently(lambda: self._bank.pool.fetchval(_BIND, preview_id, caller.key.bytes, caller.wall))
        if key != caller.key.bytes:
            raise Refused("preview-used", "The preview belongs to a request with another idempotency key.")


def _bound_to(request: RawRequest) -> bytes:
    """Return what a preview is valid for: one request of one caller."""
    caller = request.caller
    assert caller is not None
    return associated_data("preview", caller.operation, caller.fingerprint.hex(), caller.name)
