"""A customer comes into being: the first entry of his log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from billfold.flows.command import Books, Command, Context, Outcome, book_of


class EnrolCustomer(Command, frozen=True, kw_only=True):
    """Make the customer `customers[0]`; role is customer, partner or house."""

    partner_id: UUID | None
    role: str
    type: str
    name: str
    profile: dict[str, Any]


def enrol_customer(books: Books, cmd: EnrolCustomer, ctx: Context) -> Outcome:
    """The account is PENDING until its first pocket opens."""
    book = book_of(books, cmd.customers[0])
    book.name, book.partner_id, book.account_status = cmd.name, cmd.partner_id, "PENDING"
    book.role = cmd.role
    book.enrol(cmd.role, cmd.type, cmd.profile, ctx.now)
    return {"customer_id": str(book.customer_id)}
