"""The bank as a whole: the totals of all customers' books, compared with unsettled trades."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from asyncpg import Record

from billfold.ledger.book.book import USD
from billfold.payments.clearing.checks import KEY, SETTLEMENT
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.verify.accounts import to_int

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
SELECT count(*) FROM trade t WHERE activity IN ('BUY', 'SELL', 'MATURITY') AND EXISTS (
  SELECT 1 FROM settlement s
   WHERE s.settles_on = t.settles_on AND s.cusip = t.cusip
     AND s.price_micros = t.price_micros AND s.side = t.activity)
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
    for row in await conn.fetch(_DIFFERENCES, timeout=STATEMENT_TIMEOUT_SECONDS):
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
    has = -totals["custodian", asset]
    if asset != USD and has != custodied:
        yield {"kind": "custodian"}, f"the custodian has {has}, customers' settled bills are {custodied}"


async def _check_rounding(conn: Connection, findings: Findings, rounding: int) -> None:
    """A block and its parts differ by half a cent per trade at most."""
    trades = to_int(await conn.fetchval(_SETTLED_TRADES, timeout=STATEMENT_TIMEOUT_SECONDS))
    if 2 * abs(rounding) > trades:
        message = f"rounding holds {rounding} cents after {trades} trades"
        findings.add("account", {"kind": "rounding", "asset": USD}, message, certainty=Certainty.SUSPECT)
