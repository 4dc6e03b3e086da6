"""Clients of others that want to be told: somebody calls their address with what happened."""

from collections.abc import Mapping
from typing import Protocol

import msgspec


class WebhookResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How a call went. `code` is 0 when there was no answer; `message` says which kind it was.

    Nothing the receiver wrote is in it but its status and when it wants to be called again.
    """

    code: int
    message: str
    retry_after: str | None = None


class PinnedConnection(Protocol):
    """A connection to one address, kept for as long as there is something to tell."""

    async def post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        """Post a body and return how it went, in bounded time. Raises nothing."""

    async def disconnect(self) -> None:
        """Let go of the connection."""


class WebhookClient(Protocol):
    """Whoever can call an address that others gave us, and nothing inside our own walls."""

    def line(self, url: str) -> PinnedConnection:
        """Return a line to a url; nothing is connected before the first call."""
