"""Transactions, trades and prices as the entries of an account."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.transactions.settlement import SettledDocument, TransactionRow, settles_at
from billfold.bills.rules.market import Market
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.ids import member_of
from billfold.platform.money import cents_for
from billfold.reports.entries import types

_ONE_DAY = timedelta(days=1)
_SWEEP_MEMBER = 1000
_KINDS = {"ON_US": types.EntryKind.ONUS}
_IN_KIND = {True: types.EntryKind.ADDITION, False: types.EntryKind.SUBTRACTION}
_IN_KIND_TITLES = {True: "Bills received", False: "Bills delivered"}


class _Structured(msgspec.Struct):
    end_to_end_identification: str | None = None
    documents: tuple[SettledDocument, ...] = ()


class _Remittance(msgspec.Struct):
    unstructured: tuple[str, ...] | None = None
    structured: _Structured | None = None


class _Details(msgspec.Struct):
    """The details of a transaction that entries show, for any type."""

    fee_type: str | None = None
    crypto_transfer_id: str | None = None
    company_name: str | None = None
    counterparty_name: str | None = None
    counterparty: Any = None
    ach_direction: str | None = None
    trace_number: str | None = None
    reference_number: str | None = None
    end_to_end_identification: str | None = None
    external_id: str | None = None
    metadata: dict[str, str] = {}

    @property
    def other_party(self) -> str | None:
        """The payer or payee; the company of an ACH entry originated here is our own customer."""
        if isinstance(self.counterparty, dict):
            return self.counterparty.get("name")
        company = None if self.ach_direction == "ORIGINATION" else self.company_name
        return self.counterparty or self.counterparty_name or company

    def is_direct_debit(self, *, is_credit: bool) -> bool:
        """Return whether the payee initiated it: the bank collected by ACH, or another bank did."""
        return self.ach_direction is not None and is_credit == (self.ach_direction == "ORIGINATION")


_read_details = msgspec.json.Decoder(_Details).decode
_read_remittance = msgspec.json.Decoder(_Remittance | None).decode


def period_of(first_day: date, last_day: date, now: datetime) -> types.Period:
    """Return these Eastern days as of an instant: closed once the last of them is over."""
    over_at = et_instant(last_day + _ONE_DAY, 0)
    return types.Period(first_day, last_day, et_instant(first_day, 0), min(over_at, now), over_at <= now)


def period_since(last_booked_at: datetime, period: types.Period) -> types.Period:
    """Return a period that begins where earlier entries ended, on the same day or before."""
    return msgspec.structs.replace(period, first_day=et_date(last_booked_at), starts_at=last_booked_at)


def entries_of(
    listed: types.ListedTransaction, account: types.AccountType, calendars: Calendars
) -> Iterator[types.AccountEntry]:
    """Yield the entries of a transaction on an account: a payment and its sweep, or an addition or the like."""
    row = msgspec.structs.replace(listed.row, settles_at=listed.ach_settled_at or listed.row.settles_at)
    is_credit = row.direction == "CREDIT"
    details = _read_details(row.details)
    remittance = _read_remittance(row.remittance) if row.remittance else None
    structured = remittance.structured if remittance else None
    booked_on = et_date(row.booked_at)
    payment = types.AccountEntry(
        kind=_kind_of(row, details),
        amount=row.amount if is_credit else -row.amount,
        reference=row.activity_id.hex,
        booked_at=row.booked_at,
        booked_on=booked_on,
        value_on=max(booked_on, et_date(settles_at(row, calendars))),
        title=row.title,
        description=row.description,
        counterparty=listed.ach_party or details.other_party,
        remittance=(remittance and remittance.unstructured) or (),
        documents=(structured and structured.documents) or (),
        references=_references(listed, details, structured),
        transaction_id=row.transaction_id,
        entry_no=row.entry_no,
        is_reversal=listed.is_reversal,
        is_direct_debit=not listed.is_reversal and details.is_direct_debit(is_credit=is_credit),
        external_id=details.external_id,
        metadata=details.metadata,
    )
    sweep = _sweep_id(row).hex
    if account == types.AccountType.BROKERAGE:
        is_fee = details.fee_type == types.EntryKind.AUM_FEE and not is_credit
        kind = types.EntryKind.AUM_FEE if is_fee else _IN_KIND[is_credit]
        yield msgspec.structs.replace(payment, kind=kind, reference=sweep, value_on=booked_on)
        return
    yield payment
    yield types.AccountEntry(
        kind=types.EntryKind.SWEEP,
        amount=-payment.amount,
        reference=sweep,
        booked_at=row.booked_at,
        booked_on=booked_on,
        value_on=booked_on,
        title="Sweep",
        description="To brokerage" if is_credit else "From brokerage",
        transaction_id=row.transaction_id,
        entry_no=row.entry_no,
    )


def transfer_entry(row: types.TransferInKind, market: Market) -> types.AccountEntry:
    """Return a transfer of bills in kind as an entry of the brokerage account, at market value."""
    booked_on = et_date(row.traded_at)
    return types.AccountEntry(
        kind=_IN_KIND[row.incoming],
        amount=row.cents if row.incoming else -row.cents,
        reference=row.trade_id.hex,
        booked_at=row.traded_at,
        booked_on=booked_on,
        value_on=max(booked_on, market.calendars.settlement_on_or_after(row.settles_on)),
        title=_IN_KIND_TITLES[row.incoming],
        entry_no=row.entry_no,
        security=security_of(row.cusip, market),
        units=row.units,
    )


def security_of(cusip: str, market: Market) -> types.Security:
    """Return the bill's description for entries."""
    bill = market.bill(cusip)
    return types.Security(cusip, bill.isin, bill.maturity)


def balance_of(cash: int, positions: Mapping[str, int], prices: Mapping[str, int], market: Market) -> types.Balance:
    """Return cash and bills at these prices in micros, ordered by maturity."""
    held = [
        types.Holding(security_of(cusip, market), units, prices[cusip], cents_for(units, prices[cusip]))
        for cusip, units in positions.items()
        if units
    ]
    return types.Balance(cash, tuple(sorted(held, key=lambda each: (each.security.maturity, each.security.cusip))))


def move(cash: int, positions: Mapping[str, int], moved: types.Movements) -> tuple[int, dict[str, int]]:
    """Return cash and units after payments and trades."""
    units = dict(positions)
    for is_credit, (_, cents) in moved.payments.items():
        cash += cents if is_credit else -cents
    for trade in moved.trades:
        sign = 1 if trade.incoming else -1
        units[trade.cusip] = units.get(trade.cusip, 0) + sign * trade.units
        if trade.is_paid:
            cash -= sign * trade.cents
    return cash, units


def gains_of(
    period: types.Period,
    opening: types.Balance,
    closing: types.Balance,
    trades: Iterable[types.TradeTotal],
    market: Market,
) -> Iterator[types.AccountEntry]:
    """Yield the gain or loss of each bill: its final value plus proceeds, less its initial value and cost."""
    cents: dict[str, int] = {}
    for balance, sign in ((opening, -1), (closing, 1)):
        for each in balance.holdings:
            cents[each.security.cusip] = cents.get(each.security.cusip, 0) + sign * each.value
    for trade in trades:
        cents[trade.cusip] = cents.get(trade.cusip, 0) + (-trade.cents if trade.incoming else trade.cents)
    for cusip in sorted(cents):
        if cents[cusip]:
            yield types.AccountEntry(
                kind=types.EntryKind.GAIN_LOSS,
                amount=cents[cusip],
                reference=f"GL-{cusip}-{period.first_day:%y%m%d}-{period.last_day:%y%m%d}",
                booked_at=period.ends_at - datetime.resolution if period.is_closed else period.ends_at,
                booked_on=period.last_day,
                value_on=period.last_day,
                title="Gain" if cents[cusip] > 0 else "Loss",
                description="Change in value, realised and unrealised",
                security=security_of(cusip, market),
            )


def totals_of(
    account: types.AccountType, moved: types.Movements, gains: Iterable[types.AccountEntry]
) -> types.EntryTotals:
    """Return the totals of all entries of a period."""
    into, out = moved.payments.get(True, (0, 0)), moved.payments.get(False, (0, 0))
    if account == types.AccountType.BANK:
        count, cents = into[0] + out[0], into[1] + out[1]
        return types.EntryTotals(count, cents, count, cents)
    in_kind = [(each.incoming, each.trades, each.cents) for each in moved.trades if not each.is_paid]
    for incoming, count, cents in in_kind:
        if incoming:
            into = into[0] + count, into[1] + cents
        else:
            out = out[0] + count, out[1] + cents
    return types.EntryTotals(*into, *out).add(*(each.amount for each in gains))


def require_balance(opening: types.Balance, closing: types.Balance, totals: types.EntryTotals, pocket_id: UUID) -> None:
    """Raise InvariantError unless the opening value plus all entries is the closing value."""
    if opening.value + totals.net != closing.value:
        raise InvariantError(
            "An account's opening balance and its entries are not its closing balance.",
            pocket_id=pocket_id,
            opening=opening.value,
            net=totals.net,
            closing=closing.value,
        )


def _kind_of(row: TransactionRow, details: _Details) -> types.EntryKind:
    return types.EntryKind.CRYPTO if details.crypto_transfer_id else _KINDS.get(row.type) or types.EntryKind(row.type)


def _references(listed: types.ListedTransaction, details: _Details, structured: _Structured | None) -> types.References:
    """Return the references of a payment. An entry of an ACH file has only its trace number."""
    told = listed.end_to_end_id or details.end_to_end_identification
    return types.References(
        instruction=details.reference_number,
        end_to_end=told or (structured and structured.end_to_end_identification) or details.trace_number,
        uetr=listed.uetr,
        transaction=details.crypto_transfer_id,
        clearing=listed.imad or details.trace_number,
    )


def _sweep_id(row: TransactionRow) -> UUID:
    """Return the id under which the sweep of a transaction is listed."""
    return member_of(row.transaction_id, _SWEEP_MEMBER + int.from_bytes(row.activity_id.bytes[-2:]))
