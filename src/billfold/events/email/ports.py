"""Mail: letters to people, in plain text."""

from typing import Protocol
from uuid import UUID

import msgspec


class OutboundEmail(msgspec.Struct, frozen=True, kw_only=True):
    """One letter to one address. The same id is the same letter: it may be sent again."""

    email_id: UUID
    recipient: str
    subject: str
    text: str


class EmailRejected(Exception):
    """The letter was not taken. It may be later."""


class EmailTransport(Protocol):
    """Whoever carries letters."""

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Hand a letter over. Raises MailRefused."""
