"""Counterparties, v2: all kinds, with every verification a customer can ask for."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.requests import (
    ChangeCounterparty,
    CounterpartyQuery,
    Deposits,
    add_counterparty_command,
    change_counterparty,
    command_content,
    confirm_micro_deposits,
    counterparty_page,
    read_counterparty,
)
from billfold.accounts.counterparties.schemas import (
    AchForm,
    Counterparty,
    DocumentIds,
    InternationalForm,
    OnUsForm,
    WalletForm,
    WireForm,
)
from billfold.http.customer_api.approvals import MAY_NEED_APPROVAL, RequestApproval
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import COUNTERPARTIES
from billfold.http.list_params import ListQuery
from billfold.http.operations import get, patch, post, with_scope
from billfold.http.responses import HttpResponse
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("transfers.read", COUNTERPARTIES)
WRITES = with_scope("transfers.write", COUNTERPARTIES)


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


class CreateInternationalWireCounterpartyRequest(InternationalForm, kw_only=True, tag="international_wire"):
    """An account abroad that wires reach."""

    verification: WireVerification


class CreateOnUsCounterpartyRequest(OnUsForm, kw_only=True, tag="on_us"):
    """A Pocket of this bank, by its 12-digit network address."""

    verification: AccountVerification | None = None


class CreateCryptoWalletAddressCounterpartyRequest(WalletForm, kw_only=True, tag="crypto_wallet_address"):
    """A wallet."""

    verification: AccountVerification | None = None


CreateCounterparty = (
    CreateWireCounterpartyRequest
    | CreateACHCounterpartyRequest
    | CreateInternationalWireCounterpartyRequest
    | CreateOnUsCounterpartyRequest
    | CreateCryptoWalletAddressCounterpartyRequest
)


@get("/api/v2/counterparties/", READS)
async def list_counterparties(
    *, member: CustomerCaller, bank: Bank, wanted: ListQuery, asked: CounterpartyQuery
) -> CursorList[Counterparty]:
    """List the counterparties, newest first."""
    return await counterparty_page(bank, member.customer_id, wanted, asked)


@post("/api/v2/counterparties/", WRITES, documented=MAY_NEED_APPROVAL, refuses=("customer-not-open",))
async def create_counterparty(
    member: CustomerCaller, bank: Bank, data: CreateCounterparty, request_approval: RequestApproval
) -> Counterparty | HttpResponse:
    """Add an account as payee. It is PENDING until it is shown whose account it is.

    It may wait for a second person, where a rule of the team says so.
    """
    order = await add_counterparty_command(member, bank, member.customer_id, data)
    approval_response = await request_approval(
        member,
        bank,
        "NEW_COUNTERPARTY",
        "counterparty.create",
        ("counterparty", None),
        counterparty=command_content(order),
    )
    if approval_response is not None:
        return approval_response
    answer = await bank.engine.submit(order)
    return await read_counterparty(bank, member.customer_id, UUID(answer.outcome["counterparty_id"]))


@get("/api/v2/counterparties/{counterparty_id}/", READS)
async def get_counterparty(member: CustomerCaller, bank: Bank, counterparty_id: UUID) -> Counterparty:
    """Read one counterparty."""
    return await read_counterparty(bank, member.customer_id, counterparty_id)


@patch("/api/v2/counterparties/{counterparty_id}/", WRITES, refuses=("counterparty-not-linked",))
async def update_counterparty(
    member: CustomerCaller, bank: Bank, counterparty_id: UUID, data: ChangeCounterparty
) -> Counterparty:
    """Give a counterparty another display name, or unlink it for ever."""
    return await change_counterparty(member, bank, member.customer_id, counterparty_id, data)


@post(
    "/api/v2/counterparties/{counterparty_id}/verify-micro-deposits/",
    WRITES,
    status=200,
    refuses=("micro-deposits-not-pending", "micro-deposits-mismatch"),
)
async def verify_micro_deposits(
    member: CustomerCaller, bank: Bank, counterparty_id: UUID, data: Deposits
) -> Counterparty:
    """Name the amounts of the two deposits, in any order; there are three tries."""
    return await confirm_micro_deposits(member, bank, member.customer_id, counterparty_id, data)
