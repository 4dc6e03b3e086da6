"""Counterparties, v2: all kinds, verified by documents or by an incoming wire."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.requests import (
    ChangeCounterparty,
    CounterpartyQuery,
    Deposits,
    add_counterparty,
    change_counterparty,
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
from billfold.http.caller import Caller
from billfold.http.list_params import ListQuery
from billfold.http.operations import get, patch, post
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank


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


class CreateInternationalWireCounterpartyRequest(InternationalForm, kw_only=True, tag="international_wire"):
    """An account abroad that wires reach."""

    verification: Verification


class CreateOnUsCounterpartyRequest(OnUsForm, kw_only=True, tag="on_us"):
    """A Pocket of this bank, by its 12-digit network address."""

    verification: Verification | None = None


class CreateCryptoWalletAddressCounterpartyRequest(WalletForm, kw_only=True, tag="crypto_wallet_address"):
    """A wallet."""

    verification: Verification | None = None


CreateCounterparty = (
    CreateWireCounterpartyRequest
    | CreateACHCounterpartyRequest
    | CreateInternationalWireCounterpartyRequest
    | CreateOnUsCounterpartyRequest
    | CreateCryptoWalletAddressCounterpartyRequest
)


@post("/api/v2/customers/{customer_id}/counterparties/", refuses=("customer-not-open",))
async def create_counterparty(caller: Caller, bank: Bank, customer_id: UUID, data: CreateCounterparty) -> Counterparty:
    """Add an account as payee. It is PENDING until it is shown whose account it is."""
    owner = await caller.customer_id(bank, customer_id)
    return await add_counterparty(caller, bank, owner, data)


@get("/api/v2/customers/{customer_id}/counterparties/")
async def list_counterparties(
    *, caller: Caller, bank: Bank, customer_id: UUID, wanted: ListQuery, asked: CounterpartyQuery
) -> CursorList[Counterparty]:
    """List the counterparties of a customer, newest first."""
    owner = await caller.customer_id(bank, customer_id)
    return await counterparty_page(bank, owner, wanted, asked)


@get("/api/v2/customers/{customer_id}/counterparties/{counterparty_id}/")
async def get_counterparty(caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID) -> Counterparty:
    """Read one counterparty."""
    owner = await caller.customer_id(bank, customer_id)
    return await read_counterparty(bank, owner, counterparty_id)


@patch("/api/v2/customers/{customer_id}/counterparties/{counterparty_id}/", refuses=("counterparty-not-linked",))
async def update_counterparty(
    caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID, data: ChangeCounterparty
) -> Counterparty:
    """Give a counterparty another display name, or unlink it for ever."""
    owner = await caller.customer_id(bank, customer_id)
    return await change_counterparty(caller, bank, owner, counterparty_id, data)


@post(
    "/api/v2/customers/{customer_id}/counterparties/{counterparty_id}/verify-micro-deposits/",
    status=200,
    refuses=("micro-deposits-not-pending", "micro-deposits-mismatch"),
)
async def verify_micro_deposits(
    caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID, data: Deposits
) -> Counterparty:
    """Name the amounts of the two deposits, in any order; there are three tries."""
    owner = await caller.customer_id(bank, customer_id)
    return await confirm_micro_deposits(caller, bank, owner, counterparty_id, data)
