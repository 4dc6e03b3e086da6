"""The proof of the bank: everything recomputed from the log, and the first bad row named.

Reads in one snapshot, customer by customer and commit by commit, so a pocket with a million rows
takes no more memory than one with ten. Writes nothing and repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from billfold.domain.business_days import load_calendars
from billfold.domain.tbills.reads import load_market
from billfold.engine.verify.ach import check_ach
from billfold.engine.verify.approvals import check_approvals
from billfold.engine.verify.audit import check_audit
from billfold.engine.verify.customers import Progress, Walk
from billfold.engine.verify.held import check_held
from billfold.engine.verify.house import check_house
from billfold.engine.verify.nouns import check_nouns
from billfold.engine.verify.proofs import check_proofs
from billfold.engine.verify.rails import check_rails
from billfold.engine.verify.report import Finding, Findings, Report
from billfold.engine.verify.told import check_told
from billfold.kit.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.domain.tbills import Market
    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection

__all__ = ["Finding", "NoBank", "Progress", "Report", "verify_bank"]

_SEED = "SELECT seed FROM bank"


class NoBank(BillfoldError):
    """There is no bank in this database to prove."""

    def __init__(self) -> None:
        super().__init__("unavailable", "No bank was founded in this database.")


async def verify_bank(
    conn: Connection,
    *,
    progress: Progress | None = None,
    market: Market | None = None,
    vault: Vault | None = None,
    seals: Iterable[str] = (),
) -> Report:
    """Prove the whole bank as it is now; `progress` is told (commits done, commits in all).

    Runs in a transaction of its own, or in the caller's if there is one. `market` is loaded when
    it is not given. Without the `vault` the contents of the audit log are not proven; `seals` are
    the lines of its copied seals. Raises NoBank.
    """
    if conn.is_in_transaction():
        return await _verify(conn, progress, market, vault, seals)
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        return await _verify(conn, progress, market, vault, seals)


async def _verify(
    conn: Connection,
    progress: Progress | None,
    market: Market | None,
    vault: Vault | None,
    seals: Iterable[str],
) -> Report:
    seed = await conn.fetchval(_SEED)
    if seed is None:
        raise NoBank
    found = Findings()
    if market is None:
        market = await load_market(conn, await load_calendars(conn))
    # Rows come in the order of the keys at once, not after everything has been sorted.
    await conn.execute("SET LOCAL enable_seqscan = off")
    walk = Walk(conn, found, market, progress)
    await walk.go()
    await conn.execute("SET LOCAL enable_seqscan = on")
    await check_house(conn, found, walk)
    found.turn_page()
    await check_proofs(conn, found)
    await check_nouns(conn, found, seed)
    await check_ach(conn, found)
    await check_rails(conn, found)
    await check_held(conn, found, walk)
    await check_approvals(conn, found)
    await check_told(conn, found)
    found.turn_page()
    await check_audit(conn, found, vault, seals)
    return found.report()
