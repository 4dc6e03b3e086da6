"""Portals: the account numbers and network addresses by which others pay into a Pocket."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.flows.command import Books, Command, Context, Outcome, book_of
from billfold.kit.errors import NotFound, Refused
from billfold.kit.ids import digits

if TYPE_CHECKING:
    from billfold.flows.book import Book

BANK = "BANK_VIRTUAL_ACCOUNT_PORTAL"
BANK_RAILS = ("ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US")
ACCOUNT_DIGITS = 12
NETWORK_DIGITS = 12


class Portal(msgspec.Struct, frozen=True, kw_only=True):
    """A payment identifier of a pocket."""

    portal_id: UUID
    pocket_id: UUID
    type: str
    name: str
    status: str
    routing_number: str
    account_number: str
    network_address: str
    payment_rails: tuple[str, ...]
    created_at: datetime


class OpenPortal(Command, frozen=True, kw_only=True):
    """Open one more bank portal; `payment_rails` None means all of the bank's."""

    pocket_id: UUID
    name: str
    payment_rails: tuple[str, ...] | None = None


class UpdatePortal(Command, frozen=True, kw_only=True):
    """Rename a portal, or close it for ever."""

    portal_id: UUID
    pocket_id: UUID | None = None
    name: str | None = None
    close: bool = False


def open_portal(books: Books, cmd: OpenPortal, ctx: Context) -> Outcome:
    """Refuses: pocket-not-open."""
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    if pocket is None:
        raise NotFound
    if pocket.status != "OPEN":
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    portal = new_bank_portal(
        book, cmd.pocket_id, ctx, name=cmd.name, payment_rails=cmd.payment_rails
    )
    return {"portal_id": str(portal.portal_id)}


def update_portal(books: Books, cmd: UpdatePortal, ctx: Context) -> Outcome:
    """Refuses: already-closed."""
    book = book_of(books, cmd.customers[0])
    portal: Portal | None = book.portals.get(cmd.portal_id)
    if portal is None or (cmd.pocket_id is not None and portal.pocket_id != cmd.pocket_id):
        raise NotFound
    if portal.status == "CLOSED":
        raise Refused("already-closed", "The portal is closed. Open another one.")
    if cmd.name is not None:
        book.put(book.portals, cmd.portal_id, msgspec.structs.replace(portal, name=cmd.name))
        book.change("portal", cmd.portal_id, name=cmd.name, updated_at=ctx.now)
    if cmd.close:
        _close(book, book.portals[cmd.portal_id], ctx)
    return {"portal_id": str(cmd.portal_id)}


def new_bank_portal(
    book: Book,
    pocket_id: UUID,
    ctx: Context,
    *,
    name: str,
    payment_rails: tuple[str, ...] | None = None,
) -> Portal:
    """A virtual account of our bank with its own network address, entered in the directory."""
    portal_id = ctx.ids.next()
    portal = Portal(
        portal_id=portal_id,
        pocket_id=pocket_id,
        type=BANK,
        name=name,
        status="OPEN",
        routing_number=ctx.terms.routing_number,
        account_number=account_number(ctx.seed, portal_id),
        network_address=network_address(ctx.seed, portal_id),
        payment_rails=payment_rails or BANK_RAILS,
        created_at=ctx.now,
    )
    book.put(book.portals, portal_id, portal)
    book.draft.portals.append(
        (
            book.customer_id, portal_id, pocket_id, portal.type, name, portal.status,
            portal.routing_number, portal.account_number, portal.network_address,
            list(portal.payment_rails), ctx.now, ctx.now,
        )
    )  # fmt: skip
    for kind, value in (
        ("portal", str(portal_id)),
        ("account", f"{portal.routing_number}:{portal.account_number}"),
        ("network", portal.network_address),
    ):
        book.draft.directory.append((kind, value, book.customer_id, portal_id))
    return portal


def account_number(seed: bytes, portal_id: UUID) -> str:
    """Twelve digits drawn for a portal; a number that begins with no zero survives spreadsheets."""
    return "8" + digits(seed, portal_id, 0, ACCOUNT_DIGITS - 1)


def network_address(seed: bytes, portal_id: UUID) -> str:
    """Twelve digits drawn for a portal, apart from its account number."""
    return "7" + digits(seed, portal_id, 1, NETWORK_DIGITS - 1)


def close_portals(book: Book, pocket_id: UUID, ctx: Context) -> None:
    """Close every open portal of a pocket."""
    for portal in list(book.portals.values()):
        if portal.pocket_id == pocket_id and portal.status != "CLOSED":
            _close(book, portal, ctx)


def _close(book: Book, portal: Portal, ctx: Context) -> None:
    book.put(book.portals, portal.portal_id, msgspec.structs.replace(portal, status="CLOSED"))
    book.change("portal", portal.portal_id, status="CLOSED", updated_at=ctx.now)
