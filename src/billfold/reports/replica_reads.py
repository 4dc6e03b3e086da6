"""Reads a document from a replica that shows everything it needs, or else from the primary."""

from collections.abc import Awaitable, Callable
from copy import copy
from typing import TypeVar

import structlog

from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)
Result = TypeVar("Result")


async def read_current(bank: Bank, work: Callable[[Bank], Awaitable[Result]]) -> Result:
    """Return what `work` reads: everything that is committed now. `work` is called again on the primary if it fails.

    It submits no commands: the replica would not show what they write.
    """
    if bank.replica is not None and await bank.replica.catch_up():
        on_replica = copy(bank)
        on_replica.pool = bank.replica.pool
        on_replica.ports = bank.ports.copy()
        on_replica.ports[DataKeys] = bank.ports[DataKeys].read_by(bank.pool)
        try:
            return await work(on_replica)
        except Exception as error:  # noqa: BLE001 - the primary tells whether the replica caused it
            log.warning("replica_read_failed", error=error_summary(error))
    return await work(bank)
