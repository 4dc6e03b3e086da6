"""Calls the process of the simulated card processor, which it starts when it is first needed."""

from __future__ import annotations

import asyncio
import base64
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

import msgspec
import structlog

from billfold.payments.cards.ports import EncryptedDetail, IssuedCard, PinError, PublicKeyError
from billfold.payments.cards.types import CardOrderRow, CardStatus, Padding
from billfold.platform.errors import InvariantError, Unavailable
from billfold.sandbox.card_processor.launch import processor_environment

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10.0
_RETRY_AFTER_SECONDS = 5
_LINE_MAX_BYTES = 1 << 16


class SimulatedCardProcessor:
    """One process per bank process; they share the folder of their numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._pin_key: str | None = None

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue a card, or return it as it was issued."""
        return msgspec.convert(await self._call("issue", card_id=str(card_id), on=on.isoformat()), IssuedCard)

    async def encrypt_detail(self, card_id: UUID, public_key: str, padding: Padding) -> EncryptedDetail:
        """Encrypt what is secret of a card to an RSA key in PEM. Raises PublicKeyError."""
        detail = await self._call("encrypt_detail", card_id=str(card_id), value=public_key, padding=padding)
        return msgspec.convert(detail, EncryptedDetail)

    async def order(self, order: CardOrderRow, shipping_address: str) -> None:
        """Take an order; `POST /api/v1/sandbox/generate-card/` produces the card."""
        log.info("card_ordered", card_order_id=str(order.card_order_id), ships=bool(shipping_address))

    async def set_status(self, card_id: UUID, status: CardStatus) -> None:
        """Take over the status of a card."""
        await self._call("set_status", card_id=str(card_id), value=status)

    async def pin_key(self) -> str:
        """Return the key to which clients encrypt PINs, in PEM."""
        if self._pin_key is None:  # anybody may read it, without a token
            self._pin_key = str(await self._call("pin_key"))
        return self._pin_key

    async def set_pin(self, card_id: UUID, encrypted_pin: bytes) -> None:
        """Take the PIN of a card. Raises PinError."""
        await self._call("set_pin", card_id=str(card_id), value=base64.b64encode(encrypted_pin).decode())

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _call(self, method: str, **values: str) -> Any:  # noqa: ANN401 - what the method returns
        request = msgspec.json.encode({"method": method, **values}) + b"\n"
        async with self._lock:
            try:
                line = await asyncio.wait_for(self._exchange(request), TIMEOUT_SECONDS)
            except BaseException as error:
                await self.close()  # a response that comes later belongs to nobody
                if isinstance(error, (OSError, TimeoutError, EOFError)):
                    raise Unavailable(
                        "The card processor does not answer.", retry_after_seconds=_RETRY_AFTER_SECONDS
                    ) from None
                raise
        response = msgspec.json.decode(line)
        return response["result"] if "result" in response else _fail(response)

    async def _exchange(self, request: bytes) -> bytes:
        """Return the response to a request; a process that has ended is started anew, and gets it again, once."""
        line = await self._send(request) or await self._send(request)
        if not line:
            raise EOFError
        return line

    async def _send(self, request: bytes) -> bytes:
        """Send a request; return its response, nothing when the process ends before."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "billfold.sandbox.card_processor",
                str(self._folder),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=processor_environment(),
                limit=_LINE_MAX_BYTES,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        with suppress(ConnectionError):
            process.stdin.write(request)
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            await self.close()
            return b""
        return line


def _fail(response: dict[str, str]) -> NoReturn:
    if response["error"] == "public_key":
        raise PublicKeyError(response["reason"])
    if response["error"] == "pin":
        raise PinError
    raise InvariantError(f"The card processor does not know the {response['error']}.")
