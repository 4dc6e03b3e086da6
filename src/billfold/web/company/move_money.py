"""Transfers: previewed, then requested, with or without scripts; requests listed, shown, cancelled."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from litestar import get, post

from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.pockets.overview import overview_of
from billfold.accounts.pockets.routes import get_pocket, list_own_pockets
from billfold.accounts.pockets.store import list_by_id
from billfold.approvals.routes import get_approval_rule
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.series.routes import list_upcoming_runs, update_schedule_state
from billfold.approvals.transfer_orders import RequestContent, check_order
from billfold.approvals.transfer_requests_routes import (
    STATUSES,
    TYPES,
    cancel_transfer_request,
    create_transfer_request,
    get_transfer_request,
    list_transfer_requests,
    preview_transfer,
)
from billfold.batches.routes import get_batch
from billfold.http.raw_request import convert, is_uuid
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused
from billfold.web.company.payees import PAYABLE, list_choices_to_pay, ways_now
from billfold.web.console.lists import list_choices, read_listing
from billfold.web.console.look_alikes import find_look_alikes
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import Form, at_fields, body_of, cents_of
from billfold.web.page_context import FormError, PageResponse, path_id, redirect

_PAGE = 30
_FILTERS = {
    "status": "status[]",
    "type": "type",
    "pocket": "pocket[]",
    "from": "time_created_from",
    "to": "time_created_to",
    "scheduled": "scheduled",
}
_NO_SUCH = "There is no such transfer request."


@get("/companies/{customer_id:str}/transfer-requests")
async def show_transfer_requests(company: InCompany) -> PageResponse:
    """Show transfer requests, the newest first."""
    listing = await read_listing(company, list_transfer_requests, _FILTERS, limit=_PAGE)
    return company.render(
        "transfer_requests",
        listing=listing,
        names=await list_choices(company, (), listing.filters.get("pocket", "")),
        statuses=sorted(STATUSES),
        types=sorted(TYPES),
    )


@get("/companies/{customer_id:str}/transfer-requests/{request_id:str}")
async def show_transfer_request(company: InCompany, request_id: str) -> PageResponse:
    """Show one request with its history."""
    return await _page(company, path_id(request_id, _NO_SUCH))


@post("/companies/{customer_id:str}/transfer-requests/{request_id:str}/cancel")
async def cancel(company: InCompany, request_id: str) -> PageResponse:
    """Cancel a pending request."""
    company.require(_SCOPE)
    key = path_id(request_id, _NO_SUCH)
    try:
        await company.api.send(cancel_transfer_request, key=company.page.form_key, transfer_id=key)
    except Refused as wrong:
        return await _page(company, key, wrong)
    return redirect(f"{company.path}/transfer-requests/{key}", done="transfer-cancelled")


@post("/companies/{customer_id:str}/transfer-requests/{request_id:str}/schedule")
async def change_schedule(company: InCompany, request_id: str) -> PageResponse:
    """Pause, resume or cancel a series."""
    company.require(_SCOPE)
    key = path_id(request_id, _NO_SUCH)
    try:
        body = body_of(update_schedule_state.body, company.page.form)
        await company.api.send(update_schedule_state, body, key=company.page.form_key, transfer_id=key)
    except (InvalidInput, Refused) as wrong:
        return await _page(company, key, wrong)
    return redirect(f"{company.path}/transfer-requests/{key}", done=f"series-{body['state'].lower()}")


async def _page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    found = await company.api.get(get_transfer_request, transfer_id=key)
    may_end = company.may("transfers.write") and (
        found.requested_by.member_id == company.own.member_id or company.own.role == "ADMIN"
    )
    following, runs = (), ()
    if found.schedule is not None:
        following = (await company.api.get(list_upcoming_runs, transfer_id=key)).items
        runs = (await company.api.get(list_transfer_requests, series_id=key, limit=_PAGE)).items
    return company.render(
        "transfer_request",
        wrong=wrong,
        request=found,
        may_cancel=found.status == "PENDING" and may_end,
        may_change=found.schedule is not None
        and found.status == "APPROVED"
        and found.schedule.state in {"ACTIVE", "PAUSED"}
        and may_end,
        upcoming=following,
        runs=runs,
        **await read_around(company, found),
    )


async def read_around(company: Company, request: ShownTransferRequest) -> dict[str, Any]:
    """Return the objects of a request: Pockets, the current counterparty, the rule that applies, its batch."""
    transfer = request.transfer
    details = transfer.details or {}
    to = details.get("destination_pocket_id")
    payee = transfer.counterparty_id or details.get("destination_counterparty_id")
    return {
        "origin": await company.api.get(get_pocket, pocket_id=transfer.origin_pocket_id, omit="PORTFOLIO"),
        "to_pocket": await company.api.get(get_pocket, pocket_id=to, omit="PORTFOLIO") if to else None,
        "payee": await company.api.get(get_counterparty, counterparty_id=payee) if payee else None,
        "rule": await find_rule(company, request.approval_rule_id),
        "batch": await company.api.get(get_batch, batch_id=request.batch_id) if request.batch_id else None,
    }


async def find_rule(company: Company, rule_id: UUID | None) -> Any:  # noqa: ANN401 - the rule as the API shows it
    """Return an approval rule; None for the default, and for a removed one."""
    if rule_id is None:
        return None
    try:
        return await company.api.get(get_approval_rule, rule_id=rule_id)
    except NotFound:
        return None


_SCOPE = "transfers.write"
_SHOWN_MAX = 100
_CHOSEN = (
    "origin",
    "to",
    "amount",
    "all",
    "in_kind",
    "reference",
    "description",
    "wire_instructions",
    "start_on",
    "repeat",
    "end",
    "on_closed_day",
    "keep",
    "target",
)
"""Fields that the form adds to those of the request, or that are kept from one step to the next."""
_FIELD_OF = {
    "amount_usdc": "amount",
    "counterparty_id": "to",
    "destination_counterparty_id": "to",
    "destination_pocket_id": "to",
    "end_to_end_identification": "reference",
    "origin_pocket_id": "origin",
    "keep_usdc": "keep",
    "target_usdc": "target",
    "at_most_usdc": "amount",
}
"""Field of the request -> field of the form, where they differ."""
_CENTS_MAX = 9_999_999_999_99


class _Transfer(NamedTuple):
    """The Pocket that pays, and where to: a counterparty, or a Pocket of the company."""

    origin: UUID
    to: UUID
    counterparty: Counterparty | None

    @property
    def type(self) -> str:
        """The type of the transfer request. Raises InvalidInput for a counterparty that cannot be paid."""
        if self.counterparty is None:
            return "ON_US"
        found = PAYABLE.get(self.counterparty.type)
        if found is None:
            raise InvalidInput.at("to", msg="is an ACH account, which transfer requests cannot pay")
        return found


@get("/companies/{customer_id:str}/move-money")
async def show_move_money(company: InCompany) -> PageResponse:
    """Show the form; the query may preselect the Pocket and the counterparty."""
    company.require(_SCOPE)
    return await _form(company, company.page.query)


@post("/companies/{customer_id:str}/move-money")
async def move_money(company: InCompany) -> PageResponse:
    """Preview the form, request the transfer, or go back to the form."""
    company.require(_SCOPE)
    page, form = company.page, company.page.form
    if form.get("step") == "change":
        return await _form(company, form)
    try:
        chosen = await _read_transfer(company)
        body = _body(form, chosen)
        if form.get("step") == "request":
            made = await company.api.send(create_transfer_request, body, key=page.form_key)
            return redirect(f"{company.path}/transfer-requests/{made.id}", done="transfer-requested")
        if "schedule" in body:
            return await _schedule_page(company, chosen, body)
        found = await company.api.send(preview_transfer, body)
    except (InvalidInput, Refused) as wrong:
        return await _form(company, form, at_fields(wrong, _FIELD_OF))
    return company.render(
        "transfer_preview",
        preview=found,
        origin=await company.api.get(get_pocket, pocket_id=chosen.origin),
        to_pocket=None if chosen.counterparty else await company.api.get(get_pocket, pocket_id=chosen.to),
        payee=chosen.counterparty,
        look_alikes=await find_look_alikes(company, chosen.counterparty) if chosen.counterparty else (),
        transfer_id=body["transfer"]["id"],
        given={name: form.get(name, "") for name in _CHOSEN},
    )


async def _schedule_page(company: Company, chosen: _Transfer, body: dict[str, Any]) -> PageResponse:
    """Show the first days of a series before it is requested. Raises InvalidInput."""
    data = convert(body, create_transfer_request.body)
    check_order(RequestContent(transfer=data.transfer, schedule=data.schedule), et_date(company.clock.now))
    found = await company.api.send(preview_transfer, body)
    amount = body["transfer"]["amount"]
    return company.render(
        "series_preview",
        amount=amount.get("amount_usdc", amount.get("at_most_usdc")),
        origin=await company.api.get(get_pocket, pocket_id=chosen.origin),
        to_pocket=None if chosen.counterparty else await company.api.get(get_pocket, pocket_id=chosen.to),
        payee=chosen.counterparty,
        look_alikes=await find_look_alikes(company, chosen.counterparty) if chosen.counterparty else (),
        schedule=data.schedule,
        runs=found.runs,
        transfer_id=body["transfer"]["id"],
        given={name: company.page.form.get(name, "") for name in _CHOSEN},
    )


async def _form(company: Company, given: Mapping[str, str], wrong: FormError = "") -> PageResponse:
    pockets = (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_SHOWN_MAX)).items
    chosen = {name: given.get(name, "") for name in _CHOSEN}
    if is_uuid(chosen["origin"]) and all(str(each.id) != chosen["origin"] for each in pockets):
        pockets.append(await company.api.get(get_pocket, pocket_id=chosen["origin"]))
    bank = company.page.server.bank
    to = chosen["to"].removeprefix("counterparty:")
    rows = await list_by_id(bank.pool, [(company.customer_id, each.id) for each in pockets])
    return company.render(
        "move_money",
        wrong=wrong,
        payable={row.pocket_id: overview_of(bank, [row], company.clock.now).payable for row in rows},
        pockets=pockets,
        payees=await list_choices_to_pay(company, [UUID(to)] if is_uuid(to) else []),
        ways=ways_now(bank, company.clock.now),
        given=chosen,
        form=Form(create_transfer_request.body, given),
    )


async def _read_transfer(company: Company) -> _Transfer:
    """Return what a form chooses. Raises InvalidInput for what is not chosen, NotFound for counterparties of others."""
    form = company.page.form
    missing = [FieldError((name,), "must be chosen", "missing") for name in ("origin", "to") if not form.get(name)]
    if missing:
        raise InvalidInput(missing)
    kind, _, to_id = form["to"].partition(":")
    origin, to = path_id(form["origin"], "There is no such Pocket."), path_id(to_id, "There is no such counterparty.")
    if kind == "pocket":
        return _Transfer(origin, to, None)
    if kind != "counterparty":
        raise NotFound("There is no such counterparty.")
    return _Transfer(origin, to, await company.api.get(get_counterparty, counterparty_id=to))


def _body(form: Mapping[str, str], chosen: _Transfer) -> dict[str, Any]:
    """Return the body of the request and of its preview. Raises InvalidInput."""
    texts = {"description": form.get("description", ""), "wire_instructions": form.get("wire_instructions", "")}
    texts["end_to_end_identification"] = form.get("reference", "")
    body = body_of(create_transfer_request.body, texts)
    body |= _schedule_in(form)
    sent_id = form.get("transfer_id", "")
    transfer: dict[str, Any] = body.setdefault("transfer", {})
    transfer |= {
        "id": sent_id if is_uuid(sent_id) else str(ids.new()),
        "type": chosen.type,
        "origin_pocket_id": chosen.origin,
        "amount": _amount_in(form),
    }
    if chosen.counterparty is None:
        in_kind = "SECURITY_TRANSFER" if form.get("in_kind") else "BANK_TRANSFER"
        details = {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": chosen.to, "transfer_type": in_kind}
        transfer["details"] = details
    elif chosen.type == "ON_US":
        transfer["details"] = {"type": "PEER_TO_PEER", "destination_counterparty_id": chosen.to}
    else:
        transfer["counterparty_id"] = chosen.to
    return body


def _schedule_in(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the schedule of a form, if it has one."""
    start, repeat, end = (form.get(name, "").strip() for name in ("start_on", "repeat", "end"))
    if not start:
        if repeat or end:
            raise InvalidInput.at("start_on", msg="must be given")
        return {}
    rule = repeat + (f";UNTIL={end.replace('-', '')}" if repeat and end else "")
    return {"schedule": {"start_on": start, "rule": rule or None, "on_closed_day": form.get("on_closed_day", "AFTER")}}


def _amount_in(form: Mapping[str, str]) -> dict[str, Any]:
    if form.get("all"):
        return {"type": "FULL_WITHDRAWAL"}
    requested = _requested(form.get("amount", ""))
    if form.get("keep", "").strip():
        if form.get("target", "").strip():
            raise InvalidInput.at("target", msg="must be empty if an amount is kept")
        kept = cents_of("keep", form["keep"].strip())
        return {"type": "ALL_ABOVE", "keep_usdc": kept, "at_most_usdc": requested["amount_usdc"]}
    if form.get("target", "").strip():
        target = cents_of("target", form["target"].strip())
        return {"type": "TOP_UP_TO", "target_usdc": target, "at_most_usdc": requested["amount_usdc"]}
    return requested


def _requested(text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidInput.at("amount", msg="must be given")
    cents = cents_of("amount", text.strip())
    if not 1 <= cents <= _CENTS_MAX:
        raise InvalidInput.at("amount", msg="must be from $0.01 to $9,999,999,999.99")
    return {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}
