"""Portals and the instructions for paying into them."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.types import ShownNote
from billfold.accounts.portals.commands import PortalRow, PortalStatus
from billfold.http.schemas import Amount, one_of, usd
from billfold.ledger.types import Rail
from billfold.platform.settings.settings import Settings


class Portal(ShownNote, kw_only=True):
    """A payment identifier of a Pocket."""

    id: UUID
    pocket_id: UUID
    customer_id: UUID
    type: Annotated[str, one_of("BANK_VIRTUAL_ACCOUNT_PORTAL", "CRYPTO_DEPOSIT_ADDRESS_PORTAL")]
    name: str
    status: Annotated[str, one_of(*PortalStatus)]
    routing_number: str | UnsetType = UNSET
    account_number: str | UnsetType = UNSET
    network_address: str | UnsetType = UNSET
    chain: str | UnsetType = UNSET
    wallet_address: str | UnsetType = UNSET
    asset: str | UnsetType = UNSET
    payment_rails: list[str]
    time_created: datetime
    updated_at: datetime
    object_type: Literal["Portal"] = "Portal"


class AccountPortal(msgspec.Struct, kw_only=True):
    """A portal of an account, v1."""

    id: UUID
    service_account_id: UUID
    name: str
    status: Annotated[str, one_of(*PortalStatus)]
    routing_number: str | None
    account_number: str | None
    payment_rails: list[str]
    object_type: Literal["Portal"] = "Portal"


class AccountPortals(msgspec.Struct, kw_only=True):
    """The portals of an account, v1."""

    count: int
    portals: list[AccountPortal]
    object_type: Literal["List"] = "List"


class AchInstruction(msgspec.Struct, kw_only=True, tag_field="payment_rail", tag="ACH"):
    """Instructions for an ACH credit."""

    routing_number: str
    account_number: str
    account_type: Literal["CHECKING"] = "CHECKING"
    beneficiary_name: str
    bank_name: str


class WireInstruction(msgspec.Struct, kw_only=True, tag_field="payment_rail", tag="WIRE"):
    """Instructions for a domestic wire."""

    routing_number: str
    account_number: str
    account_type: Literal["CHECKING"] = "CHECKING"
    beneficiary_name: str
    beneficiary_address: str
    bank_name: str
    bank_address: str
    memo: str | None = None


class InternationalWireInstruction(msgspec.Struct, kw_only=True, tag_field="payment_rail", tag="INTERNATIONAL_WIRE"):
    """Instructions for a wire from abroad."""

    beneficiary_name: str
    beneficiary_address: str
    account_number: str
    swift_bic: str
    bank_name: str
    bank_address: str
    intermediary_bank: str | None = None
    memo: str | None = None


class OnUsInstruction(msgspec.Struct, kw_only=True, tag_field="payment_rail", tag="ON_US"):
    """Instructions for a payment from another Pocket of the network."""

    network_address: str
    beneficiary_name: str


class CryptoInstruction(msgspec.Struct, kw_only=True, tag_field="payment_rail", tag="CRYPTO"):
    """Instructions for tokens: only `asset`, only on `chain`. Deposits below the minimum wait for later ones."""

    chain: str
    wallet_address: str
    asset: str
    minimum_amount: Amount | None = None


Instruction = AchInstruction | WireInstruction | InternationalWireInstruction | OnUsInstruction | CryptoInstruction


class FundingInstructions(msgspec.Struct, kw_only=True):
    """One entry per payment rail of the portal; empty if it is closed, because payments into it are returned."""

    portal_id: UUID
    status: PortalStatus
    instructions: list[Instruction]
    object_type: Literal["FundingInstructions"] = "FundingInstructions"


def render_portal(row: PortalRow) -> Portal:
    """Return a portal for display, v2. The network address is present while on-us is one of its rails."""
    on_us = "ON_US" in row.payment_rails and row.network_address is not None
    return Portal(
        id=row.portal_id,
        pocket_id=row.pocket_id,
        customer_id=row.customer_id,
        type=row.type,
        name=row.name,
        status=row.status,
        routing_number=row.routing_number or UNSET,
        account_number=row.account_number or UNSET,
        network_address=row.network_address or UNSET if on_us else UNSET,
        chain=row.chain or UNSET,
        wallet_address=row.wallet_address or UNSET,
        asset=row.asset or UNSET,
        payment_rails=row.payment_rails,
        time_created=row.created_at,
        updated_at=row.updated_at,
    )


def render_account_portal(row: PortalRow) -> AccountPortal:
    """Return the same portal, v1."""
    return AccountPortal(
        id=row.portal_id,
        service_account_id=row.pocket_id,
        name=row.name,
        status=row.status,
        routing_number=row.routing_number,
        account_number=row.account_number,
        payment_rails=row.payment_rails,
    )


def render_instructions(
    row: PortalRow,
    settings: Settings,
    *,
    beneficiary_name: str,
    beneficiary_address: str,
    minimum_cents: int | None = None,
) -> FundingInstructions:
    """Return the instructions for each rail of a portal."""
    name, account, routing = beneficiary_name, row.account_number or "", row.routing_number or ""
    bank = settings.bank_name
    wire: dict[str, Any] = {
        "account_number": account,
        "beneficiary_name": name,
        "beneficiary_address": beneficiary_address,
        "bank_name": bank,
        "bank_address": settings.bank_address,
    }
    instructions: dict[str, Instruction] = {
        Rail.ACH: AchInstruction(routing_number=routing, account_number=account, beneficiary_name=name, bank_name=bank),
        Rail.WIRE: WireInstruction(routing_number=routing, **wire),
        Rail.INTERNATIONAL_WIRE: InternationalWireInstruction(swift_bic=settings.bank_bic, **wire),
        Rail.ON_US: OnUsInstruction(network_address=row.network_address or "", beneficiary_name=name),
        Rail.CRYPTO: CryptoInstruction(
            chain=row.chain or "",
            wallet_address=row.wallet_address or "",
            asset=row.asset or "",
            minimum_amount=None if minimum_cents is None else usd(minimum_cents),
        ),
    }
    rails = row.payment_rails if row.status == PortalStatus.OPEN else []
    return FundingInstructions(
        portal_id=row.portal_id, status=PortalStatus(row.status), instructions=[instructions[rail] for rail in rails]
    )
