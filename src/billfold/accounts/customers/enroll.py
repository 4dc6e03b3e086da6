"""A customer comes into being: the first entry of his log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.book.draft import to_json
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.directory.types import CustomerRow, CustomerStatus

if TYPE_CHECKING:
    from billfold.accounts.commands import EnrolCustomer


def enrol_customer(books: Books, cmd: EnrolCustomer, ctx: Context) -> Outcome:
    """The account is PENDING until its first pocket opens."""
    book = book_of(books, cmd.customers[0])
    book.name, book.partner_id, book.account_status = (cmd.name, cmd.partner_id, CustomerStatus.PENDING)
    book.role = cmd.role
    book.draft.add(
        CustomerRow(
            customer_id=book.customer_id,
            partner_id=cmd.partner_id,
            role=cmd.role,
            type=cmd.type,
            name=cmd.name,
            account_status=book.account_status,
            profile=to_json(cmd.profile),
            opened_at=ctx.now,
        )
    )
    book.enter("customer", str(book.customer_id), book.customer_id)
    return {"customer_id": str(book.customer_id)}
