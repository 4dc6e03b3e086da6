"""The pockets of one customer: counters, snapshots and dates compared with the log."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.bills.rules.fees import fee_charge_date
from billfold.bills.rules.issue_calendar import TERMS
from billfold.ledger.book.book import pocket_due
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.book.pocket_versions import read_image
from billfold.platform.calendars import Calendars
from billfold.platform.database.checks import Certainty, Findings
from billfold.platform.dates import et_date
from billfold.verify.accounts import ReplayedAccounts
from billfold.verify.replay import Counters, PocketCounters
from billfold.verify.streams import POCKET_VERSIONS, POCKETS, SNAPSHOTS

_FIRST_MONTH = date(1, 1, 31)


class CalendarVariants:
    """The calendars as they are now, and as they were before an operator overrode them."""

    def __init__(self, calendars: Calendars) -> None:
        self._variants = [calendars]
        if calendars.overrides:
            without_overrides = Calendars(
                opens=calendars.opens, closes=calendars.closes, invests_until=calendars.invests_until
            )
            self._variants.append(without_overrides)

    def is_settlement_day(self, day: date) -> bool:
        """Return whether bills may have settled on this day."""
        return any(each.is_settlement_day(day) for each in self._variants)

    def closes(self, day: date) -> list[datetime]:
        """Return the instants at which that day may have ended, the latest first."""
        return sorted((each.closes_at(day) for each in self._variants), reverse=True)

    def business_dates(self, at: datetime) -> set[date]:
        """Return the days to which this instant may have belonged."""
        return {each.business_date(at) for each in self._variants}

    def is_opening(self, at: datetime) -> bool:
        """Return whether it may be the hour at which a day of the market begins."""
        return self._variants[0].opens_at(et_date(at)) == at

    def waits_for_market_open(self, at: datetime, until: date) -> bool:
        """Return whether cash received at this instant may wait for the opening of this day."""
        return any(not each.may_invest(at) and until == et_date(each.next_open(at)) for each in self._variants)

    def charge_dates(self, day: date) -> set[date]:
        """Return the dates on which the fee of this day's month may be charged."""
        return {fee_charge_date(day, each) for each in self._variants}

    def is_charge_date(self, day: date) -> bool:
        """Return whether the fee of the month before this day may be charged on it."""
        if day <= _FIRST_MONTH:
            return False
        before = date(day.year - (day.month == 1), (day.month - 2) % 12 + 1, 1)
        return day in self.charge_dates(before)

    def is_first_due(self, due: datetime | None, pockets: Iterable[PocketBook]) -> bool:
        """Return whether work in these pockets may first be due at this instant."""
        each_pocket = [
            [at for each in self._variants if (at := pocket_due(pocket, each)) is not None] for pocket in pockets
        ]
        dues = [instants for instants in each_pocket if instants]
        if not dues or due is None:
            return due is None and not dues
        first, last = min(map(min, dues)), min(map(max, dues))
        return first <= due <= last and any(due in instants for instants in dues)

    def first_due(self, pockets: Iterable[PocketBook]) -> datetime | None:
        """Return the earliest instant at which work is due according to the current calendars."""
        dues = (pocket_due(pocket, self._variants[0]) for pocket in pockets)
        return min((due for due in dues if due is not None), default=None)


_ONE_DAY = timedelta(days=1)


class PocketReplay:
    """The pocket rows of a customer, followed through its log."""

    def __init__(
        self,
        findings: Findings,
        accounts: ReplayedAccounts,
        rows: Sequence[Record],
        calendar_variants: CalendarVariants,
    ) -> None:
        self._findings = findings
        self.accounts = accounts
        self.calendar_variants = calendar_variants
        self.by_id = {row["pocket_id"]: row for row in rows}
        # The date on which a pocket last moved, until a snapshot of it has been read.
        self._open_dates: dict[UUID, date] = {}
        self._last_snapshot_dates: dict[UUID, date] = {}
        # When its last journal entry was booked, and until when it had moved before an empty snapshot.
        self._last_booked_at: dict[UUID, datetime] = {}
        self._dates_before_empty_snapshot: dict[UUID, date] = {}
        for account in accounts.by_no.values():
            owner = account.pocket_id
            if owner is not None and owner not in self.by_id and owner not in accounts.cash:
                message = "its Pocket is missing"
                findings.add("account", accounts.key(account.no), message, certainty=Certainty.MISSING)
        for pocket_id in accounts.cash.keys() - self.by_id.keys():
            key = {"customer_id": accounts.customer_id, "pocket_id": pocket_id}
            findings.add("pocket", key, "it has accounts, but is missing", certainty=Certainty.MISSING)
        for pocket_id in self.by_id.keys() - accounts.cash.keys():
            self._report(pocket_id, "it has no accounts", Certainty.MISSING)

    def _report(self, pocket_id: UUID, message: str, certainty: Certainty = Certainty.DERIVED) -> None:
        key = POCKETS.key_of(self.by_id[pocket_id])
        self._findings.add("pocket", key, message, certainty=certainty)

    def check_partner(self, *tables: Iterable[Record]) -> None:
        """Check that rows of the log name the partner that serves their pocket."""
        for rows in tables:
            for row in rows:
                pocket = self.by_id.get(row["pocket_id"])
                if pocket is not None and pocket["partner_id"] != row["partner_id"]:
                    self._report(row["pocket_id"], "its partner differs from its log")
                    return

    # -- on the way ------------------------------------------------------------------

    def follow(self, journal: Record, touched_pockets: Iterable[UUID]) -> None:
        """Check that these pockets, in which money moved, have a snapshot of their earlier day."""
        today = journal["business_date"]
        for pocket_id in touched_pockets:
            previous_date = self._open_dates.get(pocket_id)
            if previous_date is not None and previous_date != today:
                self._report_missing_snapshot(pocket_id, previous_date)
            snapshot_date = self._last_snapshot_dates.get(pocket_id)
            if snapshot_date is not None and snapshot_date >= today:
                key = self._snapshot(pocket_id, snapshot_date)
                message = f"the pocket moved on {today} after it"
                self._findings.add("snapshot", key, message)
            self._open_dates[pocket_id] = today
            self._last_booked_at[pocket_id] = journal["booked_at"]
            self._dates_before_empty_snapshot.pop(pocket_id, None)

    def compare_snapshots(self, rows: Iterable[Record], journal: Record, counters: Counters) -> None:
        """Check that snapshots taken after this journal entry equal the replay."""
        for row in rows:
            pocket_id = row["pocket_id"]
            key = SNAPSHOTS.key_of(row)
            if row["entry_no"] != journal["entry_no"]:
                self._findings.add("snapshot", key, "no journal precedes it")
                continue
            if journal["business_date"] > row["business_date"]:
                self._findings.add("snapshot", key, f"its journal is of {journal['business_date']}")
            moved_date = self._open_dates.pop(pocket_id, None)
            if moved_date is not None and moved_date > row["business_date"]:
                self._findings.add("snapshot", key, f"the pocket had moved on {moved_date}")
            if moved_date is None:
                self._check_empty_snapshot(row, key)
            self._last_snapshot_dates[pocket_id] = row["business_date"]
            message = self._difference(row, counters[pocket_id])
            if message:
                self._findings.add("snapshot", key, message)
            if moved_date is not None and moved_date < row["business_date"]:
                self._report_missing_snapshot(pocket_id, moved_date)

    def compare_versions(self, rows: Iterable[Record], entry_no: int, counters: Counters) -> None:
        """Check that states of pockets after a commit, whose last journal entry has a number, equal the replay."""
        for row in rows:
            try:
                then = read_image(row["state"])
            except msgspec.MsgspecError:
                self._findings.add("pocket_version", POCKET_VERSIONS.key_of(row), "its state cannot be read")
                continue
            positions: Counter[str] = Counter()
            for cusip, units, _ in then.lots:
                positions[cusip] += units
            recorded = (
                then.cash,
                dict(positions),
                then.earnings_basis,
                then.inflow,
                then.outflow,
                then.fees,
                then.realised,
            )
            message = self._difference_of(row["pocket_id"], recorded, counters[row["pocket_id"]])
            if row["entry_no"] != entry_no:
                message = f"its last entry is {row['entry_no']}, that of its commit {entry_no}"
            if message:
                key = POCKET_VERSIONS.key_of(row)
                self._findings.add("pocket_version", key, message, certainty=Certainty.SUSPECT)

    def _check_empty_snapshot(self, row: Record, key: Mapping[str, object]) -> None:
        """Check a day without bookings: a fee below a cent, or cash that bought no bill."""
        pocket_id, day = row["pocket_id"], row["business_date"]
        last = self._last_snapshot_dates.get(pocket_id)
        if last is not None:
            self._dates_before_empty_snapshot[pocket_id] = last
        if not self._may_be_empty(pocket_id, day):
            self._findings.add("snapshot", key, "nothing moved on this day")

    def _may_be_empty(self, pocket_id: UUID, day: date) -> bool:
        booked_at = self._last_booked_at.get(pocket_id)
        if booked_at is None:
            return False
        return self.calendar_variants.is_charge_date(day) or self.calendar_variants.waits_for_market_open(
            booked_at, day
        )

    def _difference(self, row: Record, counters: PocketCounters) -> str | None:
        try:
            positions = dict(msgspec.json.decode(row["positions"], type=list[tuple[str, int]]))
        except msgspec.MsgspecError:
            return "its positions cannot be read"
        recorded = (row["cash"], positions, row["earnings_basis"], *_recorded_counters(row))
        return self._difference_of(row["pocket_id"], recorded, counters)

    def _difference_of(self, pocket_id: UUID, recorded: tuple[object, ...], counters: PocketCounters) -> str | None:
        cash = self.accounts.cash.get(pocket_id)
        replayed = (
            0 if cash is None else cash.balance,
            self.accounts.positions(pocket_id),
            self.accounts.earnings_basis(pocket_id),
            *counters.totals,
        )
        return None if recorded == replayed else f"it says {recorded}, the log {replayed}"

    def _report_missing_snapshot(self, pocket_id: UUID, day: date) -> None:
        key = self._snapshot(pocket_id, day)
        self._findings.add("snapshot", key, "the snapshot is missing", certainty=Certainty.MISSING)

    def _snapshot(self, pocket_id: UUID, day: date) -> dict[str, object]:
        return {"customer_id": self.accounts.customer_id, "pocket_id": pocket_id, "business_date": day}

    # -- at the end --------------------------------------------------------------------

    def end(self, head: Record, counters: Counters) -> None:
        """Compare every pocket's row with the completely replayed log."""
        for pocket_id, row in self.by_id.items():
            recorded, replayed = (_recorded_counters(row), counters[pocket_id].totals)
            if recorded != replayed:
                message = f"in, out, fees and realised are {recorded}, the log says {replayed}"
                self._report(pocket_id, message)
            self._check_settlement_date(row, counters[pocket_id])
            self._check_business_date(head, row)
            for message in self._invalid_values(row):
                self._report(pocket_id, message)

    def _check_settlement_date(self, row: Record, counters: PocketCounters) -> None:
        recorded = row["unsettled_until"]
        if recorded != counters.unsettled_until:
            self._report(row["pocket_id"], f"its trades settle by {counters.unsettled_until}, not by {recorded}")

    def _check_business_date(self, head: Record, row: Record) -> None:
        """Check that the date on which the pocket last moved is open, or has a snapshot."""
        pocket_id, recorded = row["pocket_id"], row["last_activity_date"]
        moved_date, snapshot_date = (self._open_dates.get(pocket_id), self._last_snapshot_dates.get(pocket_id))
        if moved_date is not None and recorded != moved_date:
            until = self.calendar_variants.closes(moved_date)[0]
            still_open = head["due_at"] is not None and head["due_at"] <= until
            is_rolled = recorded is not None and recorded - row["accrued_through"] == _ONE_DAY
            if is_rolled or (recorded is None and not still_open):
                self._report_missing_snapshot(pocket_id, moved_date)
            else:
                self._report(pocket_id, f"it last moved on {moved_date}, not on {recorded}")
        elif moved_date is None and recorded is not None and not self._may_be_empty(pocket_id, recorded):
            self._report(pocket_id, f"nothing moved on {recorded}")
        if recorded is not None and snapshot_date is not None and recorded <= snapshot_date:
            self._report(pocket_id, f"the day {recorded} on which it moved has been kept already")
        self._check_accrual(row, recorded or moved_date or snapshot_date)

    def _check_accrual(self, row: Record, last: date | None) -> None:
        """Check that its fee has accrued up to the day before it last moved, and when its month is charged next."""
        pocket_id, accrued = row["pocket_id"], row["accrued_through"]
        booked_at = self._last_booked_at.get(pocket_id, row["opened_at"])
        last_dates = self.calendar_variants.business_dates(booked_at) if last is None else {last}
        # Earlier releases accrued up to the business day, that of the next opening after the close.
        if all(day - accrued != _ONE_DAY for day in {*last_dates, et_date(booked_at)}):
            previous_date = self._dates_before_empty_snapshot.get(pocket_id)
            if previous_date is not None and previous_date - accrued == _ONE_DAY:
                key = self._snapshot(pocket_id, self._last_snapshot_dates[pocket_id])
                self._findings.add("snapshot", key, "nothing moved on this day")
            else:
                self._report(pocket_id, f"its fee has not accrued up to {max(last_dates)}")
        charges = {charge for day in last_dates for charge in self.calendar_variants.charge_dates(day)}
        next_fee_date = row["next_fee_date"]
        if not self.calendar_variants.is_charge_date(next_fee_date):
            self._report(pocket_id, "its fee is charged on a day on which none is")
        elif next_fee_date not in charges | last_dates and not self._may_defer_charge(row, charges):
            self._report(pocket_id, f"its fee is charged next on {min(charges)}")

    def _may_defer_charge(self, row: Record, charges: Iterable[date]) -> bool:
        """The fraction of a cent that an empty pocket owes is carried over from month to month."""
        pocket_id = row["pocket_id"]
        cash = self.accounts.cash.get(pocket_id)
        holds = (cash is not None and cash.balance) or self.accounts.held.get(pocket_id)
        return not holds and row["next_fee_date"] > min(charges)

    def _invalid_values(self, row: Record) -> Iterator[str]:
        """Yield values of a pocket's row that are always invalid."""
        cash = self.accounts.cash.get(row["pocket_id"])
        balance = 0 if cash is None else cash.balance
        terms = {row["deposit_weeks"], row["reinvestment_weeks"] or row["deposit_weeks"]}
        if row["uninvested"] > balance:
            yield f"idle is {row['uninvested']}, but cash is {balance}"
        if row["accrued_through"] >= row["next_fee_date"]:
            yield "accrued_through is not before next_fee_date"
        if row["invest_at"] is not None and not self._is_opening(row["invest_at"]):
            yield "invest_at is not an opening of the market"
        if not terms <= TERMS.keys():
            yield "its weeks are not a term of bills"
        if row["closed_at"] is not None:
            yield from self._invalid_closure(row, balance)

    def _invalid_closure(self, row: Record, balance: int) -> Iterator[str]:
        if row["closed_at"] < row["opened_at"]:
            yield f"closed_at is {row['closed_at']}, before opened_at {row['opened_at']}"
        if balance or self.accounts.held.get(row["pocket_id"]) or row["fee_accrued"]:
            yield "it is closed, but its balance is not zero"

    def _is_opening(self, at: datetime) -> bool:
        return self.calendar_variants.is_settlement_day(et_date(at)) and self.calendar_variants.is_opening(at)


def _recorded_counters(row: Record) -> tuple[int, int, int, int]:
    return (row["inflow"], row["outflow"], row["fees"], row["realised"])
