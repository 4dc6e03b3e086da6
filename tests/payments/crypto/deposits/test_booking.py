"""Booking of final transfers: each once, in spite of reorgs, other watchers and restarts."""

from typing import Any

import pytest
from tests.fixtures.deposits import DOLLAR
from tests.support.whole_bank import expect_clean

from billfold.monitoring import health
from billfold.payments.crypto import cli
from billfold.payments.crypto.chains import Block, Chains, TokenTransfer
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.reorgs import write_off_above, write_off_replaced
from billfold.payments.crypto.deposits.rules import CreditDeposit
from billfold.payments.crypto.deposits.store import TransferStatus
from billfold.payments.crypto.deposits.watcher import DepositBooking
from billfold.payments.crypto.nodes import Agreement, Nodes
from billfold.platform.clock import wall_now
from billfold.sandbox.chain.faucet import TEST_DOLLAR, address_of

PER_BLOCK = 10**12
PAYER = address_of(b"1" * 32)


class Node:
    """Tells that every address has more in every block."""

    host = "node"

    async def balance(self, token, address, block):
        return PER_BLOCK * block


class Booked:
    """Final transfers of one transaction to one portal, as a watcher books them."""

    def __init__(self, depositor, portal):
        self.depositor, self.pool, self.address = depositor, depositor.bank.pool, portal["wallet_address"]
        (self.chain,) = depositor.bank.ports[Chains].values()
        node: Any = Node()
        self.nodes = (node,)
        self.booking = DepositBooking(depositor.bank, Nodes(self.chain, self.nodes))

    async def arrive(self, block, *dollars, first=0):
        """Let a transfer of each amount be final; return them. Their places in their transaction count from `first`."""
        transfers = [
            TokenTransfer("0xaa", nth, block, f"0x{block}", TEST_DOLLAR, PAYER, self.address, round(each * DOLLAR))
            for nth, each in enumerate(dollars, first)
        ]
        final = TransferStatus.FINAL
        await store.save_transfers(self.pool, self.chain.name, transfers, status=final, now=wall_now())
        return transfers

    async def book(self, block, *dollars, first=0):
        transfers = await self.arrive(block, *dollars, first=first)
        await self.booking.book_all(transfers, await store.load_recipients(self.pool), self.nodes)

    async def take_back(self):
        async with self.pool.acquire() as conn:
            await store.orphan_transfers(conn, self.chain.name, 0)
        await write_off_above(self.depositor.bank, self.chain.name, 0)


@pytest.fixture
async def deposit_portal(depositor):
    return Booked(depositor, await depositor.portal())


async def test_deposits_reappearing_at_other_log_positions_after_a_reorg_are_restored(deposit_portal):
    depositor = deposit_portal.depositor
    await deposit_portal.book(1, 5, 5)
    await deposit_portal.take_back()
    assert await depositor.balance("losses") == -10_00
    await deposit_portal.book(2, 9, 5)  # dies before the third
    for _ in range(2):
        await deposit_portal.book(2, 9, 5, 5)
    assert sorted(await depositor.credits()) == [5_00, 5_00, 9_00]
    places = [(each.log_index, each.amount) for each in await store.list_deposits(deposit_portal.pool)]
    assert sorted(places) == [(0, 9_00), (1, 5_00), (2, 5_00)]
    assert await depositor.balance("losses") == 0
    await expect_clean(depositor.bank)


async def test_a_deposit_of_an_interrupted_round_mined_again_at_another_log_position_is_credited_once(
    deposit_portal, monkeypatch
):
    depositor, chain = deposit_portal.depositor, deposit_portal.chain
    before, votes = Block(0, "0x0", "0x"), Nodes(chain, deposit_portal.nodes)
    cursor = store.Cursor(chain.name, 0, 0, before.hash, wall_now(), {})
    await deposit_portal.book(1, 5)  # dies before the cursor is saved
    for on_chain, losses in ((Block(1, "0x1", "0x0"), 0), (None, 0), (Block(1, "0xother", "0x0"), -5_00)):

        async def agree(nodes, number, on_chain=on_chain):
            return on_chain

        monkeypatch.setattr(votes, "agree_on_block", agree)
        agreed = Agreement(before, deposit_portal.nodes, head=before)
        assert await write_off_replaced(depositor.bank, votes, agreed, cursor) is (on_chain is not None)
        assert await depositor.balance("losses") == losses
    await deposit_portal.book(2, 5, first=3)
    assert await depositor.credits() == [5_00]
    assert await depositor.balance("losses") == 0
    await expect_clean(depositor.bank)


async def test_a_failed_crypto_deposit_is_reported_and_retried_without_blocking_others(deposit_portal, monkeypatch):
    depositor, bank = deposit_portal.depositor, deposit_portal.depositor.bank
    submit = bank.engine.submit

    async def fail(command):
        if isinstance(command, CreditDeposit) and command.deposit.units == str(3 * DOLLAR):
            raise ValueError("nobody foresaw this")
        return await submit(command)

    with monkeypatch.context() as patched:
        patched.setattr(bank.engine, "submit", fail)
        await deposit_portal.book(1, 3)
        await deposit_portal.book(2, 4, first=1)
    assert await depositor.credits() == [4_00]
    ((*_, problems),) = await cli.chains(bank)
    async with bank.pool.acquire() as conn:
        detail = (await health.failed_work(conn)).detail
    for shown in (str(problems), detail):
        assert "0xaa:0" in shown
        assert "nobody foresaw this" in shown
    await deposit_portal.book(3)
    assert await depositor.credits() == [4_00]  # not yet
    await bank.pool.execute("UPDATE failed_work SET again_at = now()")
    await deposit_portal.book(3)
    assert await depositor.credits() == [4_00, 3_00]
    assert await bank.pool.fetchval("SELECT count(*) FROM failed_work") == 0
