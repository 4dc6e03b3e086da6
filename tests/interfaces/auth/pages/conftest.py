"""The pages of a bank with a company and Anna, who is its administrator, at a time that is set."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pyotp
import pytest
from tests.domain.oauth.people import company
from tests.domain.oauth.programs import program
from tests.interfaces.auth.pages.browser import Browser
from tests.interfaces.partner_client import close_app
from tests.whole_bank import bank

from billfold.domain import people
from billfold.interfaces.auth.pages.app import create_pages_app
from billfold.kit.crypto import hash_password

__all__ = ["bank", "program"]

PASSWORD = "walnut-orbit-canyon"
HASH = hash_password(PASSWORD)


class Clock:
    """Wall time that passes when it is told to."""

    def __init__(self):
        self.now = datetime(2026, 3, 2, 15, tzinfo=UTC)

    def __call__(self):
        return self.now

    def forward(self, **by):
        self.now += timedelta(**by)


@dataclass
class Anna:
    """A person with a password and an authenticator app."""

    user_id: UUID
    customer_id: UUID
    email: str
    secret: str
    clock: Clock

    @property
    def code(self):
        """What her app shows now."""
        return pyotp.TOTP(self.secret).at(self.clock.now)

    async def sign_in(self, browser, to="/account"):
        """Sign in with both factors, and stand where that leads."""
        await browser.go(f"/sign-in?next={to.replace('?', '%3F').replace('=', '%3D')}")
        await browser.send("/sign-in", email=self.email, password=PASSWORD)
        await browser.follow()
        self.clock.forward(seconds=30)
        await browser.send("/second-factor", code=self.code)
        return await browser.follow()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def app(bank, clock):
    made = create_pages_app(bank, clock=clock)
    yield made
    await close_app(made)


@pytest.fixture
async def new_browser(app):
    made = []

    def make(**options):
        made.append(Browser(app, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
def browser(new_browser):
    return new_browser()


@pytest.fixture
async def anna(bank, clock):
    pool, now = bank.pool, clock.now
    customer_id = await company(pool)
    email = "anna@northwind.example"
    user_id = await people.enrol_person(
        pool, email=email, first_name="Anna", last_name="Lind", now=now
    )
    await people.add_member(pool, customer_id, user_id, role="ADMIN", now=now)
    await people.set_password(pool, user_id, HASH, now=now)
    secret = people.codes.new_secret()
    await people.codes.propose_authenticator(pool, bank.vault, user_id, secret=secret, now=now)
    earlier = now - timedelta(minutes=2)
    first = pyotp.TOTP(secret).at(earlier)
    assert await people.codes.confirm_authenticator(
        pool, bank.vault, user_id, code=first, now=earlier
    )
    return Anna(user_id, customer_id, email, secret, clock)


@pytest.fixture
async def letters(bank, clock):
    """What waits to be mailed: `await letters()` returns new (subject, text) pairs."""

    async def read():
        claimed = await people.letters.claim_letters(bank.pool, bank.vault, clock.now)
        for each in claimed:
            await people.letters.note_sent(bank.pool, each.letter_id, clock.now)
        return [(each.subject, each.text) for each in claimed]

    return read
