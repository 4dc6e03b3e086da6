"""Previews of operations that move money: `Prefer: preview` (RFC 7240) shows what a request would do.

`Preview-Id` carries it out as shown, or not at all: for a minute, by the same caller, with the same path and body.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.ledger.bank import Bank
from billfold.ledger.preview import ConfirmingEngine, Previewed, PreviewEngine, standing_in
from billfold.platform.crypto import associated_data
from billfold.platform.errors import InvalidInput, InvariantError, Refused

Render = Callable[[Bank, Previewed, str, datetime], Awaitable[object]]
"""Renders a preview with its id and the end of its validity."""
VALID_FOR: Final = timedelta(minutes=1)
PREVIEW_ID: Final = b"preview-id"
_APPLIED: Final = (b"preference-applied", b"preview")


def is_previewed(operation: Operation, request: RawRequest) -> bool:
    """Tell whether a request is a preview, or carries one out."""
    return operation.previews and (request.prefers_preview or PREVIEW_ID in request.headers)


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """The effect that was shown, and the wall time until which it may be carried out."""

    effect: bytes
    until: datetime


class Previews:
    """Previews of one API."""

    def __init__(self, bank: Bank, render: Render) -> None:
        self._bank, self._render = bank, render

    async def handle(self, operation: Operation, request: RawRequest, services: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any type
        """Return the preview of a request, or what its handler returns when it is carried out as shown."""
        if request.prefers_preview:
            return await self._preview(operation, request, services)
        effect = self._effect_of(request, request.header(PREVIEW_ID) or "")
        bank = standing_in(self._bank, ConfirmingEngine(self._bank, effect))
        return await operation.call(request, {**services, "bank": bank})

    async def _preview(self, operation: Operation, request: RawRequest, services: Mapping[str, Any]) -> HttpResponse:
        bank = standing_in(self._bank, PreviewEngine(self._bank))
        try:
            await operation.call(request, {**services, "bank": bank})
        except Previewed as found:
            assert request.caller is not None
            until = request.caller.wall + VALID_FOR
            plain = msgspec.msgpack.encode(Shown(found.effect, until))
            sealed = self._bank.vault.seal(plain, _bound_to(request))
            preview_id = urlsafe_b64encode(sealed).rstrip(b"=").decode()
            return json_response(await self._render(self._bank, found, preview_id, until), 200, _APPLIED)
        raise Refused("duplicate-id", "A request with this id was carried out before: there is nothing to preview.")

    def _effect_of(self, request: RawRequest, preview_id: str) -> bytes:
        assert request.caller is not None
        try:
            sealed = urlsafe_b64decode(preview_id + "=" * (-len(preview_id) % 4))
            shown = msgspec.msgpack.decode(self._bank.vault.open(sealed, _bound_to(request)), type=Shown)
        except (InvariantError, ValueError, msgspec.MsgspecError):
            raise InvalidInput.at(
                "header", PREVIEW_ID.decode(), msg="is not the id of a preview of this request by this caller"
            ) from None
        # Without an effect the engine answers only from an earlier run: a request that was carried out is not denied.
        return shown.effect if request.caller.wall <= shown.until else b""


def _bound_to(request: RawRequest) -> bytes:
    """Return what a preview is valid for: one request of one caller."""
    caller = request.caller
    assert caller is not None
    return associated_data("preview", caller.operation, caller.fingerprint.hex(), caller.name)
