"""What a pocket holds in memory: accounts, lots, and the counters that outlive a day."""

from __future__ import annotations

from bisect import insort
from datetime import date, datetime
from uuid import UUID


class Account:
    """A balance of one asset. `balance` is credits minus debits, in cents or bills."""

    __slots__ = (
        "asset", "balance", "earnings_basis", "kind", "no", "pocket_id", "reserved", "tax_basis",
    )  # fmt: skip

    def __init__(
        self,
        no: int,
        kind: str,
        pocket_id: UUID | None,
        asset: str,
        *,
        balance: int = 0,
        reserved: int = 0,
    ) -> None:
        self.no = no
        self.kind = kind
        self.pocket_id = pocket_id
        self.asset = asset
        self.balance = balance
        self.reserved = reserved
        self.tax_basis = 0
        self.earnings_basis = 0


class Lot(Account):
    """Bills of one CUSIP that a pocket acquired on one day.

    Two bases in cents: `tax_basis` travels with the bills, `earnings_basis` is what the
    pocket paid or the value at which it received them.
    """

    __slots__ = ("acquired_on", "maturity")

    def __init__(
        self, no: int, pocket_id: UUID, cusip: str, acquired_on: date, maturity: date
    ) -> None:
        super().__init__(no, "lot", pocket_id, cusip)
        self.acquired_on = acquired_on
        self.maturity = maturity

    @property
    def units(self) -> int:
        """Bills of $100 face still held."""
        return self.balance

    @property
    def cusip(self) -> str:
        """The bill."""
        return self.asset


def selling_order(lot: Lot) -> tuple[date, str, date]:
    """Shortest maturity first, first in first out within a bill."""
    return (lot.maturity, lot.asset, lot.acquired_on)


class PocketBook:
    """One pocket of a book: its accounts and the counters that outlive a day."""

    __slots__ = (
        "accrued_through",
        "bank",
        "cash",
        "charge_on",
        "closed_at",
        "closure_reason",
        "deposit_weeks",
        "due_at",
        "fee_accrued",
        "fees",
        "idle",
        "inflow",
        "invest_at",
        "liens",
        "lots",
        "lots_by_key",
        "moved_on",
        "name",
        "opened_at",
        "outflow",
        "owed",
        "partner_id",
        "pocket_id",
        "real_time_yield",
        "realised",
        "reinvestment_weeks",
        "status",
        "type",
        "unsettled_until",
    )

    def __init__(
        self,
        *,
        pocket_id: UUID,
        partner_id: UUID,
        name: str,
        type: str,  # noqa: A002 - the field's name on the wire
        status: str,
        deposit_weeks: int,
        reinvestment_weeks: int | None,
        opened_at: datetime,
        accrued_through: date,
        charge_on: date,
        real_time_yield: bool = False,
        inflow: int = 0,
        outflow: int = 0,
        fees: int = 0,
        realised: int = 0,
        fee_accrued: int = 0,
        idle: int = 0,
        moved_on: date | None = None,
        unsettled_until: date | None = None,
        invest_at: datetime | None = None,
        closed_at: datetime | None = None,
        closure_reason: str | None = None,
    ) -> None:
        self.pocket_id = pocket_id
        self.partner_id = partner_id
        self.name = name
        self.type = type
        self.status = status
        self.deposit_weeks = deposit_weeks
        self.reinvestment_weeks = reinvestment_weeks
        self.opened_at = opened_at
        self.accrued_through = accrued_through
        self.charge_on = charge_on
        self.real_time_yield = real_time_yield
        self.inflow = inflow
        self.outflow = outflow
        self.fees = fees
        self.realised = realised
        self.fee_accrued = fee_accrued
        self.idle = idle
        self.moved_on = moved_on
        self.unsettled_until = unsettled_until
        self.invest_at = invest_at
        self.closed_at = closed_at
        self.closure_reason = closure_reason
        self.due_at: datetime | None = None
        self.bank: Account
        self.cash: Account
        self.owed: Account | None = None
        self.lots: list[Lot] = []
        self.lots_by_key: dict[tuple[str, date], Lot] = {}
        self.liens: list[tuple[int, datetime]] = []

    def adopt(self, account: Account) -> None:
        """Take an account of this pocket into its place."""
        if isinstance(account, Lot):
            self.lots_by_key[account.asset, account.acquired_on] = account
            if account.balance:
                insort(self.lots, account, key=selling_order)
        else:
            setattr(self, account.kind, account)

    def positions(self) -> list[tuple[str, int]]:
        """Units per CUSIP, shortest maturity first."""
        held: dict[str, int] = {}
        for lot in self.lots:
            held[lot.asset] = held.get(lot.asset, 0) + lot.balance
        return list(held.items())

    def earnings_basis(self) -> int:
        """Cents at which the bills still held entered the pocket."""
        return sum(lot.earnings_basis for lot in self.lots)

    def settles_after(self, day: date) -> bool:
        """Does a trade of the pocket settle only after this day?"""
        return self.unsettled_until is not None and self.unsettled_until > day

    def liened(self, now: datetime) -> int:
        """Cents that may not leave yet."""
        return sum(amount for amount, until in self.liens if until > now)
