"""An authorization server with a company, a person, and programs that want something of them."""

import pytest
from tests.domain.oauth.people import company, member
from tests.domain.oauth.programs import program
from tests.interfaces.apps import lend_auth_app, take_back
from tests.interfaces.auth.relying import Relying
from tests.whole_bank import bank

__all__ = ["bank"]


@pytest.fixture
async def app(bank):
    made = await lend_auth_app(bank)
    yield made
    await take_back(made)


@pytest.fixture
async def anna(bank):
    """A person who manages a company."""
    return await member(bank.pool, await company(bank.pool), role="MANAGER")


@pytest.fixture
async def relying(bank, app, anna):
    """Make programs that rely on the server; each is registered when it is made."""
    made = []

    async def make(client_id="books", **options):
        client = await program(bank.pool, client_id, **options)
        made.append(Relying(bank, app, client, anna))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
async def books(relying):
    """A program of the strict profile; it does without nonces so that one request is one proof."""
    return await relying("books", requires_nonce=False)


@pytest.fixture
async def ledger(relying):
    """A program of the documented profile."""
    return await relying("ledger", profile="documented")
