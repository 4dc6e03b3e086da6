"""Reads of pockets as of an instant: one index look-up per pocket leads to its state, however long its history."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.notes.store import has_terms
from billfold.accounts.pockets.commands import PocketRow
from billfold.ledger.book.pocket_versions import read_image
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import BY_OPENING, KeysetList
from billfold.platform.errors import NotFound, Refused

JOURNAL_NO_MAX = 2**63 - 1
_COLUMNS = ("customer_id", "pocket_id", "partner_id", "type", "opened_at")
_ROW = f"SELECT {', '.join(f'p.{name}' for name in _COLUMNS)}, p.written_no, w.was, w.state, w.last_entry FROM pocket p"
# The instant is $3.
_THEN = """
  LEFT JOIN LATERAL (
    SELECT v.status AS was, v.state, v.entry_no AS last_entry FROM pocket_version v
     WHERE v.customer_id = p.customer_id AND v.pocket_id = p.pocket_id AND v.known_at <= $3
     ORDER BY v.known_at DESC, v.version DESC LIMIT 1) w ON true
 WHERE p.opened_at <= $3"""
# A pocket without a state then is read, and refused; unless the release before opened it after states were kept: a list
# leaves that one out.
_STATUS = """CASE WHEN w.was IS NULL
    THEN p.opened_at <= (SELECT m.applied_at FROM schema_migration m WHERE m.name = '0018_as_of')
    ELSE $2::text[] IS NULL OR w.was = ANY($2) END"""
_GET = f"{_ROW} {_THEN} AND p.customer_id = $1 AND p.pocket_id = $2"
_BY_ID = f"""{_ROW} JOIN unnest($1::uuid[], $2::uuid[]) AS k(customer_id, pocket_id) USING (customer_id, pocket_id)
{_THEN} ORDER BY p.opened_at, p.written_no"""
_OF_STATUSES = f"{_ROW} {_THEN} AND p.customer_id = $1 AND {_STATUS} ORDER BY p.opened_at, p.written_no"
_WANTED = f"""{_THEN} AND p.customer_id = $1 AND {_STATUS} AND ($4::uuid[] IS NULL OR p.pocket_id = ANY($4))
   AND {has_terms("p", "pocket_id", 5)}"""
_COUNT = f"SELECT count(*) FROM pocket p {_WANTED}"
_BY_OFFSET = f"{_ROW} {_WANTED} ORDER BY p.opened_at DESC, p.written_no DESC OFFSET $6 LIMIT $7"
_LAST_ENTRY = f"""
SELECT count(*), max(w.last_entry), bool_and(w.was IS NULL) FROM pocket p {_THEN}
   AND p.customer_id = $1 AND p.pocket_id = ANY($2::uuid[])"""


def _read(record: Record) -> PocketRow:
    if record["state"] is None:
        raise history_not_kept()
    then = msgspec.structs.asdict(read_image(record["state"]))
    lots, holds = then.pop("lots"), then.pop("holds")
    return PocketRow(
        **{name: record[name] for name in _COLUMNS},
        **then,
        status=record["was"],
        last_entry=record["last_entry"],
        lot_cusips=[cusip for cusip, _, _ in lots],
        lot_units=[units for _, units, _ in lots],
        lot_dates=[acquired_on for _, _, acquired_on in lots],
        hold_amounts=[cents for cents, _ in holds],
        hold_ends=[until for _, until in holds],
    )


def history_not_kept() -> Refused:
    """Return the refusal of an instant from which on changes were not kept yet."""
    return Refused("history-not-kept", "What was answered at this instant was not kept. Read as of a later one.")


POCKETS_OF_PARTNER_AS_OF: KeysetList[PocketRow] = KeysetList(
    f"{_ROW} {_THEN} AND p.partner_id = $1 AND {_STATUS} AND {{page}}", _read, **BY_OPENING
)
POCKETS_OF_CUSTOMERS_AS_OF: KeysetList[PocketRow] = KeysetList(
    f"""{_ROW} {_THEN} AND p.customer_id = ANY($1::uuid[]) AND {_STATUS}
   AND {has_terms("p", "pocket_id", 4)} AND {{page}}""",
    _read,
    **BY_OPENING,
)
"""Pockets of a partner, or of customers, by their statuses then, an instant and terms of notes; newest first."""


async def get_pocket_as_of(conn: Db, customer_id: UUID, pocket_id: UUID, at: datetime) -> PocketRow:
    """Return the pocket as it was at an instant. Raises NotFound if it had not been opened."""
    record = await conn.fetchrow(_GET, customer_id, pocket_id, at)
    if record is None:
        raise NotFound("There is no such pocket.")
    return _read(record)


async def list_by_id_as_of(conn: Db, keys: Sequence[tuple[UUID, UUID]], at: datetime) -> list[PocketRow]:
    """Return these pockets, given as (customer_id, pocket_id), oldest first. Raises NotFound."""
    rows = await conn.fetch(_BY_ID, [c for c, _ in keys], [p for _, p in keys], at)
    if len(rows) < len(keys):
        raise NotFound("There is no such pocket.")
    return [_read(row) for row in rows]


async def list_of_statuses_as_of(
    conn: Db, customer_id: UUID, statuses: list[str] | None, at: datetime
) -> list[PocketRow]:
    """Return all pockets that a customer had then with these statuses, or with any, oldest first."""
    return [_read(row) for row in await conn.fetch(_OF_STATUSES, customer_id, statuses, at)]


async def list_page_as_of(
    conn: Db, *wanted: object, at: datetime, offset: int, limit: int
) -> tuple[int, list[PocketRow]]:
    """Return the number of pockets then, and a page: of a customer, statuses, pocket ids and terms of notes."""
    customer_id, statuses, pocket_ids, terms = wanted
    values = (customer_id, statuses, at, pocket_ids, terms)
    count: int = await conn.fetchval(_COUNT, *values)
    rows = await conn.fetch(_BY_OFFSET, *values, offset, limit) if offset < count else []
    return count, [_read(row) for row in rows]


async def entries_end(conn: Db, customer_id: UUID, pocket_ids: Sequence[UUID], as_of: datetime | None) -> int:
    """Return the number from which on journal entries of these distinct pockets were booked later, or will be.

    Raises NotFound if one of the pockets had not been opened.
    """
    if as_of is None:
        return JOURNAL_NO_MAX
    found = await conn.fetchrow(_LAST_ENTRY, customer_id, list(pocket_ids), as_of)
    count, last, is_unknown = found or (0, 0, False)
    if count < len(pocket_ids):
        raise NotFound("There is no such pocket.")
    if is_unknown:
        raise history_not_kept()
    return (last or 0) + 1
