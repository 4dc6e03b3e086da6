"""Accounts, v1: Pockets in their older form. Deprecated reads."""

from __future__ import annotations

from datetime import date
from typing import Literal
from uuid import UUID

import msgspec

from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.schemas import Account, render_account
from billfold.http.caller import Caller
from billfold.http.operations import Deprecation, get
from billfold.ledger.bank import Bank

V1_READS = Deprecation(since=date(2025, 1, 6), sunset=date(2027, 1, 6))
ACCOUNTS_MAX = 1000


class Accounts(msgspec.Struct, kw_only=True):
    """The accounts of a customer, v1."""

    count: int
    items: list[Account]
    object_type: Literal["List"] = "List"


@get("/api/v1/customers/{customer_id}/service-accounts/", tag="accounts", deprecated=V1_READS)
async def list_accounts(caller: Caller, bank: Bank, customer_id: UUID) -> Accounts:
    """List accounts.

    Accounts of a customer. Use the Pockets of v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    rows = await pocket_store.POCKETS_OF_CUSTOMERS.rows(bank.pool, [owner], None, limit=ACCOUNTS_MAX)
    items = [render_account(row, bank, caller.now) for row in rows]
    return Accounts(count=len(items), items=items)


@get("/api/v1/service-accounts/{account_id}/", tag="accounts", deprecated=V1_READS)
async def get_account(caller: Caller, bank: Bank, account_id: UUID) -> Account:
    """Get account.

    Use the Pocket of v2 instead.
    """
    owner, own_id = await caller.pocket(bank, account_id)
    row = await pocket_store.get_pocket(bank.pool, owner, own_id)
    return render_account(row, bank, caller.now)
