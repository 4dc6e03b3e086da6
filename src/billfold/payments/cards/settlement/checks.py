"""Checks of settlement files: their rows equal the stored files, and every record is booked, or in suspense."""

import msgspec

from billfold.data_keys.keys import DataKey
from billfold.payments.cards.settlement.file_format import DIFFERS, REPEATED, file_row, read_file, rows_of
from billfold.payments.cards.settlement.records import SettlementFileRow, SettlementRecordRow
from billfold.payments.cards.settlement.store import list_records
from billfold.payments.files.store import open_content
from billfold.payments.files.types import InvalidFile
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, declared
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError

FILES, RECORDS = "card_settlement_file", "card_settlement_record"
# Records of a processed file; before that, they are still in process.
# If operators have closed a file, records that could not be booked stay so.
_IS_BOOKED = "f.state = 'PROCESSED' AND f.report->'closed' IS NULL"
_PROCESSED = f"{RECORDS} r JOIN rail_file f ON f.file_id = r.file_id AND {_IS_BOOKED}"
_QUERIES = {
    (FILES, Certainty.MISSING): {
        "its file was processed, and the row is missing": f"""
            SELECT f.file_id FROM rail_file f
             WHERE f.rail = 'CARD' AND f.direction = 'IN' AND {_IS_BOOKED}
               AND NOT EXISTS (SELECT 1 FROM card_settlement_file c WHERE c.file_id = f.file_id)"""
    },
    (FILES, Certainty.SUSPECT): {
        "its file is missing or was refused": f"""
            SELECT c.file_id FROM {FILES} c WHERE NOT EXISTS (
              SELECT 1 FROM rail_file f WHERE f.file_id = c.file_id AND f.rail = 'CARD' AND f.state <> 'REFUSED')""",
        "interchange and fees booked for it are not those of its records": f"""
            SELECT c.file_id FROM {FILES} c JOIN rail_file f ON f.file_id = c.file_id AND {_IS_BOOKED}
              LEFT JOIN (SELECT k.outcome->>'file_id' AS file_id,
                                sum(CASE WHEN a.kind = 'interchange' AND p.credit = a.account_no THEN p.amount
                                         WHEN a.kind = 'interchange' THEN -p.amount ELSE 0 END) AS interchange,
                                sum(p.amount) FILTER (WHERE a.kind = 'card_fees') AS fees
                           FROM command k JOIN journal_entry j USING (customer_id, command_id)
                           JOIN posting p USING (customer_id, entry_no)
                           JOIN account a ON a.customer_id = p.customer_id AND a.account_no IN (p.debit, p.credit)
                          WHERE k.kind = 'BookCardSettlement' AND k.accepted GROUP BY 1) b
                     ON b.file_id = c.file_id::text
             WHERE (c.interchange, (SELECT coalesce(sum(r.amount), 0) FROM {RECORDS} r
                                     WHERE r.file_id = c.file_id AND r.type = 'FEE' AND r.reason IS NULL))
                   IS DISTINCT FROM (coalesce(b.interchange, 0), coalesce(b.fees, 0))""",
    },
    (RECORDS, Certainty.SUSPECT): {
        "it is neither booked to its card nor in suspense": f"""
            SELECT r.file_id, r.line FROM {_PROCESSED}
             WHERE r.type <> 'FEE' AND r.amount > 0
               AND NOT EXISTS (SELECT 1 FROM suspense_item i WHERE i.item_id = r.item_id)
               AND NOT EXISTS (SELECT 1 FROM card_payment p WHERE p.record_id = r.record_id)""",
        "it is in suspense as {status}, and is it booked to a card: {is_booked}": f"""
            SELECT r.file_id, r.line, i.status, p.record_id IS NOT NULL AS is_booked
              FROM {RECORDS} r JOIN suspense_item i USING (item_id) LEFT JOIN card_payment p USING (record_id)
             WHERE (i.status = 'ASSIGNED') <> (p.record_id IS NOT NULL)
               AND i.reason NOT IN ('{REPEATED}', '{DIFFERS}')""",
        "what is booked to its card differs": f"""
            SELECT r.file_id, r.line FROM {_PROCESSED} JOIN card_payment p USING (record_id)
             WHERE (p.card_id, p.amount, p.interchange, replace(p.kind, 'PURCHASE', 'PRESENTMENT'))
                   IS DISTINCT FROM (r.card_id, r.amount, r.interchange, r.type)
               AND NOT EXISTS (SELECT 1 FROM suspense_item i WHERE i.item_id = r.item_id)""",
        "its item in suspense differs": f"""
            SELECT r.file_id, r.line FROM {RECORDS} r JOIN suspense_item i USING (item_id)
             WHERE (i.rail, i.direction, i.amount) IS DISTINCT FROM ('CARD', r.direction, r.amount)""",
    },
    ("suspense_item", Certainty.SUSPECT): {
        "no record of a settlement file is held as it": f"""
            SELECT i.customer_id, i.item_id FROM suspense_item i WHERE i.rail = 'CARD'
               AND NOT EXISTS (SELECT 1 FROM {RECORDS} r WHERE r.item_id = i.item_id)"""
    },
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = (FILES, RECORDS)
_ACCEPTED = f"""
SELECT {", ".join(f"c.{each}" for each in SettlementFileRow.__struct_fields__)}, f.content
  FROM {FILES} c JOIN rail_file f USING (file_id) ORDER BY c.file_id
"""


async def check_opened(conn: Connection, findings: Findings, bank_key: DataKey) -> None:
    """Compare the rows of every accepted file with its content."""
    for row in await conn.fetch(_ACCEPTED, timeout=STATEMENT_TIMEOUT_SECONDS):
        file_id = row["file_id"]
        try:
            file = read_file(open_content(bank_key, file_id, row["content"]))
        except (InvariantError, InvalidFile):
            continue  # the check of the file itself reports it
        if any(row[name] != value for name, value in msgspec.structs.asdict(file_row(file_id, file)).items()):
            findings.add(FILES, {"file_id": file_id}, "it differs from its file", certainty=Certainty.CHANGED)
        stored = {each.line: _comparable_record(each) for each in await list_records(conn, file_id)}
        expected = {each.line: _comparable_record(each) for each in rows_of(file_id, file.records, ())}
        for line in sorted(stored.keys() | expected.keys()):
            if stored.get(line) != expected.get(line):
                key = {"file_id": file_id, "line": line}
                findings.add(RECORDS, key, "it differs from its file", certainty=Certainty.CHANGED)


def _comparable_record(row: SettlementRecordRow) -> SettlementRecordRow:
    """Return the record without `reason`, which does not follow from its file alone."""
    return msgspec.structs.replace(row, reason=None)
