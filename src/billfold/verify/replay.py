"""The log of one customer replayed, journal entry by journal entry, from nothing.

Only postings and trades are trusted: balances, both bases of every lot and the counters of
every pocket are computed from them, and then compared with the rows that store them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from uuid import UUID

from asyncpg import Record

from billfold.bills.rules.lots import allocate_basis
from billfold.platform.database.checks import Certainty, Findings
from billfold.verify import accounts as verify_accounts
from billfold.verify.accounts import ReplayedAccount
from billfold.verify.streams import JOURNAL_ENTRIES, POSTINGS, TRADES, TRANSACTIONS

_POSTED, _RESERVED, _RELEASED = 0, 1, 2
_ACTIVITY_OF = {
    "rail:ach": {"ACH"},
    "rail:wire": {"WIRE"},
    "rail:card": {"CARD"},
    "rail:crypto": {"GENERIC"},
    "on_us": {"ON_US", "GENERIC"},
    "fees": {"FEE", "GENERIC"},
    "promotions": {"CREDIT", "GENERIC"},
    "disputes": {"GENERIC"},
    "owed": {"GENERIC"},
}


class PocketCounters:
    """The expected counters of a pocket."""

    __slots__ = ("fees", "inflow", "outflow", "realised", "unsettled_until")

    def __init__(self) -> None:
        self.inflow = self.outflow = self.fees = self.realised = 0
        self.unsettled_until: date | None = None

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """In, out, fees and realised, in cents."""
        return self.inflow, self.outflow, self.fees, self.realised


Counters = defaultdict[UUID, PocketCounters]


class Journal:
    """A journal entry with everything of its number, and what its postings moved so far."""

    def __init__(
        self,
        row: Record,
        legs: Sequence[Record],
        trades: Sequence[Record],
        *,
        activities: Sequence[Record],
        intact: bool,
    ) -> None:
        self.row, self.legs, self.trades, self.intact = row, legs, trades, intact
        self.transactions = {row["posting_no"]: row for row in activities}
        self.available_lots = verify_accounts.available_lots(trades)
        self.movements: dict[verify_accounts.TradeKey, verify_accounts.LotMovement] = {}
        self.cash_by_side: dict[tuple[UUID | None, str], int] = defaultdict(int)

    @property
    def key(self) -> dict[str, object]:
        """The primary key of the entry."""
        return JOURNAL_ENTRIES.key_of(self.row)

    @property
    def certainty(self) -> Certainty:
        """Return how surely a row that differs from its postings is the damaged one."""
        return Certainty.SUSPECT if self.intact else Certainty.DERIVED


class Replay:
    """Replays journal entries in order; `accounts` and `counters` are the current state."""

    def __init__(self, findings: Findings, accounts: verify_accounts.ReplayedAccounts) -> None:
        self._findings = findings
        self.accounts = accounts
        self.counters: Counters = defaultdict(PocketCounters)
        self.touched: set[UUID] = set()
        self.last: Record | None = None

    def play(self, journal: Journal) -> None:
        """Apply one journal entry and check that it is consistent."""
        if not journal.legs:
            key = {**journal.key, "posting_no": 1}
            self._findings.add("posting", key, "the journal entry has no postings", certainty=Certainty.MISSING)
        self.touched = set()
        self.last = journal.row
        touched_accounts: list[ReplayedAccount] = []
        for leg in journal.legs:
            debit = self.accounts.named(leg["debit"], leg["asset"])
            credit = self.accounts.named(leg["credit"], leg["asset"])
            if debit is None or credit is None:
                continue
            self._apply_posting(leg, debit, credit)
            touched_accounts += (debit, credit)
            if debit.kind == "lot" or credit.kind == "lot":
                self._move_lots(journal, leg["amount"], debit, credit=credit)
            elif leg["phase"] != _RELEASED:
                verify_accounts.add_cash(leg, debit, credit, money=journal.cash_by_side)
                self._check_transaction(journal, leg, debit, credit=credit)
        self._check_balances(journal, touched_accounts)
        self._compare_trades(journal)
        for row in journal.transactions.values():
            self._report_transaction(journal, row, "no posting of its journal entry matches it")

    # -- legs ------------------------------------------------------------------------

    def _apply_posting(self, leg: Record, debit: ReplayedAccount, credit: ReplayedAccount) -> None:
        amount = leg["amount"]
        if leg["phase"] == _POSTED:
            debit.debits += amount
            credit.credits += amount
        else:
            debit.reserved += amount if leg["phase"] == _RESERVED else -amount
        for account in (debit, credit):
            if account.pocket_id is not None:
                self.touched.add(account.pocket_id)

    def _check_balances(self, journal: Journal, touched_accounts: Iterable[ReplayedAccount]) -> None:
        """Check that after an entry every bank account is zero and no customer account is negative."""
        for account in touched_accounts:
            if account.kind == "bank" and account.balance:
                message = f"bank account {account.no} holds {account.balance} cents after it"
                self._findings.add("journal_entry", journal.key, message)
            if account.kind in verify_accounts.CUSTOMER_ASSETS and account.balance < account.reserved:
                message = f"account {account.no} holds {account.balance} after it"
                self._findings.add("journal_entry", journal.key, message)

    # -- bills -----------------------------------------------------------------------

    def _move_lots(self, journal: Journal, units: int, debit: ReplayedAccount, *, credit: ReplayedAccount) -> None:
        """Move the bases of bills that entered or left a lot, like the bank."""
        tax = 0
        if debit.kind == "lot":
            tax = self._remove_from_lot(journal, units, debit, credit=credit)
        if credit.kind == "lot":
            self._add_to_lot(journal, units, debit, credit=credit, tax=tax)

    def _remove_from_lot(self, journal: Journal, units: int, debit: ReplayedAccount, *, credit: ReplayedAccount) -> int:
        """Remove bills from a lot with their parts of both bases; return that of the tax basis."""
        tax = earnings = 0
        held = debit.balance + units
        if 0 < units <= held:
            tax = allocate_basis(debit.tax_basis, units, held)
            earnings = allocate_basis(debit.earnings_basis, units, held)
        debit.tax_basis -= tax
        debit.earnings_basis -= earnings
        debit.redeemed = debit.redeemed or credit.kind == "treasury"
        self.accounts.holds(debit)
        bills = verify_accounts.outgoing_key(debit, credit)
        verify_accounts.add_movement(journal.movements, bills, debit.no, units=units, tax=tax, earnings=earnings)
        return tax

    def _add_to_lot(
        self, journal: Journal, units: int, debit: ReplayedAccount, *, credit: ReplayedAccount, tax: int
    ) -> None:
        """Add bills to a lot: at the price paid, at their value, or at their cost."""
        into = verify_accounts.incoming_key(debit, credit)
        available = journal.available_lots.get(into, [0, 0, 0])
        earnings = cost = 0
        if min(units, available[0]) > 0:
            earnings, cost = (allocate_basis(b, min(units, available[0]), available[0]) for b in available[1:])
            available[:] = available[0] - units, available[1] - earnings, available[2] - cost
        if debit.kind == "custodian":
            tax = cost
        elif debit.kind != "lot":
            tax = earnings
        self._check_acquired_on(journal, debit, credit)
        credit.tax_basis += tax
        credit.earnings_basis += earnings
        credit.redeemed = False  # bills whose delivery was rejected after their maturity come back
        self.accounts.holds(credit)
        verify_accounts.add_movement(journal.movements, into, credit.no, units=units, tax=tax, earnings=earnings)

    def _check_acquired_on(self, journal: Journal, debit: ReplayedAccount, lot: ReplayedAccount) -> None:
        """Check the day of a lot: the day its bills were bought, also by a previous holder."""
        today = journal.row["business_date"]
        if debit.kind == "lot" and lot.acquired_on != debit.acquired_on:
            self._report_lot(lot, "acquired_on differs from the lot its bills came from")
        elif debit.kind == "custodian" and lot.acquired_on is not None and lot.acquired_on > today:
            self._report_lot(lot, "acquired_on is after its bills arrived")
        elif debit.kind not in {"lot", "custodian"} and lot.acquired_on != today:
            self._report_lot(lot, "acquired_on is not the day of its purchase")

    def _report_lot(self, lot: ReplayedAccount, message: str) -> None:
        self._findings.add("account", self.accounts.key(lot.no), message)

    def _compare_trades(self, journal: Journal) -> None:
        """Check that every trade has postings, and that every movement of bills has a trade."""
        cash_by_trade: dict[tuple[UUID | None, str], int] = defaultdict(int)
        for row in journal.trades:
            bills = verify_accounts.trade_key(row)
            legs = journal.movements.pop(bills, None)
            if legs is None:
                self._report_trade(journal, row, "no posting of its journal entry moves its bills")
                continue
            message = verify_accounts.trade_difference(row, legs)
            if message:
                self._report_trade(journal, row, message)
            self._count_trade(row)
            if row["activity"] not in verify_accounts.SECURITY_TRANSFERS:
                cash_by_trade[row["pocket_id"], row["activity"]] += row["notional"]
        for bills, legs in journal.movements.items():
            self._report_missing_trade(journal, bills, legs)
        for side in cash_by_trade.keys() | journal.cash_by_side.keys():
            if cash_by_trade[side] != journal.cash_by_side[side]:
                self._report_cash(journal, side, cash_by_trade[side])

    def _count_trade(self, row: Record) -> None:
        counters = self.counters[row["pocket_id"]]
        notional, settles_on = row["notional"], row["settles_on"]
        if counters.unsettled_until is None or settles_on > counters.unsettled_until:
            counters.unsettled_until = settles_on
        if not row["incoming"]:
            counters.realised += notional - row["earnings_basis"]
        if row["activity"] in verify_accounts.SECURITY_TRANSFERS:
            if row["incoming"]:
                counters.inflow += notional
            else:
                counters.outflow += notional

    def _report_missing_trade(
        self, journal: Journal, bills: verify_accounts.TradeKey, legs: verify_accounts.LotMovement
    ) -> None:
        """Report postings of bills without a trade: a row is missing, or the account is wrong."""
        message = f"{legs.units} bills of {bills.cusip} moved in it without a trade"
        if journal.intact:
            self._findings.add("account", self.accounts.key(legs.account), message)
            return
        numbers = {row["trade_no"] for row in journal.trades}
        number = next(n for n in range(1, len(numbers) + 2) if n not in numbers)
        key = {
            "customer_id": self.accounts.customer_id,
            "pocket_id": bills.pocket_id,
            "entry_no": journal.row["entry_no"],
            "trade_no": number,
        }
        self._findings.add("trade", key, "the trade is missing", certainty=Certainty.MISSING)

    def _report_trade(self, journal: Journal, row: Record, message: str) -> None:
        self._findings.add("trade", TRADES.key_of(row), message, certainty=journal.certainty)

    def _report_cash(self, journal: Journal, side: tuple[UUID | None, str], traded: int) -> None:
        """Check the cash of a trade: with the rows as committed, a difference means a wrong account."""
        message = f"{side[1]} moved {journal.cash_by_side[side]} cents in journal, its trades say {traded}"
        if side[0] is None or not journal.intact:
            self._findings.add("journal_entry", journal.key, message, certainty=Certainty.SUSPECT)
            return
        for leg in journal.legs:
            for number in (leg["debit"], leg["credit"]):
                account = self.accounts.by_no.get(number)
                if account is not None and account.pocket_id is None and leg["asset"] == "USD":
                    self._findings.add("account", self.accounts.key(account.no), message)
                    return

    # -- transactions --------------------------------------------------------

    def _check_transaction(
        self, journal: Journal, leg: Record, debit: ReplayedAccount, *, credit: ReplayedAccount
    ) -> None:
        """Check that money between a pocket and the outside has exactly one transaction, as has a reserved amount."""
        if debit.kind in verify_accounts.CASH_ACCOUNTS and credit.kind in verify_accounts.EXTERNAL_ACCOUNTS:
            own, external, direction = debit, credit, "DEBIT"
        elif credit.kind in verify_accounts.CASH_ACCOUNTS and debit.kind in verify_accounts.EXTERNAL_ACCOUNTS:
            own, external, direction = credit, debit, "CREDIT"
        else:
            return
        row = journal.transactions.pop(leg["posting_no"], None)
        if row is None:
            self._report_missing_transaction(journal, leg, own, external_account=external)
            return
        expected = {
            "pocket_id": own.pocket_id,
            "direction": direction,
            "amount": leg["amount"],
            "swept": own.kind == "bank",
            "booked_at": journal.row["booked_at"],
            "business_date": journal.row["business_date"],
        }
        differences = [f"{name} is {row[name]}, not {value}" for name, value in expected.items() if row[name] != value]
        has_other_type = row["type"] not in _ACTIVITY_OF.get(external.kind, {external.kind})
        if has_other_type and journal.intact:
            message = f"it is of kind {external.kind}, and what went through it was {row['type']}"
            self._findings.add("account", self.accounts.key(external.no), message)
        elif row["pocket_id"] != own.pocket_id and journal.intact:
            message = "its Pocket differs from the transaction of its legs"
            self._findings.add("account", self.accounts.key(own.no), message)
        elif has_other_type or differences:
            message = ", ".join(differences) or f"its type is {row['type']}, its posting is {external.kind}"
            self._report_transaction(journal, row, message)
        self._count_activity(row)

    def _count_activity(self, row: Record) -> None:
        counters = self.counters[row["pocket_id"]]
        if row["type"] == "CARD" and not row["swept"]:
            return  # reserved: nothing has moved
        if row["type"] == "FEE":
            counters.fees += row["amount"]
        elif row["direction"] == "CREDIT":
            counters.inflow += row["amount"]
        else:
            counters.outflow += row["amount"]

    def _report_missing_transaction(
        self, journal: Journal, leg: Record, pocket_account: ReplayedAccount, external_account: ReplayedAccount
    ) -> None:
        if journal.intact:
            message = f"leg {POSTINGS.key_of(leg)} goes through it, but its transaction is missing"
            self._findings.add("account", self.accounts.key(external_account.no), message)
            return
        key = {
            "customer_id": self.accounts.customer_id,
            "pocket_id": pocket_account.pocket_id,
            "entry_no": leg["entry_no"],
            "posting_no": leg["posting_no"],
        }
        self._findings.add("transaction", key, "the activity is missing", certainty=Certainty.MISSING)

    def _report_transaction(self, journal: Journal, row: Record, message: str) -> None:
        self._findings.add("transaction", TRANSACTIONS.key_of(row), message, certainty=journal.certainty)
