"""Micro-deposits: two small credits of the bank that verify an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)
from billfold.ledger.types import AccountKind, Direction, JournalKind
from billfold.payments.ach.rules.entries import IDENTIFICATION_WIDTH, add_entry, approve
from billfold.payments.ach.rules.windows import schedule
from billfold.payments.ach.types import AchEntry, AchStatus, AchWay

if TYPE_CHECKING:
    from billfold.payments.ach.commands import SendMicroDeposits

PURPOSE = "ACCTVERIFY"
"""The entry description that Nacha requires for micro-deposits."""


def send_micro_deposits(books: Books, cmd: SendMicroDeposits, ctx: Context) -> Outcome:
    """Pay from `promotions` and schedule the entries for their window."""
    book = book_of(books, cmd.customers[0])
    ach_ids = []
    for amount in cmd.amounts:
        times = schedule(ctx.now, amount, ctx.calendars, is_credit=True, cutoff=ctx.terms.ach_cutoff)
        entry_no = book.begin(JournalKind.ACH, ctx, settles_on=times.effective_on, business_date=book.business_date)
        book.post(book.internal_account(AccountKind.PROMOTIONS), book.internal_account(AccountKind.RAIL_ACH), amount)
        book.close()
        ach_id = ctx.ids.next()
        entry = AchEntry(
            customer_id=book.customer_id,
            ach_id=ach_id,
            pocket_id=None,
            partner_id=None,
            way=AchWay.ORIGINATION,
            direction=Direction.CREDIT,
            status=AchStatus.PENDING,
            sec_code="PPD",
            company_name=cmd.company_name,
            description=PURPOSE,
            amount=amount,
            counterparty_id=cmd.counterparty_id,
            routing_number=cmd.routing_number,
            account_number=cmd.account_number,
            account_type=cmd.account_type,
            party_name=cmd.party_name,
            identification=ach_id.hex[:IDENTIFICATION_WIDTH].upper(),
            entry_no=entry_no,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
        add_entry(book, msgspec.structs.replace(entry, **approve(book, entry, times, ctx=ctx)))
        ach_ids.append(str(ach_id))
    return {"ach_ids": ach_ids}
