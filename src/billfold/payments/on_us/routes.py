"""On-us transfers of the Partner API: money or bills between Pockets of this bank."""

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.store import PeerKey, PeerRow
from billfold.accounts.holds.schemas import named
from billfold.accounts.notes.schemas import ChangeNote
from billfold.accounts.notes.store import annotate, find_noted, note_fields, show_notes, terms_of
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, patch, post, with_scope
from billfold.http.parameters import OrderedQuery, searched_page_of
from billfold.http.schemas import SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.commands import Outcome, Seen
from billfold.payments.on_us import schemas, store
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder, TransferRow
from billfold.payments.on_us.worker import execute_if_pending
from billfold.platform.database.connection import Pool
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.database.pool import Batcher
from billfold.platform.errors import InvalidInput, NotFound, Refused


class Peer(NamedTuple):
    """The receiving Pocket, and the network addresses of the sending and the receiving Pocket."""

    customer_id: UUID
    pocket_id: UUID
    addresses: tuple[str | None, str | None]
    seen: Seen | None = None


class PeerLookup:
    """Looks up counterparties that are paid within the bank."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[PeerKey, PeerRow | None] = Batcher(self._find)

    async def find(self, payer: UUID, pocket_id: UUID, counterparty_id: UUID) -> Peer:
        """Return the receiving Pocket of a customer's counterparty.

        Raises NotFound, and Refused counterparty-not-verified if it is not linked.
        """
        peer = await self._batcher.ask((payer, pocket_id, counterparty_id))
        if peer is None:
            raise NotFound("There is no such counterparty.")
        if peer.type != "on_us" or peer.status not in {"LINKED", "VERIFIED"}:
            raise Refused(
                "counterparty-not-verified", f"The counterparty is {peer.status}; link an on_us counterparty."
            )
        if peer.customer_id is None or peer.pocket_id is None:
            raise NotFound("The counterparty has no Pocket at this bank.")
        return Peer(peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address), peer.seen)

    async def close(self) -> None:
        """Wait for the lookups in progress."""
        await self._batcher.settle()

    async def _find(self, links: Sequence[PeerKey]) -> list[PeerRow | None]:
        return await counterparty_store.find_peers(self._pool, links)


_DIRECTION_RULES = {
    "PARTNER_CUSTOMER_FUNDING": "moves money from a pocket of your own to one of a customer",
    "PARTNER_CUSTOMER_DEFUNDING": "moves money from a pocket of a customer to one of your own",
    "INTERNAL_REALLOCATION": "moves money between two pockets of the same customer",
}


@post(
    "/api/v1/transfers/on-us/",
    tag="transfers",
    moves_money=True,
    previews=True,
    refuses=(
        "not-found",
        "customer-not-open",
        "agreement-not-accepted",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-not-verified",
        "sanction-screen-failed",
        "duplicate-id",
        "same-pocket",
        "transfer-type-not-allowed",
        "external-id-taken",
        "hold-not-active",
        "amount-not-allowed",
    ),
)
async def create_on_us_transfer(
    caller: Caller, bank: Bank, peers: PeerLookup, data: schemas.CreateTransfer
) -> schemas.OnUsTransfer:
    """Create on-us transfer

    Moves money or bills. A transfer that the bank cannot make is REJECTED with a reason and moves
    nothing.
    """
    data, order = ordered(data)
    if (existing := await _find_existing(caller, bank, data.transfer_id, order=order)) is not None:
        return existing
    command = await transfer_command(caller, bank, data, peers=peers, order=order)

    def render(outcome: Outcome) -> schemas.OnUsTransfer:
        pockets = (command.from_pocket_id, command.to_pocket_id)
        transfer_id = UUID(outcome["transfer_id"])
        made = schemas.render_ordered(order, outcome, transfer_id=transfer_id, kind=data.type, pockets=pockets)
        made.external_id, made.metadata = data.external_id or None, data.metadata or {}
        return made

    try:
        answer = await bank.engine.submit(command, caller.response(render))
    except Refused:
        # The same transfer, sent under another key at the same time, was made first.
        if (existing := await _find_existing(caller, bank, data.transfer_id, order=order)) is None:
            raise
        return existing
    made = render(answer.outcome)
    if made.status == "PENDING":
        bank.background.start(execute_if_pending(bank, command.customers[0], made.id))
    return made


READ, WRITE = with_scope("transfers.read", "transactions"), with_scope("transfers.write", "transactions")
_ONE = "/api/v1/transfers/on-us/{transfer_id}/"


@get("/api/v1/transfers/on-us/", SIGNED, READ, tag="transfers", as_of=True)
async def list_on_us_transfers(
    caller: Call, bank: Bank, page_query: OrderedQuery, filters: schemas.TransferFilters
) -> SearchedList[schemas.OnUsTransfer]:
    """List on-us transfers

    Returns the transfers that a customer pays, newest first. The Partner API needs `customer_id` or `pocket_id`; its
    own account is a customer, too. What a customer receives is among its transactions.
    """
    owner = await caller.filtered_owner(bank, filters.customer_id, filters.pocket_id, or_else=", or pocket_id")
    chosen = (filters.pocket_id, filters.status, filters.types, *filters.values)
    if (external_id := filters.require_alone(*chosen)) is not None:
        get = partial(store.get_transfer, bank.pool, owner, as_of=caller.as_of)
        found = await find_noted(bank, owner, TRANSFER, external_id, get=get)
        return searched_page_of(Page(found), await _show_all(caller, bank, found))
    values = (owner, *chosen, await terms_of(bank, owner, TRANSFER, filters))
    listed, then = list_as_of(store.TRANSFERS, store.TRANSFERS_THEN, caller.as_of)
    page = await page_query.read(bank, listed, *values, *then, scope="on-us-transfers")
    return searched_page_of(page, await _show_all(caller, bank, page.items))


@get(_ONE, SIGNED, READ, tag="transfers", as_of=True)
async def get_on_us_transfer(caller: Call, bank: Bank, transfer_id: UUID) -> schemas.OnUsTransfer:
    """Get on-us transfer

    Returns a transfer with its status.
    """
    owner, own_id = await caller.owned(bank, "transfer", transfer_id)
    return await show_transfer(caller, bank, await store.get_transfer(bank.pool, owner, own_id, caller.as_of))


@patch(_ONE, SIGNED, WRITE, tag="transfers", refuses=("external-id-taken",))
async def annotate_on_us_transfer(
    caller: Call, bank: Bank, transfer_id: UUID, data: ChangeNote
) -> schemas.OnUsTransfer:
    """Annotate on-us transfer

    Changes `external_id` and `metadata`.
    """
    owner, own_id = await caller.owned(bank, "transfer", transfer_id)
    row = await store.get_transfer(bank.pool, owner, own_id)
    await annotate(caller, bank, owner, kind=TRANSFER, object_id=own_id, given=data)
    return await show_transfer(caller, bank, row)


async def show_transfer(caller: Call, bank: Bank, row: TransferRow) -> schemas.OnUsTransfer:
    """Return a transfer for display."""
    return (await _show_all(caller, bank, [row]))[0]


async def _show_all(caller: Call, bank: Bank, rows: Sequence[TransferRow]) -> list[schemas.OnUsTransfer]:
    """Return transfers for display with their notes, to a customer without the Pockets of others."""
    shown = {(row.customer_id, row.transfer_id): schemas.render_transfer(row) for row in rows}
    reversals = await store.list_reversals(bank.pool, [row.transfer_id for row in rows], caller.as_of)
    for original_id, paid_back in reversals.items():
        each = next(each for each in shown.values() if each.id == original_id)
        each.reversed_by = tuple(reversal.transfer_id for reversal in paid_back)
    if caller.only_customer_id is not None:
        for each in shown.values():
            if each.transfer.type != "INTERNAL_REALLOCATION":
                each.transfer.to_account = None
    return await show_notes(bank, shown)


def check_fields(data: schemas.CreateTransfer) -> None:
    """Raise InvalidInput if fields are missing or incompatible."""
    peer = data.type == "PEER_TO_PEER"
    _check_presence(data, "counterparty_id", peer)
    _check_presence(data, "to_account", not peer)
    _check_presence(data, "source", data.type == "PARTNER_CUSTOMER_FUNDING")
    _check_presence(data, "target", data.type == "PARTNER_CUSTOMER_DEFUNDING")
    if data.transfer_type is not None and data.type != "INTERNAL_REALLOCATION":
        raise InvalidInput.at("body", "transfer_type", msg="is only allowed with INTERNAL_REALLOCATION")
    funding = data.type == "PARTNER_CUSTOMER_FUNDING"
    if funding and isinstance(data.amount, schemas.FullWithdrawal):
        raise InvalidInput.at("body", "amount", msg="is required for a funding: FULL_WITHDRAWAL is not allowed")


def _without_default(data: schemas.CreateTransfer) -> schemas.CreateTransfer:
    """Return a request without a default transfer type, which is the same transfer whether stated or not."""
    return msgspec.structs.replace(data, transfer_type=None) if data.transfer_type == "BANK_TRANSFER" else data


def _check_presence(data: schemas.CreateTransfer, name: str, needed: bool) -> None:  # noqa: FBT001 - the condition is the point of it
    given = getattr(data, name) is not None
    if needed and not given:
        raise InvalidInput.at("body", name, msg=f"is required for {data.type}", kind="missing")
    if given and not needed:
        raise InvalidInput.at("body", name, msg=f"is not allowed with {data.type}")


async def _find_existing(
    caller: Caller, bank: Bank, transfer_id: UUID | None, order: TransferOrder
) -> schemas.OnUsTransfer | None:
    """Return the transfer with this id if a request of equal content created it. Raises Refused `duplicate-id`."""
    entry = None if transfer_id is None else await bank.directory.find("transfer", transfer_id)
    if entry is None:
        return None
    row = await store.get_transfer(bank.pool, entry.customer_id, entry.object_id)
    if entry.partner_id != caller.partner_id or row.order.content_hash != order.content_hash:
        raise Refused("duplicate-id", "Another transfer already has this transfer_id.")
    return await show_transfer(caller, bank, row)


def ordered(data: schemas.CreateTransfer) -> tuple[schemas.CreateTransfer, TransferOrder]:
    """Return a request in its one form, and its order. Raises InvalidInput."""
    data = schemas.with_amount(data)
    check_fields(data)
    data = _without_default(data)
    return data, _order(data)


def _order(data: schemas.CreateTransfer) -> TransferOrder:
    return TransferOrder(
        counterparty_id=data.counterparty_id,
        transfer_type=data.transfer_type,
        description=data.description,
        end_to_end_identification=data.end_to_end_identification,
        source=data.source,
        target=data.target,
        async_mode=data.async_mode,
        content_hash=sha256(msgspec.json.encode(data)).hexdigest(),
        hold_id=named(data.hold_id),
    )


async def transfer_command(
    caller: Caller, bank: Bank, data: schemas.CreateTransfer, *, peers: PeerLookup, order: TransferOrder
) -> TransferOnUs:
    """Return the command of a transfer. Raises NotFound, Refused for what it references."""
    payer, from_pocket = await _resolve_account(caller, bank, "from_account", account=data.from_account)
    payee, to_pocket, addresses, seen = await _destination(caller, bank, peers, data=data, origin=(payer, from_pocket))
    _check_direction(caller, data, payer, payee=payee)
    if from_pocket == to_pocket:
        raise Refused("same-pocket", "A transfer needs two different pockets.")
    return TransferOnUs(
        **caller.command_fields(payer, payee),
        **await note_fields(bank, payer, TRANSFER, data, noted=data.transfer_id),
        transfer_id=data.transfer_id,
        type=data.type,
        from_pocket_id=from_pocket,
        to_pocket_id=to_pocket,
        amount=schemas.requested_cents(data.amount),
        partner_id=caller.partner_id,
        addresses=addresses,
        later=order.async_mode,
        order=order,
        references=order.referenced,
        hold_id=order.hold_id,
        seen=None if order.hold_id else seen,
    )


async def _resolve_account(caller: Caller, bank: Bank, name: str, account: schemas.AccountRef) -> tuple[UUID, UUID]:
    """Return (customer_id, pocket_id) of an account. Raises NotFound that names the field."""
    try:
        return await caller.pocket(bank, account.id)
    except NotFound as error:
        raise NotFound(f"{error.detail} Look at {name}.") from None


async def _destination(
    caller: Caller, bank: Bank, peers: PeerLookup, data: schemas.CreateTransfer, origin: tuple[UUID, UUID]
) -> Peer:
    """Return the receiving Pocket, with both network addresses for a peer-to-peer payment."""
    if data.to_account is not None:
        return Peer(*await _resolve_account(caller, bank, "to_account", account=data.to_account), (None, None))
    assert data.counterparty_id is not None
    return await peers.find(*origin, data.counterparty_id)


def _check_direction(caller: Caller, data: schemas.CreateTransfer, payer: UUID, payee: UUID) -> None:
    """Raise Refused if the owners of the Pockets do not match the type."""
    own = caller.own_customer_id
    is_allowed = {
        "PARTNER_CUSTOMER_FUNDING": payer == own and payee != own,
        "PARTNER_CUSTOMER_DEFUNDING": payer != own and payee == own,
        "INTERNAL_REALLOCATION": payer == payee,
        "PEER_TO_PEER": True,
    }
    if not is_allowed[data.type]:
        raise Refused("transfer-type-not-allowed", f"{data.type} {_DIRECTION_RULES[data.type]}.")
