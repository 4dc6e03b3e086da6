"""E-mails of a sandbox are files that a mail client reads; over SMTP they are encrypted before anything is sent."""

import asyncio
import ssl
import stat
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.headerregistry import Address
from uuid import UUID

import msgspec
import pytest

from billfold.cli.tls import ensure_certificates
from billfold.events.email.transports import EmailRejected, FileEmailTransport, OutboundEmail, SmtpEmailTransport
from billfold.platform.settings.settings import Settings
from billfold.wiring.providers import email_transport_of

EMAIL = OutboundEmail(
    email_id=UUID("8f3b6f60-0000-4000-8000-00000000aaaa"),
    recipient="anna@b.example",
    subject="Grüße",
    text="Hello,\n\nhttps://auth.localhost:8443/password?link=abc\n",
    written_at=datetime(2026, 3, 2, 15, tzinfo=UTC),
)
SENDER = Address("First Bank", addr_spec="no-reply@localhost")


async def test_an_email_file_is_readable_by_its_owner_only(tmp_path):
    mail = FileEmailTransport(tmp_path / "mail", SENDER)
    await mail.send(EMAIL)
    await mail.send(EMAIL)
    [path] = (tmp_path / "mail").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    assert message["to"] == "anna@b.example"
    assert message["subject"] == "Grüße"
    assert message["message-id"] == f"<{EMAIL.email_id}@localhost>"
    assert "password?link=abc\n" in message.get_content()


async def test_a_long_link_in_an_email_file_is_not_wrapped(tmp_path):
    link = f"https://auth.localhost:8443/invitation?link={'a' * 80}"
    texts = {"plain": f"Hello,\n\n{link}\n", "other letters": f"Grüße\n{link}\n"}
    for name, text in texts.items():
        mail = FileEmailTransport(tmp_path / name, SENDER)
        await mail.send(msgspec.structs.replace(EMAIL, text=text))
        [path] = (tmp_path / name).iterdir()
        assert (link in path.read_text()) is (name == "plain")
        message = message_from_bytes(path.read_bytes(), policy=policy.default)
        assert message.get_content().splitlines() == [*text.splitlines(), "", "First Bank"]


@pytest.mark.parametrize(
    ("mail_from", "sender"),
    [
        ("no-reply@bank.example", "Grüne Bank, N.A."),
        ("Grüne Bank Mail <no-reply@bank.example>", "Grüne Bank Mail"),
    ],
)
async def test_an_email_is_from_the_bank_and_dated_when_it_was_written(tmp_path, mail_from, sender):
    settings = Settings(state_dir=tmp_path, bank_name="Grüne Bank, N.A.", mail_from=mail_from)
    await email_transport_of(settings).send(EMAIL)
    [path] = (tmp_path / "mail").iterdir()
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    [address] = message["from"].addresses
    assert (address.display_name, address.addr_spec) == (sender, "no-reply@bank.example")
    assert message["date"].datetime == EMAIL.written_at
    assert message["message-id"] == f"<{EMAIL.email_id}@bank.example>"
    assert message.get_content().endswith(f"\n{sender}\n")


@pytest.fixture
def tls(tmp_path):
    now = datetime.now(UTC)
    return ensure_certificates(tmp_path, now, domain="localhost", partners=())


class Server:
    """A minimal SMTP server; `said` holds the received commands."""

    def __init__(self, tls):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(tls.certificate, tls.key)
        self.said = []

    async def serve(self, reader, writer):
        writer.write(b"220 here\r\n")
        in_message = False
        while line := await reader.readline():
            self.said.append(line)
            word = line.strip().upper()
            if in_message:
                in_message = word != b"."
                writer.write(b"" if in_message else b"250 taken\r\n")
            elif word.startswith(b"EHLO"):
                writer.write(b"250-here\r\n250 AUTH PLAIN\r\n")
            elif word.startswith(b"AUTH"):
                writer.write(b"235 ok\r\n")
            elif word == b"DATA":
                in_message = True
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
    mail = SmtpEmailTransport(f"smtps://us:p%40ss@localhost:{port}", SENDER, trust)
    async with listening:
        await mail.send(EMAIL)
    said = b"".join(server.said)
    assert b"AUTH PLAIN" in said
    assert b"password?link=abc" in said


async def test_no_email_is_sent_to_an_smtp_server_without_tls():
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
    mail = SmtpEmailTransport(f"smtp://us:pass@localhost:{port}", SENDER)
    async with listening:
        with pytest.raises(EmailRejected):
            await mail.send(EMAIL)
        await asyncio.wait_for(closed.wait(), 5)
    assert not any(b"AUTH" in line or b"Hello" in line for line in said)


async def test_an_unreachable_smtp_server_raises_email_rejected():
    with pytest.raises(EmailRejected, match="localhost:1"):
        await SmtpEmailTransport("smtps://localhost:1", SENDER).send(EMAIL)
