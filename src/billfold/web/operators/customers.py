"""Customers for operators: the search, the lists of the bank, a customer's page, and where a payment is."""

from uuid import UUID

from asyncpg import Record
from litestar import get

from billfold.accounts.pockets.schemas import valuation
from billfold.accounts.pockets.store import list_page_by_offset
from billfold.http.parameters import ListQuery
from billfold.identity.members.store import list_team
from billfold.identity.operators import record_reading
from billfold.identity.partners.store import find_partner, list_partners
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.payments.ach.commands import AchEntry
from billfold.payments.ach.store import get_entry
from billfold.payments.wires.commands import WireRow
from billfold.payments.wires.store import get_wire
from billfold.platform.database.paging import Page
from billfold.platform.errors import InvalidInput, NotFound
from billfold.servicing.lists import OF_BANK, OF_CUSTOMER, Listing
from billfold.servicing.payments import Way, find_way_of_wire, way_of_entry
from billfold.servicing.search import TEXT_MAX, Found, search
from billfold.web.console.audit_sentences import words_of
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import PageResponse, path_id, redirect

_NEWEST, _PAGE, _POCKETS_MAX = 5, 50, 50
_ONE = "/bank/customers/{customer_id:str}"


@get("/bank/search")
async def search_bank(operator: InBank) -> PageResponse:
    """Show what a text finds; the page of the only thing found opens at once, unless a list is wanted."""
    text = operator.page.query.get("q", "").strip()[:TEXT_MAX]
    found = await search(operator.bank, text) if text else []
    if len(found) == 1 and found[0].only_page and "list" not in operator.page.query:
        return redirect(found[0].only_page)
    return operator.render("bank_list", title="Search", text=text, tables=found)


@get([f"/bank/{name}" for name in OF_BANK])
async def list_of_bank(operator: InBank) -> PageResponse:
    """Show a list of the bank, of all partners or of one."""
    page = operator.page
    name, slug = page.request.path.rpartition("/")[2], page.query.get("partner", "")
    partner = await find_partner(operator.bank.pool, slug) if slug else None
    if slug and partner is None:
        raise NotFound("There is no such partner.")
    listing, partner_id = OF_BANK[name], None if partner is None else partner.partner_id
    rows, wrong = await _page_of(operator, listing, name, partner_id)
    return operator.render(
        "bank_list",
        title=listing.title,
        tables=[Found(listing, rows.items)],
        rows=rows,
        partner=partner,
        partners=[(each.slug, each.name) for each in await list_partners(operator.bank.pool)],
        text="",
        wrong=wrong,
    )


async def _page_of(operator: BankPage, listing: Listing, name: str, owner_id: UUID | None) -> tuple[Page[Record], str]:
    wanted = ListQuery(cursor=operator.page.query.get("cursor", ""), limit=_PAGE)
    try:
        return await wanted.read(operator.bank, listing.listed, owner_id, scope=f"bank {name}"), ""
    except InvalidInput:
        return Page([]), "The list has changed since. Begin with its first page."


async def _customer(operator: BankPage, customer_id: str) -> CustomerRow:
    """Return a customer, whose page is read from now on: the bank's audit log says by whom."""
    row = await find_customer(operator.bank.pool, path_id(customer_id))
    if row is None or row.customer_id == operator.customer_id:
        raise NotFound("There is no such customer.")
    await record_reading(operator.bank, operator.by, ("customer", row.customer_id))
    return row


@get(_ONE)
async def show_customer(operator: InBank, customer_id: str) -> PageResponse:
    """Show a customer: Pockets, people, and the newest of everything else."""
    bank, now = operator.bank, operator.clock.now
    if path_id(customer_id) == operator.customer_id:
        return redirect(f"/team/{operator.customer_id}")
    row = await _customer(operator, customer_id)
    owner = row.customer_id
    async with bank.pool.acquire() as conn:
        team = await list_team(conn, bank.vault, owner, now=now)
        tables = {
            name: Found(each, await each.listed.rows(conn, owner, limit=_NEWEST)) for name, each in OF_CUSTOMER.items()
        }
        count, pockets = await list_page_by_offset(
            conn, owner, statuses=None, pocket_ids=None, offset=0, limit=_POCKETS_MAX
        )
    values = {each.pocket_id: valuation(each, bank, now).total_value for each in pockets}
    facts = {"tables": tables, "newest": _NEWEST, "pockets": pockets, "count": count, "values": values, "people": team}
    return operator.render("bank_customer", said=words_of, customer=row, total=sum(values.values()), **facts)


@get(f"{_ONE}/{{name:str}}")
async def list_of_customer(operator: InBank, customer_id: str, name: str) -> PageResponse:
    """Show a list of one customer."""
    if name not in OF_CUSTOMER:
        raise NotFound("There is no such list.")
    row, listing = await _customer(operator, customer_id), OF_CUSTOMER[name]
    rows, wrong = await _page_of(operator, listing, name, row.customer_id)
    shown = {"title": listing.title, "tables": [Found(listing, rows.items)], "rows": rows, "customer": row}
    return operator.render("bank_list", said=words_of, **shown, text="", wrong=wrong)


@get(f"{_ONE}/wire/{{wire_id:str}}")
async def show_wire(operator: InBank, customer_id: str, wire_id: str) -> PageResponse:
    """Show where a wire is."""
    row = await _customer(operator, customer_id)
    async with operator.bank.pool.acquire() as conn:
        wire = await get_wire(conn, row.customer_id, path_id(wire_id))
        way = await find_way_of_wire(conn, wire)
    is_out = wire.direction == "OUTGOING"
    named = {"IMAD": wire.imad, "OMAD": wire.omad, "UETR": wire.uetr, "Reference": wire.reference_number}
    facts = {"is_out": is_out, "kind": "Wire", "party": wire.counterparty_name, "named": named}
    return await _payment(operator, row, wire, way=way, **facts)


@get(f"{_ONE}/ach-entry/{{ach_id:str}}")
async def show_ach_entry(operator: InBank, customer_id: str, ach_id: str) -> PageResponse:
    """Show where an ACH entry is."""
    row = await _customer(operator, customer_id)
    entry = await get_entry(operator.bank.pool, path_id(ach_id))
    if entry.customer_id != row.customer_id:
        raise NotFound("There is no such ACH entry.")
    is_out = (entry.direction == "CREDIT") == (entry.way == "ORIGINATION")
    named = {"Trace number": entry.trace_number, "Return code": entry.return_code, "Company": entry.company_name}
    facts = {"is_out": is_out, "kind": "ACH entry", "party": entry.party_name, "named": named}
    return await _payment(operator, row, entry, way=way_of_entry(entry), **facts)


async def _payment(
    operator: BankPage, customer: CustomerRow, payment: WireRow | AchEntry, *, way: Way, **facts: object
) -> PageResponse:
    ids = None if payment.pocket_id is None else [payment.pocket_id]
    _, pockets = await list_page_by_offset(
        operator.bank.pool, customer.customer_id, statuses=None, pocket_ids=ids, offset=0, limit=1
    )
    shown = {"customer": customer, "payment": payment, "pocket": pockets[0] if ids and pockets else None, "way": way}
    return operator.render("bank_payment", **shown, **facts)
