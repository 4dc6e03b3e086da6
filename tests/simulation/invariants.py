"""Invariants of every book at every moment, and of all books together."""

from collections import Counter
from uuid import UUID

from msgspec.json import decode

from billfold.bills.rules.earnings import PocketState, compute_earnings
from billfold.ledger.book.draft import selling_order
from billfold.ledger.book.postings import TransactionEntry
from billfold.payments.cards.authorizations.commands import AuthorizationRow
from billfold.payments.clearing.rules import RailSettlement
from billfold.payments.crypto.deposits.rules import CryptoDepositRow
from billfold.treasury.rules.overdraft import overdraft_of


def check_book(book):
    """Check a book: it sums to zero, nothing is negative, bases match bills, lots are in selling order."""
    for pocket in book.pockets.values():
        assert pocket.bank.balance == 0
        assert pocket.cash.balance >= pocket.cash.reserved >= 0
        assert 0 <= pocket.uninvested <= pocket.cash.balance
        assert 0 <= pocket.unsettled_discount <= pocket.unsettled
        if pocket.unsettled_after(book.business_date):
            assert pocket.unsettled <= pocket.cash.balance - pocket.cash.reserved
        assert pocket.fee_accrued >= 0
        assert min(pocket.inflow, pocket.outflow, pocket.fees) >= 0
        # Who owes has nothing left.
        assert not overdraft_of(pocket) or (not pocket.lots and pocket.cash.balance == pocket.cash.reserved)
        assert pocket.lots == sorted(pocket.lots, key=selling_order)
        assert all(lot.balance > 0 for lot in pocket.lots)
        assert all(min(lot.tax_basis, lot.earnings_basis) >= 0 for lot in pocket.lots)
        for lot in pocket.emptied:
            assert lot.balance == lot.tax_basis == lot.earnings_basis == 0
        keys = [(lot.asset, lot.acquired_on) for lot in pocket.lots + pocket.emptied]
        assert len(keys) == len(set(keys))
        if pocket.status == "CLOSED":
            assert not pocket.lots
            assert pocket.cash.balance == 0
    assert not book.draft.banks


def check_cards(bank):
    """Check that reserves equal card holds, and that cleared card payments are on their rail."""
    for book in bank.books.values():
        held: Counter[UUID] = Counter()
        for each in bank.seen.of(book.customer_id).values():
            if isinstance(each, AuthorizationRow):
                held[each.pocket_id] += each.remaining
        assert {pocket.pocket_id: pocket.cash.reserved for pocket in book.pockets.values()} == {
            pocket_id: held[pocket_id] for pocket_id in book.pockets
        }
    moved = [
        row.amount if row.direction == "DEBIT" else -row.amount
        for row in bank.tables[TransactionEntry]
        if row.type == "CARD" and row.swept
    ]
    settled = [row.outflow - row.inflow for row in bank.tables[RailSettlement] if row.rail == "CARD"]
    assert bank.totals["rail:card", "USD"] == sum(moved) - sum(settled)


def check_chains(bank):
    """Check that each deposit is booked as in its row, each unit once; losses come only from reorgs."""
    booked: Counter[str] = Counter()
    for row in bank.tables[TransactionEntry]:
        if row.title == "Crypto deposit":
            booked[decode(row.details)["crypto_transfer_id"]] += row.amount
    lost = 0
    for book in bank.books.values():
        seen = bank.seen.of(book.customer_id)
        deposits = [each for each in seen.values() if isinstance(each, CryptoDepositRow)]
        reorged = {each.portal_id for each in deposits if each.status == "REORGED"}
        for row in deposits:
            # One that is held may have been assigned since.
            status = row.reason if row.status == "REORGED" else row.status
            at_most = row.amount if status in {"CREDITED", "HELD"} else 0
            at_least = row.amount if status == "CREDITED" else 0
            assert at_least <= booked.pop(str(row.deposit_id), 0) <= at_most
            lost += row.amount if (row.status, row.reason) == ("REORGED", "CREDITED") else 0
            assert row.portal_id in reorged or min(seen[row.portal_id].by_token.values()) >= 0
    assert not booked
    assert bank.totals["losses", "USD"] == -lost


def check_bank(bank):
    """Check that every asset sums to zero, also between customers, and that dealer clearing is explained."""
    by_asset: Counter[str] = Counter()
    for (kind, asset), total in bank.totals.items():
        by_asset[asset] += total
        if kind == "on_us":
            assert total == 0, asset
    assert not +by_asset
    assert not -by_asset
    units: Counter[str] = Counter()
    cents = 0
    for (block, what), count in bank.unsettled.items():
        _, cusip, _, side = block
        sign = -1 if side == "BUY" else 1
        if what == "units":
            units[cusip] += sign * count
        elif side != "MATURITY":
            cents -= sign * count
    assert bank.totals["street", "USD"] == cents
    for rail in ("ACH", "WIRE", "CRYPTO"):
        assert bank.totals[f"rail:{rail.lower()}", "USD"] == bank.under_way.left(rail)
    for cusip in {asset for _, asset in bank.totals} - {"USD"}:
        there = bank.totals["street", cusip] + bank.totals["treasury", cusip]
        assert there == units[cusip]
        assert -bank.totals["custodian", cusip] == bank.totals["lot", cusip] + there


def dealer_position(bank):
    """Return what the bank's own trades are worth today, in hundredths of a cent: cash and bills at the same-day bid.

    What customers can take out today and this add up to what came in. While the clock stands it never falls, but by
    the rounding of trades. The discount of unsettled cash is the bank's until the cash settles.
    """
    ctx = bank._moment()
    position = 0
    for (kind, asset), total in bank.totals.items():
        if kind in {"street", "treasury", "fees"}:
            position += total * (10_000 if asset == "USD" else ctx.t0_bid(asset))
    pockets = (pocket for book in bank.books.values() for pocket in book.pockets.values())
    discounts = (each.unsettled_discount for each in pockets if each.unsettled_after(ctx.pricing_day))
    return position + 10_000 * sum(discounts)


def check_nothing_for_free(bank, before, trades):
    """Check that the dealer position has not fallen since `before` by more than half a cent per trade."""
    assert dealer_position(bank) >= before - 5_000 * trades - 10_000


def state_of(pocket):
    """The inputs of the earnings of a pocket."""
    return PocketState(
        positions=tuple(pocket.positions()),
        cash=pocket.cash.balance,
        earnings_basis=pocket.earnings_basis(),
        inflow=pocket.inflow,
        outflow=pocket.outflow,
        fees=pocket.fees,
        realised=pocket.realised,
    )


def check_earnings(pocket, market, now):
    """Check the identity of the earnings entry since the pocket was opened (asserted by `entry`)."""
    compute_earnings(PocketState(), pocket.opened_at, state_of(pocket), end_at=now, market=market)


def picture(book):
    """Return the content of a book in a comparable form."""
    return (
        book.version,
        book.entry_no,
        book.event_no,
        book.account_no,
        book.booked_at,
        book.business_date,
        book.chain,
        book.account_status,
        book.draft.lengths(),
        {key: picture_of_account(account) for key, account in book.house.items()},
        dict(book.portals),
        dict(book.counterparties),
        dict(book.pending),
        {key: picture_of_pocket(pocket) for key, pocket in book.pockets.items()},
        list(book.draft.banks),
    )


def picture_of_account(account):
    return (
        account.no,
        account.kind,
        account.asset,
        account.balance,
        account.reserved,
        account.tax_basis,
        account.earnings_basis,
    )


def picture_of_pocket(pocket):
    """Return a pocket without its next due instant, which is computed when it is written."""
    plain = {
        name: getattr(pocket, name)
        for name in pocket.__struct_fields__
        if name not in {"bank", "cash", "owed", "lots", "emptied", "liens", "due_at"}
    }
    return (
        plain,
        picture_of_account(pocket.bank),
        picture_of_account(pocket.cash),
        [picture_of_account(lot) for lot in pocket.lots],
        sorted(picture_of_account(lot) for lot in pocket.emptied),
        list(pocket.liens),
    )
