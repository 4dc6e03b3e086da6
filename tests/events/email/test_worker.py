"""The post: letters go out once, are tried again when they cannot, and are not kept."""

from datetime import UTC, datetime, timedelta

import pytest

from billfold.events.email import outbox as letters
from billfold.events.email.ports import EmailRejected
from billfold.events.email.templates import EmailContent
from billfold.events.email.worker import EmailSender

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
NOTICE = EmailContent("A subject", "a secret link")


class Carrier:
    """Carries letters unless it is out of order."""

    def __init__(self):
        self.out_of_order = False
        self.carried = []

    async def send(self, letter):
        if self.out_of_order:
            raise EmailRejected("out of order")
        self.carried.append(letter)


@pytest.fixture
async def written(bank):
    await letters.queue_email(bank.pool, bank.vault, "anna@b.example", notice=NOTICE, now=NOW)


async def test_an_email_is_sent_once_and_its_text_is_deleted(bank, written):
    carrier = Carrier()
    post = EmailSender(carrier, lambda: NOW)
    assert [await post(bank), await post(bank)] == [1, 0]
    [letter] = carrier.carried
    assert (letter.recipient, letter.subject, letter.text) == ("anna@b.example", *NOTICE)
    assert await bank.pool.fetchval("SELECT sealed FROM outbound_email") is None


async def test_an_email_is_encrypted_while_it_waits(bank, written):
    sealed = await bank.pool.fetchval("SELECT sealed FROM outbound_email")
    assert NOTICE.text.encode() not in sealed


async def test_an_email_is_retried_later_when_sending_fails(bank, written):
    carrier = Carrier()
    carrier.out_of_order = True
    assert await EmailSender(carrier, lambda: NOW)(bank) == 0
    carrier.out_of_order = False
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=29))(bank) == 0
    assert await EmailSender(carrier, lambda: NOW + timedelta(seconds=31))(bank) == 1


async def test_what_was_outlived_is_cleared_away(bank, written):
    await EmailSender(Carrier(), lambda: NOW + timedelta(days=31))(bank)
    assert await bank.pool.fetchval("SELECT count(*) FROM outbound_email") == 0
