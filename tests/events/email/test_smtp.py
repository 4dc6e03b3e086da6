"""Mail over SMTP is encrypted before anything is said; a server that is away is a refusal."""

import asyncio
import ssl
from datetime import UTC, datetime

import pytest
from tests.events.email.test_file_sender import LETTER

from billfold.events.email.ports import EmailRejected
from billfold.events.email.transports import SmtpEmailTransport
from billfold.platform.network.tls import ensure_certificates


@pytest.fixture
def tls(tmp_path):
    now = datetime.now(UTC)
    return ensure_certificates(tmp_path, now, domain="localhost", partners=())


class Server:
    """Speaks as much SMTP as a letter needs; what was said to it stays in `said`."""

    def __init__(self, tls):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(tls.certificate, tls.key)
        self.said = []

    async def serve(self, reader, writer):
        writer.write(b"220 here\r\n")
        in_letter = False
        while line := await reader.readline():
            self.said.append(line)
            word = line.strip().upper()
            if in_letter:
                in_letter = word != b"."
                writer.write(b"" if in_letter else b"250 taken\r\n")
            elif word.startswith(b"EHLO"):
                writer.write(b"250-here\r\n250 AUTH PLAIN\r\n")
            elif word.startswith(b"AUTH"):
                writer.write(b"235 ok\r\n")
            elif word == b"DATA":
                in_letter = True
                writer.write(b"354 go on\r\n")
            else:
                writer.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            await writer.drain()
        writer.close()


async def test_an_email_is_sent_encrypted(tls):
    server = Server(tls)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=server.context)
    port = listening.sockets[0].getsockname()[1]
    trust = ssl.create_default_context(cafile=str(tls.authority))
    mail = SmtpEmailTransport(f"smtps://us:p%40ss@localhost:{port}", "Billfold <no-reply@localhost>", trust)
    async with listening:
        await mail.send(LETTER)
    said = b"".join(server.said)
    assert b"AUTH PLAIN" in said
    assert b"password?link=abc" in said


async def test_nothing_is_said_to_a_server_that_cannot_encrypt():
    said = []

    closed = asyncio.Event()

    async def serve(reader, writer):
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            said.append(line)
            writer.write(b"250 plain only\r\n")
        writer.close()
        closed.set()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    mail = SmtpEmailTransport(f"smtp://us:pass@localhost:{port}", "no-reply@localhost")
    async with listening:
        with pytest.raises(EmailRejected):
            await mail.send(LETTER)
        await asyncio.wait_for(closed.wait(), 5)
    assert not any(b"AUTH" in line or b"Hello" in line for line in said)


async def test_a_server_that_is_away_is_a_refusal():
    with pytest.raises(EmailRejected, match="localhost:1"):
        await SmtpEmailTransport("smtps://localhost:1", "no-reply@localhost").send(LETTER)
