"""The hold of an authorization: cash that is reserved, and the transaction that shows it.

Each change releases the whole hold and reserves the new amount, so that one posting, and its
transaction, is the hold. Reads show only the transaction of the entry that the authorization names.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of
from billfold.events import kinds
from billfold.events.kinds import CardTransactionPayload
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.book.postings import RELEASED
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, EventKind, JournalKind, TransactionType
from billfold.payments.cards.authorizations.commands import (
    EXPIRY_JOB,
    AuthorizationRow,
    AuthorizationStatus,
    CardMessage,
    CardRecord,
    CardSpending,
    Decision,
    DeclineReason,
    EntryMode,
    ExpireAuthorization,
    Merchant,
    ReverseAuthorization,
    authorization_id_of,
    spending_id_of,
)
from billfold.payments.cards.commands import CardRow
from billfold.platform.errors import NotFound
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.invest import invest
from billfold.treasury.rules.overdraft import overdraft_of, recover_overdraft_by_selling

HOLD_DAYS: Final = 7
LODGING_HOLD_DAYS: Final = 30
_LODGING: Final = frozenset({*map(str, range(3351, 4000)), "7011", "7512", "7513", "7519"})
"""Hotels and car rentals, by their merchant category codes."""
_ATM: Final = "6011"
_NOT_SETTLED: Final = datetime(2999, 12, 31, tzinfo=UTC)
_PLACES_MAX: Final = 999
"""Higher members of a transaction are sweeps."""


def card_of(book: Book, card_id: UUID) -> CardRow:
    """Return the card. Raises NotFound."""
    card = book.referenced.get(card_id)
    if not isinstance(card, CardRow):
        raise NotFound("There is no such card.")
    return card


def find_authorization(book: Book, card_id: UUID, network_reference: str | None) -> AuthorizationRow | None:
    """Return the authorization of a purchase, if there is one."""
    if network_reference is None:
        return None
    return book.referenced.get(authorization_id_of(card_id, network_reference))


# -- rows -----------------------------------------------------------------------------


def new_authorization(
    card: CardRow, cmd: CardMessage | CardRecord, ctx: Context, *, status: AuthorizationStatus, merchant: Merchant
) -> AuthorizationRow:
    """Return a new authorization for a message or a record, with nothing held or cleared.

    For a record without a reference it is not stored; it only serves to make its transaction.
    """
    reference = cmd.network_reference or ""
    return AuthorizationRow(
        customer_id=card.customer_id,
        authorization_id=authorization_id_of(card.card_id, reference),
        card_id=card.card_id,
        pocket_id=card.pocket_id,
        network_reference=reference,
        status=status,
        entry_mode=cmd.entry_mode,
        is_preauthorization=cmd.is_preauthorization,
        category_code=merchant.category_code,
        merchant=msgspec.json.encode(merchant).decode(),
        authorized_on=ctx.today,
        expires_at=expiry_of(merchant.category_code, ctx),
        transaction_id=ctx.ids.next_group(),
        created_at=ctx.now,
        updated_at=ctx.now,
    )


def expiry_of(category: str, ctx: Context) -> datetime:
    """Return when a hold placed now expires if a merchant of this category does not claim it."""
    return ctx.now + timedelta(days=LODGING_HOLD_DAYS if category in _LODGING else HOLD_DAYS)


def store_authorization(book: Book, before: AuthorizationRow | None, row: AuthorizationRow, ctx: Context) -> None:
    """Store an authorization, new or changed, count its spending, and schedule its expiry."""
    row = msgspec.structs.replace(row, updated_at=ctx.now)
    if before is None:
        book.draft.add(row)
    else:
        columns = {
            name: getattr(row, name) for name in row.__struct_fields__ if getattr(row, name) != getattr(before, name)
        }
        book.change(AuthorizationRow, row.authorization_id, **columns)
    book.put(book.referenced, row.authorization_id, row)
    book.keep_fingerprint(row)
    if row.remaining and (before is None or not before.remaining or before.expires_at != row.expires_at):
        book.schedule(EXPIRY_JOB, row.authorization_id, row.expires_at)
    counted = before.spent_that_day if before is not None and before.authorized_on == row.authorized_on else 0
    _count_spending(book, row, row.spent_that_day - counted)


def _count_spending(book: Book, row: AuthorizationRow, cents: int) -> None:
    """Update the card's spending of the day for later commands of this batch."""
    key = spending_id_of(row.card_id)
    seen: CardSpending | None = book.referenced.get(key)
    if seen is None or not cents:
        return
    spent = seen.spent if seen.day == row.authorized_on else {}
    if seen.day is None or seen.day <= row.authorized_on:
        spent = spent | {row.category_code: spent.get(row.category_code, 0) + cents}
        book.put(book.referenced, key, msgspec.structs.replace(seen, day=row.authorized_on, spent=spent))


# -- money ----------------------------------------------------------------------------


def move_hold(book: Book, pocket: PocketBook, row: AuthorizationRow, ctx: Context, *, cents: int) -> AuthorizationRow:
    """Replace the hold of an authorization by a new amount, in the open journal entry; 0 for none.

    The free cash of the pocket must cover any increase.
    """
    rail = book.internal_account(AccountKind.RAIL_CARD)
    if row.remaining:
        book.reserve(pocket.cash, rail, row.remaining, phase=RELEASED)
    row = msgspec.structs.replace(row, remaining=cents, hold_entry_no=book.entry_no if cents else None)
    if not cents:
        return row
    row = next_place(row, ctx)
    record_card_transaction(
        book,
        pocket,
        row,
        posting_no=book.reserve(pocket.cash, rail, cents),
        cents=cents,
        title="Card payment",
        settles_at=_NOT_SETTLED,
        swept=False,
    )
    return row


def next_place(row: AuthorizationRow, ctx: Context) -> AuthorizationRow:
    """Return the authorization with the next member number for a transaction."""
    if row.places == _PLACES_MAX:
        return msgspec.structs.replace(row, transaction_id=ctx.ids.next_group(), places=1)
    return msgspec.structs.replace(row, places=row.places + 1)


def use_released(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Let released cash repay the pocket's overdraft, and buy bills, in the open journal entry."""
    if overdraft_of(pocket):
        recover_overdraft_by_selling(book, pocket, ctx)
    invest(book, pocket, ctx)


def record_card_transaction(
    book: Book,
    pocket: PocketBook,
    row: AuthorizationRow,
    *,
    posting_no: int,
    cents: int,
    title: str,
    settles_at: datetime,
    direction: Direction = Direction.DEBIT,
    swept: bool = True,
) -> None:
    """Record the transaction of a posting as the `places`-th of an authorization."""
    merchant = msgspec.json.decode(row.merchant, type=Merchant)
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=row.transaction_id,
        place=row.places,
        type=TransactionType.CARD,
        direction=direction,
        amount=cents,
        title=title,
        description=merchant.name,
        settles_at=settles_at,
        details=_details(row, merchant),
        swept=swept,
    )


def _details(row: AuthorizationRow, merchant: Merchant) -> dict[str, Any]:
    location = {
        name: getattr(merchant, name)
        for name in ("street_address", "city", "state", "country")
        if getattr(merchant, name) is not None
    }
    is_atm = row.entry_mode == EntryMode.ATM or merchant.category_code == _ATM
    return {
        "card_id": str(row.card_id),
        "counterparty": merchant.name,
        "location": location or None,
        "terminal_id": merchant.terminal_id,
        "merchant_type": "ATM" if is_atm else None,
        "issue_id": row.network_reference or None,
        "pre_authorization": row.is_preauthorization,
        "merchant_category_code": merchant.category_code,
    }


# -- outcomes -------------------------------------------------------------------------


def raise_card_event(
    book: Book, ctx: Context, kind: EventKind[CardTransactionPayload], *, card: CardRow, cents: int
) -> None:
    """Raise an event of a card payment."""
    payload = CardTransactionPayload(card_id=card.card_id, amount=cents, account_id=card.pocket_id)
    recording.event(book, ctx, kind, payload)


def message_outcome(
    row: AuthorizationRow | None, decision: Decision, cents: int, reason: DeclineReason | None = None
) -> Outcome:
    """Return the outcome of a message: the decision, and the current authorization."""
    return {
        "decision": decision,
        "approved_amount": cents,
        "reason": reason,
        "authorization_id": None if row is None else str(row.authorization_id),
    }


@decides(ReverseAuthorization)
def reverse_authorization(books: Books, cmd: ReverseAuthorization, ctx: Context) -> Outcome:
    """Release the hold of a purchase, or part of it.

    A reversal is never declined. One that precedes its authorization takes its place; one after
    the clearing releases nothing: the merchant pays back with a refund. A zero reversal changes nothing.
    """
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = find_authorization(book, cmd.card_id, cmd.network_reference)
    if row is None and cmd.amount != 0:
        row = new_authorization(card, cmd, ctx, status=AuthorizationStatus.REVERSED, merchant=cmd.merchant)
        store_authorization(book, None, row, ctx)
        return message_outcome(row, Decision.APPROVED, 0)
    if row is None or row.status != AuthorizationStatus.PENDING:
        return message_outcome(row, Decision.APPROVED, 0)
    if cmd.hold_entry_no not in {None, row.hold_entry_no} and not row.cleared:  # an advice has taken it over
        return message_outcome(row, Decision.APPROVED, 0)
    cents = row.remaining if cmd.amount is None else min(cmd.amount, row.remaining)
    if not cents:
        return message_outcome(row, Decision.APPROVED, 0)
    _release_hold(book, row, ctx, cents=cents, is_late=cmd.is_late)
    raise_card_event(book, ctx, kinds.CARD_REVERSED, card=card, cents=cents)
    return message_outcome(row, Decision.APPROVED, cents)


@decides(ExpireAuthorization)
def expire_authorization(books: Books, cmd: ExpireAuthorization, ctx: Context) -> Outcome:
    """Release a hold that expires by `due`. One that was renewed or has ended is not changed."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = find_authorization(book, cmd.card_id, cmd.network_reference)
    if row is not None and row.status == AuthorizationStatus.PENDING and row.expires_at <= cmd.due:
        _release_hold(book, row, ctx, cents=row.remaining, ends=AuthorizationStatus.EXPIRED)
        raise_card_event(book, ctx, kinds.CARD_REVERSED, card=card, cents=row.remaining)
    return message_outcome(row, Decision.APPROVED, 0)


def _release_hold(
    book: Book,
    row: AuthorizationRow,
    ctx: Context,
    *,
    cents: int,
    ends: AuthorizationStatus = AuthorizationStatus.REVERSED,
    is_late: bool = False,
) -> None:
    """Release an amount of a hold, and use it."""
    pocket = pocket_of(book, row.pocket_id)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=ctx.settles_on)
    changed = move_hold(book, pocket, row, ctx, cents=row.remaining - cents)
    use_released(book, pocket, ctx)
    book.close()
    if ends == AuthorizationStatus.REVERSED:
        changed = msgspec.structs.replace(changed, reversed=row.reversed + cents)
    if not changed.remaining:
        changed = msgspec.structs.replace(changed, status=AuthorizationStatus.CLEARED if row.cleared else ends)
        if is_late and not row.cleared:
            changed = msgspec.structs.replace(
                changed, status=AuthorizationStatus.DECLINED, reason=DeclineReason.TIMED_OUT
            )
    store_authorization(book, row, changed, ctx)
