"""Transactions of the bank accounts, as pages and as one file."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from billfold.accounts.transactions import store as transaction_store
from billfold.accounts.transactions.pages import (
    TransactionQuery,
    customer_transaction_page,
    fetch_customer_transactions,
)
from billfold.accounts.transactions.schemas import Transaction, render_transaction
from billfold.accounts.transactions.store import TransactionRow
from billfold.http.csv_export import ROWS_PER_PAGE, csv_stream
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.customer_api.openapi import CSV_ANSWER
from billfold.http.limits.rate_groups import TRANSACTIONS
from billfold.http.list_params import OrderedQuery, page_of
from billfold.http.operations import get, with_scope
from billfold.http.responses import StreamedResponse
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("pockets.read", TRANSACTIONS)
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
)


@get("/api/v2/transactions/", READS, refuses=("not-found",))
async def list_transactions(
    member: CustomerCaller, bank: Bank, wanted: OrderedQuery, asked: TransactionQuery
) -> CursorList[Transaction]:
    """List the transactions of all Pockets, or of those named."""
    of = member.customer_id, await member.pockets(bank, asked.pockets)
    scope = f"transactions:customer:{member.customer_id}"
    page = await customer_transaction_page(bank, wanted, asked, member.now, scope, of)
    return page_of(page, [render_transaction(row, member.now) for row in page.items])


@get("/api/v2/transactions/{transaction_id}/", READS)
async def get_transaction(member: CustomerCaller, bank: Bank, transaction_id: UUID) -> Transaction:
    """Read one transaction by its `id` or its `transaction_id`."""
    row = await transaction_store.get_transaction_row(bank.pool, member.customer_id, None, transaction_id)
    return render_transaction(row, member.now)


@get("/api/v2/transactions.csv", READS, documented=CSV_ANSWER, refuses=("not-found",))
async def get_transactions_csv(member: CustomerCaller, bank: Bank, asked: TransactionQuery) -> StreamedResponse:
    """Read the same transactions as one CSV file, newest first; amounts in cents."""
    own = await member.pockets(bank, asked.pockets)
    rows = partial(_rows, member, bank, own, asked)
    return csv_stream("transactions.csv", _COLUMNS, rows, partial(_cells, member))


async def _rows(
    member: CustomerCaller, bank: Bank, own: list[UUID], asked: TransactionQuery, last: TransactionRow | None
) -> list[TransactionRow]:
    place = None if last is None else (last.journal_no, last.leg_no)
    return await fetch_customer_transactions(
        bank,
        member.customer_id,
        own,
        asked.wanted(member.now),
        place,
        including=False,
        descending=True,
        limit=ROWS_PER_PAGE,
    )


def _cells(member: CustomerCaller, row: TransactionRow) -> tuple[object, ...]:
    shown = render_transaction(row, member.now)
    return (
        shown.id,
        shown.transaction_id,
        shown.pocket_id,
        row.type,
        shown.direction,
        shown.status,
        shown.amount.value,
        shown.amount.currency,
        shown.description,
        shown.title,
        shown.time_booked,
        shown.time_settled,
    )
