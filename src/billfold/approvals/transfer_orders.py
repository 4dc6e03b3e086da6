"""What a transfer request orders, and the content that is approved.

The content is stored as JSON text under the names of these structs. Approvals are bound to the
hash of that text, so a name here changes for new requests only, never for stored ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast
from uuid import UUID

import msgspec

from billfold.approvals.types import TransferType

if TYPE_CHECKING:
    from billfold.approvals.types import TransferRequest

MOST_CENTS = 999_999_999_999
"""No single transfer is larger than a Fedwire payment: $9,999,999,999.99."""
Cents = Annotated[int, msgspec.Meta(ge=1, le=MOST_CENTS)]
Description = Annotated[str, msgspec.Meta(max_length=100)]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=35)]
Instructions = Annotated[str, msgspec.Meta(min_length=1, max_length=140)]


class RequestedCents(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """So many cents."""

    type: Literal["REQUESTED_AMOUNT"]
    amount_usdc: Cents


class PeerToPeer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="PEER_TO_PEER"):
    """To an `on_us` counterparty."""

    destination_counterparty_id: UUID


class InternalReallocation(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="INTERNAL_REALLOCATION"
):
    """To another Pocket of the same customer. `SECURITY_TRANSFER` moves the bills themselves."""

    destination_pocket_id: UUID
    transfer_type: Literal["BANK_TRANSFER", "SECURITY_TRANSFER"] = "BANK_TRANSFER"


class OnUsOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="ON_US"):
    """A transfer within this bank."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedCents
    details: PeerToPeer | InternalReallocation
    description: Description | None = None
    end_to_end_identification: Reference | None = None


class WireOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="WIRE"):
    """A wire to a `wire` or `international_wire` counterparty."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedCents
    counterparty_id: UUID
    description: Description | None = None
    wire_instructions: Instructions | None = None
    end_to_end_identification: Reference | None = None


class UsdcOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="USDC"):
    """USDC to a `crypto_wallet_address` counterparty."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedCents
    counterparty_id: UUID


OrderedTransfer = OnUsOrder | WireOrder | UsdcOrder


class RequestContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content that is approved: the order, the payee at that time, and the named reviewers.

    Approvals are void when the payee of the counterparty has changed.
    """

    transfer: OrderedTransfer
    payee: dict[str, Any] | None = None
    reviewers: tuple[UUID, ...] = ()

    @property
    def request_id(self) -> UUID:
        """The request's id, which becomes the id of the transfer or wire."""
        return self.transfer.id

    @property
    def type(self) -> TransferType:
        """The rail of the order."""
        return cast("TransferType", self.transfer.__struct_config__.tag)

    @property
    def pocket_id(self) -> UUID:
        """The Pocket that pays."""
        return self.transfer.origin_pocket_id

    @property
    def amount(self) -> int:
        """The amount in cents."""
        return self.transfer.amount.amount_usdc

    @property
    def counterparty_id(self) -> UUID | None:
        """The counterparty that is paid; None between Pockets of one customer."""
        if not isinstance(self.transfer, OnUsOrder):
            return self.transfer.counterparty_id
        details = self.transfer.details
        return details.destination_counterparty_id if isinstance(details, PeerToPeer) else None


def decode_content(text: str) -> RequestContent:
    """Return the content of a stored request."""
    return msgspec.json.decode(text, type=RequestContent)


def content_of(request: TransferRequest) -> RequestContent:
    """Return what a request orders."""
    return decode_content(request.content)
