"""The accounts of one customer as computed from the log, compared with their rows."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.ledger.types import DERIVED_BALANCES
from billfold.platform.database.checks import Certainty, Findings
from billfold.platform.money import cents_for

CUSTOMER_ASSETS = frozenset({"cash", "lot"})
"""The assets that a customer owns: their balances are never negative."""
CASH_ACCOUNTS = frozenset({"bank", "cash"})
EXTERNAL_ACCOUNTS = frozenset(
    {"rail:ach", "rail:wire", "rail:card", "rail:crypto", "on_us", "fees", "promotions", "disputes", "owed"}
)
"""Counter accounts of a customer's payments; an overdraft is lent from `owed`."""
SUM_COLUMNS = ("debits", "credits", "reserved")
"""The columns of an account that are sums of its postings."""


class ReplayedAccount:
    """One account: its row, and the sums of the postings so far."""

    def __init__(self, row: Record) -> None:
        self.row = row
        self.no: int = row["account_no"]
        self.kind: str = row["kind"]
        self.pocket_id: UUID | None = row["pocket_id"]
        self.asset: str = row["asset"]
        self.acquired_on: date | None = row["acquired_on"]
        self.debits = self.credits = self.reserved = 0
        self.tax_basis = self.earnings_basis = 0
        self.redeemed = False

    @property
    def balance(self) -> int:
        """Credits less debits."""
        return self.credits - self.debits

    def expected(self, name: str) -> int:
        """Return the expected value of a column: the sum of the postings, or 0 where it keeps none."""
        kept: int = 0 if name in SUM_COLUMNS and self.kind in DERIVED_BALANCES else getattr(self, name)
        return kept

    def matches_row(self) -> bool:
        """Return whether the row equals its postings."""
        return all(self.row[name] == self.expected(name) for name in SUM_COLUMNS)


class ReplayedAccounts:
    """All accounts of one customer by number."""

    def __init__(self, findings: Findings, customer_id: UUID, rows: Iterable[Record]) -> None:
        self._findings = findings
        self.customer_id = customer_id
        self.by_no: dict[int, ReplayedAccount] = {}
        self.held: dict[UUID, dict[int, ReplayedAccount]] = {}
        self.cash: dict[UUID, ReplayedAccount] = {}
        last: ReplayedAccount | None = None
        for row in rows:
            account = ReplayedAccount(row)
            self._check_order(account, last)
            self.by_no.setdefault(account.no, account)
            last = account
        if last is not None and last.kind == "bank":
            self._report(last.no + 1, "a pocket's bank account stands alone", Certainty.MISSING)

    def _check_order(self, account: ReplayedAccount, last: ReplayedAccount | None) -> None:
        """Check that numbers follow each other, and that the two accounts of a pocket do."""
        expected = 1 if last is None else last.no + 1
        if account.no > expected:
            self._report(expected, "the account is missing", Certainty.MISSING)
        after_bank = last is not None and last.kind == "bank"
        if after_bank and last is not None and account.pocket_id != last.pocket_id:
            message = last.no if account.kind == "cash" and last.no + 1 == account.no else account.no
            self._report(message, "a pocket has a bank account and a cash account")
        elif after_bank != (account.kind == "cash"):
            self._report(account.no, "a pocket has a bank account and then a cash account")
        if account.kind == "cash" and account.pocket_id is not None:
            self.cash.setdefault(account.pocket_id, account)

    def _report(self, number: int, message: str, certainty: Certainty = Certainty.DERIVED) -> None:
        self._findings.add("account", self.key(number), message, certainty=certainty)

    def key(self, number: int) -> dict[str, object]:
        """The primary key of an account."""
        return {"customer_id": self.customer_id, "account_no": number}

    def named(self, number: int, asset: str) -> ReplayedAccount | None:
        """Return the account of a posting, if it exists and holds the posting's asset."""
        account = self.by_no.get(number)
        if account is None:
            self._report(number, "a posting refers to it, but it is missing", Certainty.MISSING)
        elif account.asset != asset:
            self._report(number, f"it holds {account.asset}, but a posting moves {asset} in it")
        return account

    def holds(self, account: ReplayedAccount) -> None:
        """Track which lots of a pocket are not empty."""
        if account.pocket_id is None:
            return
        held = self.held.setdefault(account.pocket_id, {})
        if account.balance:
            held[account.no] = account
        else:
            held.pop(account.no, None)

    def positions(self, pocket_id: UUID) -> dict[str, int]:
        """Return the bills of a pocket by CUSIP."""
        total: dict[str, int] = {}
        for lot in self.held.get(pocket_id, {}).values():
            total[lot.asset] = total.get(lot.asset, 0) + lot.balance
        return total

    def earnings_basis(self, pocket_id: UUID) -> int:
        """Return the cents at which the bills of a pocket entered it."""
        return sum(lot.earnings_basis for lot in self.held.get(pocket_id, {}).values())

    def balances(self) -> Counter[tuple[str, str]]:
        """Return the total balances according to the log, by kind and asset."""
        held: Counter[tuple[str, str]] = Counter()
        for account in self.by_no.values():
            held[account.kind, account.asset] += account.balance
        return held

    def end(self, head: Record) -> None:
        """Compare every row with the completely replayed log."""
        last = 0
        for account in self.by_no.values():
            is_beyond_head = account.no > head["account_no"]
            if is_beyond_head and not account.matches_row():
                self._report(account.no, "its number is beyond the head's", Certainty.MISSING)
            else:
                last = max(last, account.no)
            self._compare(account)
        if last != head["account_no"]:
            key, message = {"customer_id": self.customer_id}, f"the last account is {last}"
            self._findings.add("ledger_head", key, message)

    def _compare(self, account: ReplayedAccount) -> None:
        row = account.row
        for name in (*SUM_COLUMNS, "tax_basis", "earnings_basis"):
            if row[name] != account.expected(name):
                self._report(account.no, f"{name} is {row[name]}, the log says {account.expected(name)}")
        if account.redeemed and row["live"]:
            self._report(account.no, "its bill was redeemed, but it is live")
        if not row["live"] and (account.kind != "lot" or account.balance):
            self._report(account.no, "it is not live, but still in use")


def to_int(value: Any) -> int:  # noqa: ANN401 - a sum of the database
    """Return an exact sum as an integer."""
    return int(value or 0)


INTERNAL_TRANSFER, EXTERNAL_TRANSFER = "SAME_ENTITY_SECURITY_TRANSFER", "EXTERNAL_SECURITY_TRANSFER"
SECURITY_TRANSFERS = frozenset({INTERNAL_TRANSFER, EXTERNAL_TRANSFER})
"""Bills that moved without payment."""


class TradeKey(NamedTuple):
    """Bills of one trade: the pocket, the bill, the kind of trade, in or out."""

    pocket_id: UUID | None
    cusip: str
    activity: str
    incoming: bool


class LotMovement:
    """The changes of one trade by the postings of one journal entry."""

    __slots__ = ("account", "cents", "earnings", "tax", "units")

    def __init__(self, account: int) -> None:
        self.account = account
        self.units = self.tax = self.earnings = self.cents = 0


def available_lots(trades: Iterable[Record]) -> dict[TradeKey, list[int]]:
    """Return the bills that entered a pocket: [units, cents, tax basis], used up posting by posting."""
    available: dict[TradeKey, list[int]] = {}
    for row in trades:
        if row["incoming"] or row["activity"] == "BUY":
            remaining = available.setdefault(trade_key(row), [0, 0, 0])
            remaining[0] += row["units"]
            remaining[1] += row["notional"]
            remaining[2] += row["tax_basis"]
    return available


def trade_key(row: Record) -> TradeKey:
    """The bills of a trade."""
    return TradeKey(row["pocket_id"], row["cusip"], row["activity"], incoming=row["incoming"])


def outgoing_key(lot: ReplayedAccount, other_account: ReplayedAccount) -> TradeKey:
    """Return the trade of bills that leave a lot for this account."""
    activity = _ACTIVITY_OUT.get(other_account.kind, "SELL")
    return TradeKey(lot.pocket_id, lot.asset, activity, incoming=False)


def incoming_key(other_account: ReplayedAccount, lot: ReplayedAccount) -> TradeKey:
    """Return the trade of bills that enter a lot from this account."""
    return TradeKey(lot.pocket_id, lot.asset, _ACTIVITY_IN.get(other_account.kind, "BUY"), incoming=True)


_ACTIVITY_OUT = {"treasury": "MATURITY", "lot": INTERNAL_TRANSFER, "custodian": EXTERNAL_TRANSFER}
_ACTIVITY_IN = {"lot": INTERNAL_TRANSFER, "custodian": EXTERNAL_TRANSFER}


def add_movement(
    moved: dict[TradeKey, LotMovement], bills: TradeKey, account: int, units: int, tax: int, earnings: int
) -> None:
    """Add bills and their bases to those of the same trade."""
    total = moved.get(bills)
    if total is None:
        total = moved[bills] = LotMovement(account)
    total.units += units
    total.tax += tax
    total.earnings += earnings


def add_cash(
    leg: Record, debit: ReplayedAccount, credit: ReplayedAccount, money: dict[tuple[UUID | None, str], int]
) -> None:
    """Count cash that was paid for bills or received for them."""
    if debit.kind == "cash" and credit.kind == "street":
        money[debit.pocket_id, "BUY"] += leg["amount"]
    elif credit.kind == "cash" and debit.kind in {"street", "treasury"}:
        side = "SELL" if debit.kind == "street" else "MATURITY"
        money[credit.pocket_id, side] += leg["amount"]


def trade_difference(row: Record, legs: LotMovement) -> str | None:
    """Return how a trade and its postings differ."""
    recorded: tuple[Any, ...] = (row["units"], row["tax_basis"], row["earnings_basis"])
    if recorded != (legs.units, legs.tax, legs.earnings):
        return f"units and bases are {recorded}, its postings say {(legs.units, legs.tax, legs.earnings)}"
    if row["notional"] != cents_for(row["units"], row["price_micros"]):
        return "its money is not units times price"
    return None
