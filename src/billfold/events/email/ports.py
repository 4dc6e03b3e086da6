"""E-mails to users, in plain text, and how they are sent."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec


class OutboundEmail(msgspec.Struct, frozen=True, kw_only=True):
    """One e-mail to one address. The same id is the same e-mail: it may be sent again."""

    email_id: UUID
    recipient: str
    subject: str
    text: str
    written_at: datetime


class EmailRejected(Exception):
    """The e-mail was not taken. It may be later."""


class EmailTransport(Protocol):
    """A way of sending e-mails."""

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Hand an e-mail over. Raises EmailRejected."""
