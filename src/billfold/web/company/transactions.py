"""The transactions of a company, filtered by the query; as a CSV file; one of them."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid5

import msgspec
from litestar import get, post

from billfold.accounts.explain.schemas import Explained
from billfold.accounts.trades.schemas import Trade, render_trade
from billfold.accounts.trades.store import list_of_entry
from billfold.accounts.transactions.pages import TYPES
from billfold.accounts.transactions.routes import get_transaction, get_transactions_csv, list_own_transactions
from billfold.accounts.transactions.schemas import AchActivity, CardActivity, OnUsActivity, Shared, WireActivity
from billfold.accounts.transactions.store import get_transaction_row
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.transfer_requests_routes import create_transfer_request, get_transfer_request
from billfold.bills.rules.fees import fee_charge_date
from billfold.documents.routes import upload_document
from billfold.documents.rules import DISPUTE_EVIDENCE
from billfold.documents.store import list_documents, open_names
from billfold.explanations.routes import explain_transaction
from billfold.payments.ach.commands import AchWay
from billfold.payments.ach.routes import get_ach_debit, return_ach_debit
from billfold.payments.cards.authorizations.disputes.commands import OPEN, DisputeReason
from billfold.payments.cards.authorizations.disputes.routes import (
    add_card_dispute_documents,
    create_card_dispute,
    withdraw_card_dispute,
)
from billfold.payments.cards.authorizations.disputes.store import get_dispute, get_purchase, list_of_purchase
from billfold.payments.on_us.reversals.commands import ReversalRequestRow
from billfold.payments.on_us.reversals.routes import create_reversal_request, decline_reversal_request
from billfold.payments.on_us.reversals.schemas import render_reversal
from billfold.payments.on_us.reversals.store import find_open_request, find_received, get_request
from billfold.payments.wires.commands import WAITING_FOR_FUNDS, WireDirection, WireStatus, WireType
from billfold.payments.wires.routes import cancel_wire
from billfold.payments.wires.store import get_wire
from billfold.platform.dates import et_date, parse_day
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.web.console.lists import TRANSACTION_FILTERS, list_choices, operation_filters, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again
from billfold.web.uploads import SentForm, received_file

_PAGE = 30
_NO_SUCH = "There is no such transaction."
_UNDOES = "transfers.write"
_SHOWN = frozenset(
    {"counterparty", "counterparty_id", "counterparty_name", "company_name", "fee_type", "related_transaction_id"}
)
_HIDDEN = _SHOWN | {*Shared.__struct_fields__, "object_type", "portal_id", "on_us_transfer_type"}
_UNSAID: tuple[object, ...] = ({}, None, "", False, "NOTPROVIDED", WireType.PAYMENT)
_ACRONYMS = frozenset({"ach", "aum", "id", "imad", "omad", "uetr"})


@get("/companies/{customer_id:str}/transactions")
async def show_transactions(company: InCompany) -> PageResponse:
    """Show transactions, the newest first."""
    listing = await read_listing(company, list_own_transactions, TRANSACTION_FILTERS, limit=_PAGE)
    shown = [each.pocket_id for each in listing.rows.items]
    return company.render(
        "transactions",
        listing=listing,
        names=await list_choices(company, shown, listing.filters.get("pocket", "")),
        types=sorted(TYPES),
        fees=_fees_after(company, listing.filters),
    )


class FeesAfter(NamedTuple):
    """The last day of a month, and the later day on which its fees are booked."""

    month_end: date
    booked_on: date


def _fees_after(company: Company, filters: Mapping[str, str]) -> FeesAfter | None:
    """Return where the fees of the last month of a list are, if that is whole and they are outside of the list."""
    last: date | None = None
    with suppress(ValueError):
        last = parse_day(filters.get("to", ""))
    if last is None or last >= et_date(company.clock.now) or filters.get("type", "FEE") != "FEE":
        return None
    if (last + timedelta(days=1)).day != 1:
        return None
    return FeesAfter(last, fee_charge_date(last, company.page.server.bank.calendars))


@get("/companies/{customer_id:str}/transactions.csv")
async def download_transactions(company: InCompany) -> PageResponse:
    """Download the filtered transactions."""
    filters = operation_filters(company.page.query, TRANSACTION_FILTERS)
    return await company.api.download(get_transactions_csv, **filters, columns="people")


@get("/companies/{customer_id:str}/transactions/{transaction_id:str}")
async def show_transaction(company: InCompany, transaction_id: str) -> PageResponse:
    """Show one transaction, and how it can be undone."""
    return await _show(company, transaction_id)


async def _show(company: Company, transaction_id: str, *, wrong: FormError = "") -> PageResponse:
    key, past = path_id(transaction_id, _NO_SUCH), company.look_back()
    found = await company.api.get(get_transaction, transaction_id=key)
    wire_id = getattr(found, "wire_id", None)
    wire = await get_wire(company.page.pool, found.customer_id, wire_id, as_of=past.at) if wire_id else None
    is_payment = wire is not None and (wire.wire_type, wire.direction) == (WireType.PAYMENT, WireDirection.OUTGOING)
    may_undo = company.may(_UNDOES) and found.direction == "DEBIT"
    reversal = await _reversal_request_of(company, found) if company.may(_UNDOES) else None
    booked, today = et_date(found.time_booked), et_date(past.at or company.clock.now)
    return company.render(
        "transaction",
        wrong=wrong or past.wrong,
        may_cancel=may_undo and wire is not None and is_payment and wire.status == WireStatus.PENDING,
        return_codes=await _return_codes(company, found) if may_undo else {},
        may_ask_back=may_undo
        and isinstance(found, OnUsActivity)
        and found.on_us_transfer_type != "INTERNAL_REALLOCATION"
        and found.reverses_id is None,
        **await _disputes_of(company, found, may_undo=may_undo),
        transaction=found,
        kind=found.__struct_config__.tag,
        facts=_facts(found),
        reversal_request=None if reversal is None else render_reversal(reversal, company.customer_id),
        waits_for_funds=wire is not None and wire.reason == WAITING_FOR_FUNDS,
        names=await list_choices(company, [found.pocket_id]),
        request=await _request_of(company, found),
        trades=await _trades_of(company, found),
        fee=await _fee_of(company, found),
        statement=f"{booked:%Y-%m}" if (booked.year, booked.month) < (today.year, today.month) else "",
    )


async def _show_with_dispute(
    company: Company, transaction_id: str, dispute_id: str, *, wrong: FormError = ""
) -> PageResponse:
    del dispute_id
    return await _show(company, transaction_id, wrong=wrong)


async def _fee_of(company: Company, transaction: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any variant
    """Return the days, average base in cents, rate and explaining part of a fee on assets; None for others."""
    if getattr(transaction, "fee_type", "") != "AUM_FEE":
        return None
    explained: Explained = await company.api.get(explain_transaction, transaction_id=transaction.id)
    parts = explained.explanation.parts
    place = next((n for n, each in enumerate(parts) if each.label == "Fee charged"), None)
    days = parts[place].parts if place is not None else []
    if not days:
        return None
    bases = [int(step.value) for day in days for step in day.steps if step.symbol == "B"]
    rate = next(each.value for each in days[0].inputs if each.symbol == "p")
    first, last = (each.label.removeprefix("Fee of ") for each in (days[0], days[-1]))
    return {
        "place": place,
        "days": len(days),
        "average": sum(bases) // len(bases),
        "bps": rate,
        "first": date.fromisoformat(first),
        "last": date.fromisoformat(last),
    }


async def _request_of(company: Company, transaction: Any) -> ShownTransferRequest | None:  # noqa: ANN401 - any variant
    """Return the transfer request of a transaction, whose id is that of the payment; None for others'."""
    key = getattr(transaction, "wire_id", None) or getattr(transaction, "on_us_transfer_id", None)
    if key and transaction.direction == "DEBIT" and company.may("transfers.read") and not company.is_past:
        with suppress(NotFound):
            found: ShownTransferRequest = await company.api.get(get_transfer_request, transfer_id=key)
            return found
    return None


async def _trades_of(company: Company, transaction: Any) -> list[Trade]:  # noqa: ANN401 - any variant
    """Return what was sold for a transaction, or bought with it: the trades of its journal entry."""
    bank, owner = company.page.server.bank, company.customer_id
    row = await get_transaction_row(bank.pool, owner, None, transaction.id)
    trades = await list_of_entry(bank.pool, owner, row.pocket_id, row.entry_no)
    return [render_trade(each, bank, company.past_at or company.clock.now) for each in trades]


@post("/companies/{customer_id:str}/transactions/{transaction_id:str}/undo")
@shown_again(_show, unless="forbidden")
async def undo(company: InCompany, transaction_id: str) -> PageResponse:
    """Cancel the wire of a transaction, return its debit, ask its payee for it or answer that."""
    company.require(_UNDOES)
    found = await company.api.get(get_transaction, transaction_id=path_id(transaction_id, _NO_SUCH))
    key, reason = company.page.form_key, company.page.form.get("reason") or None
    if isinstance(found, WireActivity):
        done = "wire-cancelled"
        await company.api.send(cancel_wire, key=key, wire_id=found.wire_id)
    elif isinstance(found, AchActivity):
        form, done = company.page.form, "debit-returned"
        why = {"code": form.get("code", ""), "has_signed_statement": form.get("has_signed_statement") == "yes"}
        await company.api.send(return_ach_debit, why, key=key, ach_id=found.ach_id)
    elif isinstance(found, OnUsActivity) and found.direction == "CREDIT":
        done = await _answer(company, found)
    elif isinstance(found, OnUsActivity):
        body, done = {"reason": reason}, "reversal-requested"
        await company.api.send(create_reversal_request, body, key=key, transfer_id=found.on_us_transfer_id)
    else:
        raise NotFound(_NO_SUCH)
    return redirect(f"{company.path}/transactions/{found.id}", done=done)


_DISPUTE = "/companies/{customer_id:str}/transactions/{transaction_id:str}/dispute"
_NO_REQUEST = "There is no such request."
_NO_DISPUTE = "There is no such dispute."
_DISPUTES_MAX = 20


@post(_DISPUTE, opt={"takes_file": True})
async def dispute(company: InCompany, transaction_id: str) -> PageResponse:
    """Dispute a payment by card, with a document if there is one."""
    company.require(_UNDOES)
    try:
        async with received_file(company.page, company.customer_id, DISPUTE_EVIDENCE, optional=True) as sent:
            found = await company.api.get(get_transaction, transaction_id=path_id(transaction_id, _NO_SUCH))
            key = sent.fields.get("form_key", "")
            body = _disputing(found, sent.fields)
            if sent.request.body:
                body["document_ids"] = await _uploaded(company, sent)
        await company.api.send(create_card_dispute, body, key=key)
    except (InvalidInput, Refused) as wrong:
        if wrong.code == "forbidden":
            raise
        return await _show(company, transaction_id, wrong=wrong)
    return redirect(f"{company.path}/transactions/{found.id}", done="card-disputed")


async def _uploaded(company: Company, sent: SentForm) -> list[str]:
    """Return the id of the document that a form has sent."""
    key = sent.fields.get("form_key", "")
    made = await company.api.send_file(
        upload_document, sent.request, key=key and f"{key}-file", document_type=DISPUTE_EVIDENCE
    )
    return [str(made.document_id)]


@post(f"{_DISPUTE}/{{dispute_id:str}}/documents", opt={"takes_file": True})
async def add_dispute_document(company: InCompany, transaction_id: str, dispute_id: str) -> PageResponse:
    """Add a document to a dispute that is not decided."""
    company.require(_UNDOES)
    one = path_id(dispute_id, _NO_DISPUTE)
    try:
        async with received_file(company.page, company.customer_id, DISPUTE_EVIDENCE) as sent:
            body, key = {"document_ids": await _uploaded(company, sent)}, sent.fields.get("form_key", "")
        await company.api.send(add_card_dispute_documents, body, key=key, dispute_id=one)
    except (InvalidInput, Refused) as wrong:
        if wrong.code == "forbidden":
            raise
        return await _show(company, transaction_id, wrong=wrong)
    return redirect(f"{company.path}/transactions/{path_id(transaction_id, _NO_SUCH)}", done="document-added")


def _disputing(transaction: Any, fields: Mapping[str, str]) -> dict[str, Any]:  # noqa: ANN401 - any variant
    """Return the body that disputes a payment. Raises InvalidInput."""
    body = {"pocket_id": str(transaction.pocket_id), "transaction_id": str(transaction.id)}
    amount = {"amount_usdc": cents_of("amount", fields["amount"])} if fields.get("amount") else {}
    return {**body, **amount, "reason": fields.get("reason", "")}


@post(f"{_DISPUTE}/{{dispute_id:str}}/withdraw")
@shown_again(_show_with_dispute, unless="forbidden")
async def withdraw_dispute(company: InCompany, transaction_id: str, dispute_id: str) -> PageResponse:
    """Withdraw a dispute; what is credited provisionally is taken back."""
    company.require(_UNDOES)
    key = path_id(dispute_id, _NO_DISPUTE)
    await company.api.send(withdraw_card_dispute, key=company.page.form_key, dispute_id=key)
    return redirect(f"{company.path}/transactions/{path_id(transaction_id, _NO_SUCH)}", done="dispute-withdrawn")


async def _disputes_of(company: Company, transaction: Any, *, may_undo: bool) -> dict[str, Any]:  # noqa: ANN401 - any variant
    """Return the disputes of a payment by card with their documents, and the reasons for another one."""
    bank, owner = company.page.server.bank, company.customer_id
    if not (isinstance(transaction, CardActivity) and transaction.direction == "DEBIT"):
        return {"disputes": [], "dispute_reasons": []}
    row = await get_transaction_row(bank.pool, owner, None, transaction.id)
    try:
        purchase = await get_purchase(bank.pool, owner, row.entry_no)
    except NotFound:  # it is only authorized
        return {"disputes": [], "dispute_reasons": []}
    disputes = await list_of_purchase(bank.pool, purchase, limit=_DISPUTES_MAX)
    if (at := company.past_at) is not None:
        then = [each.dispute_id for each in disputes if each.created_at <= at]
        disputes = [await get_dispute(bank.pool, owner, each, as_of=at) for each in then]
    ids = {key for each in disputes for key in each.evidence_ids}
    documents = await open_names(bank.pool, bank, list((await list_documents(bank.pool, owner, ids)).values()))
    taken = sum(each.recovered if each.status == "WITHDRAWN" else each.amount for each in disputes)
    return {
        "disputes": disputes,
        "open_disputes": OPEN,
        "documents": {each.document_id: each for each in documents},
        "disputable": purchase.amount - taken,
        "dispute_reasons": list(DisputeReason) if may_undo and purchase.amount > taken else [],
    }


async def _reversal_request_of(company: Company, transaction: Any) -> ReversalRequestRow | None:  # noqa: ANN401 - any variant
    """Return the open request of its payer to pay a transaction back."""
    if not isinstance(transaction, OnUsActivity) or transaction.direction != "CREDIT":
        return None
    return await find_open_request(company.page.pool, company.customer_id, transaction.on_us_transfer_id)


@get("/companies/{customer_id:str}/reversal-requests/{reversal_id:str}")
async def open_link_to_request(company: InCompany, reversal_id: str) -> PageResponse:
    """Redirect to the transaction that a payer requests back, where it is answered."""
    request = await get_request(company.page.pool, company.customer_id, path_id(reversal_id, _NO_REQUEST))
    found = await find_received(company.page.pool, request)
    if found is None:
        raise NotFound(_NO_REQUEST)
    return redirect(f"{company.path}/transactions/{found}")


async def _answer(company: Company, transaction: OnUsActivity) -> str:
    """Decline to pay a transaction back, or request the transfer that does; return what is done."""
    reversal, key = await _reversal_request_of(company, transaction), company.page.form_key
    if reversal is None:
        raise NotFound("Nobody requests it back.")
    if company.page.form.get("answer") != "pay":
        await company.api.send(decline_reversal_request, key=key, reversal_id=reversal.reversal_id)
        return "reversal-declined"
    transfer = {
        "id": str(uuid5(reversal.reversal_id, key)),
        "type": "ON_US",
        "details": {"type": "REVERSAL", "transfer_id": str(reversal.transfer_id)},
        "origin_pocket_id": str(transaction.pocket_id),
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": reversal.amount},
    }
    await company.api.send(create_transfer_request, {"transfer": transfer, "reviewers": []}, key=key)
    return "transfer-requested"


async def _return_codes(company: Company, transaction: Any) -> dict[str, datetime]:  # noqa: ANN401 - any variant
    """Return the codes with which the debit of a transaction can be returned now, and until when."""
    if not isinstance(transaction, AchActivity) or transaction.ach_direction != AchWay.RECEIVING:
        return {}
    try:
        debit = await company.api.get(get_ach_debit, ach_id=transaction.ach_id)
    except NotFound:  # the return of a credit
        return {}
    return dict(debit.returnable_until)


def _facts(transaction: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - any variant
    """Return the fields of a variant besides the common ones, and its remittance information, by name, ids last."""
    own = {name: value for name, value in msgspec.structs.asdict(transaction).items() if name not in _HIDDEN}
    found = {**own, **_flat(transaction.remittance_information)}
    return [
        (_phrase(name.removeprefix("on_us_")), _words(value))
        for name, value in sorted(found.items(), key=lambda each: each[0].endswith("_id"))
        if value not in _UNSAID
    ]


def _words(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a value as people read it: a party by its name, WORDS_OF_A_CHOICE as words."""
    if isinstance(value, dict):
        return str(value.get("name") or ", ".join(str(each) for each in value.values() if each))
    text = str(value)
    return _phrase(text) if "_" in text and text.isupper() else text


def _phrase(name: str) -> str:
    text = " ".join(each.upper() if each in _ACRONYMS else each for each in name.lower().split("_"))
    return text[:1].upper() + text[1:]


def _flat(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, str | int)}
