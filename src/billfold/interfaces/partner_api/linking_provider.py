"""Accounts linked at their own bank, and the counterparties of v1."""

from __future__ import annotations

from litestar import get, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from billfold.domain import counterparties
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in, linking
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.older_counterparty import (
    OLDER_TYPES,
    LinkedCounterparties,
    LinkRequest,
    LinkTokenAnswer,
    LinkTokenRequest,
    OlderCounterparties,
    OlderCounterparty,
    is_older,
    render_older,
)
from billfold.interfaces.partner_api.accounts import V1_READS
from billfold.kit.errors import NotFound

_MOST = 1000


@post(
    "/api/v1/customers/{customer_id:str}/counterparties/linking-provider/link-token/",
    status_code=HTTP_200_OK,
    operation_id="create_link_token",
    opt=refuses("not-found", "rail-not-available", "counterparty-type-mismatch"),
    tags=["counterparties"],
)
async def create_link_token(
    caller: Caller, bank: Bank, customer_id: str, data: LinkTokenRequest
) -> LinkTokenAnswer:
    """Begin to link accounts: the token opens the provider's pages once."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await linking.open_link(caller, bank, owner, data)


@post(
    "/api/v1/customers/{customer_id:str}/counterparties/linking-provider/",
    status_code=HTTP_201_CREATED,
    operation_id="link_accounts",
    opt=refuses("not-found", "rail-not-available", "customer-not-open"),
    tags=["counterparties"],
)
async def link_accounts(
    caller: Caller, bank: Bank, customer_id: str, data: LinkRequest
) -> LinkedCounterparties:
    """Make counterparties of the accounts that a customer chose on the provider's pages."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return LinkedCounterparties(items=await linking.link(caller, bank, owner, data))


@post(
    "/api/v1/customers/{customer_id:str}/counterparties/{counterparty_id:str}/linking-provider/verify/",
    status_code=HTTP_204_NO_CONTENT,
    operation_id="verify_linked_account",
    opt=refuses("not-found", "rail-not-available", "counterparty-type-mismatch"),
    tags=["counterparties"],
)
async def verify_linked_account(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str
) -> None:
    """Ask the provider whether the verification of a linked account has come to its end."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    await linking.settle(caller, bank, owner, asked)


@get(
    "/api/v1/customers/{customer_id:str}/counterparties/",
    operation_id="list_v1_counterparties",
    opt=V1_READS | refuses("not-found"),
    tags=["counterparties"],
)
async def list_v1_counterparties(
    caller: Caller, bank: Bank, customer_id: str
) -> OlderCounterparties:
    """List the accounts that ACH entries and domestic wires reach, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    rows = await counterparties.list_counterparties(
        bank.pool, owner, types=list(OLDER_TYPES), statuses=None, after=None, backwards=False,
        limit=_MOST,
    )  # fmt: skip
    told = [render_older(row) for row in rows if is_older(row)]
    return OlderCounterparties(count=len(told), counterparties=told)


@get(
    "/api/v1/customers/{customer_id:str}/counterparties/{counterparty_id:str}/",
    operation_id="get_v1_counterparty",
    opt=V1_READS | refuses("not-found"),
    tags=["counterparties"],
)
async def get_v1_counterparty(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str
) -> OlderCounterparty:
    """Read one of them."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    row = await counterparties.get_counterparty(bank.pool, owner, asked)
    if not is_older(row):
        raise NotFound("There is no such counterparty.")
    return render_older(row)


ROUTES = [
    create_link_token,
    link_accounts,
    verify_linked_account,
    list_v1_counterparties,
    get_v1_counterparty,
]
