"""The pockets of one customer: counters, snapshots and dates against what the log made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.bills.rules.issue_calendar import TERMS
from billfold.ledger.checks.accounts import Accounts
from billfold.platform.dates import et_date
from billfold.verify.decision_dates import Decided
from billfold.verify.report import DERIVED, MISSING, Findings
from billfold.verify.streams import POCKETS, SNAPSHOTS

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.ledger.checks.replay import Counters

_ONE_DAY = timedelta(days=1)


class PocketRows:
    """The pocket rows of a customer, followed through his log."""

    def __init__(
        self,
        found: Findings,
        accounts: Accounts,
        rows: Sequence[Record],
        decided: Decided,
    ) -> None:
        self._found = found
        self.accounts = accounts
        self.decided = decided
        self.by_id = {row["pocket_id"]: row for row in rows}
        # The date on which a pocket last moved, while no snapshot of it has been met.
        self._open: dict[UUID, date] = {}
        self._kept: dict[UUID, date] = {}
        # When its last journal was booked, and until when it had moved before a hollow snapshot.
        self._booked: dict[UUID, datetime] = {}
        self._before: dict[UUID, date] = {}
        for row in rows:
            if self.by_id[row["pocket_id"]] is not row:
                self._blame(row["pocket_id"], "the pocket is there twice", MISSING)
        for account in accounts.by_no.values():
            owner = account.pocket_id
            if owner is not None and owner not in self.by_id and owner not in accounts.cash:
                wrong = "it is of a pocket that is not there"
                found.add("balances", "account", accounts.key(account.no), wrong, MISSING)
        for pocket_id in accounts.cash.keys() - self.by_id.keys():
            key = {"customer_id": accounts.customer_id, "pocket_id": pocket_id}
            found.add("pockets", "pocket", key, "it has accounts, and it is not there", MISSING)
        for pocket_id in self.by_id.keys() - accounts.cash.keys():
            self._blame(pocket_id, "it has no accounts", MISSING)

    def _blame(self, pocket_id: UUID, wrong: str, sureness: int = DERIVED) -> None:
        key = POCKETS.key_of(self.by_id[pocket_id])
        self._found.add("pockets", "pocket", key, wrong, sureness)

    def belong(self, *tables: Iterable[Record]) -> None:
        """Rows of the log name the partner that serves their pocket."""
        for rows in tables:
            for row in rows:
                pocket = self.by_id.get(row["pocket_id"])
                if pocket is not None and pocket["partner_id"] != row["partner_id"]:
                    self._blame(row["pocket_id"], "its log names another partner")
                    return

    # -- on the way ------------------------------------------------------------------

    def follow(self, journal: Record, touched: Iterable[UUID]) -> None:
        """Money moved in these pockets: their earlier day must have been kept."""
        today = journal["business_date"]
        for pocket_id in touched:
            before = self._open.get(pocket_id)
            if before is not None and before != today:
                self._lacks(pocket_id, before)
            kept = self._kept.get(pocket_id)
            if kept is not None and kept >= today:
                key = self._snapshot(pocket_id, kept)
                wrong = f"the pocket moved on {today} after it"
                self._found.add("snapshots", "snapshot", key, wrong)
            self._open[pocket_id] = today
            self._booked[pocket_id] = journal["booked_at"]
            self._before.pop(pocket_id, None)

    def compare_snapshots(
        self, rows: Iterable[Record], journal_no: int, counters: Mapping[UUID, Counters]
    ) -> None:
        """Snapshots taken after this journal say what the replay says."""
        for row in rows:
            pocket_id = row["pocket_id"]
            key = SNAPSHOTS.key_of(row)
            if row["journal_no"] != journal_no:
                self._found.add("snapshots", "snapshot", key, "it was taken after no journal")
                continue
            moved = self._open.pop(pocket_id, None)
            if moved is not None and moved > row["business_date"]:
                self._found.add("snapshots", "snapshot", key, f"the pocket had moved on {moved}")
            if self._kept.get(pocket_id) == row["business_date"]:
                self._found.add("snapshots", "snapshot", key, "the date was kept already")
            if moved is None:
                self._hollow(row, key)
            self._kept[pocket_id] = row["business_date"]
            wrong = self._difference(row, counters.get(pocket_id))
            if wrong:
                self._found.add("snapshots", "snapshot", key, wrong)
            if moved is not None and moved < row["business_date"]:
                self._lacks(pocket_id, moved)

    def _hollow(self, row: Record, key: Mapping[str, object]) -> None:
        """Nothing was booked on that day: a fee below a cent, or cash that bought no bill."""
        pocket_id, day = row["pocket_id"], row["business_date"]
        last = self._kept.get(pocket_id)
        if last is not None:
            self._before[pocket_id] = last
        if not self._may_be_hollow(pocket_id, day):
            self._found.add("snapshots", "snapshot", key, "nothing moved on this day")

    def _may_be_hollow(self, pocket_id: UUID, day: date) -> bool:
        booked_at = self._booked.get(pocket_id)
        if booked_at is None:
            return False
        return self.decided.is_charge_date(day) or self.decided.may_wait(booked_at, day)

    def _difference(self, row: Record, counters: Counters | None) -> str | None:
        cash = self.accounts.cash.get(row["pocket_id"])
        try:
            positions = dict(msgspec.json.decode(row["positions"], type=list[tuple[str, int]]))
        except msgspec.MsgspecError:
            return "its positions cannot be read"
        says = (row["cash"], positions, row["earnings_basis"], *_counted(row))
        made = (
            0 if cash is None else cash.balance,
            self.accounts.positions(row["pocket_id"]),
            self.accounts.earnings_basis(row["pocket_id"]),
            *(_counted_by(counters)),
        )
        return None if says == made else f"it says {says}, the log {made}"

    def _lacks(self, pocket_id: UUID, day: date) -> None:
        key = self._snapshot(pocket_id, day)
        self._found.add("snapshots", "snapshot", key, "the snapshot is missing", MISSING)

    def _snapshot(self, pocket_id: UUID, day: date) -> dict[str, object]:
        return {
            "customer_id": self.accounts.customer_id,
            "pocket_id": pocket_id,
            "business_date": day,
        }

    # -- at the end --------------------------------------------------------------------

    def end(self, head: Record, counters: Mapping[UUID, Counters]) -> None:
        """The whole log is played: every pocket's row must say the same."""
        for pocket_id, row in self.by_id.items():
            says, made = _counted(row), _counted_by(counters.get(pocket_id))
            if says != made:
                wrong = f"in, out, fees and realised are {says}, the log says {made}"
                self._blame(pocket_id, wrong)
            self._end_settling(row, counters.get(pocket_id))
            self._end_day(head, row)
            for wrong in self._implausible(row):
                self._blame(pocket_id, wrong)

    def _end_settling(self, row: Record, counters: Counters | None) -> None:
        says = row["unsettled_until"]
        made = None if counters is None else counters.unsettled_until
        if says != made:
            self._blame(row["pocket_id"], f"its trades settle by {made}, not by {says}")

    def _end_day(self, head: Record, row: Record) -> None:
        """The date on which the pocket last moved is open, or it was kept."""
        pocket_id, says = row["pocket_id"], row["moved_on"]
        moved, kept = self._open.get(pocket_id), self._kept.get(pocket_id)
        if moved is not None and says != moved:
            until = self.decided.closes(moved)[0]
            still_open = head["due_at"] is not None and head["due_at"] <= until
            begun = says is not None and says - row["accrued_through"] == _ONE_DAY
            if begun or (says is None and not still_open):
                self._lacks(pocket_id, moved)
            else:
                self._blame(pocket_id, f"it last moved on {moved}, not on {says}")
        elif moved is None and says is not None and not self._may_be_hollow(pocket_id, says):
            self._blame(pocket_id, f"nothing moved on {says}")
        if says is not None and kept is not None and says <= kept:
            self._blame(pocket_id, f"the day {says} on which it moved has been kept already")
        self._end_accrual(row, says or moved or kept)

    def _end_accrual(self, row: Record, last: date | None) -> None:
        """Its fee has accrued up to the day before it last moved; its month is charged next."""
        pocket_id, accrued = row["pocket_id"], row["accrued_through"]
        lasts = self.decided.business_dates(row["opened_at"]) if last is None else {last}
        if all(day - accrued != _ONE_DAY for day in lasts):
            before = self._before.get(pocket_id)
            if before is not None and before - accrued == _ONE_DAY:
                key = self._snapshot(pocket_id, self._kept[pocket_id])
                self._found.add("snapshots", "snapshot", key, "nothing moved on this day")
            else:
                self._blame(pocket_id, f"its fee has not accrued up to {max(lasts)}")
        charges = {charge for day in lasts for charge in self.decided.charge_dates(day)}
        charge_on = row["charge_on"]
        if not self.decided.is_charge_date(charge_on):
            self._blame(pocket_id, "its fee is charged on a day on which none is")
        elif charge_on not in charges | lasts and not self._may_be_later(row, charges):
            self._blame(pocket_id, f"its fee is charged next on {min(charges)}")

    def _may_be_later(self, row: Record, charges: Iterable[date]) -> bool:
        """Of an empty pocket the fraction of a cent it owes is put off from month to month."""
        pocket_id = row["pocket_id"]
        cash = self.accounts.cash.get(pocket_id)
        holds = (cash is not None and cash.balance) or self.accounts.held.get(pocket_id)
        return not holds and row["charge_on"] > min(charges)

    def _implausible(self, row: Record) -> Iterator[str]:
        """What no pocket's row says, whatever happened to it."""
        cash = self.accounts.cash.get(row["pocket_id"])
        balance = 0 if cash is None else cash.balance
        weeks = {row["deposit_weeks"], row["reinvestment_weeks"] or row["deposit_weeks"]}
        if not 0 <= row["idle"] <= balance:
            yield f"of {balance} cents {row['idle']} are left alone"
        if row["fee_accrued"] < 0 or row["accrued_through"] >= row["charge_on"]:
            yield "its fee has accrued beyond the day of its charge, or below zero"
        if row["invest_at"] is not None and not self._is_opening(row["invest_at"]):
            yield "it invests at an instant at which no market opens"
        if not weeks <= TERMS.keys():
            yield "it follows a strategy that does not exist"
        if row["status"] == "CLOSED" or row["closed_at"] is not None:
            yield from self._badly_closed(row, balance)

    def _badly_closed(self, row: Record, balance: int) -> Iterator[str]:
        if row["status"] != "CLOSED" or row["closed_at"] is None:
            yield "it is closed without an end, or ended without being closed"
        elif row["closed_at"] < row["opened_at"]:
            yield "it was closed before it was opened"
        if balance or self.accounts.held.get(row["pocket_id"]) or row["fee_accrued"]:
            yield "it is closed and holds something"

    def _is_opening(self, at: datetime) -> bool:
        return self.decided.is_settlement_day(et_date(at)) and self.decided.is_opening(at)


def _counted(row: Record) -> tuple[int, int, int, int]:
    return (row["inflow"], row["outflow"], row["fees"], row["realised"])


def _counted_by(counters: Counters | None) -> tuple[int, int, int, int]:
    if counters is None:
        return (0, 0, 0, 0)
    return (counters.inflow, counters.outflow, counters.fees, counters.realised)
