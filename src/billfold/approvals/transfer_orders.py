"""The orders of transfer requests, the content that is approved, and their payees.

The content is stored as JSON text under the names of these structs. Approvals are bound to the
hash of that text, so a name here changes for new requests only, never for stored ones.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.counterparties import store
from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.counterparties.store import open_details
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.customers.store import list_features, list_owners
from billfold.accounts.holds.schemas import Named
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.profiles import open_profiles
from billfold.approvals.types import Schedule, TransferRequest, TransferType
from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.http.caller import Call
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import Note
from billfold.ledger.customers import CustomerRow
from billfold.payments.on_us.reversals.store import find_open_request
from billfold.payments.on_us.schemas import MOST_CENTS, Cents, FullWithdrawal, RequestedAmount
from billfold.payments.on_us.store import find_by_ids
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.platform.money import format_usd

AmountType = Literal["REQUESTED_AMOUNT", "FULL_WITHDRAWAL", "ALL_ABOVE", "TOP_UP_TO"]
Description = Annotated[str, msgspec.Meta(max_length=100)]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=35)]
Instructions = Annotated[str, msgspec.Meta(min_length=1, max_length=140)]


class PeerToPeer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="PEER_TO_PEER"):
    """To an `on_us` counterparty."""

    destination_counterparty_id: UUID


class InternalReallocation(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="INTERNAL_REALLOCATION"
):
    """To another Pocket of the same customer. `SECURITY_TRANSFER` moves the bills themselves."""

    destination_pocket_id: UUID
    transfer_type: Literal["BANK_TRANSFER", "SECURITY_TRANSFER"] = "BANK_TRANSFER"


class Reversal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="REVERSAL"):
    """Back to the Pocket that paid a transfer, as far as its customer has requested it, or is the same."""

    transfer_id: UUID


class AllAbove(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="ALL_ABOVE"):
    """All that the Pocket can pay above `keep_usdc` when the transfer is executed, up to `at_most_usdc`; cents."""

    keep_usdc: Annotated[int, msgspec.Meta(ge=0, le=MOST_CENTS)]
    at_most_usdc: Cents


class TopUpTo(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="TOP_UP_TO"):
    """The cents that a receiving Pocket of the customer lacks to be able to pay `target_usdc`, up to `at_most_usdc`."""

    target_usdc: Cents
    at_most_usdc: Cents


class OnUsOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="ON_US"):
    """A transfer within this bank."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedAmount | FullWithdrawal | AllAbove | TopUpTo
    details: PeerToPeer | InternalReallocation | Reversal
    description: Description | None = None
    end_to_end_identification: Reference | None = None
    hold_id: Named = UNSET


class WireOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="WIRE"):
    """A wire to a `wire` or `international_wire` counterparty."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedAmount | FullWithdrawal | AllAbove
    counterparty_id: UUID
    description: Description | None = None
    wire_instructions: Instructions | None = None
    end_to_end_identification: Reference | None = None
    hold_id: Named = UNSET


class UsdcOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="USDC"):
    """USDC to a `crypto_wallet_address` counterparty."""

    id: UUID
    origin_pocket_id: UUID
    amount: RequestedAmount
    counterparty_id: UUID


_START_MAX = timedelta(days=731)
_GROWTH = 500
"""A growth of 1/500: the seven days that a request may wait, at ten percent a year."""
OrderedTransfer = OnUsOrder | WireOrder | UsdcOrder


class RequestContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content that is approved: the order, the payee at that time, and the named reviewers.

    Approvals become void when the payee of the counterparty changes. `value` is the value of the Pocket of a full
    withdrawal at that time, in cents, which rules and limits use. `wire_instructions` are those of the
    order, sealed; the order itself omits them. With `must_be_approved` no rule can do without an approval.
    `attached` is the note of a row of a batch; that of a single request is not part of what is approved.
    """

    transfer: OrderedTransfer
    payee: dict[str, Any] | None = None
    reviewers: tuple[UUID, ...] = ()
    value: int | UnsetType = UNSET
    wire_instructions: str | UnsetType = UNSET
    schedule: Schedule | UnsetType = UNSET
    must_be_approved: Literal[True] | UnsetType = UNSET
    attached: Note | UnsetType = UNSET

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
        """The amount in cents by which rules and limits decide."""
        if (found := self.variable) is not None:
            return found.at_most_usdc
        return self.requested_cents or (0 if self.value is UNSET else self.value)

    @property
    def variable(self) -> AllAbove | TopUpTo | None:
        """The rule of an amount that is decided when it is paid."""
        return found if isinstance(found := self.transfer.amount, AllAbove | TopUpTo) else None

    @property
    def keep_cents(self) -> int | None:
        """The least that the Pocket keeps, of an amount that is all above it."""
        return self.variable.keep_usdc if isinstance(self.variable, AllAbove) else None

    @property
    def target_cents(self) -> int | None:
        """The cents that the receiving Pocket is topped up to."""
        return self.variable.target_usdc if isinstance(self.variable, TopUpTo) else None

    @property
    def amount_type(self) -> AmountType:
        """The kind of the amount."""
        return cast("AmountType", self.transfer.amount.__struct_config__.tag)

    @property
    def requested_cents(self) -> int | None:
        """The amount to pay in cents; None: decided when it is paid."""
        amount = self.transfer.amount
        return amount.amount_usdc if isinstance(amount, RequestedAmount) else None

    @property
    def most_cents(self) -> int | None:
        """The maximum that a full withdrawal pays: its value, and the growth of bills while a request waits.

        Without this limit, money that arrives later would leave under the rule of a smaller amount.
        """
        if self.variable is not None:
            return self.amount
        return None if self.requested_cents is not None else self.amount + -(-self.amount // _GROWTH)

    @property
    def amount_text(self) -> str:
        """The amount as text for a sentence."""
        text = format_usd(self.amount)
        if self.variable is not None:
            return f"up to {text}"
        return f"the whole balance (about {text})" if self.requested_cents is None else text

    @property
    def instructions(self) -> str | None:
        """The instructions of a wire, sealed; earlier releases stored them in the order."""
        if self.wire_instructions is not UNSET:
            return self.wire_instructions
        return self.transfer.wire_instructions if isinstance(self.transfer, WireOrder) else None

    @property
    def counterparty_id(self) -> UUID | None:
        """The counterparty that is paid; None between Pockets of one customer."""
        if not isinstance(self.transfer, OnUsOrder):
            return self.transfer.counterparty_id
        details = self.transfer.details
        return details.destination_counterparty_id if isinstance(details, PeerToPeer) else None

    @property
    def reverses_id(self) -> UUID | None:
        """The transfer that is paid back."""
        details = self.transfer.details if isinstance(self.transfer, OnUsOrder) else None
        return details.transfer_id if isinstance(details, Reversal) else None


async def ordered_content(
    bank: Bank,
    customer_id: UUID,
    order: OrderedTransfer,
    *,
    reviewers: Sequence[UUID],
    schedule: Schedule | UnsetType | None = None,
    must_be_approved: bool = False,
) -> RequestContent:
    """Return the ordered transfer with its instructions sealed; nothing is looked up yet."""
    content = RequestContent(
        transfer=order,
        reviewers=unique_reviewers(reviewers),
        schedule=schedule or UNSET,
        must_be_approved=True if must_be_approved else UNSET,
    )
    if not isinstance(order, WireOrder) or order.wire_instructions is None:
        return content
    data_key = await bank.ports[DataKeys].of(bank.pool, customer_id)
    return msgspec.structs.replace(
        content,
        transfer=msgspec.structs.replace(order, wire_instructions=None),
        wire_instructions=PartyField.TEXT.seal(data_key, order.wire_instructions),
    )


def unique_reviewers(reviewers: Sequence[UUID]) -> tuple[UUID, ...]:
    """Return each reviewer once, in order."""
    return tuple(dict.fromkeys(reviewers))


def check_order(content: RequestContent, today: date) -> None:
    """Raise InvalidInput for an amount that the transfer cannot have, and for a schedule without a day from now on."""
    order, amount = content.transfer, content.transfer.amount
    details = order.details if isinstance(order, OnUsOrder) else None
    in_kind = isinstance(details, InternalReallocation) and details.transfer_type == "SECURITY_TRANSFER"
    if content.variable is not None and in_kind:
        raise InvalidInput.at("body", "transfer", "amount", msg="of bills that move must be given, or be all of them")
    if isinstance(details, Reversal) and not (isinstance(amount, RequestedAmount) and content.schedule is UNSET):
        raise InvalidInput.at("body", "transfer", "amount", msg="of a reversal must be given, and is not scheduled")
    if isinstance(amount, TopUpTo) and not isinstance(details, InternalReallocation):
        raise InvalidInput.at("body", "transfer", "amount", msg="is topped up between Pockets of one customer only")
    schedule = content.schedule
    if schedule is UNSET:
        return
    if isinstance(amount, FullWithdrawal):
        raise InvalidInput.at("body", "transfer", "amount", msg="of a schedule is ALL_ABOVE, which states its maximum")
    if not today <= schedule.start_on <= today + _START_MAX:
        raise InvalidInput.at("body", "schedule", "start_on", msg="must be today or later, within two years")
    schedule.recurrence()


async def stays_within(caller: Call, bank: Bank, content: RequestContent, *, owner: UUID) -> bool:
    """Tell whether the customer itself is paid.

    Raises NotFound, Refused `same-pocket`, `pocket-not-open`, `reversal-not-open` for what nobody requested.
    """
    details = content.transfer.details if isinstance(content.transfer, OnUsOrder) else None
    if isinstance(details, Reversal):
        original = (await find_by_ids(bank.pool, [details.transfer_id])).get(details.transfer_id)
        if original is None or (original.payee_id, original.to_pocket_id) != (owner, content.pocket_id):
            raise NotFound("There is no such transfer to this Pocket.")
        if original.customer_id == owner:
            return True
        asked = await find_open_request(bank.pool, owner, details.transfer_id)
        if asked is None or asked.amount != content.amount:
            raise Refused("reversal-not-open", "Its payer has no open request for this amount.")
        return False
    if not isinstance(details, InternalReallocation):
        return False
    if details.destination_pocket_id == content.pocket_id:
        raise Refused("same-pocket", "A transfer needs two different pockets.")
    await check_pocket(caller, bank, details.destination_pocket_id, owner=owner, receives=True)
    return True


async def check_pocket(caller: Call, bank: Bank, pocket_id: UUID, *, owner: UUID, receives: bool) -> PocketRow:
    """Return a Pocket of the customer. Raises NotFound, Refused `pocket-not-open`, `pocket-frozen`."""
    _, own_id = await caller.pocket(bank, pocket_id, owner)
    row = await pocket_store.get_pocket(bank.pool, owner, own_id)
    status = row.status
    if status == "FROZEN" and not receives:
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The {'receiving ' if receives else ''}pocket is {status}.")
    return row


def decode_content(text: str) -> RequestContent:
    """Return the content of a stored request."""
    return msgspec.json.decode(text, type=RequestContent)


def content_of(request: TransferRequest) -> RequestContent:
    """Return the content of a request."""
    return decode_content(request.content)


async def get_payee(conn: Connection, customer_id: UUID, content: RequestContent) -> dict[str, Any]:
    """Return the counterparty to be paid, as the approved content stores it.

    Raises NotFound, Refused `sanction-screen-failed`, `counterparty-type-mismatch`, `counterparty-not-verified`.
    """
    assert content.counterparty_id is not None
    found = await store.find_payees(conn, [customer_id], [content.counterparty_id])
    unverified_wires = await allows_unverified_wires(conn, customer_id)
    return payee_of(content, {found_id: payee for _, found_id, payee in found}, unverified_wires=unverified_wires)


def payee_of(content: RequestContent, known: Mapping[UUID, Payee], *, unverified_wires: bool) -> dict[str, Any]:
    """Return the counterparty to be paid, of those that are known by their ids. Raises as `get_payee`."""
    payee = known.get(content.counterparty_id) if content.counterparty_id else None
    if payee is None:
        raise NotFound("There is no such counterparty.")
    verification_kinds.check_payable(payee, content.type, unverified_wires=unverified_wires)
    stored = ("counterparty_name", "details", "target_pocket_id", "type")
    snapshot: dict[str, Any] = msgspec.to_builtins({name: getattr(payee, name) for name in stored})
    return snapshot


async def check_same_payee(
    conn: Connection, customer_id: UUID, content: RequestContent, data_key: DataKey | None
) -> None:
    """Refuse a payee that may no longer be paid or has changed. Raises as `get_payee`, Refused `content-changed`.

    The key is the customer's: a payee of an earlier release may have been sealed since.
    """
    if content.counterparty_id is None:
        return
    require_same_payee(await get_payee(conn, customer_id, content), content, data_key)


def require_same_payee(now: Mapping[str, Any], content: RequestContent, data_key: DataKey | None) -> None:
    """Refuse a payee that differs from the approved one. Raises Refused `content-changed`."""
    then = content.payee or {}
    if now != then and _decrypt_payee(now, data_key) != _decrypt_payee(then, data_key):
        raise Refused("content-changed", "The counterparty has changed since the request. Send a new request.")


def _decrypt_payee(payee: Mapping[str, Any], data_key: DataKey | None) -> dict[str, Any]:
    return {**payee, "details": open_details(data_key, payee.get("details", {}))}


async def list_registered_owners(bank: Bank, requests: Sequence[TransferRequest]) -> dict[UUID, CustomerRow]:
    """Return by request the owner of the account it pays, for accounts at this bank."""
    ring = await bank.ports[DataKeys].load(bank.pool, {each.customer_id for each in requests})
    paid = {
        each.request_id: _entry_of(_decrypt_payee(payee, ring.get(each.customer_id)), bank.settings.bank_routing_number)
        for each in requests
        if (payee := content_of(each).payee) is not None
    }
    owners = await list_owners(bank.pool, {entry for entry in paid.values() if entry is not None})
    opened = dict(zip(owners, await open_profiles(bank, list(owners.values())), strict=True))
    return {request_id: opened[entry] for request_id, entry in paid.items() if entry in opened}


def _entry_of(payee: Mapping[str, Any], own_routing_number: str) -> tuple[str, str] | None:
    """Return the directory entry of a payee's account, None for one at another bank."""
    if payee["target_pocket_id"] is not None:
        return "pocket", payee["target_pocket_id"]
    account = verification_kinds.account_of(payee["details"])
    if account is None or account.bank != own_routing_number:
        return None
    return "account", f"{account.bank}:{account.number}"


async def allows_unverified_wires(conn: Connection, customer_id: UUID) -> bool:
    """Return whether wires of this customer may go to unverified counterparties."""
    return "unverified_wires" in await list_features(conn, customer_id)
