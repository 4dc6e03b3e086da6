"""The log of the ledger: searched by any id, read commit by commit, forwards and backwards."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any
from uuid import UUID

from litestar import get

from billfold.accounts.pockets.store import list_page_by_offset
from billfold.http.raw_request import is_uuid
from billfold.ledger import explorer
from billfold.ledger.directory import find_customer
from billfold.ledger.explorer import Place
from billfold.ledger.types import JournalKind
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound
from billfold.servicing.ledger_lines import Account, Lines, Wanted, list_accounts, list_lines
from billfold.web.console.team import BankPage, InBank
from billfold.web.forms import cents_of
from billfold.web.page_context import PageResponse, path_id, redirect

_LINES = 50
_FILTERS = ("account", "from", "to", "kind", "amount")
_NUMBER_DIGITS_MAX = 15
_TEXT_MAX = 100
_UNKNOWN = "Nothing was found. Transactions, commands, entries and events are found within their customer."


@get("/bank/ledger")
async def search_ledger(operator: InBank) -> PageResponse:
    """Redirect to the object of an id, or show the search."""
    sent = operator.page.query
    filters = {name: sent.get(name, "").strip()[:_TEXT_MAX] for name in ("id", "customer")}
    wrong = ""
    if filters["id"] or filters["customer"]:
        to = await _find_page(operator, filters["id"], filters["customer"])
        if to is not None:
            return redirect(to)
        wrong = _UNKNOWN
    return operator.render("bank_ledger", filters=filters, wrong=wrong, status=404 if wrong else None)


@get("/bank/ledger/{customer_id:str}")
async def show_customer(operator: InBank, customer_id: str) -> PageResponse:
    """Show a customer's entries, searched by account, days, kind and amount, with the running balance of an account."""
    owner, sent = path_id(customer_id), operator.page.query
    filters = {name: text for name in _FILTERS if (text := sent.get(name, "").strip()[:_TEXT_MAX])}
    async with operator.bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        row = await find_customer(conn, owner)
        if row is None:
            raise NotFound("There is no such customer.")
        accounts, pockets = await list_accounts(conn, owner)
        found, wrong = Lines([], None), ""
        try:
            wanted = _wanted(filters, accounts, _number(sent.get("before", "")))
            found = await list_lines(conn, owner, wanted, pockets=pockets, limit=_LINES)
        except InvalidInput as refused:
            wrong = f"{str(refused.errors[0].loc[-1]).capitalize()} {refused.errors[0].msg}."
    return operator.render(
        "bank_ledger_customer",
        wrong=wrong,
        customer=row,
        found=found,
        account=accounts.get(filters.get("account", "")),
        accounts=[(key, each.name) for key, each in accounts.items()],
        kinds=[(each.value, each.value.replace("_", " ").capitalize()) for each in JournalKind],
        filters=filters,
    )


def _wanted(filters: Mapping[str, str], accounts: Mapping[str, Account], before: int | None) -> Wanted:
    """Return what the filters of the page ask for. Raises InvalidInput."""
    if filters.get("account", "") not in {"", *accounts}:
        raise InvalidInput.at("account", msg="is none of this customer")
    if filters.get("kind", "") not in {"", *JournalKind}:
        raise InvalidInput.at("kind", msg="must be one of the list")
    return Wanted(
        before=before,
        account=accounts.get(filters.get("account", "")),
        since=_day("from", filters),
        until=_day("to", filters),
        kind=filters.get("kind"),
        cents=cents_of("amount", filters["amount"]) if "amount" in filters else None,
    )


def _day(name: str, filters: Mapping[str, str]) -> date | None:
    try:
        return date.fromisoformat(filters[name]) if name in filters else None
    except ValueError:
        raise InvalidInput.at(name, msg="must be a day") from None


@get("/bank/ledger/{customer_id:str}/{version:str}")
async def show_commit(operator: InBank, customer_id: str, version: str) -> PageResponse:
    """Show one commit: its entries with their postings, its events, its chain entry."""
    owner, number = path_id(customer_id), _number(version)
    if number is None:
        raise NotFound("There is no such commit.")
    async with operator.bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        commit = await explorer.get_commit(conn, owner, number)
        before = commit.previous
        entries = (before.entry_no if before else 0, commit.link.entry_no)
        events = (before.event_no if before else 0, commit.link.event_no)
        postings = await explorer.list_postings(conn, owner, *entries)
        shown = {
            "entries": await explorer.list_entries(conn, owner, *entries),
            "postings": _by_entry(postings),
            "booked": _by_entry(await explorer.list_booked(conn, owner, *entries)),
            "events": await explorer.list_events(conn, owner, *events),
        }
        ids = list({id_ for each in postings for id_ in (each.debit_pocket, each.credit_pocket) if id_})
        _, pockets = await list_page_by_offset(conn, owner, statuses=None, pocket_ids=ids, offset=0, limit=len(ids))
        customer = await find_customer(conn, owner)
    return operator.render(
        "bank_ledger_commit",
        customer=customer,
        commit=commit,
        names={each.pocket_id: each.name for each in pockets},
        shown_max=explorer.SHOWN_MAX,
        **shown,
    )


def _by_entry(rows: Iterable[Any]) -> Mapping[int, list[Any]]:
    found = defaultdict(list)
    for row in rows:
        found[row.entry_no].append(row)
    return found


async def _find_page(operator: BankPage, text: str, customer: str) -> str | None:
    """Return the page of the object that a text names, within a customer if one is given."""
    async with operator.bank.pool.acquire() as conn:
        if customer:
            if not is_uuid(customer) or not await explorer.is_customer(conn, UUID(customer)):
                return None
            return await _find_within(conn, UUID(customer), text)
        named = await explorer.find_owner(conn, text.lower() if is_uuid(text) else text)
        if named is not None:
            return f"/bank/ledger/{named[1]}"
        if is_uuid(text) and await explorer.is_customer(conn, UUID(text)):
            return f"/bank/ledger/{text.lower()}"
    return None


async def _find_within(conn: Connection, customer_id: UUID, text: str) -> str | None:
    """Return the page of a transaction, a command, `entry 7` or `event 7` of a customer; its own without a text."""
    if not text:
        return f"/bank/ledger/{customer_id}"
    place: Place | None = None
    kind, _, number = text.lower().partition(" ")
    if is_uuid(text):
        place = await explorer.find_place(conn, customer_id, UUID(text))
    elif kind in {"entry", "event"}:
        place = await explorer.place_of(conn, customer_id, **{f"{kind}_no": _number(number)})
    return None if place is None else f"/bank/ledger/{customer_id}/{place.version}#{place.anchor}".rstrip("#")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX else None
