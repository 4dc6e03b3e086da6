"""The log of one customer played again, journal by journal, from nothing.

Nothing is believed but legs and trades: balances, both bases of every lot and the counters of
every pocket come out of them, and are then compared with the rows that carry them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.bills.rules.lots import part_of_basis
from billfold.ledger.checks.accounts import IN_HAND, OUTSIDE, PURSES, Accounts, Folded
from billfold.treasury.trades.checks import (
    IN_KIND,
    Bills,
    MovedBills,
    add,
    bills_of,
    count_money,
    difference,
    into_of,
    offered_by,
    out_of,
)
from billfold.verify.report import DERIVED, MISSING, Findings
from billfold.verify.streams import ACTIVITIES, JOURNALS, LEGS, TRADES

if TYPE_CHECKING:
    from asyncpg import Record

_POSTED, _RESERVED = 0, 1
_ACTIVITY_OF = {
    "rail:ach": {"ACH"}, "rail:wire": {"WIRE"}, "rail:card": {"CARD"}, "on_us": {"ON_US"},
    "fees": {"FEE", "GENERIC"}, "promotions": {"CREDIT", "GENERIC"}, "owed": {"GENERIC"},
}  # fmt: skip


class Counters:
    """What a pocket's counters must say."""

    __slots__ = ("fees", "inflow", "outflow", "realised", "unsettled_until")

    def __init__(self) -> None:
        self.inflow = self.outflow = self.fees = self.realised = 0
        self.unsettled_until: date | None = None


class Journal(NamedTuple):
    """A journal with everything that hangs on its number."""

    row: Record
    legs: Sequence[Record]
    trades: Sequence[Record]
    activities: Sequence[Record]
    intact: bool


class Replay:
    """Plays journals in order; `accounts` and `counters` are the state reached."""

    def __init__(self, found: Findings, accounts: Accounts) -> None:
        self._found = found
        self.accounts = accounts
        self.counters: defaultdict[UUID, Counters] = defaultdict(Counters)
        self.touched: set[UUID] = set()
        self.last: Record | None = None

    def play(self, journal: Journal) -> None:
        """Fold one journal and check that it holds together."""
        self._number_legs(journal)
        self.touched = set()
        self.last = journal.row
        moved: dict[Bills, MovedBills] = {}
        money: dict[tuple[UUID | None, str], int] = defaultdict(int)
        left = offered_by(journal.trades)
        told = {row["leg_no"]: row for row in journal.activities}
        used: list[Folded] = []
        for leg in journal.legs:
            debit = self.accounts.named(leg["debit"], leg["asset"])
            credit = self.accounts.named(leg["credit"], leg["asset"])
            if debit is None or credit is None:
                continue
            self._fold(leg, debit, credit)
            used += (debit, credit)
            if debit.kind == "lot" or credit.kind == "lot":
                self._bills(journal, leg, debit, credit, moved, left)
            else:
                count_money(leg, debit, credit, money)
                self._told(journal, leg, debit, credit, told)
        self._rest(journal, used)
        self._compare_trades(journal, moved, money)
        for row in told.values():
            self._blame_activity(journal, row, "no leg of its journal says so")

    # -- legs ------------------------------------------------------------------------

    def _number_legs(self, journal: Journal) -> None:
        key = JOURNALS.key_of(journal.row)
        if not journal.legs:
            wrong = "the journal has no legs"
            self._found.add("numbers", "leg", {**key, "leg_no": 1}, wrong, MISSING)
        for expected, leg in enumerate(journal.legs, start=1):
            if leg["leg_no"] != expected:
                twice = leg["leg_no"] < expected
                wrong = "the leg is there twice" if twice else "the leg is missing"
                self._found.add("numbers", "leg", {**key, "leg_no": expected}, wrong, MISSING)
                return

    def _fold(self, leg: Record, debit: Folded, credit: Folded) -> None:
        amount = leg["amount"]
        if leg["phase"] == _POSTED:
            debit.debits += amount
            credit.credits += amount
        else:
            debit.reserved += amount if leg["phase"] == _RESERVED else -amount
        for account in (debit, credit):
            if account.pocket_id is not None:
                self.touched.add(account.pocket_id)

    def _rest(self, journal: Journal, used: Iterable[Folded]) -> None:
        """After a journal every bank account is at zero and nobody holds less than nothing."""
        for account in used:
            if account.kind == "bank" and account.balance:
                wrong = f"bank account {account.no} holds {account.balance} cents after it"
                self._found.add("bank zero", "journal", JOURNALS.key_of(journal.row), wrong)
            if account.kind in IN_HAND and account.balance < account.reserved:
                wrong = f"account {account.no} holds {account.balance} after it"
                self._found.add("overdraft", "journal", JOURNALS.key_of(journal.row), wrong)

    # -- bills -----------------------------------------------------------------------

    def _bills(
        self,
        journal: Journal,
        leg: Record,
        debit: Folded,
        credit: Folded,
        moved: dict[Bills, MovedBills],
        left: dict[Bills, list[int]],
    ) -> None:
        """Bills went into a lot or out of one: move their bases as the bank does."""
        units = leg["amount"]
        tax = 0
        if debit.kind == "lot":
            tax = self._give(units, debit, credit, moved)
        if credit.kind == "lot":
            self._take(journal, units, debit, credit, left, moved, tax)

    def _give(
        self, units: int, debit: Folded, credit: Folded, moved: dict[Bills, MovedBills]
    ) -> int:
        """Bills leave a lot with their parts of both bases; return that of the tax basis."""
        tax = earnings = 0
        held = debit.balance + units
        if 0 < units <= held:
            tax = part_of_basis(debit.tax_basis, units, held)
            earnings = part_of_basis(debit.earnings_basis, units, held)
        debit.tax_basis -= tax
        debit.earnings_basis -= earnings
        debit.redeemed = debit.redeemed or credit.kind == "treasury"
        self.accounts.holds(debit)
        add(moved, out_of(debit, credit), debit.no, units, tax, earnings)
        return tax

    def _take(
        self,
        journal: Journal,
        units: int,
        debit: Folded,
        credit: Folded,
        left: dict[Bills, list[int]],
        moved: dict[Bills, MovedBills],
        tax: int,
    ) -> None:
        """Bills enter a lot: at what was paid, at what they are worth, or at what they cost."""
        into = into_of(debit, credit)
        offered = left.get(into, [0, 0, 0])
        earnings = cost = 0
        if min(units, offered[0]) > 0:
            earnings, cost = (
                part_of_basis(b, min(units, offered[0]), offered[0]) for b in offered[1:]
            )
            offered[:] = offered[0] - units, offered[1] - earnings, offered[2] - cost
        if debit.kind == "custodian":
            tax = cost
        elif debit.kind != "lot":
            tax = earnings
        self._date(journal, debit, credit)
        credit.tax_basis += tax
        credit.earnings_basis += earnings
        self.accounts.holds(credit)
        add(moved, into, credit.no, units, tax, earnings)

    def _date(self, journal: Journal, debit: Folded, lot: Folded) -> None:
        """A lot has the day its bills were bought on; whoever kept them before says which."""
        today = journal.row["business_date"]
        if debit.kind == "lot" and lot.acquired_on != debit.acquired_on:
            self._blame_lot(lot, "its bills came from a lot of another day")
        elif debit.kind == "custodian" and lot.acquired_on is not None and lot.acquired_on > today:
            self._blame_lot(lot, "its bills were bought after they came")
        elif debit.kind not in {"lot", "custodian"} and lot.acquired_on != today:
            self._blame_lot(lot, "its bills were bought on another day")

    def _blame_lot(self, lot: Folded, wrong: str) -> None:
        self._found.add("lots", "account", self.accounts.key(lot.no), wrong)

    def _compare_trades(
        self,
        journal: Journal,
        moved: dict[Bills, MovedBills],
        money: dict[tuple[UUID | None, str], int],
    ) -> None:
        """Every trade is in the legs, and what is in the legs is a trade."""
        paid: dict[tuple[UUID | None, str], int] = defaultdict(int)
        for row in journal.trades:
            bills = bills_of(row)
            legs = moved.pop(bills, None)
            if legs is None:
                self._blame_trade(journal, row, "no leg of its journal moves these bills")
                continue
            wrong = difference(row, legs)
            if wrong:
                self._blame_trade(journal, row, wrong)
            self._count(row)
            if row["activity"] not in IN_KIND:
                paid[row["pocket_id"], row["activity"]] += row["notional"]
        for bills, legs in moved.items():
            self._untold(journal, bills, legs)
        for side in paid.keys() | money.keys():
            if paid[side] != money[side]:
                self._blame_money(journal, side, paid[side], money[side])

    def _count(self, row: Record) -> None:
        counters = self.counters[row["pocket_id"]]
        notional, settles_on = row["notional"], row["settles_on"]
        if counters.unsettled_until is None or settles_on > counters.unsettled_until:
            counters.unsettled_until = settles_on
        if not row["incoming"]:
            counters.realised += notional - row["earnings_basis"]
        if row["activity"] in IN_KIND:
            if row["incoming"]:
                counters.inflow += notional
            else:
                counters.outflow += notional

    def _untold(self, journal: Journal, bills: Bills, legs: MovedBills) -> None:
        """Legs moved bills and no trade says so: a row is gone, or the account is another's."""
        wrong = f"{legs.units} bills of {bills.cusip} moved in it, and no trade says so"
        if journal.intact:
            self._found.add("lots", "account", self.accounts.key(legs.account), wrong)
            return
        numbers = {row["trade_no"] for row in journal.trades}
        number = next(n for n in range(1, len(numbers) + 2) if n not in numbers)
        key = {
            "customer_id": self.accounts.customer_id, "pocket_id": bills.pocket_id,
            "journal_no": journal.row["journal_no"], "trade_no": number,
        }  # fmt: skip
        self._found.add("trades", "trade", key, "the trade is missing", MISSING)

    def _blame_trade(self, journal: Journal, row: Record, wrong: str) -> None:
        self._found.add("trades", "trade", TRADES.key_of(row), wrong, DERIVED + journal.intact)

    def _blame_money(
        self, journal: Journal, side: tuple[UUID | None, str], told: int, moved: int
    ) -> None:
        """The cash of a trade: with the rows as committed it is an account that is another's."""
        wrong = f"{side[1]} moved {moved} cents in journal, its trades say {told}"
        if side[0] is None or not journal.intact:
            self._found.add("trades", "journal", JOURNALS.key_of(journal.row), wrong, DERIVED + 1)
            return
        for leg in journal.legs:
            for number in (leg["debit"], leg["credit"]):
                account = self.accounts.by_no.get(number)
                if account is not None and account.pocket_id is None and leg["asset"] == "USD":
                    self._found.add("trades", "account", self.accounts.key(account.no), wrong)
                    return

    # -- what the customer is told --------------------------------------------------------

    def _told(
        self, journal: Journal, leg: Record, debit: Folded, credit: Folded, told: dict[int, Record]
    ) -> None:
        """Money between a pocket and the outside has exactly one activity."""
        if debit.kind in PURSES and credit.kind in OUTSIDE:
            purse, outside, direction = debit, credit, "DEBIT"
        elif credit.kind in PURSES and debit.kind in OUTSIDE:
            purse, outside, direction = credit, debit, "CREDIT"
        else:
            return
        row = told.pop(leg["leg_no"], None)
        if row is None:
            self._silent(journal, leg, purse, outside)
            return
        expected = (
            purse.pocket_id, direction, leg["amount"], purse.kind == "bank", outside.kind,
            journal.row["booked_at"], journal.row["business_date"],
        )  # fmt: skip
        says = (
            row["pocket_id"], row["direction"], row["amount"], row["swept"],
            outside.kind if row["type"] in _ACTIVITY_OF.get(outside.kind, ()) else row["type"],
            row["booked_at"], row["business_date"],
        )  # fmt: skip
        if says[4] != expected[4] and journal.intact:
            wrong = f"it is of kind {outside.kind}, and what went through it was {row['type']}"
            self._found.add("activity", "account", self.accounts.key(outside.no), wrong)
        elif says[0] != expected[0] and journal.intact:
            wrong = "it is another pocket's than the activity of its legs"
            self._found.add("activity", "account", self.accounts.key(purse.no), wrong)
        elif says != expected:
            self._blame_activity(journal, row, f"the leg says {expected}, the activity {says}")
        self._count_activity(row)

    def _count_activity(self, row: Record) -> None:
        counters = self.counters[row["pocket_id"]]
        if row["type"] == "FEE":
            counters.fees += row["amount"]
        elif row["direction"] == "CREDIT":
            counters.inflow += row["amount"]
        else:
            counters.outflow += row["amount"]

    def _silent(self, journal: Journal, leg: Record, purse: Folded, outside: Folded) -> None:
        if journal.intact:
            wrong = f"leg {LEGS.key_of(leg)} goes through it, and no activity tells of it"
            self._found.add("activity", "account", self.accounts.key(outside.no), wrong)
            return
        key = {
            "customer_id": self.accounts.customer_id, "pocket_id": purse.pocket_id,
            "journal_no": leg["journal_no"], "leg_no": leg["leg_no"],
        }  # fmt: skip
        self._found.add("activity", "activity", key, "the activity is missing", MISSING)

    def _blame_activity(self, journal: Journal, row: Record, wrong: str) -> None:
        key = ACTIVITIES.key_of(row)
        self._found.add("activity", "activity", key, wrong, DERIVED + journal.intact)
