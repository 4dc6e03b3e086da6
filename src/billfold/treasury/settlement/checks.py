"""What the house settled, block by block: its rows against its journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from billfold.ledger.book.book import USD
from billfold.ledger.checks.accounts import Accounts
from billfold.platform.money import cents_for
from billfold.verify.report import DERIVED, MISSING, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from asyncpg import Record
    from asyncpg.cursor import Cursor

    from billfold.ledger.checks.replay import Journal
    from billfold.platform.database.pool import Connection

CHECK = "settlement"
SETTLEMENT = "settlement"
SETTLES = "settlement"
"""The kind of the house's journals that settle with the street and the Treasury."""
KEY = ("settles_on", "cusip", "price_micros", "side", "closed_on")

_BLOCKS = """
SELECT settles_on, cusip, price_micros, side, closed_on, units, customers_cents, block_cents
  FROM settlement ORDER BY closed_on, settles_on, cusip COLLATE "C", price_micros, side COLLATE "C"
"""
_AT_ONCE = 500

When = tuple[date, date]
"""Closed on, settles on."""
Step = tuple[str, str, str, int]
"""One leg: the kinds it goes from and to, the asset, the amount."""


class Settling:
    """The rows of `settlement` in the order in which the house posted them."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._cursor: Cursor[Record] | None = None
        self._rows: list[Record] = []
        self.trades = 0
        self.rounding = 0

    async def open(self, conn: Connection) -> None:
        """Begin to read."""
        self._cursor = await conn.cursor(_BLOCKS, timeout=PATIENCE_SECONDS)

    async def compare(self, journal: Journal, accounts: Accounts) -> None:
        """The legs of this journal are exactly those of its blocks."""
        when = (journal.row["business_date"], journal.row["settles_on"])
        steps = list(_steps_of(journal, accounts))
        at = 0
        while at < len(steps):
            block = await self._block_of(when)
            if block is None:
                self._lacks(when, steps[at:])
                return
            expected = list(_steps_for(block))
            if steps[at : at + len(expected)] != expected:
                if expected in (steps[n : n + len(expected)] for n in range(at, len(steps))):
                    self._lacks(when, steps[at:])
                else:
                    self._blame(block, f"the house posted {steps[at : at + len(expected)]}")
                await self._pass(when)
                return
            self._rows.pop()
            self.rounding += block["customers_cents"] - block["block_cents"]
            at += len(expected)

    async def close(self) -> None:
        """Nothing is left that no journal settled."""
        block = await self._peek()
        if block is not None:
            self._blame(block, "no journal of the house settles it")

    async def _block_of(self, when: When) -> Record | None:
        """The next row of this day; rows of days before it were settled by no journal."""
        while (block := await self._peek()) is not None:
            at = (block["closed_on"], block["settles_on"])
            if at >= when:
                return block if at == when else None
            self._blame(block, "no journal of the house settles it")
            self._rows.pop()
        return None

    async def _pass(self, when: When) -> None:
        while (block := await self._peek()) is not None:
            if (block["closed_on"], block["settles_on"]) > when:
                return
            self._rows.pop()

    def _lacks(self, when: When, steps: Iterable[Step]) -> None:
        """Legs settle a block that has no row; its price is in no leg."""
        bills = next((step for step in steps if step[2] != USD), None)
        if bills is None:
            return
        debit, _, cusip, _ = bills
        side = "BUY" if debit == "custodian" else "SELL" if debit == "street" else "MATURITY"
        key = {"settles_on": when[1], "cusip": cusip, "side": side, "closed_on": when[0]}
        self._found.add(CHECK, SETTLEMENT, key, "the row is missing", MISSING)

    async def _peek(self) -> Record | None:
        if not self._rows:
            assert self._cursor is not None
            self._rows = await self._cursor.fetch(_AT_ONCE, timeout=PATIENCE_SECONDS)
            self._rows.reverse()
            self._found.checked[SETTLEMENT] += len(self._rows)
        return self._rows[-1] if self._rows else None

    def _blame(self, block: Record, wrong: str) -> None:
        key = {name: block[name] for name in KEY}
        self._found.add(CHECK, SETTLEMENT, key, wrong, DERIVED)


def _steps_of(journal: Journal, accounts: Accounts) -> Iterator[Step]:
    for leg in journal.legs:
        debit, credit = accounts.by_no.get(leg["debit"]), accounts.by_no.get(leg["credit"])
        if debit is not None and credit is not None:
            yield debit.kind, credit.kind, leg["asset"], leg["amount"]


def _steps_for(block: Record) -> Iterator[Step]:
    """The legs by which the house settles a block; nothing is posted for nothing."""
    there = "treasury" if block["side"] == "MATURITY" else "street"
    cents = cents_for(block["units"], block["price_micros"])
    buys = block["side"] == "BUY"
    rounded = block["customers_cents"] - cents
    for kind, amount in (("reserve", block["block_cents"]), ("rounding", rounded)):
        if amount:
            away = buys == (amount > 0)
            debit, credit = (there, kind) if away else (kind, there)
            yield debit, credit, USD, abs(amount)
    debit, credit = ("custodian", there) if buys else (there, "custodian")
    yield debit, credit, block["cusip"], block["units"]
