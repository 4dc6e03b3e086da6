"""Checks of sealed values: each opens with the key of its customer, in its own row and column."""

from uuid import UUID

from billfold.data_keys.keys import COUNTERPARTY_ACCOUNT, NOTE_COLUMNS, SEALED_COLUMNS, DataKeys, KeyRing, SealedColumn
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError

_BATCH_SIZE = 2_000
_CHANGED = "its {column} does not open: it was altered, or moved from another row"
_NO_KEY = "its {column} is sealed, and its customer's data key is missing"
_ROWS = """
SELECT customer_id, {key} AS row_id, {column}::text AS stored, {subject} AS subject_id FROM {table}
 WHERE starts_with({column}::text, '{prefix}') ORDER BY customer_id, {key}
"""
_COUNTS = """
SELECT count(*) FILTER (WHERE wrapped IS NOT NULL) AS data_key,
       count(*) FILTER (WHERE wrapped IS NULL) AS data_key_shredded FROM data_key
"""
_WRONG_KEY = "it does not open with the bank's master key"


async def check_sealed(conn: Connection, findings: Findings, keys: DataKeys | None) -> None:
    """Open every sealed value and report those that do not open; without keys none is opened.

    Values of a destroyed key are not opened either; how many keys are destroyed is counted.
    """
    if keys is not None:
        for column in (*SEALED_COLUMNS, COUNTERPARTY_ACCOUNT, *NOTE_COLUMNS):
            await _check_column(conn, findings, column, keys)
    findings.checked.update(dict(await conn.fetchrow(_COUNTS) or {}))
    findings.next_section()


async def _check_column(conn: Connection, findings: Findings, column: SealedColumn, keys: DataKeys) -> None:
    prefix = '"sealed:' if column.is_json else "sealed:"
    query = _ROWS.format(**column._asdict(), prefix=prefix)
    cursor = await conn.cursor(query, timeout=STATEMENT_TIMEOUT_SECONDS)
    damaged_keys = set()
    while rows := await cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS):
        for customer_id, row_id, stored, subject_id in rows:
            if subject_id in damaged_keys:
                continue
            ring = await load_key(conn, findings, keys, subject_id)
            if ring is None:
                damaged_keys.add(subject_id)
                continue
            findings.checked[f"{column.table}.{column.column}"] += 1
            row_key = {"customer_id": customer_id, column.key: row_id}
            if subject_id not in ring:
                findings.add(column.table, row_key, _NO_KEY.format(column=column.column), certainty=Certainty.MISSING)
            elif (data_key := ring[subject_id]) is not None:
                try:
                    column.open(data_key, row_id, stored)
                except InvariantError:
                    message = _CHANGED.format(column=column.column)
                    findings.add(column.table, row_key, message, certainty=Certainty.CHANGED)


async def load_key(conn: Connection, findings: Findings, keys: DataKeys, subject_id: UUID) -> KeyRing | None:
    """Return the key of a subject if it has one; None for a damaged one, which is reported."""
    try:
        return await keys.load(conn, (subject_id,))
    except InvariantError:
        findings.add("data_key", {"subject_id": subject_id}, _WRONG_KEY, certainty=Certainty.CHANGED)
        return None
