"""Portals: the account numbers and network addresses for payments into a Pocket."""

from uuid import UUID

import msgspec

from billfold.accounts.portals.commands import OpenPortal, PortalRow, PortalStatus, UpdatePortal, Wallet
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import require_active
from billfold.ledger.types import EventKind, PocketStatus, Rail
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import digits

BANK = "BANK_VIRTUAL_ACCOUNT_PORTAL"
CRYPTO = "CRYPTO_DEPOSIT_ADDRESS_PORTAL"
BANK_RAILS = (Rail.ACH, Rail.WIRE, Rail.INTERNATIONAL_WIRE, Rail.ON_US)
ACCOUNT_DIGITS = 12
NETWORK_DIGITS = 12
WALLET_COLUMNS = ("chain", "wallet_address", "asset", "xpub_id", "address_index")
"""The columns of a portal that the outcome of its command repeats."""


@decides(OpenPortal)
def open_portal(books: Books, cmd: OpenPortal, ctx: Context) -> Outcome:
    """Refuses: pocket-not-open, customer-not-open."""
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    if pocket is None:
        raise NotFound
    if pocket.status != PocketStatus.OPEN:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    require_active(book.account_status)
    if cmd.wallet is not None:
        return _open_crypto_portal(book, cmd, ctx, wallet=cmd.wallet)
    portal = new_bank_portal(book, cmd.pocket_id, ctx, name=cmd.name, payment_rails=cmd.payment_rails)
    return {"portal_id": str(portal.portal_id)}


def _open_crypto_portal(book: Book, cmd: OpenPortal, ctx: Context, wallet: Wallet) -> Outcome:
    portal_id = ctx.ids.next()
    portal = PortalRow(
        customer_id=book.customer_id,
        portal_id=portal_id,
        pocket_id=cmd.pocket_id,
        type=CRYPTO,
        name=cmd.name,
        status=PortalStatus.OPEN,
        routing_number=None,
        account_number=None,
        network_address=None,
        payment_rails=[Rail.CRYPTO],
        chain=wallet.chain,
        wallet_address=wallet.address,
        asset=wallet.asset,
        xpub_id=wallet.xpub_id,
        address_index=wallet.index,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.put(book.portals, portal_id, portal)
    book.draft.add(portal)
    book.enter("portal", str(portal_id), portal_id)
    book.enter("wallet", wallet.address.lower(), portal_id)
    _raise_event(book, portal, ctx, kinds.PORTAL_CREATED)
    recorded = {name: getattr(portal, name) for name in WALLET_COLUMNS}
    return {"portal_id": str(portal_id), **recorded}


@decides(UpdatePortal)
def update_portal(books: Books, cmd: UpdatePortal, ctx: Context) -> Outcome:
    """Refuses: already-closed."""
    book = book_of(books, cmd.customers[0])
    portal: PortalRow | None = book.portals.get(cmd.portal_id)
    if portal is None or (cmd.pocket_id is not None and portal.pocket_id != cmd.pocket_id):
        raise NotFound
    if portal.status == PortalStatus.CLOSED:
        raise Refused("already-closed", "The portal is closed. Open another one.")
    if cmd.name is not None:
        book.put(book.portals, cmd.portal_id, msgspec.structs.replace(portal, name=cmd.name))
        book.change(PortalRow, cmd.portal_id, name=cmd.name, updated_at=ctx.now)
    if cmd.close:
        _close_portal(book, book.portals[cmd.portal_id], ctx)
    else:
        _raise_event(book, portal, ctx)
    return {"portal_id": str(cmd.portal_id)}


def new_bank_portal(
    book: Book, pocket_id: UUID, ctx: Context, *, name: str, payment_rails: tuple[str, ...] | None = None
) -> PortalRow:
    """Create a virtual account of our bank with its own network address, and enter it in the directory."""
    portal_id = ctx.ids.next()
    number, address = account_number(ctx.seed, portal_id), network_address(ctx.seed, portal_id)
    portal = PortalRow(
        customer_id=book.customer_id,
        portal_id=portal_id,
        pocket_id=pocket_id,
        type=BANK,
        name=name,
        status=PortalStatus.OPEN,
        routing_number=ctx.terms.routing_number,
        account_number=number,
        network_address=address,
        payment_rails=list(payment_rails or BANK_RAILS),
        chain=None,
        wallet_address=None,
        asset=None,
        xpub_id=None,
        address_index=None,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.put(book.portals, portal_id, portal)
    book.draft.add(portal)
    for kind, value in (
        ("portal", str(portal_id)),
        ("account", f"{ctx.terms.routing_number}:{number}"),
        ("network", address),
    ):
        book.enter(kind, value, portal_id)
    _raise_event(book, portal, ctx, kinds.PORTAL_CREATED)
    return portal


def account_number(seed: bytes, portal_id: UUID) -> str:
    """Return twelve digits derived for a portal; a number without a leading zero survives spreadsheets."""
    return "8" + digits(seed, portal_id, 0, count=ACCOUNT_DIGITS - 1)


def network_address(seed: bytes, portal_id: UUID) -> str:
    """Return twelve digits derived for a portal, independent of its account number."""
    return "7" + digits(seed, portal_id, 1, count=NETWORK_DIGITS - 1)


def close_portals(book: Book, pocket_id: UUID, ctx: Context) -> None:
    """Close every open portal of a pocket."""
    for portal in list(book.portals.values()):
        if portal.pocket_id == pocket_id and portal.status != PortalStatus.CLOSED:
            _close_portal(book, portal, ctx)


def _close_portal(book: Book, portal: PortalRow, ctx: Context) -> None:
    closed = msgspec.structs.replace(portal, status=PortalStatus.CLOSED)
    book.put(book.portals, portal.portal_id, closed)
    book.change(PortalRow, portal.portal_id, status=PortalStatus.CLOSED, updated_at=ctx.now)
    _raise_event(book, closed, ctx)


def _raise_event(
    book: Book, portal: PortalRow, ctx: Context, kind: EventKind[kinds.PortalPayload] = kinds.PORTAL_UPDATED
) -> None:
    payload = kinds.PortalPayload(portal_id=portal.portal_id, pocket_id=portal.pocket_id, status=portal.status)
    event(book, ctx, kind, payload)
