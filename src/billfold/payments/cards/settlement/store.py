"""Queries of settlement files, their records, and the payments booked from them."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import astuple

from billfold.payments.cards.authorizations.commands import CardPaymentKind
from billfold.payments.cards.settlement.records import SettlementFileRow, SettlementRecordRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound

_files = Table(SettlementFileRow, "card_settlement_file")
_records = Table(SettlementRecordRow, "card_settlement_record")
_INSERT_FILE = f"""
INSERT INTO card_settlement_file ({_files.columns()}, accepted_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (file_id) DO NOTHING RETURNING true
"""
_FIND_FILES = f"{_files.select} WHERE file_id = $1 OR reference = $2"
_LIST_FILES = f"{_files.select} ORDER BY settles_on DESC, accepted_at DESC LIMIT 100"
_RECORDS_OF = f"{_records.select} WHERE file_id = $1 ORDER BY line"
_GET_RECORD = f"{_records.select} WHERE item_id = $1"
_HELD = f"""
SELECT {_records.columns("r")}, i.reason AS held_for
  FROM card_settlement_record r JOIN suspense_item i USING (item_id)
 WHERE i.status = 'HELD' ORDER BY i.created_at, r.file_id, r.line LIMIT 500
"""
_RECORDED = "SELECT record_id FROM card_settlement_record WHERE record_id = ANY($1::uuid[])"
_PAYMENTS = "SELECT record_id, card_id, kind, amount, interchange FROM card_payment WHERE record_id = ANY($1::uuid[])"
_HOLDERS = "SELECT value, customer_id FROM directory WHERE kind = 'card' AND value = ANY($1::text[])"
_BUSINESS_DATE = "SELECT business_date FROM ledger_head WHERE customer_id = $1"
_DECISION = """
SELECT accepted AND outcome->>'status' = 'POSTED' FROM command WHERE customer_id = $1 AND command_id = $2
"""
# Bookings on the rail: records of cards, and journal entries of the bank ($1). Positive: the bank pays.
_BOOKED = """
SELECT settles_on, 'records' AS kind,
       CASE WHEN kind IN ('REFUND', 'CHARGEBACK') THEN -amount ELSE amount END AS paid
  FROM card_payment
UNION ALL
SELECT j.settles_on, o.kind, CASE WHEN p.credit = a.account_no THEN p.amount ELSE -p.amount END AS paid
  FROM journal_entry j JOIN posting p USING (customer_id, entry_no)
  JOIN account a ON a.customer_id = p.customer_id AND a.account_no IN (p.debit, p.credit) AND a.kind = 'rail:card'
  JOIN account o ON o.customer_id = p.customer_id AND o.account_no IN (p.debit, p.credit) AND o.kind <> 'rail:card'
 WHERE j.customer_id = $1 AND j.kind NOT IN ('clearing', 'settlement')
"""
_RECONCILED = f"""
SELECT settles_on, coalesce(f.files, 0)::bigint AS files, coalesce(f.net, 0)::bigint AS file_net,
       coalesce(m.records, 0)::bigint AS records, coalesce(m.held, 0)::bigint AS held,
       coalesce(m.fees, 0)::bigint AS fees, coalesce(m.interchange, 0)::bigint AS interchange,
       coalesce(c.reserve, 0)::bigint AS reserve, c.reserve IS NOT NULL AS is_settled
  FROM (SELECT settles_on, count(*) AS files, sum(net_settlement) AS net FROM card_settlement_file GROUP BY 1) f
  FULL JOIN (SELECT settles_on, sum(paid) FILTER (WHERE kind = 'records') AS records,
                    sum(paid) FILTER (WHERE kind = 'suspense') AS held,
                    sum(paid) FILTER (WHERE kind = 'card_fees') AS fees,
                    -sum(paid) FILTER (WHERE kind = 'interchange') AS interchange
               FROM ({_BOOKED}) each GROUP BY 1) m USING (settles_on)
  FULL JOIN (SELECT settles_on, sum(outflow) - sum(inflow) AS reserve
               FROM clearing WHERE rail = 'CARD' GROUP BY 1) c USING (settles_on)
 ORDER BY settles_on DESC
"""
# Differences between the files of a date and the booked records: not booked, not stated, or other amounts. Files that
# are not processed yet have the first kind.
_DIFFERENCES = """
WITH item AS MATERIALIZED (
  SELECT item_id, status FROM suspense_item
), booked AS MATERIALIZED (
  SELECT settles_on, record_id, card_id,
         CASE WHEN kind IN ('REFUND', 'CHARGEBACK') THEN -amount ELSE amount END AS booked
    FROM card_payment
)
SELECT settles_on, record_id, coalesce(p.card_id, r.card_id) AS card_id, r.stated, p.booked
  FROM (SELECT f.settles_on, r.record_id, r.card_id,
               CASE r.direction WHEN 'DEBIT' THEN r.amount ELSE -r.amount END AS stated
          FROM card_settlement_record r JOIN card_settlement_file f USING (file_id)
         WHERE r.type NOT IN ('FEE', 'UNREADABLE')
           AND NOT EXISTS (SELECT 1 FROM item i WHERE i.item_id = r.item_id)) r
  FULL JOIN (SELECT * FROM booked p
              WHERE NOT EXISTS (SELECT 1 FROM item i JOIN card_settlement_record r USING (item_id)
                                 WHERE r.record_id = p.record_id AND i.status = 'ASSIGNED')) p
       USING (settles_on, record_id)
 WHERE r.stated IS DISTINCT FROM p.booked
 ORDER BY settles_on DESC, record_id LIMIT 200
"""


class BookedRecord(NamedTuple):
    """A record as booked to a card."""

    record_id: UUID
    card_id: UUID
    kind: CardPaymentKind
    amount: int
    interchange: int


class RecordDifference(NamedTuple):
    """A record that is not booked as its file states it, in cents; positive: the bank pays."""

    settles_on: date
    record_id: UUID
    card_id: UUID
    stated: int | None
    booked: int | None


class DateReconciliation(NamedTuple):
    """The totals of a settlement date in its files and in the books, in cents; positive: the bank pays.

    `reserve` is the amount paid from the reserve, once the bank has closed the date.
    """

    settles_on: date
    files: int
    file_net: int
    records: int
    held: int
    fees: int
    interchange: int
    reserve: int
    is_settled: bool

    @property
    def booked(self) -> int:
        """The total booked on the rail."""
        return self.records + self.held + self.fees - self.interchange

    @property
    def difference(self) -> int:
        """The amount in the files that is not booked."""
        return self.file_net - self.booked

    @property
    def unsettled(self) -> int:
        """The amount that is booked and not paid by the reserve."""
        return self.booked - self.reserve


async def save_file(
    conn: Connection, file: SettlementFileRow, records: Sequence[SettlementRecordRow], *, now: datetime
) -> None:
    """Record an accepted file with its records. A file that is already recorded is not changed."""
    if await conn.fetchval(_INSERT_FILE, *astuple(file), now):
        names = SettlementRecordRow.__struct_fields__
        await conn.copy_records_to_table("card_settlement_record", columns=names, records=map(astuple, records))


async def find_files(conn: Db, file_id: UUID, reference: str) -> list[SettlementFileRow]:
    """Return the accepted file with this id, and the one with this reference."""
    return await _files.all(conn, _FIND_FILES, file_id, reference)


async def list_files(conn: Db) -> list[SettlementFileRow]:
    """Return the last hundred accepted files, newest settlement date first."""
    return await _files.all(conn, _LIST_FILES)


async def list_records(conn: Db, file_id: UUID) -> list[SettlementRecordRow]:
    """Return the records of a file, in order."""
    return await _records.all(conn, _RECORDS_OF, file_id)


async def get_record(conn: Db, item_id: UUID) -> SettlementRecordRow:
    """Return the record held in suspense as this item. Raises NotFound."""
    record = await _records.first(conn, _GET_RECORD, item_id)
    if record is None:
        raise NotFound("This item is not from a card settlement file.")
    return record


async def list_held(conn: Db) -> list[tuple[SettlementRecordRow, str]]:
    """Return the records held in suspense, each with the reason, oldest first."""
    return [(_records.read(row), row["held_for"]) for row in await conn.fetch(_HELD)]


async def find_recorded(conn: Db, record_ids: Collection[UUID]) -> set[UUID]:
    """Return the given records that are in an accepted file."""
    return {row["record_id"] for row in await conn.fetch(_RECORDED, list(record_ids))}


async def find_payments(conn: Db, record_ids: Collection[UUID]) -> dict[UUID, BookedRecord]:
    """Return the bookings of these records."""
    return {row["record_id"]: BookedRecord(*row) for row in await conn.fetch(_PAYMENTS, list(record_ids))}


async def find_holders(conn: Db, card_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the customers of these cards, for those that exist."""
    rows = await conn.fetch(_HOLDERS, [str(each) for each in card_ids])
    return {UUID(row["value"]): row["customer_id"] for row in rows}


async def get_business_date(conn: Db, bank_id: UUID) -> date:
    """Return the open business date of the bank."""
    day: date = await conn.fetchval(_BUSINESS_DATE, bank_id)
    return day


async def find_decision(conn: Db, customer_id: UUID, command_id: UUID) -> bool | None:
    """Return whether a command booked its record; None if there was no such command."""
    is_booked: bool | None = await conn.fetchval(_DECISION, customer_id, command_id)
    return is_booked


async def reconcile(conn: Db, bank_id: UUID) -> list[DateReconciliation]:
    """Compare the files with the bookings, per settlement date, newest first."""
    return [DateReconciliation(*row) for row in await conn.fetch(_RECONCILED, bank_id)]


async def list_differences(conn: Db) -> list[RecordDifference]:
    """Return the records stated but not booked, or booked but not stated; newest settlement date first."""
    return [RecordDifference(*row) for row in await conn.fetch(_DIFFERENCES)]
