"""Withdrawals and deposits while senders and watchers die at any step: each is booked once."""

import asyncio
import os
from contextlib import aclosing
from random import Random
from urllib.parse import urlsplit

from tests.fixtures.deposits import DOLLAR
from tests.fixtures.withdrawals import PAYEE
from tests.simulation.dying_on_chain import dying_on_chain
from tests.support.whole_bank import expect_clean

from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.nodes import EvmNode
from billfold.sandbox.chain.faucet import PAUSE, TEST_DOLLAR, call_data

KILLS = int(os.environ.get("BILLFOLD_CHAIN_KILLS", "2"))
SEED = int(os.environ.get("BILLFOLD_KILLS_SEED", "7"))
STEPS = (1, 120)
"""Of how many steps a round with something to do is, about."""


async def test_every_withdrawal_is_paid_or_refunded_once_when_the_sender_dies_at_any_step(usdc, bank_dsn):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    draw = Random(SEED)
    await usdc.mine_nothing()
    payee, sent = await usdc.wallet(), []
    senders = dying_on_chain("sender", bank_dsn, usdc.bank.settings.state_dir, usdc.port)
    try:
        for nth in range(KILLS):
            sent.append(await usdc.send(100_00 + nth, payee))
            await asyncio.to_thread(senders.start, draw.randint(*STEPS))
            await asyncio.to_thread(senders.wait)
            await usdc.faucet.rpc.call("anvil_mine", hex(draw.randint(0, 2)))
            if nth == KILLS // 2:  # what is in the pool is reverted, and the newest block comes again without it
                await usdc.faucet.send(TEST_DOLLAR, call_data(PAUSE, 1))
                await usdc.faucet.rpc.call("anvil_mine", "0x1")
                await usdc.faucet.send(TEST_DOLLAR, call_data(PAUSE, 0))
                await usdc.faucet.rpc.call("anvil_reorg", 1, [True])
    finally:
        senders.close()
    for _ in range(3):
        await asyncio.sleep(0.2)  # the claim of the last sender ends
        await usdc.mine(3)
    statuses = [await usdc.status(each) for each in sent]
    assert {status for status, _ in statuses} <= {"COMPLETED", "REJECTED"}, statuses
    paid = sum(100_00 + nth for nth, (status, _) in enumerate(statuses) if status == "COMPLETED")
    assert (await usdc.paid(PAYEE), await usdc.moved()) == (paid, -paid)
    assert statuses.count(("COMPLETED", None)) > KILLS / 3
    counts = "SELECT count(*), count(DISTINCT nonce), max(nonce) + 1 FROM crypto_transaction WHERE nonce IS NOT NULL"
    reserved, nonces, next_nonce = await usdc.bank.pool.fetchrow(counts)
    assert reserved == nonces == next_nonce


async def test_every_deposit_is_credited_once_when_the_watcher_dies_at_any_step(depositor, bank_dsn):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    draw, bank = Random(SEED), depositor.bank
    portals, sent = [await depositor.portal(), await depositor.portal()], []
    port = urlsplit(depositor.urls[0]).port
    watchers = dying_on_chain("watcher", bank_dsn, bank.settings.state_dir, port)
    try:
        for nth in range(KILLS):
            for portal in portals:  # below the minimum, and with fractions of cents
                sent.append(draw.choice((draw.randint(1, DOLLAR), draw.randint(DOLLAR, 900 * DOLLAR))))
                await depositor.send(portal, sent[-1] / DOLLAR)
            await depositor.mine(draw.randint(1, 3))
            if nth in {KILLS // 2, KILLS - 2}:  # what was credited goes, and comes back in another block
                await depositor.reorganize(4, keep=True)
            await asyncio.to_thread(watchers.start, draw.randint(*STEPS))
            await asyncio.to_thread(watchers.wait)
    finally:
        watchers.close()
    await _credited_once(depositor, portals, sent)


async def _credited_once(depositor, portals, sent):
    bank = depositor.bank
    await depositor.mine(3)
    depositor.restart()
    await depositor.watch(3)
    deposits = await store.list_deposits(bank.pool)
    assert sorted(int(each.units) for each in deposits) == sorted(sent)
    assert {each.status for each in deposits} <= {"CREDITED", "CARRIED"}
    credited = sum(await depositor.credits())
    assert (await depositor.balance("rail:crypto"), await depositor.balance("losses")) == (-credited, 0)
    for portal in portals:  # only what makes no minimum is left
        own = [each for each in deposits if str(each.portal_id) == portal["id"]]
        left = sum(int(each.units) - each.amount * DOLLAR // 100 for each in own)
        assert 0 <= left < DOLLAR
    (cursor,) = await store.list_cursors(bank.pool)
    (chain,) = bank.ports[Chains].values()
    async with aclosing(EvmNode(chain, depositor.urls[0])) as node:
        final = await node.finalized()
    assert (cursor.final_number, cursor.final_hash) == final[:2]
    await expect_clean(bank)
