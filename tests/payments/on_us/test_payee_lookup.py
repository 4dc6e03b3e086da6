"""Payees of peer-to-peer payments: concurrent look-ups share one query."""

import asyncio
from uuid import UUID

import pytest
from tests.payments.on_us.test_routes import payee

from billfold.accounts.counterparties import store
from billfold.payments.on_us.routes import PeerLookup
from billfold.platform import ids
from billfold.platform.errors import NotFound


@pytest.fixture
async def peers(bank):
    """The peers of the bank of the test."""
    made = PeerLookup(bank.pool)
    yield made
    await made.close()


async def test_concurrent_payee_lookups_share_one_query(world, bank, peers, monkeypatch):
    payers = [await world.pocket() for _ in range(4)]
    ends = [*payers[1:], payers[0]]
    linked = [await payee(world, *each) for each in zip(payers, ends, strict=True)]
    asked = []
    find_peers = store.find_peers

    async def counted(pool, links):
        asked.append([link for _, _, link in links])
        return await find_peers(pool, links)

    monkeypatch.setattr(store, "find_peers", counted)
    found = await asyncio.gather(
        *(
            peers.find(UUID(payer.customer), UUID(payer.id), UUID(link))
            for payer, link in zip(payers, linked, strict=True)
        )
    )

    assert asked == [[UUID(link) for link in linked]]
    assert [str(peer.pocket_id) for peer in found] == [end.id for end in ends]
    assert [str(peer.customer_id) for peer in found] == [end.customer for end in ends]
    addresses = [(await world.get(f"{end.path}portals/{end.portal}/"))["network_address"] for end in ends]
    assert [peer.addresses[1] for peer in found] == addresses


async def test_the_payee_lookup_of_a_foreign_counterparty_raises_not_found(world, peers):
    payer, end = await world.pocket(), await world.pocket()
    link = UUID(await payee(world, payer, end))
    mine = asyncio.create_task(peers.find(UUID(payer.customer), UUID(payer.id), link))
    for customer, counterparty_id in ((end.customer, link), (payer.customer, ids.new())):
        with pytest.raises(NotFound):
            await peers.find(UUID(customer), UUID(payer.id), counterparty_id)

    assert str((await mine).pocket_id) == end.id
