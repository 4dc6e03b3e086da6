"""The verification of the bank: everything recomputed from the log, and the first bad row reported.

Reads in one snapshot, customer by customer and commit by commit, so a pocket with a million rows
takes no more memory than one with ten. Writes nothing and repairs nothing.
"""

import importlib
import pkgutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cache
from types import ModuleType
from typing import NamedTuple

import msgspec
from asyncpg import Record

import billfold
from billfold.audit.checks import check_audit
from billfold.audit.record import record
from billfold.audit.rules import NewEntry
from billfold.bills.rules.market import Market
from billfold.bills.store import load_market
from billfold.data_keys.checks import check_sealed, load_key
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.identity.users.contact_details import check_contact_details
from billfold.ledger.book.book import USD
from billfold.ledger.types import Origin
from billfold.payments.clearing.checks import KEY, SETTLEMENT
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.checks import (
    STATEMENT_TIMEOUT_SECONDS,
    Certainty,
    Check,
    Finding,
    Findings,
    Report,
    count_rows,
    run_checks,
)
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.distribution import fetch_of_all, is_distributed
from billfold.platform.errors import BillfoldError
from billfold.treasury.market_log import check_market
from billfold.verify.accounts import to_int
from billfold.verify.customers import LedgerWalk, ProgressCallback
from billfold.verify.fingerprints import check_fingerprints
from billfold.verify.processes import Process, one_cut, walk_side_by_side

# Trades and the settled part of them, wherever the two differ.
_DIFFERENCES = """
SELECT settles_on, cusip, price_micros, side, t.units AS units, t.cents AS cents,
       s.units AS settled_units, s.cents AS settled_cents, s.closed_on
  FROM (SELECT settles_on, cusip, price_micros, activity AS side,
               sum(units) AS units, sum(notional) AS cents
          FROM trade WHERE activity IN ('BUY', 'SELL', 'MATURITY')
         GROUP BY settles_on, cusip, price_micros, activity) t
  FULL JOIN
       (SELECT settles_on, cusip, price_micros, side, max(closed_on) AS closed_on,
               sum(units) AS units, sum(customers_cents) AS cents
          FROM settlement GROUP BY settles_on, cusip, price_micros, side) s
       USING (settles_on, cusip, price_micros, side)
 WHERE (t.units, t.cents) IS DISTINCT FROM (s.units, s.cents)
 ORDER BY settles_on, cusip, price_micros, side
"""
_SETTLED_TRADES = """
WITH t AS MATERIALIZED (
  SELECT settles_on, cusip, price_micros, activity AS side, count(*) AS trades FROM trade
   WHERE activity IN ('BUY', 'SELL', 'MATURITY') GROUP BY settles_on, cusip, price_micros, activity)
SELECT sum(trades) FROM t WHERE EXISTS (
  SELECT 1 FROM settlement s
   WHERE s.settles_on = t.settles_on AND s.cusip = t.cusip AND s.price_micros = t.price_micros AND s.side = t.side)
"""
_BANK_BUSINESS_DATE = """
SELECT h.business_date FROM ledger_head h JOIN customer c USING (customer_id) WHERE c.role = 'house'
"""
_SIGN_BY_SIDE = {"BUY": -1, "SELL": 1, "MATURITY": 1}


class UnsettledTotals(Counter[tuple[str, str]]):
    """Totals on `street` and `treasury` of trades that are not settled, by asset."""

    def add(self, row: Record) -> None:
        """Count the unsettled part of these trades."""
        units = to_int(row["units"]) - to_int(row["settled_units"])
        cents = to_int(row["cents"]) - to_int(row["settled_cents"])
        kind_of_account = "treasury" if row["side"] == "MATURITY" else "street"
        sign = _SIGN_BY_SIDE[row["side"]]
        self[kind_of_account, row["cusip"]] += sign * units
        self[kind_of_account, USD] -= sign * cents


async def check_bank_totals(conn: Connection, findings: Findings, totals: Counter[tuple[str, str]]) -> None:
    """Compare the bank's positions with the trades that are not settled yet.

    `totals` are the balances of all accounts according to the log, by kind and asset.
    """
    bank_date = await conn.fetchval(_BANK_BUSINESS_DATE, timeout=STATEMENT_TIMEOUT_SECONDS)
    unsettled = UnsettledTotals()
    for row in await fetch_of_all(conn, _DIFFERENCES, timeout=STATEMENT_TIMEOUT_SECONDS):
        key = {name: row[name] for name in KEY}
        unsettled.add(row)
        settled = to_int(row["settled_units"])
        if settled > to_int(row["units"]):
            message = f"{settled} bills were settled, {to_int(row['units'])} were traded"
            findings.add(SETTLEMENT, key, message)
        elif settled == to_int(row["units"]):
            message = f"{row['settled_cents']} cents were settled, {row['cents']} were traded"
            findings.add(SETTLEMENT, key, message)
        elif bank_date is not None and bank_date - row["settles_on"] > SETTLEMENT_LOOKBACK + timedelta(days=1):
            findings.add(SETTLEMENT, key, "its trades were never settled", certainty=Certainty.SUSPECT)
    _check_totals(findings, totals, unsettled)
    await _check_rounding(conn, findings, totals["rounding", USD])


def _check_totals(findings: Findings, totals: Counter[tuple[str, str]], unsettled: UnsettledTotals) -> None:
    for asset in sorted({asset for _, asset in totals} | {asset for _, asset in unsettled}):
        for key, message in _wrong_totals(asset, totals, unsettled):
            findings.add("account", key | {"asset": asset}, message, certainty=Certainty.SUSPECT)


def _wrong_totals(
    asset: str, totals: Counter[tuple[str, str]], unsettled: UnsettledTotals
) -> Iterator[tuple[dict[str, object], str]]:
    for kind in ("street", "treasury"):
        held, explained = totals[kind, asset], unsettled[kind, asset]
        if held != explained:
            yield {"kind": kind}, f"all {kind} accounts hold {held}, unsettled trades explain {explained}"
    if totals["on_us", asset]:
        yield {"kind": "on_us"}, f"all on_us accounts together hold {totals['on_us', asset]}"
    total = sum(balance for (_, other), balance in totals.items() if other == asset)
    if total:
        yield {}, f"all accounts together hold {total}"
    custodied = totals["lot", asset] + unsettled["street", asset] + unsettled["treasury", asset]
    custodied += totals["inventory", asset]
    # What dealers have still to deliver, less what matured and the custodian has still to redeem.
    to_receive = -sum(
        held
        for (kind, other), held in totals.items()
        if other == asset and (kind.startswith("dealer:") or kind == "redemptions")
    )
    has = -totals["custodian", asset]
    if asset != USD and has + to_receive != custodied:
        due = f"the custodian has {has}, dealers deliver {to_receive}"
        yield {"kind": "custodian"}, f"{due}, customers' settled bills and the inventory are {custodied}"


async def _check_rounding(conn: Connection, findings: Findings, rounding: int) -> None:
    """A block and its parts differ by half a cent per trade at most."""
    trades = to_int(await conn.fetchval(_SETTLED_TRADES, timeout=STATEMENT_TIMEOUT_SECONDS))
    if 2 * abs(rounding) > trades:
        message = f"rounding holds {rounding} cents after {trades} trades"
        findings.add("account", {"kind": "rounding", "asset": USD}, message, certainty=Certainty.SUSPECT)


__all__ = ["BankNotInitialized", "Finding", "ProgressCallback", "Report", "verify_bank"]

# Whole tables are compared. The planner cannot estimate the JSON of outcomes, and of all joins only this one takes
# time in proportion to the rows regardless of the estimate.
_HASH_JOINS = "SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off"


class BankNotInitialized(BillfoldError):
    """There is no bank in this database to verify."""

    def __init__(self) -> None:
        super().__init__("unavailable", "The database holds no bank. Run `billfold migrate up`.")


async def verify_bank(
    conn: Connection,
    *,
    progress: ProgressCallback | None = None,
    market: Market | None = None,
    vault: Vault | None = None,
    data_keys: DataKeys | None = None,
    seals: Iterable[str] = (),
    dsn: str | None = None,
) -> Report:
    """Verify the whole bank as it is now; `progress` is called with (commits done, commits in all).

    Runs in its own transaction, or in the caller's if there is one. A caller that passes the `market` vouches for
    its tables; otherwise it is loaded, and they are compared with their log. Without the `vault` the contents of the
    audit log are not verified, nor sealed values without `data_keys` (by default those that the vault wraps); `seals`
    are the lines of its archived seals; `dsn` is the address at which a process for each node of a cluster connects.
    Raises BankNotInitialized.
    """
    async with _one_snapshot(conn, dsn) as processes:
        if await conn.fetchval("SELECT count(*) FROM bank") == 0:
            raise BankNotInitialized
        findings = Findings()
        market = market or await _read_market(conn, findings)
        if market is None:
            return findings.report()
        if processes:
            totals = await walk_side_by_side(processes, conn, findings, progress)
        else:
            totals = await _walk(conn, findings, market, progress=progress)
        await conn.execute(_HASH_JOINS)
        check_modules()  # this also loads the fingerprinted row classes
        await check_fingerprints(conn, findings)
        await check_parts(conn, findings)
        await check_bank_totals(conn, findings, totals)
        findings.next_section()
        await check_with_keys(conn, findings, data_keys or _keys_of(vault))
        await check_contact_details(conn, findings, vault)
        await check_audit(conn, findings, vault, copy=seals)
        return findings.report()


@asynccontextmanager
async def _one_snapshot(conn: Connection, dsn: str | None) -> AsyncIterator[list[Process]]:
    """Begin a transaction, unless the caller has; yield the processes of a cluster that see the same."""
    if conn.is_in_transaction():
        yield []
    else:
        async with one_cut(conn, dsn, distributed=await is_distributed(conn)) as processes:
            yield processes


async def _walk(
    conn: Connection, findings: Findings, market: Market, *, progress: ProgressCallback | None
) -> Counter[tuple[str, str]]:
    """Check every customer. Returns the totals of all accounts."""
    # Start returning rows in the order of the keys at once, not after everything has been sorted.
    await conn.execute("SET LOCAL enable_seqscan = off")
    walk = LedgerWalk(conn, findings, market, progress=progress)
    await walk.check_customers()
    await conn.execute("SET LOCAL enable_seqscan = on")
    return walk.totals


async def _read_market(conn: Connection, findings: Findings) -> Market | None:
    """Return the market after comparing its tables with their log; None if it is too damaged for comparisons."""
    await check_market(conn, findings)
    findings.next_section()
    try:
        return await load_market(conn)
    except ValueError:
        if findings.report().is_clean:
            raise
        return None


def _keys_of(vault: Vault | None) -> DataKeys | None:
    return None if vault is None else DataKeys(FileMasterKey(vault))


async def check_parts(conn: Connection, findings: Findings) -> None:
    """Run the checks that the parts declare in their `checks` modules, in the order of the modules' names."""
    modules = check_modules()
    checks: list[Check] = [check for module in modules for check in getattr(module, "CHECKS", ())]
    await run_checks(conn, findings, checks)
    for module in modules:
        if hasattr(module, "check_rows"):
            await module.check_rows(conn, findings)
    await count_rows(conn, findings, [table for module in modules for table in getattr(module, "COUNTED", ())])


async def check_with_keys(conn: Connection, findings: Findings, keys: DataKeys | None) -> None:
    """Check sealed values; the parts open values sealed with the bank's own key. Without keys nothing is opened."""
    await check_sealed(conn, findings, keys)
    bank_id = await conn.fetchval("SELECT bank_customer_id FROM bank")
    ring = None if keys is None else await load_key(conn, findings, keys, bank_id)
    bank_key = None if ring is None else ring.get(bank_id)
    if bank_key is not None:
        for module in check_modules():
            if hasattr(module, "check_opened"):
                await module.check_opened(conn, findings, bank_key)
        findings.next_section()


@cache
def check_modules() -> list[ModuleType]:
    """Return the `checks` modules of all parts."""
    names = [each.name for each in pkgutil.walk_packages(billfold.__path__, "billfold.")]
    return [importlib.import_module(name) for name in sorted(names) if name.endswith(".checks")]


_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
_MAY_RECORD = "SELECT has_table_privilege('audit_entry', 'INSERT')"
_BANK = "SELECT bank_customer_id FROM bank"
_LAST = """
SELECT recorded_at, details::text FROM audit_entry WHERE action = 'ledger.verified' ORDER BY recorded_at DESC LIMIT 1
"""


class Verification(NamedTuple):
    """The time of a verification, the number of rows, and the first bad one; "" if all were intact."""

    at: datetime
    rows: int
    finding: str


async def record_verification(conn: Connection, vault: Vault, report: Report, *, operator: str | None) -> bool:
    """Store the result in the bank's own audit log, unless the database is a read-only copy.

    False if the session is read-only.
    """
    customer_id = await conn.fetchval(_BANK)
    if customer_id is None or await conn.fetchval(_IS_READ_ONLY):
        return True
    if not await conn.fetchval(_MAY_RECORD):
        return False
    entry = NewEntry(
        customer_id=customer_id,
        origin=Origin(kind="OPERATOR", name=operator) if operator else Origin.operator(),
        action="ledger.verified",
        resource_type="ledger",
        outcome="SUCCESS" if report.first is None else "FAILURE",
        details={"rows": sum(report.checked.values()), "finding": str(report.first or "")},
    )
    async with conn.transaction():
        await record(conn, vault, entry, now=wall_now())
    return True


async def find_last_verification(conn: Db) -> Verification | None:
    """Return the last result, or None before the first."""
    row = await conn.fetchrow(_LAST)
    if row is None:
        return None
    details = msgspec.json.decode(row["details"])
    return Verification(row["recorded_at"], details["rows"], details["finding"])
