"""Counterparties, v2: all kinds, verified by documents or by an incoming wire."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import get, patch, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.counterparty_forms import (
    ChangeCounterparty,
    Deposits,
    StatusBare,
    StatusList,
    TypeBare,
    TypeList,
    add_counterparty,
    change_counterparty,
    confirm_deposits,
    counterparty_page,
    shown,
)
from billfold.interfaces.http.lists import ListQuery, list_query
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.counterparty import (
    AchForm,
    Counterparty,
    DocumentIds,
    InternationalForm,
    OnUsForm,
    WalletForm,
    WireForm,
)
from billfold.interfaces.http.shapes.pages import CursorList


class Verification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it shall be shown that the account is theirs; documents are named by their ids."""

    type: Literal["supporting_documents", "incoming_wire"]
    document_ids: DocumentIds | None = None


class CreateWireCounterpartyRequest(WireForm, kw_only=True, tag="wire"):
    """An account that domestic wires reach."""

    verification: Verification


class CreateACHCounterpartyRequest(AchForm, kw_only=True, tag="ach"):
    """An account that ACH entries reach."""

    verification: Verification


class CreateInternationalWireCounterpartyRequest(
    InternationalForm, kw_only=True, tag="international_wire"
):
    """An account abroad that wires reach."""

    verification: Verification


class CreateOnUsCounterpartyRequest(OnUsForm, kw_only=True, tag="on_us"):
    """A Pocket of this bank, by its 12-digit network address."""

    verification: Verification | None = None


class CreateCryptoWalletAddressCounterpartyRequest(
    WalletForm, kw_only=True, tag="crypto_wallet_address"
):
    """A wallet."""

    verification: Verification | None = None


CreateCounterparty = (
    CreateWireCounterpartyRequest
    | CreateACHCounterpartyRequest
    | CreateInternationalWireCounterpartyRequest
    | CreateOnUsCounterpartyRequest
    | CreateCryptoWalletAddressCounterpartyRequest
)


@post(
    "/api/v2/customers/{customer_id:str}/counterparties/",
    status_code=HTTP_201_CREATED,
    operation_id="create_counterparty",
    opt=refuses("not-found", "customer-not-open"),
    tags=["counterparties"],
)
async def create_counterparty(
    caller: Caller, bank: Bank, customer_id: str, data: CreateCounterparty
) -> Counterparty:
    """Add an account as payee. It is PENDING until it is shown whose account it is."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await add_counterparty(caller, bank, owner, data)


@get(
    "/api/v2/customers/{customer_id:str}/counterparties/",
    dependencies=list_query(),
    operation_id="list_counterparties",
    opt=refuses("not-found"),
    tags=["counterparties"],
)
async def list_counterparties(
    *,
    caller: Caller,
    bank: Bank,
    customer_id: str,
    wanted: ListQuery,
    status: StatusBare = None,
    statuses: StatusList = None,
    type_: TypeBare = None,
    types: TypeList = None,
) -> CursorList[Counterparty]:
    """List the counterparties of a customer, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await counterparty_page(
        bank, owner, wanted, types=(type_, types), statuses=(status, statuses)
    )


@get(
    "/api/v2/customers/{customer_id:str}/counterparties/{counterparty_id:str}/",
    operation_id="get_counterparty",
    opt=refuses("not-found"),
    tags=["counterparties"],
)
async def get_counterparty(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str
) -> Counterparty:
    """Read one counterparty."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await shown(bank, owner, ids_in.path_uuid("counterparty_id", counterparty_id))


@patch(
    "/api/v2/customers/{customer_id:str}/counterparties/{counterparty_id:str}/",
    operation_id="update_counterparty",
    opt=refuses("not-found", "counterparty-not-linked"),
    tags=["counterparties"],
)
async def update_counterparty(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str, data: ChangeCounterparty
) -> Counterparty:
    """Give a counterparty another display name, or unlink it for ever."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    return await change_counterparty(caller, bank, owner, asked, data)


@post(
    "/api/v2/customers/{customer_id:str}/counterparties/{counterparty_id:str}/verify-micro-deposits/",
    status_code=HTTP_200_OK,
    operation_id="verify_micro_deposits",
    opt=refuses("not-found", "micro-deposits-not-pending", "micro-deposits-mismatch"),
    tags=["counterparties"],
)
async def verify_micro_deposits(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str, data: Deposits
) -> Counterparty:
    """Name the amounts of the two deposits, in any order; there are three tries."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    return await confirm_deposits(caller, bank, owner, asked, data)


ROUTES = [
    create_counterparty,
    list_counterparties,
    get_counterparty,
    update_counterparty,
    verify_micro_deposits,
]
