"""Queries of cards, card orders, and used public keys."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from billfold.accounts.notes.store import has_terms
from billfold.payments.cards.commands import CardOrderRow, CardRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.former_rows import as_was
from billfold.platform.database.paging import BY_CREATION, Along, BoundedList, KeysetList
from billfold.platform.database.rows import References, Table

_cards, _orders = Table(CardRow), Table(CardOrderRow)
# Closing a Pocket closes its cards; a job updates their rows.
_CARD = _cards.columns(
    "c",
    status="CASE WHEN p.status = 'CLOSED' THEN 'CLOSED' ELSE c.status END",
    magstripe_status="CASE WHEN p.status = 'CLOSED' THEN 'OFF' ELSE c.magstripe_status END",
)
_CARDS = f"SELECT {_CARD}, c.written_no FROM card c JOIN pocket p USING (customer_id, pocket_id)"
_GET = f"{_CARDS} WHERE c.customer_id = $1 AND c.card_id = $2"


def _cards_then(at: str) -> str:
    """Return the SELECT of cards as they were at an instant; their Pocket may have been closed by then."""
    closed = f"""(SELECT v.status = 'CLOSED' FROM pocket_version v
   WHERE v.customer_id = card.customer_id AND v.pocket_id = card.pocket_id AND v.known_at <= {at}
   ORDER BY v.known_at DESC, v.version DESC LIMIT 1)"""
    return _cards.select_as_of(
        at,
        "written_no",
        status=f"CASE WHEN {closed} THEN 'CLOSED' ELSE {as_was('card')}.status END",
        magstripe_status=f"CASE WHEN {closed} THEN 'OFF' ELSE {as_was('card')}.magstripe_status END",
    )


_GET_THEN = f"{_cards_then('$3')} AND customer_id = $1 AND card_id = $2"
_NEWEST = f"""
SELECT * FROM ({_CARDS} WHERE $1::uuid IS NULL OR c.pocket_id = $1) newest
 ORDER BY created_at DESC, written_no DESC LIMIT $2
"""
_REFERENCED_CARDS = f"{_cards.select} WHERE customer_id = ANY($1::uuid[]) AND card_id = ANY($2::uuid[])"
_REFERENCED_ORDERS = f"""
{_orders.select} o WHERE customer_id = ANY($1::uuid[]) AND (card_order_id = ANY($2::uuid[])
   OR EXISTS (SELECT 1 FROM card c WHERE c.customer_id = o.customer_id AND c.card_id = ANY($2::uuid[])
                 AND c.card_order_id = o.card_order_id))
"""
_OPEN_OF_POCKET = "SELECT card_id FROM card WHERE customer_id = $1 AND pocket_id = $2 AND status <> 'CLOSED'"
_CLAIM_KEY = """
INSERT INTO card_detail_key AS k (fingerprint, command_id, used_at) VALUES ($1, $2, $3)
    ON CONFLICT (fingerprint) DO UPDATE SET used_at = k.used_at RETURNING command_id = $2 AND used_at > $4
"""
CARDS, CARDS_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected} customer_id = $1 AND ($2::uuid IS NULL OR pocket_id = $2)) found
 WHERE ($3::text[] IS NULL OR status = ANY($3)) AND {has_terms("found", "card_id", 4)} AND {{page}}""",
        _cards.read,
        **BY_CREATION,
    )
    for selected in (f"{_CARDS} WHERE", f"{_cards_then('$5')} AND")
)
"""Cards of a customer, of one Pocket or of all, in some statuses or in all, and by terms of notes, newest first."""
CARDS_OF_PARTNER, CARDS_OF_PARTNER_THEN = (
    BoundedList(
        f"""SELECT * FROM ({selected}.partner_id = $1) found
 WHERE ($2::text[] IS NULL OR status = ANY($2)) AND {{page}}""",
        _cards.read,
        Along("card WHERE partner_id = $1"),
        **BY_CREATION,
    )
    for selected in (f"{_CARDS} WHERE c", f"{_cards_then('$3')} AND card")
)
"""Cards of all customers of a partner, in some statuses or in all, newest first."""
ORDERS, ORDERS_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected} customer_id = $1 AND ($2::uuid IS NULL OR pocket_id = $2)) found
 WHERE {has_terms("found", "card_order_id", 3)} AND {{page}}""",
        _orders.read,
        **BY_CREATION,
    )
    for selected in (
        f"SELECT {_orders.columns()}, written_no FROM card_order WHERE",
        f"{_orders.select_as_of('$4', 'written_no')} AND",
    )
)
"""Card orders of a customer, of one Pocket or of all, and by terms of notes, newest first."""
get_order = _orders.get


async def get_card(conn: Db, customer_id: UUID, card_id: UUID, as_of: datetime | None = None) -> CardRow:
    """Return a card, as it is or was. Raises NotFound."""
    if as_of is not None:
        return await _cards.one(conn, _GET_THEN, customer_id, card_id, as_of)
    return await _cards.one(conn, _GET, customer_id, card_id)


async def list_open_cards(conn: Db, customer_id: UUID, pocket_id: UUID) -> list[UUID]:
    """Return the ids of a Pocket's cards that are not closed."""
    return [row["card_id"] for row in await conn.fetch(_OPEN_OF_POCKET, customer_id, pocket_id)]


async def list_newest(conn: Db, pocket_id: UUID | None, *, limit: int) -> list[CardRow]:
    """Return the newest cards of the bank, of one Pocket or of all."""
    return await _cards.all(conn, _NEWEST, pocket_id, limit)


async def claim_key(conn: Db, fingerprint: bytes, command_id: UUID, *, wall: datetime, since: datetime) -> bool:
    """Claim a public key for one request; return whether it is unused by others, and by this one before `since`."""
    return bool(await conn.fetchval(_CLAIM_KEY, fingerprint, command_id, wall, since))


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the cards and orders of these customers among the ids, with the orders of the cards."""
    cards = await _cards.all(conn, _REFERENCED_CARDS, customer_ids, ids)
    orders = await _orders.all(conn, _REFERENCED_ORDERS, customer_ids, ids)
    return [
        *((each.customer_id, each.card_id, each) for each in cards),
        *((each.customer_id, each.card_order_id, each) for each in orders),
    ]
