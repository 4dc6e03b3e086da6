"""Withdrawals while their sender dies at any step: each is paid once, or comes back once."""

import asyncio
import os
from random import Random

from tests.fixtures.withdrawals import PAYEE
from tests.simulation.dying_senders import dying_senders

from billfold.sandbox.chain.accounts import TEST_DOLLAR
from billfold.sandbox.chain.faucet import PAUSE, call_data

KILLS = int(os.environ.get("BILLFOLD_CHAIN_KILLS", "8"))
SEED = int(os.environ.get("BILLFOLD_KILLS_SEED", "7"))
STEPS = (1, 120)
"""Of how many steps a round with something to do is, about."""


async def test_every_withdrawal_is_paid_or_returned_once_when_the_sender_dies_at_any_step(usdc, bank_dsn):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    draw = Random(SEED)
    await usdc.mine_nothing()
    payee, sent = await usdc.wallet(), []
    senders = dying_senders(bank_dsn, usdc.bank.settings.state_dir, usdc.port)
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
