"""Transactions at every level: partner, customer, Pocket; and the older reads of v1."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from litestar import get
from litestar.params import QueryParameter

from billfold.domain import activity, pockets
from billfold.domain.activity import ActivityRow, Wanted
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, Since, Until, list_query, page_of
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.transaction import (
    V1_TYPES,
    Transaction,
    V1Transaction,
    render_transaction,
    render_v1_transaction,
)
from billfold.interfaces.http.transaction_lists import (
    FILTERS,
    TransactionQuery,
    among,
    instant,
    named,
    numbered_page,
    through,
    transaction_page,
)
from billfold.interfaces.partner_api.accounts import V1_READS
from billfold.kit.paging import Page, Place

LISTED = {**list_query(ordered=True), **FILTERS}


@get(
    "/api/v2/transactions/",
    dependencies=LISTED,
    operation_id="list_transactions",
    tags=["transactions"],
)
async def list_transactions(
    caller: Caller, bank: Bank, wanted: ListQuery, asked: TransactionQuery
) -> CursorList[Transaction]:
    """List the transactions of all customers."""
    page = await _partner_page(caller, bank, wanted, asked)
    return page_of(page, [render_transaction(row, caller.now) for row in page.items])


@get(
    "/api/v2/customers/{customer_id:str}/transactions/",
    dependencies=LISTED,
    operation_id="list_customer_transactions",
    opt=refuses("not-found"),
    tags=["transactions"],
)
async def list_customer_transactions(
    caller: Caller, bank: Bank, customer_id: str, wanted: ListQuery, asked: TransactionQuery
) -> CursorList[Transaction]:
    """List the transactions of a customer's Pockets."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    page = await _customer_page(caller, bank, owner, wanted, asked)
    return page_of(page, [render_transaction(row, caller.now) for row in page.items])


@get(
    "/api/v2/pockets/{pocket_id:str}/transactions/",
    dependencies=LISTED,
    operation_id="list_pocket_transactions",
    opt=refuses("not-found"),
    tags=["transactions"],
)
async def list_pocket_transactions(
    caller: Caller, bank: Bank, pocket_id: str, wanted: ListQuery, asked: TransactionQuery
) -> CursorList[Transaction]:
    """List the transactions of one Pocket."""
    key = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    page = await _pocket_page(caller, bank, key, wanted, asked)
    return page_of(page, [render_transaction(row, caller.now) for row in page.items])


@get(
    "/api/v2/pockets/{pocket_id:str}/transactions/{transaction_id:str}/",
    operation_id="get_transaction",
    opt=refuses("not-found"),
    tags=["transactions"],
)
async def get_transaction(
    caller: Caller, bank: Bank, pocket_id: str, transaction_id: str
) -> Transaction:
    """Read one transaction by its `id` or its `transaction_id`."""
    key = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    asked = ids_in.path_uuid("transaction_id", transaction_id)
    return render_transaction(await activity.find_activity(bank.pool, *key, asked), caller.now)


Order = Annotated[list[str] | None, QueryParameter(name="account[]")]
PortalFilter = Annotated[list[str] | None, QueryParameter(name="filter[portal]")]
CardFilter = Annotated[list[str] | None, QueryParameter(name="filter[card]")]
TypeFilter = Annotated[list[str] | None, QueryParameter(name="filter[types]")]


@get(
    "/api/v1/customers/{customer_id:str}/transactions/",
    dependencies=list_query(ordered=True),
    operation_id="list_v1_customer_transactions",
    opt=V1_READS | refuses("not-found"),
    tags=["accounts"],
)
async def list_v1_customer_transactions(
    *,
    caller: Caller,
    bank: Bank,
    customer_id: str,
    wanted: ListQuery,
    account: Order = None,
    portal: PortalFilter = None,
    card: CardFilter = None,
    types: TypeFilter = None,
    timestamp_from: Since = None,
    timestamp_to: Until = None,
) -> CursorList[V1Transaction]:
    """List a customer's transactions as v1 shows them. Use v2 instead."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = _older(account, portal, card, types, timestamp_from, timestamp_to)
    page = await _customer_page(caller, bank, owner, wanted, asked)
    return page_of(page, [render_v1_transaction(row, caller.now) for row in page.items])


@get(
    "/api/v1/service-accounts/{account_id:str}/transactions/",
    dependencies=list_query(ordered=True),
    operation_id="list_v1_transactions",
    opt=V1_READS | refuses("not-found"),
    tags=["accounts"],
)
async def list_v1_transactions(
    *,
    caller: Caller,
    bank: Bank,
    account_id: str,
    wanted: ListQuery,
    portal: PortalFilter = None,
    card: CardFilter = None,
    types: TypeFilter = None,
    timestamp_from: Since = None,
    timestamp_to: Until = None,
) -> CursorList[V1Transaction]:
    """List an account's transactions as v1 shows them. Use v2 instead."""
    key = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    asked = _older(None, portal, card, types, timestamp_from, timestamp_to)
    page = await _pocket_page(caller, bank, key, wanted, asked)
    return page_of(page, [render_v1_transaction(row, caller.now) for row in page.items])


@get(
    "/api/v1/service-accounts/{account_id:str}/transactions/{transaction_id:str}/",
    operation_id="get_v1_transaction",
    opt=V1_READS | refuses("not-found"),
    tags=["accounts"],
)
async def get_v1_transaction(
    caller: Caller, bank: Bank, account_id: str, transaction_id: str
) -> V1Transaction:
    """Read one transaction as v1 shows it. Use v2 instead."""
    key = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    asked = ids_in.path_uuid("transaction_id", transaction_id)
    return render_v1_transaction(await activity.find_activity(bank.pool, *key, asked), caller.now)


def _older(
    account: list[str] | None,
    portal: list[str] | None,
    card: list[str] | None,
    types: list[str] | None,
    timestamp_from: str | None,
    timestamp_to: str | None,
) -> TransactionQuery:
    return TransactionQuery(
        pockets=None if account is None else ids_in.query_uuids("account[]", account),
        types=_types_now(types),
        direction=None,
        booked=(
            instant("timestamp_from", timestamp_from),
            through("timestamp_to", timestamp_to),
        ),
        settled=(None, None),
        amounts=(None, None),
        transfers=None,
        wires=None,
        portals=named("filter[portal]", portal),
        cards=named("filter[card]", card),
        sweeps=False,
    )


def _types_now(older: list[str] | None) -> list[str] | None:
    """What the types of v1 are now."""
    asked = among("filter[types]", older, frozenset(V1_TYPES))
    return None if asked is None else [newer for kind in asked for newer in V1_TYPES[kind]]


async def _partner_page(
    caller: Caller, bank: Bank, wanted: ListQuery, asked: TransactionQuery
) -> Page[ActivityRow]:
    scope = f"transactions:{caller.partner_id}"
    places = [await caller.pocket(bank, each) for each in asked.pockets or ()]
    own = list(dict.fromkeys(pocket_id for _, pocket_id in places))
    owners = {owner for owner, _ in places}
    if len(owners) == 1:
        # Their own order leads straight to the rows; the partner's would go through everybody's.
        return await numbered_page(bank, wanted, asked, caller.now, scope, (owners.pop(), own))
    return await transaction_page(
        bank,
        wanted,
        asked,
        caller.now,
        scope=scope,
        key_of=lambda row: (row.booked_at.isoformat(), str(row.activity_id)),
        fetch=partial(_of_partner, bank, caller.partner_id, own or None),
    )


async def _customer_page(
    caller: Caller, bank: Bank, owner: UUID, wanted: ListQuery, asked: TransactionQuery
) -> Page[ActivityRow]:
    if asked.pockets is None:
        own = await pockets.list_ids(bank.pool, owner)
    else:
        named = dict.fromkeys(asked.pockets)
        own = [await caller.pocket_of(bank, owner, each) for each in named]
    scope = f"transactions:customer:{owner}"
    return await numbered_page(bank, wanted, asked, caller.now, scope, (owner, own))


async def _pocket_page(
    caller: Caller,
    bank: Bank,
    key: tuple[UUID, UUID],
    wanted: ListQuery,
    asked: TransactionQuery,
) -> Page[ActivityRow]:
    own = [key[1]]
    if asked.pockets is not None:
        named = [await caller.pocket(bank, each) for each in asked.pockets]
        own = own if key in named else []
    scope = f"transactions:pocket:{key[1]}"
    return await numbered_page(bank, wanted, asked, caller.now, scope, (key[0], own))


async def _of_partner(
    bank: Bank,
    partner_id: UUID,
    own: list[UUID] | None,
    wanted: Wanted,
    key: Place | None,
    including: bool,  # noqa: FBT001 - one of many of a page
    descending: bool,  # noqa: FBT001 - as above
    limit: int,
) -> list[ActivityRow]:
    after = None
    if key is not None:
        asked = UUID(str(key[1]))
        if including:
            asked = UUID(int=asked.int + (1 if descending else -1))
        after = (datetime.fromisoformat(str(key[0])), asked)
    return await activity.list_of_partner(
        bank.pool, partner_id, own, wanted, after=after, descending=descending, limit=limit
    )


ROUTES = [
    list_transactions,
    list_customer_transactions,
    list_pocket_transactions,
    get_transaction,
    list_v1_customer_transactions,
    list_v1_transactions,
    get_v1_transaction,
]
