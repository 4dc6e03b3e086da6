"""A customer who has sent a payment and a collection by ACH: it sends once per run, and each test has a copy."""

import asyncio
import pickle
import shutil

import pytest
from tests.payments.ach.sender import Sender
from tests.support.databases import fresh_database, make_template
from tests.support.whole_bank import close_bank, open_bank


@pytest.fixture(scope="session")
def sender_template(pg_server, founded_template):
    """A database in which the customer has sent both entries, the bank's files, and the sender's state."""
    folder = pg_server.data_dir.parent / "ach-sender"

    async def send(dsn):
        bank = await open_bank(dsn)
        sender = Sender(bank)
        await sender.send()
        shutil.copytree(bank.settings.rails_dir, folder / "rails")
        (folder / "known").write_bytes(pickle.dumps(sender.known))
        await close_bank(bank)

    return asyncio.run(make_template(pg_server, "ach_sender_template", send, base=founded_template)), folder


@pytest.fixture
async def sender(pg_server, sender_template):
    """The sender in a bank for one test."""
    template, folder = sender_template
    async with fresh_database(pg_server, template) as dsn:
        bank = await open_bank(dsn)
        shutil.copytree(folder / "rails", bank.settings.rails_dir, dirs_exist_ok=True)
        yield Sender(bank, pickle.loads((folder / "known").read_bytes()))
        await close_bank(bank)
