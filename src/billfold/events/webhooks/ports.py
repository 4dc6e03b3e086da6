"""Port of webhook deliveries: HTTP requests to the addresses of receivers."""

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
    """A connection to one address, kept while there is something to deliver."""

    async def post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        """Post a body and return how it went, in bounded time. Raises nothing."""

    async def disconnect(self) -> None:
        """Let go of the connection."""


class WebhookClient(Protocol):
    """Whoever can call an address that others gave us, and nothing inside our own walls."""

    def line(self, url: str) -> PinnedConnection:
        """Return a line to a url; nothing is connected before the first call."""
