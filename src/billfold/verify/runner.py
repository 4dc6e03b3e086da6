"""The proof of the bank: everything recomputed from the log, and the first bad row named.

Reads in one snapshot, customer by customer and commit by commit, so a pocket with a million rows
takes no more memory than one with ten. Writes nothing and repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from billfold.approvals.checks import check_approvals
from billfold.audit.checks import check_audit
from billfold.bills.business_days.store import load_calendars
from billfold.bills.store import load_market
from billfold.events.checks import check_event_sequences
from billfold.payments.ach.checks import check_ach
from billfold.payments.files.checks import check_rail_files
from billfold.payments.suspense.checks import check_suspense
from billfold.platform.errors import BillfoldError
from billfold.verify.bank_totals import check_bank_totals
from billfold.verify.customers import LedgerWalk, ProgressCallback
from billfold.verify.fingerprints import check_fingerprints
from billfold.verify.report import Finding, Findings, Report
from billfold.verify.tracked_tables import check_tracked_tables

if TYPE_CHECKING:
    from billfold.bills.rules.market import Market
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection

__all__ = ["BankNotInitialized", "Finding", "ProgressCallback", "Report", "verify_bank"]

_SEED = "SELECT seed FROM bank"


class BankNotInitialized(BillfoldError):
    """There is no bank in this database to prove."""

    def __init__(self) -> None:
        super().__init__("unavailable", "No bank was founded in this database.")


async def verify_bank(
    conn: Connection,
    *,
    progress: ProgressCallback | None = None,
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
    progress: ProgressCallback | None,
    market: Market | None,
    vault: Vault | None,
    seals: Iterable[str],
) -> Report:
    seed = await conn.fetchval(_SEED)
    if seed is None:
        raise BankNotInitialized
    findings = Findings()
    if market is None:
        market = await load_market(conn, await load_calendars(conn))
    # Rows come in the order of the keys at once, not after everything has been sorted.
    await conn.execute("SET LOCAL enable_seqscan = off")
    ledger_walk = LedgerWalk(conn, findings, market, progress)
    await ledger_walk.go()
    await conn.execute("SET LOCAL enable_seqscan = on")
    await check_bank_totals(conn, findings, ledger_walk)
    findings.next_section()
    await check_fingerprints(conn, findings)
    await check_tracked_tables(conn, findings, seed)
    await check_ach(conn, findings)
    await check_rail_files(conn, findings)
    await check_suspense(conn, findings, ledger_walk)
    await check_approvals(conn, findings)
    await check_event_sequences(conn, findings)
    findings.next_section()
    await check_audit(conn, findings, vault, seals)
    return findings.report()
