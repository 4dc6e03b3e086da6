"""Counterparties of a company: listed, found by name, shown with their verification, added, renamed, removed."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args
from uuid import UUID

from litestar import get, post
from msgspec import UNSET

from billfold.accounts.addresses import COUNTRIES
from billfold.accounts.counterparties.requests import TYPES, render_counterparties
from billfold.accounts.counterparties.routes import (
    create_counterparty,
    get_counterparty,
    list_counterparties,
    update_counterparty,
    verify_micro_deposits,
)
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.counterparties.store import list_by_ids, list_payee_names
from billfold.accounts.customers.store import list_features
from billfold.approvals.store.requests import list_to_counterparty
from billfold.documents.routes import upload_document, upload_document_file
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.http.operations import Operation
from billfold.http.raw_request import is_uuid
from billfold.http.schemas import CursorList
from billfold.identity.partners.rules import FEATURES
from billfold.payments.routing.routes import get_routing_number
from billfold.payments.routing.store import list_bank_names
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.web.company.payees import choices_of, why_not_payable
from billfold.web.console.find import alike
from billfold.web.console.lists import NO_ROWS, read_listing
from billfold.web.console.look_alikes import find_look_alikes
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import Form, at_fields, body_of, cents_of
from billfold.web.page_context import FormError, PageResponse, RouteOptions, path_id, redirect
from billfold.web.uploads import received_file

_NAME_FIELDS = {"counterparty_name": "business_name"}
_BY_WIRE = ("incoming_wire", "A wire from the account")
_BY_DOCUMENTS = ("supporting_documents", "Documents that show whose account it is")
_UNVERIFIED = ("unverified", "Not verified, if your agreement allows it")
BODIES: Mapping[str, type] = {str(each.__struct_config__.tag): each for each in get_args(create_counterparty.body)}


class Kind(NamedTuple):
    """The label of a counterparty type, and the ways to verify it."""

    label: str
    verifications: tuple[tuple[str, str], ...] = ()


KINDS: Mapping[str, Kind] = {
    "wire": Kind("Domestic wire", (_BY_WIRE, _BY_DOCUMENTS, _UNVERIFIED)),
    "ach": Kind("ACH account", (("micro_deposits", "Two small deposits"), _BY_WIRE, _BY_DOCUMENTS)),
    "international_wire": Kind("International wire", (_BY_WIRE, _BY_DOCUMENTS, _UNVERIFIED)),
    "on_us": Kind("Pocket of this bank"),
    "crypto_wallet_address": Kind("USDC wallet"),
}


def new_counterparty(kind: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the body that adds the counterparty of a form."""
    known: dict[str, Any] = {"counterparty_name": _name(form), "verification": UNSET}
    if kind == "international_wire":
        known["identifier_code"] = "SWIFT_BIC"
    if KINDS[kind].verifications:
        chosen = form.get("verification") or KINDS[kind].verifications[0][0]
        known["verification"] = {"type": chosen}
        if chosen == _BY_DOCUMENTS[0]:
            known["verification"]["document_ids"] = sent_documents(form.get("document", ""))
    return {"type": kind, **body_of(BODIES[kind], form, **known)}


def _name(form: Mapping[str, str]) -> dict[str, str]:
    names = {name: text for name in ("first_name", "last_name") if (text := form.get(name, "").strip())}
    if names:
        return {"type": "individual", **names}
    name = form.get("business_name", "").strip()
    return {"type": "business", **({"business_name": name} if name else {})}


_PAGE, _PAYMENTS = 30, 20
_FILTERS = {"status": "status", "type": "type", "as_of": "as_of"}
_TEXT_MAX = 100
SCOPE = "transfers.write"
_COUNTRIES = ("US", *sorted(COUNTRIES - {"US"}))
_NO_SUCH = "There is no such counterparty."
_ONE = "/companies/{customer_id:str}/counterparties/{counterparty_id:str}"


@get("/companies/{customer_id:str}/counterparties")
async def show_counterparties(company: InCompany) -> PageResponse:
    """Show counterparties, the newest first."""
    text = company.page.query.get("text", "").strip()[:_TEXT_MAX]
    listing = await read_listing(company, list_counterparties, _FILTERS, limit=_PAGE)
    if text and "as_of" in listing.filters:
        listing = listing._replace(rows=NO_ROWS, wrong="Names are searched as they are now. Clear the name or the day.")
    elif text and not listing.wrong:
        listing = listing._replace(rows=await _named_like(company, text, listing.filters))
    listing.filters.update({"text": text} if text else {})
    waiting = await company.api.get(list_counterparties, type="ach", status="PENDING", limit=_PAGE)
    return company.render(
        "counterparties",
        listing=listing,
        choices=await choices_of(company, listing.rows.items),
        banks=await list_bank_names(company.page.pool, [each.routing_number or "" for each in listing.rows.items]),
        to_verify=sum(each.verification.type == "micro_deposits" for each in waiting.items),
        types=sorted(TYPES),
    )


async def _named_like(company: Company, text: str, filters: Mapping[str, str]) -> CursorList[Counterparty]:
    """Return the counterparties whose names are like a text, the most alike first, on one page."""
    page, owner = company.page, company.customer_id
    named = await list_payee_names(page.pool, owner)
    found = await asyncio.to_thread(alike, text, [name for _, name in named], limit=_PAGE)
    ids = [named[each][0] for each in found]
    rows = await list_by_ids(page.pool, owner, ids, kind=filters.get("type"), status=filters.get("status"))
    items = await render_counterparties(page.server.bank, owner, rows)
    return CursorList(prev_page=None, next_page=None, items=items)


@get("/companies/{customer_id:str}/counterparties/new")
async def show_new(company: InCompany) -> PageResponse:
    """Show the form of a new counterparty; the query gives its kind."""
    company.require(SCOPE)
    return await new_page(company, company.page.query.get("type", "wire"))


@post("/companies/{customer_id:str}/counterparties/new")
async def add(company: InCompany) -> PageResponse:
    """Add a counterparty; a rule of the team may require another member's approval first."""
    company.require(SCOPE)
    page = company.page
    kind = page.form.get("type", "")
    if kind not in KINDS:
        raise NotFound("There is no such kind of counterparty.")
    try:
        made = await company.api.send(create_counterparty, new_counterparty(kind, page.form), key=page.form_key)
    except (InvalidInput, Refused) as wrong:
        return await new_page(company, kind, at_fields(wrong, _NAME_FIELDS))
    if made is None:
        return redirect(f"{company.path}/approvals?view=others", done="approval-needed")
    return redirect(f"{company.path}/counterparties/{made.id}", done="counterparty-added")


@get(_ONE)
async def show_counterparty(company: InCompany, counterparty_id: str) -> PageResponse:
    """Show one counterparty."""
    return await counterparty_page(company, path_id(counterparty_id, _NO_SUCH))


@post(_ONE)
async def change(company: InCompany, counterparty_id: str) -> PageResponse:
    """Rename a counterparty, remove it, or confirm the deposits that its account received."""
    company.require(SCOPE)
    key = path_id(counterparty_id, _NO_SUCH)
    page = company.page
    try:
        match page.form.get("change"):
            case "rename":
                body: dict[str, Any] = {"display_name": page.form.get("display_name", "").strip() or None}
                await company.api.send(update_counterparty, body, key=page.form_key, counterparty_id=key)
                done = "saved"
            case "remove":
                gone = {"status": "UNLINKED"}
                await company.api.send(update_counterparty, gone, key=page.form_key, counterparty_id=key)
                done = "counterparty-removed"
            case _:
                amounts = [cents_of(name, page.form.get(name, "")) for name in ("first", "second")]
                body = {"amounts": amounts}
                await company.api.send(verify_micro_deposits, body, key=page.form_key, counterparty_id=key)
                done = "deposits-confirmed"
    except (InvalidInput, Refused) as wrong:
        return await counterparty_page(company, key, wrong)
    return redirect(f"{company.path}/counterparties/{key}", done=done)


async def counterparty_page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    """Return the page of one counterparty, whose forms have errors or none."""
    past, pool, owner = company.look_back(), company.page.pool, company.customer_id
    found = await company.api.get(get_counterparty, counterparty_id=key)
    # Of an earlier day the page shows the counterparty itself: names like it, payments and features are those of now.
    paid = (
        [] if company.is_past else await list_to_counterparty(pool, owner, key, now=company.clock.now, limit=_PAYMENTS)
    )
    features = frozenset(FEATURES) if company.is_past else await list_features(pool, owner)
    return company.render(
        "counterparty",
        wrong=wrong or past.wrong,
        counterparty=found,
        look_alikes=[] if company.is_past else await find_look_alikes(company, found),
        payments=paid,
        not_payable=why_not_payable(found, features),
        given=company.page.form,
    )


async def new_page(company: Company, kind: str, wrong: FormError = "") -> PageResponse:
    """Return the form of a new counterparty, with the bank of its routing number once that is complete."""
    page = company.page
    number = (page.form or page.query).get("routing_number", "").strip()
    is_number = len(number) == len("021000021") and number.isascii() and number.isdigit()
    return company.render(
        "counterparty_new",
        wrong=wrong,
        kind=kind_of(kind),
        kinds=KINDS,
        form=Form(BODIES[kind_of(kind)], page.form or page.query),
        documents=sent_documents(page.form.get("document") or page.query.get("document", "")),
        given=page.form,
        bank=await company.api.get(get_routing_number, number=number) if is_number else None,
        countries=_COUNTRIES,
    )


def kind_of(sent: str) -> str:
    """Return the kind of counterparty in the query, or the first one."""
    return sent if sent in KINDS else "wire"


def sent_documents(sent: str) -> list[str]:
    """Return the ids of documents in a query or a form, separated by commas."""
    return [each for each in sent.split(",") if is_uuid(each)]


_TAKES_FILE: RouteOptions = {"takes_file": True}


@post("/companies/{customer_id:str}/counterparties/documents", opt=_TAKES_FILE)
async def upload_for_new(company: InCompany) -> PageResponse:
    """Upload a document of an account that is about to be added; its form is next."""
    company.require(SCOPE)
    query = company.page.query
    kind, earlier = kind_of(query.get("type", "")), sent_documents(query.get("document", ""))
    try:
        made = await _upload(company, upload_document, document_type=PROOF_OF_ACCOUNT)
    except (InvalidInput, Refused) as wrong:
        return await new_page(company, kind, _at_file(wrong))
    documents = ",".join([*earlier, str(made.document_id)])
    return redirect(f"{company.path}/counterparties/new?type={kind}&document={documents}&done=uploaded")


@post("/companies/{customer_id:str}/counterparties/{counterparty_id:str}/documents/{document_id:str}", opt=_TAKES_FILE)
async def upload_again(company: InCompany, counterparty_id: str, document_id: str) -> PageResponse:
    """Upload the file of a document that lacks one."""
    company.require(SCOPE)
    key = path_id(counterparty_id)
    try:
        await _upload(company, upload_document_file, document_id=path_id(document_id))
    except (InvalidInput, Refused) as wrong:
        return await counterparty_page(company, key, _at_file(wrong))
    return redirect(f"{company.path}/counterparties/{key}", done="uploaded")


async def _upload(company: Company, operation: Operation, **names: object) -> Any:  # noqa: ANN401 - what it answers
    async with received_file(company.page, company.customer_id, PROOF_OF_ACCOUNT) as sent:
        return await company.api.send_file(operation, sent.request, key=sent.fields.get("form_key", ""), **names)


def _at_file(wrong: InvalidInput | Refused) -> InvalidInput:
    """Return the error of a file at its field."""
    said = wrong.errors[0].msg if isinstance(wrong, InvalidInput) else wrong.detail
    return InvalidInput.at("file", msg=f"was not taken: {said.rstrip('.')}")
