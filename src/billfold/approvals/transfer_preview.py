"""Previews a transfer without writing anything.

Runs the command of the execution on books that are then discarded, so that both give the same result.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET

from billfold.accounts.pockets import store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.schemas import valuation
from billfold.approvals.execute_transfers import INSUFFICIENT_FUNDS, check_feasible, run_in_order
from billfold.approvals.schemas import DualAuthUser, render_person
from billfold.approvals.transfer_orders import AmountType, RequestContent
from billfold.approvals.transfer_requests import check_unused, required_approvals
from billfold.approvals.types import Actor, ApprovalRequirement, Reviewer
from billfold.bills.rules.recurrence import Occurrence
from billfold.http.schemas import Amount, format_price, one_of, usd
from billfold.ledger.bank import Bank
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.ledger.dry_run import DryRun
from billfold.ledger.types import TradeActivity, TransactionType
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError, Refused

RUNS_SHOWN: Final = 6
"""Runs of a series that are previewed."""


class RunOfSeries(NamedTuple):
    """A day of a series, the cents that its run would pay, why it would pay nothing, and the Pocket afterwards."""

    occurrence: Occurrence
    amount: int = 0
    refusal: BillfoldError | None = None
    pocket: PocketRow | None = None


class PreviewedTransfer(NamedTuple):
    """The effect of a transfer: the rows of the paying Pocket, the Pocket afterwards, and the required approvers.

    `terms` are None for a partner's transfer, which no member approves.  `rejection` is the bank's reason to reject
    it; then nothing moves. `amount` is in cents.
    """

    now: datetime
    transfer_id: UUID
    amount_type: AmountType
    amount: int
    rejection: str | None
    trades: list[TradeEntry]
    transactions: list[TransactionEntry]
    pocket: PocketRow
    terms: ApprovalRequirement | None
    runs: Sequence[RunOfSeries] = ()


async def preview(bank: Bank, customer_id: UUID, content: RequestContent, *, by: Actor | None) -> PreviewedTransfer:
    """Preview a transfer of a member, or of a partner.

    Raises as requesting it does, and `insufficient-funds` as executing it does.
    """
    async with bank.pool.acquire() as conn:
        terms = None
        if by is not None:
            await check_unused(conn, by, content)
            async with conn.transaction():
                terms = await required_approvals(bank, conn, by, content)
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            stored = await store.get_pocket(conn, customer_id, content.pocket_id)
            try:
                run = await check_feasible(bank, conn, content, customer_id=customer_id)
                found = preview_of_run(run, content, stored, terms=terms)
            except Refused as refusal:
                if content.schedule is UNSET or refusal.code != "insufficient-funds":
                    raise
                found = _without_funds(await bank.engine.now(conn), content, stored, terms=terms)
            return found._replace(runs=await _runs_of_series(bank, conn, content, stored=stored))


def _without_funds(
    now: datetime, content: RequestContent, stored: PocketRow, *, terms: ApprovalRequirement | None
) -> PreviewedTransfer:
    """Return a series whose Pocket lacks the money now: it is not refused for that, and may have it on its days."""
    return PreviewedTransfer(
        now=now,
        transfer_id=content.request_id,
        amount_type=content.amount_type,
        amount=content.amount,
        rejection=INSUFFICIENT_FUNDS,
        trades=[],
        transactions=[],
        pocket=stored,
        terms=terms,
    )


async def _runs_of_series(
    bank: Bank, conn: Connection, content: RequestContent, *, stored: PocketRow
) -> list[RunOfSeries]:
    """Return the first runs of a series, each after those before it, with the prices and the money of now."""
    if content.schedule is UNSET:
        return []
    days = content.schedule.recurrence().occurrences(bank.calendars, content.schedule.on_closed_day)
    found = []
    contents: list[RequestContent] = []
    for each in islice(days, RUNS_SHOWN):
        if each.moved_to is None:
            found.append(RunOfSeries(each))
            continue
        transfer = msgspec.structs.replace(content.transfer, id=uuid5(content.request_id, str(each.day)))
        contents.append(msgspec.structs.replace(content, transfer=transfer, schedule=UNSET))
        # All those before run again, because a book shows the state after the last: there are few of them.
        runs = await run_in_order(bank, conn, contents, customer_id=stored.customer_id)
        run = runs[transfer.id]
        if isinstance(run, BillfoldError):
            found.append(RunOfSeries(each, refusal=run))
        else:
            shown = preview_of_run(run, contents[-1], stored, terms=None)
            found.append(RunOfSeries(each, shown.amount, pocket=shown.pocket))
    return found


def preview_of_run(
    run: DryRun, content: RequestContent, stored: PocketRow, *, terms: ApprovalRequirement | None
) -> PreviewedTransfer:
    """Return the result of a dry run for the paying Pocket; the receiving Pocket is left out."""
    shown = preview_of_payment(run, content.pocket_id, content.request_id, stored=stored, ordered=content.amount)
    return shown._replace(amount_type=content.amount_type, terms=terms)


def preview_of_payment(
    run: DryRun, pocket_id: UUID, transfer_id: UUID, *, stored: PocketRow, ordered: int
) -> PreviewedTransfer:
    """Return the result of a dry run of a payment of `ordered` cents for the paying Pocket."""
    return PreviewedTransfer(
        now=run.now,
        transfer_id=transfer_id,
        amount_type="REQUESTED_AMOUNT",
        amount=run.outcome["amount"] or ordered,
        rejection=run.outcome.get("reason"),
        trades=[each for each in run.rows_of(TradeEntry) if each.pocket_id == pocket_id],
        transactions=[each for each in run.rows_of(TransactionEntry) if each.pocket_id == pocket_id],
        pocket=row_after(run.book.pockets[pocket_id], stored),
        terms=None,
    )


def row_after(pocket: PocketBook, stored: PocketRow) -> PocketRow:
    """Return a Pocket as it would be stored, with the columns that its value depends on."""
    return msgspec.structs.replace(
        stored,
        cash=pocket.cash.balance,
        reserved=pocket.cash.reserved,
        unsettled_discount=pocket.unsettled_discount,
        unsettled_on=pocket.unsettled_on,
        fee_accrued=pocket.fee_accrued,
        accrued_through=pocket.accrued_through,
        lot_cusips=[lot.cusip for lot in pocket.lots],
        lot_units=[lot.units for lot in pocket.lots],
        lot_dates=[lot.acquired_on for lot in pocket.lots],
    )


_MOVED = TradeActivity.SAME_ENTITY_SECURITY_TRANSFER


class PreviewedSale(msgspec.Struct, kw_only=True):
    """Bills of one CUSIP that are sold, or moved to the other Pocket.

    `realized_gain` is the proceeds less the tax basis, 0 for bills that are moved with their basis. `earnings` is the
    proceeds less what the Pocket paid for the bills, or the value at which it received them.
    """

    activity: Annotated[str, one_of(TradeActivity.SELL, _MOVED)]
    cusip: str
    description: str
    maturity_date: date
    quantity: int
    price: str
    proceeds: Amount
    tax_basis: Amount
    realized_gain: Amount
    earnings_basis: Amount
    earnings: Amount
    settles_on: date


class PreviewedFee(msgspec.Struct, kw_only=True):
    """A fee that the Pocket pays with the transfer."""

    type: Annotated[str, one_of("AUM_FEE", "WIRE_FEE", "SAME_DAY_FEE")]
    amount: Amount


class PreviewedBalance(msgspec.Struct, kw_only=True):
    """The Pocket's holdings after the transfer, valued like its portfolio."""

    cash: Amount
    total_value: Amount
    liquidation_value_t0: Amount
    liquidation_value_t1: Amount


class RequiredApproval(msgspec.Struct, kw_only=True):
    """The approvals that the transfer would need, by which rule (null: the default), and the eligible approvers."""

    required_approvals: int
    approval_rule_id: UUID | None
    approval_rule_name: str | None
    policy_version: int | None
    policy_rule: str | None
    ordered: bool
    approvers: list[DualAuthUser]


class PreviewedRun(msgspec.Struct, kw_only=True):
    """A run of a series after those before it, with the prices and the money of now.

    `pays_on` is null for a closed day that is left out. `refusal_code` and `refusal` say why it would pay nothing.
    """

    run_on: date
    pays_on: date | None
    amount: Amount
    refusal_code: str | None
    refusal: str | None
    remaining: PreviewedBalance | None


class TransferPreview(msgspec.Struct, kw_only=True):
    """The effect of a transfer if it were executed at `time_priced`; of a series also the first `runs`.

    `approval` is null for a partner's transfer, which no member approves. `rejection_reason` is set when the bank would
    accept the request and then reject the transfer; then nothing moves.
    """

    transfer_id: UUID
    time_priced: datetime
    amount: Amount
    amount_type: AmountType
    sales: list[PreviewedSale]
    proceeds: Amount
    realized_gain: Amount
    earnings: Amount
    fees: list[PreviewedFee]
    settles_at: datetime | None
    settlement_date: date | None
    remaining: PreviewedBalance
    approval: RequiredApproval | None
    rejection_reason: str | None
    runs: list[PreviewedRun] = []
    object_type: Literal["TransferPreview"] = "TransferPreview"


def render_preview(found: PreviewedTransfer, bank: Bank, members: Mapping[UUID, Reviewer]) -> TransferPreview:
    """Return a preview for display. `members` includes those who may approve."""
    sales = [render_sale(each, bank) for each in found.trades if not each.incoming]
    return TransferPreview(
        transfer_id=found.transfer_id,
        time_priced=found.now,
        amount=usd(found.amount),
        amount_type=found.amount_type,
        sales=sales,
        proceeds=_sum(each.proceeds for each in sales),
        realized_gain=_sum(each.realized_gain for each in sales),
        earnings=_sum(each.earnings for each in sales),
        fees=[
            PreviewedFee(type=msgspec.json.decode(each.details)["fee_type"], amount=usd(each.amount))
            for each in found.transactions
            if each.type == TransactionType.FEE
        ],
        **_settlement(found),
        remaining=remaining_in(found.pocket, bank, found.now),
        approval=None if found.terms is None else render_approval(found.terms, members),
        rejection_reason=found.rejection,
        runs=[_render_run(each, bank, found.now) for each in found.runs],
    )


def _render_run(run: RunOfSeries, bank: Bank, now: datetime) -> PreviewedRun:
    return PreviewedRun(
        run_on=run.occurrence.day,
        pays_on=run.occurrence.moved_to,
        amount=usd(run.amount),
        refusal_code=None if run.refusal is None else run.refusal.code,
        refusal=None if run.refusal is None else run.refusal.detail,
        remaining=None if run.pocket is None else remaining_in(run.pocket, bank, now),
    )


def render_approval(terms: ApprovalRequirement, members: Mapping[UUID, Reviewer]) -> RequiredApproval:
    """Return a requirement with its approvers for display."""
    return RequiredApproval(
        required_approvals=terms.required,
        approval_rule_id=terms.rule_id,
        approval_rule_name=terms.rule_name,
        policy_version=terms.policy_version,
        policy_rule=terms.policy_rule,
        ordered=terms.ordered,
        approvers=[render_person(members[each]) for each in terms.candidates or () if each in members],
    )


def render_sale(row: TradeEntry, bank: Bank) -> PreviewedSale:
    """Return a sale for display."""
    bill = bank.market.bill(row.cusip)
    return PreviewedSale(
        activity=row.activity,
        cusip=row.cusip,
        description=bill.description,
        maturity_date=bill.maturity,
        quantity=row.units,
        price=format_price(row.price_micros),
        proceeds=usd(row.notional),
        tax_basis=usd(row.tax_basis),
        realized_gain=usd(0 if row.activity == _MOVED else row.notional - row.tax_basis),
        earnings_basis=usd(row.earnings_basis),
        earnings=usd(row.notional - row.earnings_basis),
        settles_on=row.settles_on,
    )


def _settlement(found: PreviewedTransfer) -> dict[str, Any]:
    """Return the latest arrival of the money; bills that are moved arrive at once."""
    if found.rejection is not None:
        return {"settles_at": None, "settlement_date": None}
    paid = (each.settles_at for each in found.transactions if each.type != TransactionType.FEE)
    settles_at = next(paid, found.now)
    return {"settles_at": settles_at, "settlement_date": et_date(settles_at)}


def remaining_in(pocket: PocketRow, bank: Bank, now: datetime) -> PreviewedBalance:
    """Return what a Pocket holds."""
    value = valuation(pocket, bank, now)
    return PreviewedBalance(
        cash=usd(pocket.cash),
        total_value=usd(value.total_value),
        liquidation_value_t0=usd(value.liquidation_value_t0),
        liquidation_value_t1=usd(value.liquidation_value_t1),
    )


def _sum(amounts: Iterable[Amount]) -> Amount:
    return usd(sum(each.value for each in amounts))
