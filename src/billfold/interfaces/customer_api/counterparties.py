"""Counterparties, v2: all kinds, with every verification a customer can ask for."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec
from litestar import Response, get, patch, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.groups import COUNTERPARTIES
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.waiting import MAY_WAIT, ask_first
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.counterparty_forms import (
    ChangeCounterparty,
    Deposits,
    StatusBare,
    StatusList,
    TypeBare,
    TypeList,
    change_counterparty,
    confirm_deposits,
    counterparty_page,
    order_of,
    shown,
    told_by,
)
from billfold.interfaces.http.lists import ListQuery, list_query
from billfold.interfaces.http.marks import granted, refuses
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

READS = granted("transfers.read", COUNTERPARTIES)
WRITES = granted("transfers.write", COUNTERPARTIES)


class WireVerification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it shall be shown that the account is theirs; `unverified` when it shall not."""

    type: Literal["supporting_documents", "incoming_wire", "unverified"]
    document_ids: DocumentIds | None = None


class AccountVerification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it shall be shown that the account is theirs."""

    type: Literal["supporting_documents", "incoming_wire", "micro_deposits"]
    document_ids: DocumentIds | None = None


class CreateWireCounterpartyRequest(WireForm, kw_only=True, tag="wire"):
    """An account that domestic wires reach."""

    verification: WireVerification


class CreateACHCounterpartyRequest(AchForm, kw_only=True, tag="ach"):
    """An account that ACH entries reach."""

    verification: AccountVerification


class CreateInternationalWireCounterpartyRequest(
    InternationalForm, kw_only=True, tag="international_wire"
):
    """An account abroad that wires reach."""

    verification: WireVerification


class CreateOnUsCounterpartyRequest(OnUsForm, kw_only=True, tag="on_us"):
    """A Pocket of this bank, by its 12-digit network address."""

    verification: AccountVerification | None = None


class CreateCryptoWalletAddressCounterpartyRequest(
    WalletForm, kw_only=True, tag="crypto_wallet_address"
):
    """A wallet."""

    verification: AccountVerification | None = None


CreateCounterparty = (
    CreateWireCounterpartyRequest
    | CreateACHCounterpartyRequest
    | CreateInternationalWireCounterpartyRequest
    | CreateOnUsCounterpartyRequest
    | CreateCryptoWalletAddressCounterpartyRequest
)


@get(
    "/api/v2/counterparties/",
    dependencies=list_query(),
    operation_id="list_counterparties",
    opt=READS,
    tags=["counterparties"],
)
async def list_counterparties(
    *,
    member: Member,
    bank: Bank,
    wanted: ListQuery,
    status: StatusBare = None,
    statuses: StatusList = None,
    type_: TypeBare = None,
    types: TypeList = None,
) -> CursorList[Counterparty]:
    """List the counterparties, newest first."""
    return await counterparty_page(
        bank, member.customer_id, wanted, types=(type_, types), statuses=(status, statuses)
    )


@post(
    "/api/v2/counterparties/",
    status_code=HTTP_201_CREATED,
    operation_id="create_counterparty",
    opt=WRITES | refuses("customer-not-open") | MAY_WAIT,
    tags=["counterparties"],
)
async def create_counterparty(
    member: Member, bank: Bank, data: CreateCounterparty
) -> Response[Counterparty]:
    """Add an account as payee. It is PENDING until it is shown whose account it is.

    It may wait for a second person, where a rule of the team says so.
    """
    order = await order_of(member, bank, member.customer_id, data)
    waits = await ask_first(
        member, bank, "NEW_COUNTERPARTY", "counterparty.create", ("counterparty", None),
        counterparty=told_by(order),
    )  # fmt: skip
    if waits is not None:
        return waits
    answer = await bank.engine.submit(order)
    made = await shown(bank, member.customer_id, UUID(answer.outcome["counterparty_id"]))
    return Response(made, status_code=HTTP_201_CREATED)


@get(
    "/api/v2/counterparties/{counterparty_id:str}/",
    operation_id="get_counterparty",
    opt=READS | refuses("not-found"),
    tags=["counterparties"],
)
async def get_counterparty(member: Member, bank: Bank, counterparty_id: str) -> Counterparty:
    """Read one counterparty."""
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    return await shown(bank, member.customer_id, asked)


@patch(
    "/api/v2/counterparties/{counterparty_id:str}/",
    operation_id="update_counterparty",
    opt=WRITES | refuses("not-found", "counterparty-not-linked"),
    tags=["counterparties"],
)
async def update_counterparty(
    member: Member, bank: Bank, counterparty_id: str, data: ChangeCounterparty
) -> Counterparty:
    """Give a counterparty another display name, or unlink it for ever."""
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    return await change_counterparty(member, bank, member.customer_id, asked, data)


@post(
    "/api/v2/counterparties/{counterparty_id:str}/verify-micro-deposits/",
    status_code=HTTP_200_OK,
    operation_id="verify_micro_deposits",
    opt=WRITES | refuses("not-found", "micro-deposits-not-pending", "micro-deposits-mismatch"),
    tags=["counterparties"],
)
async def verify_micro_deposits(
    member: Member, bank: Bank, counterparty_id: str, data: Deposits
) -> Counterparty:
    """Name the amounts of the two deposits, in any order; there are three tries."""
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    return await confirm_deposits(member, bank, member.customer_id, asked, data)


ROUTES = [
    list_counterparties,
    create_counterparty,
    get_counterparty,
    update_counterparty,
    verify_micro_deposits,
]
