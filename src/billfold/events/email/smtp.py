"""Mail over SMTP, always encrypted: `smtp://` begins plain and turns to TLS, `smtps://` is TLS."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from billfold.events.email.message import to_mime
from billfold.events.email.ports import EmailRejected, OutboundEmail

_SECONDS = 20.0
_PORTS = {"smtp": 587, "smtps": 465}


class SmtpEmailTransport:
    """Hands e-mails to a mail server: `smtp://user:password@mail.example.com:587`."""

    def __init__(self, url: str, sender: str, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._implicit_tls = parts.scheme == "smtps"
        self._host = parts.hostname or "localhost"
        self._port = parts.port or _PORTS[parts.scheme]
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        self._sender = sender
        self._context = context or ssl.create_default_context()

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Hand an e-mail over. Raises MailRefused when the server is away or says no."""
        try:
            await asyncio.to_thread(self._transmit, to_mime(outbound_email, self._sender))
        except (OSError, smtplib.SMTPException) as error:
            raise EmailRejected(f"{type(error).__name__} from {self._host}:{self._port}") from error

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
