"""What the house settled, block by block: its rows against its journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from billfold.ledger.book.book import USD
from billfold.platform.money import cents_for
from billfold.verify.accounts import ReplayedAccounts
from billfold.verify.report import DERIVED, MISSING, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from asyncpg import Record
    from asyncpg.cursor import Cursor

    from billfold.platform.database.pool import Connection
    from billfold.verify.replay import Journal

CHECK = "settlement"
SETTLEMENT = "settlement"
SETTLEMENT_KIND = "settlement"
"""The kind of the house's journals that settle with the street and the Treasury."""
KEY = ("settles_on", "cusip", "price_micros", "side", "closed_on")

_BLOCKS = """
SELECT settles_on, cusip, price_micros, side, closed_on, units, customers_cents, block_cents
  FROM settlement ORDER BY closed_on, settles_on, cusip COLLATE "C", price_micros, side COLLATE "C"
"""
_BATCH_SIZE = 500

SettlementDates = tuple[date, date]
"""Closed on, settles on."""
ExpectedPosting = tuple[str, str, str, int]
"""One leg: the kinds it goes from and to, the asset, the amount."""


class SettlementReplay:
    """The rows of `settlement` in the order in which the house posted them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._cursor: Cursor[Record] | None = None
        self._rows: list[Record] = []
        self.trades = 0
        self.rounding = 0

    async def open(self, conn: Connection) -> None:
        """Begin to read."""
        self._cursor = await conn.cursor(_BLOCKS, timeout=STATEMENT_TIMEOUT_SECONDS)

    async def compare(self, journal: Journal, accounts: ReplayedAccounts) -> None:
        """The legs of this journal are exactly those of its blocks."""
        dates = (journal.row["business_date"], journal.row["settles_on"])
        postings = list(_actual_postings(journal, accounts))
        at = 0
        while at < len(postings):
            block = await self._block_of(dates)
            if block is None:
                self._report_missing(dates, postings[at:])
                return
            expected = list(_expected_postings(block))
            if postings[at : at + len(expected)] != expected:
                if expected in (postings[n : n + len(expected)] for n in range(at, len(postings))):
                    self._report_missing(dates, postings[at:])
                else:
                    self._report(block, f"the house posted {postings[at : at + len(expected)]}")
                await self._skip(dates)
                return
            self._rows.pop()
            self.rounding += block["customers_cents"] - block["block_cents"]
            at += len(expected)

    async def close(self) -> None:
        """Nothing is left that no journal settled."""
        block = await self._peek()
        if block is not None:
            self._report(block, "no journal of the house settles it")

    async def _block_of(self, dates: SettlementDates) -> Record | None:
        """The next row of this day; rows of days before it were settled by no journal."""
        while (block := await self._peek()) is not None:
            at = (block["closed_on"], block["settles_on"])
            if at >= dates:
                return block if at == dates else None
            self._report(block, "no journal of the house settles it")
            self._rows.pop()
        return None

    async def _skip(self, dates: SettlementDates) -> None:
        while (block := await self._peek()) is not None:
            if (block["closed_on"], block["settles_on"]) > dates:
                return
            self._rows.pop()

    def _report_missing(self, dates: SettlementDates, postings: Iterable[ExpectedPosting]) -> None:
        """Legs settle a block that has no row; its price is in no leg."""
        bills = next((step for step in postings if step[2] != USD), None)
        if bills is None:
            return
        debit, _, cusip, _ = bills
        side = "BUY" if debit == "custodian" else "SELL" if debit == "street" else "MATURITY"
        key = {"settles_on": dates[1], "cusip": cusip, "side": side, "closed_on": dates[0]}
        self._findings.add(CHECK, SETTLEMENT, key, "the row is missing", MISSING)

    async def _peek(self) -> Record | None:
        if not self._rows:
            assert self._cursor is not None
            self._rows = await self._cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS)
            self._rows.reverse()
            self._findings.checked[SETTLEMENT] += len(self._rows)
        return self._rows[-1] if self._rows else None

    def _report(self, block: Record, message: str) -> None:
        key = {name: block[name] for name in KEY}
        self._findings.add(CHECK, SETTLEMENT, key, message, DERIVED)


def _actual_postings(journal: Journal, accounts: ReplayedAccounts) -> Iterator[ExpectedPosting]:
    for leg in journal.legs:
        debit, credit = accounts.by_no.get(leg["debit"]), accounts.by_no.get(leg["credit"])
        if debit is not None and credit is not None:
            yield debit.kind, credit.kind, leg["asset"], leg["amount"]


def _expected_postings(block: Record) -> Iterator[ExpectedPosting]:
    """The legs by which the house settles a block; nothing is posted for nothing."""
    other_account = "treasury" if block["side"] == "MATURITY" else "street"
    cents = cents_for(block["units"], block["price_micros"])
    buys = block["side"] == "BUY"
    rounded = block["customers_cents"] - cents
    for kind, amount in (("reserve", block["block_cents"]), ("rounding", rounded)):
        if amount:
            is_outflow = buys == (amount > 0)
            debit, credit = (other_account, kind) if is_outflow else (kind, other_account)
            yield debit, credit, USD, abs(amount)
    debit, credit = ("custodian", other_account) if buys else (other_account, "custodian")
    yield debit, credit, block["cusip"], block["units"]
