"""Sends e-mail over SMTP, always encrypted, or in a sandbox to files that a mail client can open."""

import asyncio
import os
import smtplib
import ssl
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit
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
    """The e-mail was rejected. It may be accepted later."""


class MailServerUnavailable(EmailRejected):
    """The mail server does not answer, in time or at all: it would not take another e-mail either."""


class EmailTransport(Protocol):
    """A way of sending e-mails."""

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Hand an e-mail over. Raises EmailRejected."""


_SECONDS = 20.0
_NO_ANSWER = (smtplib.SMTPServerDisconnected, smtplib.SMTPConnectError)
_PORTS = {"smtp": 587, "smtps": 465}
_LINE_CHARS_MAX = 998
"""Maximum line length (RFC 5322)."""


class FileEmailTransport:
    """Writes e-mails to a folder, oldest first by name."""

    def __init__(self, folder: Path, sender: Address) -> None:
        self._folder = folder
        self._sender = sender

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Write the e-mail; the same one again writes the same file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{outbound_email.email_id}.eml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(to_mime(outbound_email, self._sender).as_bytes())


class SmtpEmailTransport:
    """Hands e-mails to a mail server: `smtp://user:password@mail.example.com:587`.

    `smtp://` begins in plain text and upgrades to TLS, `smtps://` is TLS.
    """

    def __init__(self, url: str, sender: Address, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._implicit_tls = parts.scheme == "smtps"
        self._host = parts.hostname or "localhost"
        self._port = parts.port or _PORTS[parts.scheme]
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        self._sender = sender
        self._context = context or ssl.create_default_context()

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Hand an e-mail over. Raises EmailRejected when the server refuses it, or is unavailable."""
        try:
            await asyncio.to_thread(self._transmit, to_mime(outbound_email, self._sender))
        except (OSError, smtplib.SMTPException) as error:
            is_refusal = isinstance(error, smtplib.SMTPException) and not isinstance(error, _NO_ANSWER)
            rejected = EmailRejected if is_refusal else MailServerUnavailable
            raise rejected(f"{type(error).__name__} from {self._host}:{self._port}") from error

    def _transmit(self, message: EmailMessage) -> None:
        with self._connect() as server:
            if self._user:
                server.login(self._user, self._password)
            server.send_message(message)

    def _connect(self) -> smtplib.SMTP:
        if self._implicit_tls:
            return smtplib.SMTP_SSL(self._host, self._port, timeout=_SECONDS, context=self._context)
        server = smtplib.SMTP(self._host, self._port, timeout=_SECONDS)
        try:
            server.starttls(context=self._context)
        except BaseException:
            server.close()
            raise
        return server


def to_mime(outbound_email: OutboundEmail, sender: Address) -> EmailMessage:
    """Return the message, signed with the name of its sender: the bank's own.

    Its id and date are the e-mail's, so that a second copy is recognized.
    """
    message = EmailMessage()
    message["From"] = sender
    message["Date"] = format_datetime(outbound_email.written_at)
    message["To"] = outbound_email.recipient
    message["Subject"] = outbound_email.subject
    message["Message-ID"] = f"<{outbound_email.email_id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    text = f"{outbound_email.text}\n{sender.display_name}\n"
    # A link must not be broken across lines.
    is_plain = text.isascii() and max(map(len, text.split("\n"))) <= _LINE_CHARS_MAX
    message.set_content(text, cte="7bit" if is_plain else "quoted-printable")
    return message
