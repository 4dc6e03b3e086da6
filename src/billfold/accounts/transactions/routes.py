"""Transactions at every level: partner, customer, Pocket; and the older reads of v1."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Annotated
from uuid import UUID

import msgspec

from billfold.accounts.pockets.as_of_store import entries_end
from billfold.accounts.pockets.requests import resolve_pockets
from billfold.accounts.pockets.routes import V1_READS
from billfold.accounts.pockets.store import list_by_id
from billfold.accounts.transactions import pages
from billfold.accounts.transactions.pages import TransactionQuery
from billfold.accounts.transactions.schemas import (
    V1_TYPES,
    Transaction,
    V1Transaction,
    render_transaction,
    render_v1_transaction,
)
from billfold.accounts.transactions.settlement import TransactionRow
from billfold.accounts.transactions.store import Activity, get_transaction_row
from billfold.http.caller import Call
from billfold.http.operations import MaybeInPath, get, with_scope
from billfold.http.parameters import ListQuery, OrderedQuery, Query, Since, Until, searched_page_of, texts_among
from billfold.http.responses import (
    CSV_ANSWER,
    ROWS_PER_PAGE,
    ColumnChoice,
    Columns,
    Separated,
    StreamedResponse,
    csv_stream,
)
from billfold.http.schemas import SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.database.paging import Page
from billfold.platform.dates import ET
from billfold.platform.text import Separators

READS = with_scope("pockets.read", "transactions")
_COLUMNS = (
    "id",
    "transaction_id",
    "pocket_id",
    "type",
    "direction",
    "status",
    "amount",
    "currency",
    "description",
    "title",
    "time_booked",
    "time_settled",
    "external_id",
    "metadata",
)
_PATHS = {
    "type": "__struct_config__.tag",
    "amount": "amount.value",
    "currency": "amount.currency",
    "metadata": "metadata_text",
}
_cells = attrgetter(*(_PATHS.get(name, name) for name in _COLUMNS))
_PEOPLE = ("Date", "Time (Eastern)", "Pocket", "To or from", "Description", "Type", "Status", "Amount (USD)", "Your id")


@get("/api/v2/transactions/", as_of=True)
async def list_transactions(
    caller: Caller, bank: Bank, wanted: OrderedQuery, query: pages.SweepQuery
) -> SearchedList[Transaction]:
    """List transactions.

    Returns transactions of all customers.
    """
    page = await _partner_page(caller, bank, wanted, query=query)
    return searched_page_of(page, [render_transaction(row, caller.now, bank.calendars) for row in page.items])


@get("/api/v2/transactions/", READS, name="list_transactions", refuses=("not-found",), as_of=True)
async def list_own_transactions(
    member: CustomerCaller, bank: Bank, wanted: OrderedQuery, query: TransactionQuery
) -> SearchedList[Transaction]:
    """List transactions.

    Returns transactions of all Pockets, or of those named.
    """
    owner = await member.owner(bank, None)
    page = await _customer_page(member, bank, owner, wanted=wanted, query=query)
    return searched_page_of(page, [render_transaction(row, member.now, bank.calendars) for row in page.items])


@get("/api/v2/customers/{customer_id}/transactions/", as_of=True)
async def list_customer_transactions(
    caller: Caller, bank: Bank, customer_id: UUID, wanted: OrderedQuery, query: pages.SweepQuery
) -> SearchedList[Transaction]:
    """List transactions of a customer."""
    owner = await caller.owner(bank, customer_id)
    page = await _customer_page(caller, bank, owner, wanted=wanted, query=query)
    return searched_page_of(page, [render_transaction(row, caller.now, bank.calendars) for row in page.items])


@get("/api/v2/pockets/{pocket_id}/transactions/", as_of=True)
async def list_pocket_transactions(
    caller: Caller, bank: Bank, pocket_id: UUID, wanted: OrderedQuery, query: pages.SweepQuery
) -> SearchedList[Transaction]:
    """List transactions of a Pocket."""
    key = await caller.pocket(bank, pocket_id)
    page = await _pocket_page(caller, bank, key, wanted=wanted, query=query)
    return searched_page_of(page, [render_transaction(row, caller.now, bank.calendars) for row in page.items])


@get("/api/v2/transactions.csv", READS, documented=CSV_ANSWER, refuses=("not-found",), as_of=True)
async def get_transactions_csv(
    *,
    member: CustomerCaller,
    bank: Bank,
    query: TransactionQuery,
    separator: Separated = Separators.COMMA,
    columns: ColumnChoice = Columns.FIELDS,
) -> StreamedResponse:
    """Download transactions as CSV.

    Returns the same transactions in one file, newest first; amounts in cents, or for people in dollars.
    """
    own = await resolve_pockets(member, bank, owner := await member.owner(bank, None), requested=query.pockets)
    activity = await _activity_of(member, bank, owner, own)

    async def fetch(bank: Bank, last: TransactionRow | None) -> list[TransactionRow]:
        after = None if last is None else (last.entry_no, last.posting_no)
        rows = await activity.rows(
            bank.pool, query, now=member.now, calendars=bank.calendars, after=after, limit=ROWS_PER_PAGE
        )
        return await pages.noted_transactions(bank, await pages.open_transactions(bank, rows))

    is_for_people = columns == Columns.PEOPLE
    pockets = await list_by_id(bank.pool, [(owner, each) for each in own], member.as_of) if is_for_people else []
    names = {each.pocket_id: each.name for each in pockets}

    def cells_of(row: TransactionRow) -> Iterable[object] | None:
        if not pages.has_text(row, query.text):
            return None
        transaction = render_transaction(row, member.now, bank.calendars)
        return _cells_for_people(transaction, names) if is_for_people else _cells(transaction)

    return csv_stream(
        "transactions.csv",
        _PEOPLE if is_for_people else _COLUMNS,
        fetch,
        cells_of=cells_of,
        separators=separator,
        bank=bank,
    )


def _cells_for_people(transaction: Transaction, names: Mapping[UUID, str]) -> Iterable[object]:
    at = transaction.time_booked.astimezone(ET)
    cents = transaction.amount.value if transaction.direction == "CREDIT" else -transaction.amount.value
    return (
        at.date().isoformat(),
        f"{at:%H:%M}",
        names[transaction.pocket_id],
        transaction.headline,
        transaction.description,
        transaction.__struct_config__.tag,
        transaction.status,
        Decimal(cents).scaleb(-2),
        transaction.external_id or "",
    )


@get("/api/v2/pockets/{pocket_id}/transactions/{transaction_id}/", as_of=True)
@get("/api/v2/transactions/{transaction_id}/", READS, as_of=True)
async def get_transaction(caller: Call, bank: Bank, pocket_id: MaybeInPath, transaction_id: UUID) -> Transaction:
    """Get transaction.

    Look it up by its `id` or its `transaction_id`.
    """
    key: tuple[UUID, UUID | None] = (
        (await caller.owner(bank, None), None) if pocket_id is None else await caller.pocket(bank, pocket_id)
    )
    row = await _read_transaction(bank, *key, transaction_id, as_of=caller.as_of)
    return render_transaction(row, caller.now, bank.calendars)


class V1Query(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of transactions, with the names of v1."""

    portal: Annotated[list[UUID] | None, Query(name="filter[portal]")] = None
    card: Annotated[list[UUID] | None, Query(name="filter[card]")] = None
    types: Annotated[list[str] | None, texts_among("filter[types]", frozenset(V1_TYPES))] = None
    timestamp_from: Since = None
    timestamp_to: Until = None

    def now(self, account: list[UUID] | None = None) -> TransactionQuery:
        """Return the same filters with the names of v2."""
        v2_type = [each for kind in self.types or () for each in V1_TYPES[kind]]
        return TransactionQuery(
            pockets=account,
            types=v2_type or None,
            booked_from=self.timestamp_from,
            booked_to=self.timestamp_to,
            portals=self.portal,
            cards=self.card,
        )


Accounts = Annotated[list[UUID] | None, Query(name="account[]")]


@get("/api/v1/customers/{customer_id}/transactions/", tag="accounts", deprecated=V1_READS, as_of=True)
async def list_v1_customer_transactions(
    *, caller: Caller, bank: Bank, customer_id: UUID, wanted: OrderedQuery, account: Accounts = None, filters: V1Query
) -> SearchedList[V1Transaction]:
    """List transactions (v1).

    Returns a customer's transactions in their v1 form. Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    page = await _customer_page(caller, bank, owner, wanted=wanted, query=filters.now(account))
    return searched_page_of(page, [render_v1_transaction(row, caller.now, bank.calendars) for row in page.items])


@get("/api/v1/service-accounts/{account_id}/transactions/", tag="accounts", deprecated=V1_READS, as_of=True)
async def list_v1_transactions(
    *, caller: Caller, bank: Bank, account_id: UUID, wanted: OrderedQuery, filters: V1Query
) -> SearchedList[V1Transaction]:
    """List transactions of an account.

    Returns transactions in their v1 form. Use v2 instead.
    """
    key = await caller.pocket(bank, account_id)
    page = await _pocket_page(caller, bank, key, wanted=wanted, query=filters.now())
    return searched_page_of(page, [render_v1_transaction(row, caller.now, bank.calendars) for row in page.items])


@get(
    "/api/v1/service-accounts/{account_id}/transactions/{transaction_id}/",
    tag="accounts",
    deprecated=V1_READS,
    as_of=True,
)
async def get_v1_transaction(caller: Caller, bank: Bank, account_id: UUID, transaction_id: UUID) -> V1Transaction:
    """Get transaction (v1).

    Returns a transaction in its v1 form. Use v2 instead.
    """
    key = await caller.pocket(bank, account_id)
    row = await _read_transaction(bank, *key, transaction_id, as_of=caller.as_of)
    return render_v1_transaction(row, caller.now, bank.calendars)


async def _read_transaction(
    bank: Bank, customer_id: UUID, pocket_id: UUID | None, requested_id: UUID, as_of: datetime | None = None
) -> TransactionRow:
    row = await get_transaction_row(bank.pool, customer_id, pocket_id, requested_id, as_of)
    return (await pages.noted_transactions(bank, await pages.open_transactions(bank, [row])))[0]


async def _partner_page(caller: Caller, bank: Bank, wanted: ListQuery, query: TransactionQuery) -> Page[TransactionRow]:
    places = [await caller.pocket(bank, each) for each in query.pockets or ()]
    own = list(dict.fromkeys(pocket_id for _, pocket_id in places))
    owners = {owner for owner, _ in places}
    # For one customer its own order leads straight to the rows; the partner's would scan all of the partner's rows.
    of_one = len(owners) == 1
    activity = (
        await _activity_of(caller, bank, owners.pop(), own)
        if of_one
        else Activity.of_partner(caller.partner_id, own or None, caller.as_of)
    )
    scope = f"transactions:{caller.partner_id}"
    return await pages.transaction_page(bank, wanted, query, now=caller.now, scope=scope, activity=activity)


async def _customer_page(
    caller: Call, bank: Bank, owner: UUID, wanted: ListQuery, query: TransactionQuery
) -> Page[TransactionRow]:
    own = await resolve_pockets(caller, bank, owner, requested=query.pockets)
    scope, activity = f"transactions:customer:{owner}", await _activity_of(caller, bank, owner, own)
    return await pages.transaction_page(bank, wanted, query, now=caller.now, scope=scope, activity=activity)


async def _pocket_page(
    caller: Caller, bank: Bank, key: tuple[UUID, UUID], wanted: ListQuery, query: TransactionQuery
) -> Page[TransactionRow]:
    own = [key[1]]
    if query.pockets is not None:
        named = [await caller.pocket(bank, each) for each in query.pockets]
        own = own if key in named else []
    scope, activity = f"transactions:pocket:{key[1]}", await _activity_of(caller, bank, key[0], own)
    return await pages.transaction_page(bank, wanted, query, now=caller.now, scope=scope, activity=activity)


async def _activity_of(caller: Call, bank: Bank, owner: UUID, own: list[UUID]) -> Activity:
    """Return the activity of these Pockets, as the caller reads it. Raises NotFound."""
    end = await entries_end(bank.pool, owner, own, caller.as_of)
    return Activity.of_customer(owner, own, end=end, as_of=caller.as_of)
