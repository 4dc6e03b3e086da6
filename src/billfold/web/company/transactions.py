"""The transactions of a company, filtered by the query; as a CSV file; one of them."""

from datetime import datetime
from typing import Any

import msgspec
from litestar import get, post

from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.transactions.pages import TYPES
from billfold.accounts.transactions.routes import get_transaction, get_transactions_csv, list_own_transactions
from billfold.accounts.transactions.schemas import AchActivity, Shared, WireActivity
from billfold.payments.ach.commands import AchWay
from billfold.payments.ach.routes import get_ach_debit, return_ach_debit
from billfold.payments.wires.commands import WAITING_FOR_FUNDS, WireDirection, WireStatus, WireType
from billfold.payments.wires.routes import cancel_wire
from billfold.payments.wires.store import get_wire
from billfold.platform.errors import NotFound
from billfold.web.console.lists import list_choices, operation_filters, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_PAGE = 30
_FILTERS = {
    "pocket": "pocket[]",
    "type": "type[]",
    "direction": "direction",
    "from": "time_booked_from",
    "to": "time_booked_to",
    "amount_from": "amount_from",
    "amount_to": "amount_to",
    "portal": "portal[]",
    "text": "text",
}
_NO_SUCH = "There is no such transaction."
_UNDOES = "transfers.write"
_HIDDEN = frozenset({*Shared.__struct_fields__, "object_type", "portal_id", "counterparty_id", "counterparty_name"})
_ACRONYMS = frozenset({"ach", "aum", "imad", "omad", "uetr"})


@get("/companies/{customer_id:str}/transactions")
async def show_transactions(company: InCompany) -> PageResponse:
    """Show transactions, the newest first."""
    listing = await read_listing(company, list_own_transactions, _FILTERS, limit=_PAGE)
    shown = [each.pocket_id for each in listing.rows.items]
    return company.render(
        "transactions",
        listing=listing,
        names=await list_choices(company, shown, listing.filters.get("pocket", "")),
        types=sorted(TYPES),
    )


@get("/companies/{customer_id:str}/transactions.csv")
async def download_transactions(company: InCompany) -> PageResponse:
    """Download the filtered transactions."""
    filters = operation_filters(company.page.query, _FILTERS)
    return await company.api.download(get_transactions_csv, **filters, columns="people")


@get("/companies/{customer_id:str}/transactions/{transaction_id:str}")
async def show_transaction(company: InCompany, transaction_id: str) -> PageResponse:
    """Show one transaction, and how it can be undone."""
    return await _show(company, transaction_id)


async def _show(company: Company, transaction_id: str, *, wrong: FormError = "") -> PageResponse:
    key = path_id(transaction_id, _NO_SUCH)
    found = await company.api.get(get_transaction, transaction_id=key)
    wire_id = getattr(found, "wire_id", None)
    wire = await get_wire(company.page.pool, found.customer_id, wire_id) if wire_id else None
    is_payment = wire is not None and (wire.wire_type, wire.direction) == (WireType.PAYMENT, WireDirection.OUTGOING)
    may_undo = company.may(_UNDOES) and found.direction == "DEBIT"
    return company.render(
        "transaction",
        wrong=wrong,
        may_cancel=may_undo and wire is not None and is_payment and wire.status == WireStatus.PENDING,
        return_codes=await _return_codes(company, found) if may_undo else {},
        transaction=found,
        kind=found.__struct_config__.tag,
        facts=_facts(found),
        ids=_ids(found),
        payee_id=getattr(found, "counterparty_id", None),
        payee=getattr(found, "counterparty_name", None),
        waits_for_funds=wire is not None and wire.reason == WAITING_FOR_FUNDS,
        pocket=await company.api.get(get_pocket, pocket_id=found.pocket_id, omit="PORTFOLIO"),
    )


@post("/companies/{customer_id:str}/transactions/{transaction_id:str}/undo")
@shown_again(_show, unless="forbidden")
async def undo(company: InCompany, transaction_id: str) -> PageResponse:
    """Cancel the wire of a transaction, or return its debit."""
    company.require(_UNDOES)
    found = await company.api.get(get_transaction, transaction_id=path_id(transaction_id, _NO_SUCH))
    key = company.page.form_key
    if isinstance(found, WireActivity):
        await company.api.send(cancel_wire, key=key, wire_id=found.wire_id)
    elif isinstance(found, AchActivity):
        form = company.page.form
        why = {"code": form.get("code", ""), "has_signed_statement": form.get("has_signed_statement") == "yes"}
        await company.api.send(return_ach_debit, why, key=key, ach_id=found.ach_id)
    else:
        raise NotFound(_NO_SUCH)
    return redirect(f"{company.path}/transactions/{found.id}", done="saved")


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
    """Return the fields of a variant besides the common ones, and its remittance information, by name."""
    own = {name: value for name, value in msgspec.structs.asdict(transaction).items() if name not in _HIDDEN}
    found = {**own, **_flat(transaction.remittance_information)}
    return [
        (_phrase(name.removeprefix("on_us_")), _phrase(value) if name.endswith("_type") else _words(value))
        for name, value in found.items()
        if value not in ({}, None, "", False) and not name.endswith("_id")
    ]


def _ids(transaction: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - any variant
    """Return the ids by which the APIs know a transaction and its payment."""
    own = msgspec.structs.asdict(transaction).items()
    ids = [(_phrase(name), str(value)) for name, value in own if name.endswith("_id") and name not in _HIDDEN and value]
    return [("Transaction id", str(transaction.id)), *ids]


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
