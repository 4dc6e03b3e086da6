"""Senders of withdrawals and watchers of chains that kill themselves after a number of steps.

A step is a call of the database, a node or the signer.
"""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from tests.fixtures.chain import chain_of
from tests.simulation.dying_workers import die_after, warm_up
from tests.simulation.forks import Workers, fork_workers
from tests.support.whole_bank import open_bank

from billfold.payments.crypto import nodes
from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.deposits.watcher import ChainWatchers
from billfold.payments.crypto.withdrawals.worker import ChainSender
from billfold.platform.database import background_work
from billfold.platform.telemetry.logs import configure_logging
from billfold.sandbox import line_process
from billfold.sandbox.chain.launch import local_node_urls


def dying_on_chain(role, bank_dsn, state_dir, port):
    """Return workers of a bank whose signer is in this folder, on the chain at this port; role: sender or watcher."""
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / f"{role}.log").open("ab") as log:
        return Workers(__name__, bank_dsn, role, state_dir, port, log=log)


async def work(steps):
    """Run rounds of work until the process dies."""
    dsn, role, state_dir, port = sys.argv[1:]
    chain = chain_of(*local_node_urls(int(port)))
    bank = await open_bank(dsn, state_dir=Path(state_dir))
    bank.ports[Chains] = Chains({chain.name: chain})
    background_work.LASTS = timedelta(seconds=0.1)  # one that died is followed by the next at once
    step = die_after(steps)
    for outside in (nodes.JsonRpcClient, line_process.LineProcess):
        name = "call" if outside is nodes.JsonRpcClient else "request"
        setattr(outside, name, _then(step, getattr(outside, name)))
    sender, watchers = ChainSender(chain), ChainWatchers(poll_seconds=0)
    while True:
        await (sender.work(bank) if role == "sender" else watchers(bank))
        await asyncio.sleep(0.01)


def _then(step, call):
    async def called(*told, **named):
        answer = await call(*told, **named)
        step()
        return answer

    return called


if __name__ == "__main__":
    configure_logging("ERROR")
    asyncio.run(warm_up(sys.argv[1]))
    fork_workers(work)
