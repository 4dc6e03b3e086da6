"""Reads of pockets: one indexed statement each, independent of the history."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record
from typing_extensions import override

from billfold.accounts.notes.store import has_terms
from billfold.accounts.pockets.as_of_store import (
    JOURNAL_NO_MAX,
    POCKETS_OF_CUSTOMERS_AS_OF,
    POCKETS_OF_PARTNER_AS_OF,
    get_pocket_as_of,
    list_by_id_as_of,
    list_of_statuses_as_of,
    list_page_as_of,
)
from billfold.accounts.pockets.commands import PocketRow
from billfold.bills.rules.earnings import PocketState
from billfold.ledger.book.draft import PocketBook, PocketColumns
from billfold.ledger.engine.load_books import deserialize_book
from billfold.platform.database.connection import Db
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.paging import BY_OPENING, KeysetList, Place, SortKey
from billfold.platform.database.rows import Table

_TOTALS = ("cash", "earnings_basis", "inflow", "outflow", "fees", "realised")

_SAME_DAY = f"""customer_id = h.customer_id AND pocket_id = k.pocket_id
       AND entry_no > coalesce(e.entry_no, 0)
       AND entry_no <= coalesce(least(n.entry_no, k.through), {JOURNAL_NO_MAX})"""
# For each boundary: the last day that ended before its day, and the pocket's rows from there up to
# it. The next snapshot limits them to one day's rows; and none are read
# if the first of them comes later, as at the beginning of a day, because journal times never decrease.
# Rows after the entry `through` are left out.
_STATES_BEFORE = f"""
SELECT k.nth, e.cash, e.positions, e.earnings_basis, e.inflow, e.outflow, e.fees, e.realised,
       t.rows AS trades, a.rows AS activities
  FROM ledger_head h
  JOIN unnest($1::uuid[], $2::uuid[], $3::date[], $4::timestamptz[], $5::bigint[]) WITH ORDINALITY
       AS k(customer_id, pocket_id, business_date, at, through, nth) ON k.customer_id = h.customer_id
  LEFT JOIN LATERAL (
    SELECT * FROM snapshot s
     WHERE s.customer_id = h.customer_id AND s.pocket_id = k.pocket_id
       AND s.business_date < k.business_date AND (k.through IS NULL OR s.entry_no <= k.through)
     ORDER BY s.business_date DESC LIMIT 1
  ) e ON true
  LEFT JOIN LATERAL (
    SELECT s.entry_no FROM snapshot s
     WHERE s.customer_id = h.customer_id AND s.pocket_id = k.pocket_id
       AND s.business_date >= k.business_date
     ORDER BY s.business_date LIMIT 1
  ) n ON true
 CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(activity, incoming, cusip, units, notional,
                                     earnings_basis)) AS rows
      FROM trade
     WHERE {_SAME_DAY} AND traded_at < k.at
       AND (SELECT traded_at FROM trade WHERE {_SAME_DAY} ORDER BY entry_no LIMIT 1) < k.at
  ) t
 CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(type, direction, amount)) AS rows
      FROM transaction
     WHERE {_SAME_DAY} AND booked_at < k.at AND (swept OR type <> 'CARD')
       AND (SELECT booked_at FROM transaction WHERE {_SAME_DAY} ORDER BY entry_no LIMIT 1) < k.at
  ) a
 WHERE h.customer_id = ANY($1::uuid[])
"""


class Boundary(NamedTuple):
    """An instant in the life of a pocket, its business date, and the last journal entry that counts, or None."""

    customer_id: UUID
    pocket_id: UUID
    business_date: date
    at: datetime
    through: int | None = None


def current_pocket_state(pocket: PocketRow) -> PocketState:
    """Return the live state."""
    totals = {name: getattr(pocket, name) for name in _TOTALS}
    return PocketState(positions=tuple(sorted(pocket.positions().items())), **totals)


async def pocket_states_before(conn: Db, boundaries: Sequence[Boundary]) -> list[PocketState]:
    """Return the state just before each boundary, in their order."""
    if not boundaries:
        return []
    rows = await conn.fetch(_STATES_BEFORE, *map(list, zip(*boundaries, strict=True)))
    states = {row["nth"]: _state_after_replay(row) for row in rows}
    return [states.get(nth, PocketState()) for nth in range(1, len(boundaries) + 1)]


def _state_after_replay(row: Record) -> PocketState:
    """Return the state of the snapshot with the day's rows after it."""
    held: Counter[str] = Counter(dict(msgspec.json.decode(row["positions"] or "[]")))
    state: Counter[str] = Counter({name: row[name] or 0 for name in _TOTALS})
    for activity, incoming, cusip, units, notional, basis in msgspec.json.decode(row["trades"] or "[]"):
        sign = 1 if incoming else -1
        held[cusip] += sign * units
        state["earnings_basis"] += sign * basis
        if activity in {"BUY", "SELL", "MATURITY"}:
            state["cash"] -= sign * notional
        else:
            # Bills transferred in kind are a flow.
            state["inflow" if incoming else "outflow"] += notional
        if not incoming:
            state["realised"] += notional - basis
    for type_, direction, amount in msgspec.json.decode(row["activities"] or "[]"):
        is_credit = direction == "CREDIT"
        state["cash"] += amount if is_credit else -amount
        state["fees" if type_ == "FEE" else "inflow" if is_credit else "outflow"] += amount
    return PocketState(positions=tuple(sorted((cusip, units) for cusip, units in held.items() if units)), **state)


_pockets = Table(PocketRow, "pocket")
_HELD = {
    **{name: f"coalesce(h.{name}, 0)" for name in ("cash", "earnings_basis", "owed", "reserved")},
    **{name: f"coalesce(h.{name}, '{{}}')" for name in ("lot_cusips", "lot_units", "lot_dates")},
    **{name: f"coalesce(l.{name}, '{{}}')" for name in ("hold_amounts", "hold_ends")},
    "last_entry": "NULL::bigint",
}
_ROW = f"SELECT {_pockets.columns('p', **_HELD)}, p.written_no"
_TOTALED = """max(a.credits - a.debits) FILTER (WHERE a.kind = 'cash') AS cash,
           max(a.debits - a.credits) FILTER (WHERE a.kind = 'owed') AS owed,
           max(a.reserved) FILTER (WHERE a.kind = 'cash') AS reserved,
           sum(a.earnings_basis)::bigint AS earnings_basis,
           array_agg(a.asset) FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_cusips,
           array_agg(a.credits - a.debits)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_units,
           array_agg(a.acquired_on)
             FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lot_dates"""
_KEPT = "array_agg(o.amount) AS hold_amounts, array_agg(o.until) AS hold_ends"
_IS_KEPT = "(o.status IS NULL OR o.status = 'ACTIVE') AND o.until > g.booked_at - interval '14 days'"
_HOLDINGS = f"""
  LEFT JOIN LATERAL (
    SELECT {_TOTALED}
      FROM account a
     WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id AND a.live
  ) h ON true
  LEFT JOIN LATERAL (
    SELECT {_KEPT}
      FROM hold o JOIN ledger_head g USING (customer_id)
     WHERE o.customer_id = p.customer_id AND o.pocket_id = p.pocket_id AND {_IS_KEPT}
  ) l ON true
"""
# By the customer itself, a cluster asks one shard; by an outer join it would ask all.
_OWN_HOLDINGS = _HOLDINGS.replace("p.customer_id", "$1")
_GET = f"{_ROW} FROM pocket p {_OWN_HOLDINGS} WHERE p.customer_id = $1 AND p.pocket_id = $2"
_BY_ID = f"""{_ROW}
  FROM unnest($1::uuid[], $2::uuid[]) AS k(customer_id, pocket_id)
  JOIN pocket p USING (customer_id, pocket_id) {_HOLDINGS}
 ORDER BY p.opened_at, p.written_no"""
_BOOK_BYTES_MAX = 4000
_SMALL_BOOK = f"CASE WHEN octet_length(c.serialized_book) <= {_BOOK_BYTES_MAX} THEN c.serialized_book END AS book"
_BOOKS = f"SELECT c.customer_id, {_SMALL_BOOK} FROM ledger_head c WHERE c.customer_id = ANY($1::uuid[])"
_BOOK = f"SELECT {_SMALL_BOOK} FROM ledger_head c WHERE c.customer_id = $1"
# For a partner by the index in list order; for customers by their keys, independent of the number
# of pockets their partner has.
_OF_PARTNER = """
SELECT customer_id, pocket_id, opened_at, written_no, NULL::bytea AS book FROM partner_pocket
 WHERE partner_id = $1 AND ($2::text[] IS NULL OR status = ANY($2)) AND {page}"""
# The customers twice: a cluster asks their shards only.
_OF_CUSTOMERS = f"""
SELECT o.*, {_SMALL_BOOK} FROM ledger_head c CROSS JOIN LATERAL (
    SELECT q.customer_id, q.pocket_id, q.opened_at, q.written_no FROM pocket q
     WHERE q.customer_id = c.customer_id AND q.customer_id = ANY($1::uuid[])
       AND ($2::text[] IS NULL OR q.status = ANY($2)) AND {has_terms("q", "pocket_id", 3)} AND {{page}}) o
 WHERE c.customer_id = ANY($1::uuid[]) {{order}}"""


class _PocketList(KeysetList[Any]):
    """Pockets by their keys, then by the books of their customers, which the heads carry.

    A cluster plans a statement for each shard each time, so these are short. Large books, and those that cannot be
    read, are left to the rows.
    """

    def __init__(self, statement: str, *, has_books: bool) -> None:
        super().__init__(statement, itemgetter("customer_id", "pocket_id", "book"), **BY_OPENING)
        self._has_books = has_books

    @override
    async def placed_rows(
        self, conn: Db, *values: object, after: Place | None = None, descending: bool = True, limit: int
    ) -> list[tuple[PocketRow, SortKey]]:
        found = await super().placed_rows(conn, *values, after=after, descending=descending, limit=limit)
        books = {customer_id: book for (customer_id, _, book), _ in found}
        if books and not self._has_books:
            books = {row["customer_id"]: row["book"] for row in await conn.fetch(_BOOKS, list(books))}
        images = filter(None, map(deserialize_book, books.values()))
        pockets = {each.pocket_id: each for image in images for each in image.pockets}
        rows = {key: _row_of(customer_id, pockets[key]) for (customer_id, key, _), _ in found if key in pockets}
        if left := [(customer_id, key) for (customer_id, key, _), _ in found if key not in rows]:
            rows.update({row.pocket_id: row for row in await list_by_id(conn, left)})
        if rows.keys() != {key for (_, key, _), _ in found}:  # listed by one node, and not yet committed by another
            await await_prepared(conn)
            rows.update({row.pocket_id: row for row in await list_by_id(conn, left)})
        # A key without a Pocket is damage, which `verify` names: it does not take the others with it.
        return [(rows[key], place) for (_, key, _), place in found if key in rows]


_STORED = [name for name in PocketRow.__struct_fields__ if name in PocketColumns.__struct_fields__]


def _row_of(customer_id: UUID, pocket: PocketBook) -> PocketRow:
    return PocketRow(
        customer_id,
        **{name: getattr(pocket, name) for name in _STORED},
        cash=pocket.cash.balance,
        earnings_basis=pocket.earnings_basis(),
        lot_cusips=[lot.asset for lot in pocket.lots],
        lot_units=[lot.balance for lot in pocket.lots],
        lot_dates=[lot.acquired_on for lot in pocket.lots],
        owed=-pocket.owed.balance if pocket.owed else 0,
        reserved=pocket.cash.reserved,
        hold_amounts=[cents for cents, _ in pocket.liens],
        hold_ends=[until for _, until in pocket.liens],
    )


_OF_CUSTOMER = """customer_id = $1 AND ($2::text[] IS NULL OR status = ANY($2))
           AND ($3::uuid[] IS NULL OR pocket_id = ANY($3)) AND {noted}""".replace(
    "{noted}", has_terms("pocket", "pocket_id", 4)
)
_PAGE_BY_OFFSET = f"""{_ROW} FROM (
  SELECT * FROM pocket WHERE {_OF_CUSTOMER} ORDER BY opened_at DESC, written_no DESC OFFSET $5 LIMIT $6
) p {_OWN_HOLDINGS} ORDER BY p.opened_at DESC, p.written_no DESC"""
_NOT_CLOSED_OF_CUSTOMER = f"""{_ROW} FROM pocket p {_OWN_HOLDINGS}
 WHERE p.customer_id = $1 AND p.status = ANY($2) ORDER BY p.opened_at, p.written_no"""
_COUNT = f"SELECT count(*) FROM pocket WHERE {_OF_CUSTOMER}"
_IDS = """SELECT pocket_id FROM pocket WHERE customer_id = $1 AND ($2::uuid[] IS NULL OR pocket_id = ANY($2))
   AND opened_at <= coalesce($3::timestamptz, 'infinity')"""
POCKETS_OF_PARTNER = _PocketList(_OF_PARTNER, has_books=False)
POCKETS_OF_CUSTOMERS = _PocketList(_OF_CUSTOMERS, has_books=True)
"""Pockets of a partner, or of a list of distinct customers, of some statuses or of all; the latter by terms of notes,
too. Newest first."""
_NOT_CLOSED = ["PENDING", "OPEN", "FROZEN"]


def pockets_of(*, of_customers: bool, as_of: datetime | None) -> tuple[KeysetList[PocketRow], tuple[datetime, ...]]:
    """Return the list of pockets now or as of an instant, and the parameter that it takes after the statuses then."""
    if as_of is None:
        return POCKETS_OF_CUSTOMERS if of_customers else POCKETS_OF_PARTNER, ()
    return POCKETS_OF_CUSTOMERS_AS_OF if of_customers else POCKETS_OF_PARTNER_AS_OF, (as_of,)


async def get_pocket(conn: Db, customer_id: UUID, pocket_id: UUID, as_of: datetime | None = None) -> PocketRow:
    """Return the pocket and its holdings, now or as they were. Raises NotFound."""
    if as_of is not None:
        return await get_pocket_as_of(conn, customer_id, pocket_id, as_of)
    image = deserialize_book(await conn.fetchval(_BOOK, customer_id))
    if image is not None and (found := next((p for p in image.pockets if p.pocket_id == pocket_id), None)):
        return _row_of(customer_id, found)
    return await _pockets.one(conn, _GET, customer_id, pocket_id)


async def list_by_id(conn: Db, keys: Sequence[tuple[UUID, UUID]], as_of: datetime | None = None) -> list[PocketRow]:
    """Return these pockets, given as (customer_id, pocket_id), oldest first."""
    if as_of is not None:
        return await list_by_id_as_of(conn, keys, as_of)
    return await _pockets.all(conn, _BY_ID, [c for c, _ in keys], [p for _, p in keys])


async def list_ids(
    conn: Db, customer_id: UUID, among: Sequence[UUID] | None = None, as_of: datetime | None = None
) -> list[UUID]:
    """Return the ids of a customer's pockets, including closed ones; only those `among` these if given."""
    rows = await conn.fetch(_IDS, customer_id, among, as_of)
    return [row["pocket_id"] for row in rows]


async def list_open(
    conn: Db, partner_id: UUID, customer_id: UUID | None, *, limit: int, as_of: datetime | None = None
) -> list[PocketRow]:
    """Return the oldest `limit` pockets that are not closed, of a partner or one of its customers."""
    owners = partner_id if customer_id is None else [customer_id]
    listed, then = pockets_of(of_customers=customer_id is not None, as_of=as_of)
    terms = () if customer_id is None else (None,)
    return await listed.rows(conn, owners, _NOT_CLOSED, *then, *terms, descending=False, limit=limit)


async def list_not_closed(conn: Db, customer_id: UUID, as_of: datetime | None = None) -> list[PocketRow]:
    """Return all pockets of a customer that are not closed, or were not, oldest first."""
    if as_of is not None:
        return await list_of_statuses_as_of(conn, customer_id, _NOT_CLOSED, as_of)
    return await _pockets.all(conn, _NOT_CLOSED_OF_CUSTOMER, customer_id, _NOT_CLOSED)


async def list_page_by_offset(
    conn: Db,
    customer_id: UUID,
    *,
    statuses: list[str] | None,
    pocket_ids: list[UUID] | None,
    terms: list[int] | None = None,
    offset: int,
    limit: int,
    as_of: datetime | None = None,
) -> tuple[int, list[PocketRow]]:
    """Return the number of a customer's pockets (`pocket_ids` or all), and `limit` from `offset`, newest first."""
    wanted = (customer_id, statuses, pocket_ids, terms)
    if as_of is not None:
        return await list_page_as_of(conn, *wanted, at=as_of, offset=offset, limit=limit)
    count: int = await conn.fetchval(_COUNT, *wanted)
    return count, await _pockets.all(conn, _PAGE_BY_OFFSET, *wanted, offset, limit) if offset < count else []
