"""Accounts, v1: Pockets in their older coat. Deprecated reads."""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec
from litestar import get

from billfold.domain import pockets
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import deprecated, refuses
from billfold.interfaces.http.shapes.pocket import Account, render_account

V1_READS = deprecated(since=date(2025, 1, 6), sunset=date(2027, 1, 6))
ACCOUNTS_MAX = 1000


class Accounts(msgspec.Struct, kw_only=True):
    """The accounts of a customer, v1."""

    count: int
    items: list[Account]
    object_type: Literal["List"] = "List"


@get(
    "/api/v1/customers/{customer_id:str}/service-accounts/",
    operation_id="list_accounts",
    opt=V1_READS | refuses("not-found"),
    tags=["accounts"],
)
async def list_accounts(caller: Caller, bank: Bank, customer_id: str) -> Accounts:
    """List the accounts of a customer. Use the Pockets of v2 instead."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    rows = await pockets.list_of_customers(bank.pool, [owner], limit=ACCOUNTS_MAX)
    items = [render_account(row, bank, caller.now) for row in rows]
    return Accounts(count=len(items), items=items)


@get(
    "/api/v1/service-accounts/{account_id:str}/",
    operation_id="get_account",
    opt=V1_READS | refuses("not-found"),
    tags=["accounts"],
)
async def get_account(caller: Caller, bank: Bank, account_id: str) -> Account:
    """Read one account. Use the Pocket of v2 instead."""
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid("account_id", account_id))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    return render_account(row, bank, caller.now)


ROUTES = [list_accounts, get_account]
