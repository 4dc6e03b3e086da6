"""Accounts linked at their own bank, and the counterparties of v1."""

from __future__ import annotations

from uuid import UUID

from billfold.accounts.counterparties import linking
from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.v1_schemas import (
    V1_COUNTERPARTY_TYPES,
    LinkedCounterparties,
    LinkRequest,
    LinkTokenAnswer,
    LinkTokenRequest,
    OlderCounterparties,
    OlderCounterparty,
    has_v1_form,
    render_v1_counterparty,
)
from billfold.accounts.pockets.v1_routes import V1_READS
from billfold.http.caller import Caller
from billfold.http.operations import get, post
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound

_COUNTERPARTIES_MAX = 1000


@post(
    "/api/v1/customers/{customer_id}/counterparties/linking-provider/link-token/",
    tag="counterparties",
    status=200,
    refuses=("rail-not-available", "counterparty-type-mismatch"),
)
async def create_link_token(caller: Caller, bank: Bank, customer_id: UUID, data: LinkTokenRequest) -> LinkTokenAnswer:
    """Create link token.

    The token opens the linking provider's pages once.
    """
    owner = await caller.owner(bank, customer_id)
    return await linking.request_link_token(caller, bank, owner, data=data)


@post(
    "/api/v1/customers/{customer_id}/counterparties/linking-provider/",
    tag="counterparties",
    refuses=("rail-not-available", "customer-not-open"),
)
async def link_accounts(caller: Caller, bank: Bank, customer_id: UUID, data: LinkRequest) -> LinkedCounterparties:
    """Link accounts.

    Create counterparties of the accounts chosen on the linking provider's pages.
    """
    owner = await caller.owner(bank, customer_id)
    return LinkedCounterparties(items=await linking.link_customer_accounts(caller, bank, owner, data=data))


@post(
    "/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/linking-provider/verify/",
    tag="counterparties",
    status=204,
    refuses=("rail-not-available", "counterparty-type-mismatch"),
)
async def verify_linked_account(caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID) -> None:
    """Refresh linked account.

    Fetch the verification status of a linked account from the linking provider.
    """
    owner = await caller.owner(bank, customer_id)
    await linking.refresh_link_status(caller, bank, owner, counterparty_id=counterparty_id)


@get("/api/v1/customers/{customer_id}/counterparties/", tag="counterparties", deprecated=V1_READS)
async def list_v1_counterparties(caller: Caller, bank: Bank, customer_id: UUID) -> OlderCounterparties:
    """List counterparties (v1).

    Accounts that ACH entries and domestic wires reach, newest first. Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    rows = await counterparty_store.COUNTERPARTIES.rows(
        bank.pool, owner, list(V1_COUNTERPARTY_TYPES), None, limit=_COUNTERPARTIES_MAX
    )
    told = [render_v1_counterparty(row) for row in rows if has_v1_form(row)]
    return OlderCounterparties(count=len(told), counterparties=told)


@get("/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/", tag="counterparties", deprecated=V1_READS)
async def get_v1_counterparty(
    caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID
) -> OlderCounterparty:
    """Get counterparty (v1).

    Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    row = await counterparty_store.get_counterparty(bank.pool, owner, counterparty_id)
    if not has_v1_form(row):
        raise NotFound("There is no such counterparty.")
    return render_v1_counterparty(row)
