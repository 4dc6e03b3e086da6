"""The accounts of one customer as the log makes them, beside what their rows say."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.ledger.book.book import USD
from billfold.verify.report import DERIVED, MISSING, Findings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncpg import Record

IN_HAND = frozenset({"cash", "lot"})
"""What a customer owns: never negative."""
PURSES = frozenset({"bank", "cash"})
OF_A_POCKET = frozenset({"bank", "cash", "lot", "owed"})
OUTSIDE = frozenset(
    {"rail:ach", "rail:wire", "rail:card", "rail:crypto", "on_us", "fees", "promotions", "owed"}
)
"""Where money comes from and goes to, as a customer sees it; what he owes is lent from there."""
KINDS = (
    OF_A_POCKET | OUTSIDE | {"street", "treasury", "rounding", "custodian", "reserve", "suspense"}
)
SUMS = ("debits", "credits", "reserved")
"""What the legs of an account add up to."""


class Folded:
    """One account: its row, and the sums of the legs seen so far."""

    __slots__ = (
        "acquired_on", "asset", "credits", "debits", "earnings_basis", "kind", "no", "pocket_id",
        "redeemed", "reserved", "row", "tax_basis",
    )  # fmt: skip

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

    def is_as_folded(self) -> bool:
        """Does the row say what the legs say?"""
        return all(self.row[name] == getattr(self, name) for name in SUMS)


class Accounts:
    """All accounts of one customer by number."""

    def __init__(self, found: Findings, customer_id: UUID, rows: Iterable[Record]) -> None:
        self._found = found
        self.customer_id = customer_id
        self.by_no: dict[int, Folded] = {}
        self.held: dict[UUID, dict[int, Folded]] = {}
        self.cash: dict[UUID, Folded] = {}
        self._there: set[tuple[object, ...]] = set()
        self._repeated: set[int] = set()
        last: Folded | None = None
        for row in rows:
            account = Folded(row)
            self._look_at(account, last)
            self._is_another(account)
            self.by_no.setdefault(account.no, account)
            last = account
        if last is not None and last.kind == "bank":
            self._blame(last.no + 1, "a pocket's bank account stands alone", MISSING)

    def _look_at(self, account: Folded, last: Folded | None) -> None:
        """Numbers follow each other, and so do the two accounts of a pocket."""
        expected = 1 if last is None else last.no + 1
        if account.no > expected:
            self._blame(expected, "the account is missing", MISSING)
        elif account.no < expected:
            self._blame(account.no, "the number is taken twice", MISSING)
        after_bank = last is not None and last.kind == "bank"
        if after_bank and last is not None and account.pocket_id != last.pocket_id:
            wrong = last.no if account.kind == "cash" and last.no + 1 == account.no else account.no
            self._blame(wrong, "a pocket has a bank account and a cash account")
        elif after_bank != (account.kind == "cash"):
            self._blame(account.no, "a pocket has a bank account and then a cash account")
        if (
            account.kind not in KINDS
            or (account.kind in OF_A_POCKET) != (account.pocket_id is not None)
            or (account.kind == "lot") != (account.acquired_on is not None)
            or (account.kind in PURSES and account.asset != USD)
        ):
            self._blame(account.no, f"it cannot be of kind {account.kind}", MISSING)
        if account.kind == "cash" and account.pocket_id is not None:
            self.cash.setdefault(account.pocket_id, account)

    def _is_another(self, account: Folded) -> None:
        """Of each kind, pocket, asset and date there is one account."""
        one = account.kind, account.pocket_id, account.asset, account.acquired_on
        if one in self._there:
            self._repeated.add(account.no)
            self._blame(account.no, "there is another account like it")
        self._there.add(one)

    def _blame(self, number: int, wrong: str, sureness: int = DERIVED) -> None:
        self._found.add("balances", "account", self.key(number), wrong, sureness)

    def key(self, number: int) -> dict[str, object]:
        """The primary key of an account."""
        return {"customer_id": self.customer_id, "account_no": number}

    def named(self, number: int, asset: str) -> Folded | None:
        """The account a leg names, when it is there and holds the leg's asset."""
        account = self.by_no.get(number)
        if account is None:
            self._blame(number, "a leg names it, and it is not there", MISSING)
        elif account.asset != asset:
            self._blame(number, f"it holds {account.asset}, and a leg moves {asset} in it")
        return account

    def holds(self, account: Folded) -> None:
        """Keep at hand which lots of a pocket are not empty."""
        if account.pocket_id is None:
            return
        held = self.held.setdefault(account.pocket_id, {})
        if account.balance:
            held[account.no] = account
        else:
            held.pop(account.no, None)

    def positions(self, pocket_id: UUID) -> dict[str, int]:
        """Bills of a pocket by CUSIP."""
        total: dict[str, int] = {}
        for lot in self.held.get(pocket_id, {}).values():
            total[lot.asset] = total.get(lot.asset, 0) + lot.balance
        return total

    def earnings_basis(self, pocket_id: UUID) -> int:
        """Cents at which the bills of a pocket entered it."""
        return sum(lot.earnings_basis for lot in self.held.get(pocket_id, {}).values())

    def end(self, head: Record) -> None:
        """The whole log is folded: every row must say the same."""
        last = 0
        for account in self.by_no.values():
            beyond = account.no > head["account_no"]
            if beyond and (account.no in self._repeated or not account.is_as_folded()):
                self._blame(account.no, "its number is beyond the head's", MISSING)
            else:
                last = max(last, account.no)
            self._compare(account)
        if last != head["account_no"]:
            key, wrong = {"customer_id": self.customer_id}, f"the last account is {last}"
            self._found.add("heads", "head", key, wrong)

    def _compare(self, account: Folded) -> None:
        row = account.row
        for name in SUMS:
            if row[name] != getattr(account, name):
                wrong = f"{name} are {row[name]}, the legs say {getattr(account, name)}"
                self._blame(account.no, wrong)
        for name in ("tax_basis", "earnings_basis"):
            if row[name] != getattr(account, name):
                wrong = f"{name} is {row[name]}, the trades say {getattr(account, name)}"
                self._found.add("lots", "account", self.key(account.no), wrong)
        if account.redeemed and row["live"]:
            self._found.add(
                "lots", "account", self.key(account.no), "its bill was redeemed and it is live"
            )
        if not row["live"] and (account.kind != "lot" or account.balance):
            self._blame(account.no, "it is not live and still needed")


def as_number(value: Any) -> int:  # noqa: ANN401 - a sum of the database
    """An exact sum as an integer."""
    return int(value or 0)
