"""Reconciliation: statements and breaks, balances with the rails, late settlements, and suspense."""

import re
from datetime import date, timedelta
from urllib.parse import unquote

import msgspec
from litestar import get, post

from billfold.dual_control.store import REASON_CHARS_MAX, list_about
from billfold.ledger.types import Rail
from billfold.payments.clearing.report import read_in_transit
from billfold.payments.files.retries import retry_state_of
from billfold.payments.suspense.decisions import propose_assignment, propose_return, propose_write_off
from billfold.payments.suspense.rules import NOT_RETURNABLE, SuspenseStatus
from billfold.payments.suspense.store import get_item, list_items
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.ids import new
from billfold.reconciliation import decisions, store
from billfold.reconciliation.types import Break, BreakStatus, Cause, ReconciledDay, Resolution, Source
from billfold.reconciliation.worker import StatementFiles
from billfold.servicing.lists import names_of
from billfold.servicing.suspense import list_owners, read_arrival
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)
from billfold.web.uploads import received_file

_PAYMENTS_MAX = 50
_PROPOSALS_MAX = 20
_ITEMS_MAX = 100
_TEXT_MAX = 34
_BREAKS_MAX, _CANDIDATES_MAX = 100, 5
_OVERVIEW = timedelta(days=7)
_FILE_NAME = re.compile(r"filename\*=UTF-8''(.+)")
_TAKES_STATEMENT = {**RECENT_AUTHENTICATION, "takes_file": True}
_FILTERS = {"status": tuple(BreakStatus), "cause": tuple(Cause), "source": tuple(Source)}
_STATEMENT = "STATEMENT"
"""The type of the file: a statement is as large as the largest document."""


async def _show(operator: BankPage, item_id: str, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    item = await get_item(bank.pool, path_id(item_id))
    waits = item.status == SuspenseStatus.HELD
    arrival = await read_arrival(bank, item)
    owners = await names_of(bank.pool, [item.owner_id] if item.owner_id else [])
    return operator.render(
        "bank_suspense_item",
        wrong=wrong,
        item=item,
        waits=waits,
        stays=msgspec.json.decode(item.details).get(NOT_RETURNABLE),
        arrival=arrival,
        owners=await list_owners(bank, item, arrival) if waits else [],
        routing_number=bank.settings.bank_routing_number,
        owner=owners.get(item.owner_id) if item.owner_id else None,
        proposals=await list_about(bank.pool, item.customer_id, item.item_id, limit=_PROPOSALS_MAX),
        given=operator.page.form if wrong else {},
    )


async def _show_reconciliation(operator: BankPage, wrong: FormError = "") -> PageResponse:
    bank, sent = operator.bank, operator.page.query
    transit = await read_in_transit(bank, limit=_PAYMENTS_MAX)
    held = await list_items(bank.pool, status=SuspenseStatus.HELD, limit=_ITEMS_MAX)
    filters = {name: sent[name] for name, known in _FILTERS.items() if sent.get(name) in known}
    owner = sent.get("owner", "").strip()[: decisions.OWNER_CHARS_MAX]
    status = filters.get("status", BreakStatus.OPEN)
    values = bank.own_id, status, filters.get("cause"), filters.get("source"), owner or None
    breaks = await store.BREAKS.rows(bank.pool, *values, descending=status == BreakStatus.CLOSED, limit=_BREAKS_MAX)
    return operator.render(
        "bank_reconciliation",
        wrong=wrong,
        transit=transit,
        held=held,
        items_max=_ITEMS_MAX,
        payments_max=_PAYMENTS_MAX,
        breaks=breaks,
        breaks_max=_BREAKS_MAX,
        filters=filters | ({"owner": owner} if owner else {}),
        choices={name: [(each.value, _word(each)) for each in known] for name, known in _FILTERS.items()},
        side_of=decisions.side_of,
        days=await _overview(operator),
    )


def _word(each: str) -> str:
    return each.replace("_", " ").capitalize()


async def _overview(operator: BankPage) -> list[tuple[date, list[ReconciledDay]]]:
    """Return the days of the last week, newest first, with their statements."""
    since = et_date(await operator.bank.now()) - _OVERVIEW
    days: dict[date, list[ReconciledDay]] = {}
    for each in await store.list_days(operator.bank.pool, operator.bank.own_id, since):
        days.setdefault(each.day, []).append(each)
    return list(days.items())


@get("/bank/reconciliation")
async def show_reconciliation(operator: InBank) -> PageResponse:
    """Show statements and breaks by their age, payments in transit, and the items in suspense."""
    return await _show_reconciliation(operator)


@post("/bank/reconciliation", opt=_TAKES_STATEMENT)
@shown_again(_show_reconciliation)
async def import_statement(operator: InBank) -> PageResponse:
    """Import a statement: stored first, then reconciled."""
    async with received_file(operator.page, operator.customer_id, _STATEMENT) as sent:
        named = _FILE_NAME.search(sent.request.headers.get(b"content-disposition", b"").decode())
        name = re.sub(r"[^A-Za-z0-9._-]", "_", unquote(named[1]))[-100:].lstrip(".") if named else ""
        content = bytes(sent.request.body)
    file = await StatementFiles().import_file(operator.bank, name or f"statement-{new()}", content, by=operator.by)
    if file.state == "PROCESSED":
        return redirect("/bank/reconciliation", done="uploaded")
    failure = retry_state_of(file)
    report = msgspec.json.decode(file.report or "{}")
    said = failure.words() if failure else "; ".join(each["reason"] for each in report.get("mistakes", ()))
    raise InvalidInput.at("file", msg=f"is kept, but {'waits' if failure else 'refused'}: {said.rstrip('.')}.")


async def _show_break(operator: BankPage, break_id: str, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    row = await store.get_break(bank.pool, bank.own_id, path_id(break_id))
    return operator.render(
        "bank_break",
        wrong=wrong,
        row=row,
        sides=[(name, decisions.side_of(row, value)) for name, value in _sides(row)],
        candidates=await store.list_candidates(bank.pool, row, _CANDIDATES_MAX),
        side_of=decisions.side_of,
        rails=[each for each in decisions.HELD_RAILS if row.rail in {None, each}],
        given=operator.page.form if wrong else {},
    )


def _sides(row: Break) -> list[tuple[str, int | None]]:
    return [("The statement says", row.stated), ("The ledger says", row.booked), ("Difference", row.difference)]


@get("/bank/breaks/{break_id:str}")
async def show_break(operator: InBank, break_id: str) -> PageResponse:
    """Show a break with both sides, what would cancel it out, and the actions on it."""
    return await _show_break(operator, break_id)


@post("/bank/breaks/{break_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show_break, NotFound)
async def work_break(operator: InBank, break_id: str) -> PageResponse:
    """Name the owner of a break, or propose to close it."""
    form, bank, wanted = operator.page.form, operator.bank, path_id(break_id)
    verb, reason = form.get("decision", ""), form.get("reason", "")
    if verb == "assign":
        given = {name: form.get(name, "") for name in ("owner", "note")}
        await decisions.assign(bank, wanted, **given, by=operator.by)
        return redirect(f"/bank/breaks/{wanted}", done="saved")
    if verb == "hold":
        rail = form.get("rail", "")
        if rail not in decisions.HELD_RAILS:
            raise InvalidInput.at("rail", msg="must be chosen")
        await decisions.propose_hold(bank, wanted, Rail(rail), reason=reason, by=operator.by)
    elif verb in set(Resolution):
        await decisions.propose_close(bank, wanted, Resolution(verb), reason=reason, by=operator.by)
    else:
        raise InvalidInput.at("decision", msg="must be chosen")
    return redirect("/bank/freezes", done="freeze-proposed")


@get("/bank/suspense/{item_id:str}")
async def show_item(operator: InBank, item_id: str) -> PageResponse:
    """Show an item of suspense, and the actions on it."""
    return await _show(operator, item_id)


@post("/bank/suspense/{item_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound)
async def settle_item(operator: InBank, item_id: str) -> PageResponse:
    """Propose to return an item to its sender, to credit it to its owner, or to write it off."""
    form, item, bank = operator.page.form, path_id(item_id), operator.bank
    given = {name: value.strip() for name, value in form.items() if name != "csrf"}
    verb, chosen = given.pop("decision", ""), given.pop("account", "")
    if chosen:
        given["routing_number"], _, given["account_number"] = chosen.partition(":")
    _check(verb, given)
    if verb in {"return", "by_hand"}:
        await propose_return(bank, item, reason=given["reason"], by_hand=verb == "by_hand", by=operator.by)
    elif verb == "write_off":
        await propose_write_off(bank, item, reason=given["reason"], by=operator.by)
    else:
        numbers = {name: given[name] for name in ("routing_number", "account_number")}
        await propose_assignment(bank, item, **numbers, by=operator.by)
    return redirect(f"/bank/suspense/{item}", done="freeze-proposed")


def _check(verb: str, given: dict[str, str]) -> None:
    """Raise InvalidInput for a form that lacks a field, or has an excess one."""
    wanted = ("routing_number", "account_number") if verb == "assign" else ("reason",)
    if verb not in {"assign", "return", "by_hand", "write_off"}:
        raise InvalidInput.at("decision", msg="must be chosen")
    longest = REASON_CHARS_MAX if verb in {"by_hand", "write_off"} else _TEXT_MAX
    for name in wanted:
        if not 1 <= len(given.get(name, "")) <= longest:
            raise InvalidInput.at(name, msg=f"must be 1 to {longest} characters")
    for name in given.keys() - set(wanted):
        del given[name]
