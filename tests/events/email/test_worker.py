"""The outbox: e-mails are sent once, retried after errors, and then deleted."""

import socket
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.headerregistry import Address
from email.policy import default

import pytest
from tests.support.whole_bank import with_limits
from typing_extensions import override

from billfold.events.email import outbox, transports
from billfold.events.email.outbox import ATTEMPTS_MAX, SERVER_PAUSE, EmailSender
from billfold.events.email.templates import EmailContent
from billfold.events.email.transports import (
    EmailRejected,
    FileEmailTransport,
    MailServerUnavailable,
    SmtpEmailTransport,
)
from billfold.platform.crypto import associated_data
from billfold.platform.database.background_work import list_failed

SENDER = Address("A bank", addr_spec="bank@b.example")
NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
NOTICE = EmailContent("A subject", "a secret link")


class Carrier:
    """A transport of e-mails that can be made to fail."""

    def __init__(self):
        self.out_of_order = False
        self.carried = []

    async def send(self, letter):
        if self.out_of_order:
            raise EmailRejected("out of order")
        self.carried.append(letter)


@pytest.fixture
async def queued_email(bank):
    await outbox.queue_email(bank.pool, bank.vault, "anna@b.example", notice=NOTICE, now=NOW)


async def test_an_email_is_sent_once_and_its_text_is_deleted(bank, queued_email):
    carrier = Carrier()
    post = EmailSender(carrier, lambda: NOW)
    assert [await post(bank), await post(bank)] == [1, 0]
    [letter] = carrier.carried
    assert (letter.recipient, letter.subject, letter.text) == ("anna@b.example", *NOTICE)
    assert await bank.pool.fetchval("SELECT sealed FROM outbound_email") is None


async def test_an_email_is_retried_later_when_sending_fails(bank, queued_email):
    carrier = Carrier()
    carrier.out_of_order = True
    assert await EmailSender(carrier, lambda: NOW)(bank) == 0
    carrier.out_of_order = False
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=29))(bank) == 0
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=31))(bank) == 1


def clock_at(now):
    return lambda: now


@pytest.fixture
def stalling(monkeypatch):
    """The transport to a mail server that accepts connections and says nothing."""
    monkeypatch.setattr(transports, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield SmtpEmailTransport(f"smtp://127.0.0.1:{server.getsockname()[1]}", SENDER)


async def test_no_email_is_given_up_while_the_mail_server_stalls(bank, stalling, monkeypatch):
    for nth in range(12):
        await outbox.queue_email(bank.pool, bank.vault, f"anna{nth}@b.example", notice=NOTICE, now=NOW)
    times = [NOW + nth * timedelta(hours=2) for nth in range(ATTEMPTS_MAX + 2)]
    calls, connect = [], stalling._connect

    def counted():
        calls.append(1)
        return connect()

    monkeypatch.setattr(stalling, "_connect", counted)
    for nth, now in enumerate(times, start=1):
        assert await EmailSender(stalling, clock_at(now))(bank) == 0
        assert len(calls) == nth, "it is asked once, not by each e-mail"
        (failed,) = await list_failed(bank.pool)
        assert (failed.kind, failed.item) == ("email", "mail server")
        assert "MailServerUnavailable" in failed.error
    carrier, later = Carrier(), times[-1] + timedelta(hours=2)
    sender = EmailSender(carrier, lambda: later)
    assert [await sender(bank) for _ in range(3)] == [10, 2, 0]
    assert await list_failed(bank.pool) == []


async def test_an_email_at_which_the_mail_server_hangs_up_does_not_delay_others_for_long(bank):
    class Fragile(Carrier):
        @override
        async def send(self, letter):
            if letter.recipient == "anna@b.example":
                raise MailServerUnavailable("hangs up")
            await super().send(letter)

    for recipient in ("anna@b.example", "ben@b.example", "cleo@b.example"):
        await outbox.queue_email(bank.pool, bank.vault, recipient, notice=NOTICE, now=NOW)
    carrier = Fragile()
    for nth in range(3):
        await EmailSender(carrier, clock_at(NOW + nth * SERVER_PAUSE))(bank)
    assert {each.recipient for each in carrier.carried} == {"ben@b.example", "cleo@b.example"}


async def test_a_mailbox_over_its_daily_email_limit_does_not_delay_others(bank):
    with_limits(bank, {"emails.recipient": 2})
    for recipient in ("anna@b.example", "An.na+news@b.example", "ANNA@b.example", "ben@b.example"):
        await outbox.queue_email(bank.pool, bank.vault, recipient, notice=NOTICE, now=NOW)
    carrier, tomorrow = Carrier(), NOW + timedelta(days=1)
    await EmailSender(carrier, lambda: NOW)(bank)
    assert len(carrier.carried) == 3
    assert "ben@b.example" in {each.recipient for each in carrier.carried}
    assert await bank.pool.fetchval("SELECT count(*) FROM outbound_email WHERE sealed IS NOT NULL") == 0, "it is gone"
    assert await list_failed(bank.pool) == []
    await EmailSender(carrier, lambda: tomorrow)(bank)
    assert len(carrier.carried) == 3
    await outbox.queue_email(bank.pool, bank.vault, "anna@b.example", notice=NOTICE, now=tomorrow)
    await EmailSender(carrier, lambda: tomorrow)(bank)
    assert [each.recipient for each in carrier.carried[3:]] == ["anna@b.example"]


async def test_an_email_that_a_person_waits_for_is_sent_before_earlier_notifications(bank):
    for nth in range(10):
        to = f"u{nth}@b.example"
        await outbox.queue_email(bank.pool, bank.vault, to, notice=NOTICE, now=NOW, is_awaited=False)
    await outbox.queue_email(bank.pool, bank.vault, "anna@b.example", notice=NOTICE, now=NOW + timedelta(seconds=9))
    carrier = Carrier()
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=9))(bank) == 10
    assert "anna@b.example" in {each.recipient for each in carrier.carried}


async def test_a_retried_email_counts_once_toward_the_mailbox_limit(bank, queued_email):
    with_limits(bank, {"emails.recipient": 1})
    carrier = Carrier()
    carrier.out_of_order = True
    assert await EmailSender(carrier, lambda: NOW)(bank) == 0
    carrier.out_of_order = False
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=31))(bank) == 1
    assert len(carrier.carried) == 1


async def test_a_newline_in_an_email_subject_becomes_a_space(bank, tmp_path):
    notice = EmailContent("Ann\r\nBcc: everybody@b.example\u2028invites\x85you", "text")
    await outbox.queue_email(bank.pool, bank.vault, "anna@b.example", notice=notice, now=NOW)
    assert await EmailSender(FileEmailTransport(tmp_path, SENDER), lambda: NOW)(bank) == 1
    (sent,) = [message_from_bytes(each.read_bytes(), policy=default) for each in tmp_path.iterdir()]
    assert (sent["Subject"], sent["Bcc"]) == ("Ann Bcc: everybody@b.example invites you", None)


@pytest.mark.parametrize(
    "content",
    [b'["a@b.example", "two\\nlines", "text"]', b'["a@b.example\\nBcc: c@b.example", "one", "text"]', None],
)
async def test_an_unsendable_email_does_not_block_others(bank, queued_email, tmp_path, content):
    bad = await bank.pool.fetchval("SELECT email_id FROM outbound_email")
    place = associated_data("letter", "sealed", bad, tenant_id=bad)
    sealed = b"broken" if content is None else bank.vault.seal(content, place)
    await bank.pool.execute("UPDATE outbound_email SET sealed = $1", sealed)
    for _ in range(3):
        await outbox.queue_email(bank.pool, bank.vault, "ben@b.example", notice=NOTICE, now=NOW)
    transport = FileEmailTransport(tmp_path, SENDER)
    assert await EmailSender(transport, lambda: NOW)(bank) == 3
    assert await EmailSender(transport, lambda: NOW + timedelta(minutes=1))(bank) == 0
    (failed,) = await list_failed(bank.pool)
    assert (failed.kind, failed.item, failed.tries) == ("email", str(bad), 2)
