"""Reads of the payments behind transactions: what changes after they are booked, now or as of an instant."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.transactions.settlement import TransactionRow, ach_settles_at
from billfold.platform.database.connection import Db
from billfold.platform.database.former_rows import as_was, joined_as_was

_ACH_ENTRIES = f"""
SELECT customer_id, entry_no, {ach_settles_at("ach_entry")}, trace_number FROM ach_entry
 WHERE customer_id = ANY($1::uuid[]) AND ach_id = ANY($2::uuid[]) AND way = 'ORIGINATION'
"""
_ACH_ENTRIES_AS_OF = f"""
SELECT customer_id, entry_no, {ach_settles_at(as_was("ach_entry"))}, {as_was("ach_entry")}.trace_number
  FROM ach_entry {joined_as_was("ach_entry", "ach_id", "$3")}
 WHERE customer_id = ANY($1::uuid[]) AND ach_id = ANY($2::uuid[]) AND way = 'ORIGINATION'
"""
_WIRE_NAMES = ("end_to_end_identification", "uetr", "imad", "omad")
_WIRES = f"""
SELECT customer_id, wire_id::text, {", ".join(_WIRE_NAMES)} FROM wire
 WHERE customer_id = ANY($1::uuid[]) AND wire_id = ANY($2::uuid[])
"""
_WIRES_AS_OF = f"""
SELECT customer_id, wire_id::text, {", ".join(f"{as_was('wire')}.{name}" for name in _WIRE_NAMES)}
  FROM wire {joined_as_was("wire", "wire_id", "$3")}
 WHERE customer_id = ANY($1::uuid[]) AND wire_id = ANY($2::uuid[])
"""


class _AchDetails(msgspec.Struct):
    ach_id: UUID | None = None


async def with_payments(conn: Db, found: list[TransactionRow], as_of: datetime | None) -> list[TransactionRow]:
    """Return activity with data of its payments: ACH payments follow their entries, wires have their references."""
    return await _with_wires(conn, await _with_ach_entries(conn, found, as_of), as_of)


async def _with_wires(conn: Db, found: list[TransactionRow], as_of: datetime | None) -> list[TransactionRow]:
    """Return activity with the references of its wires; an outgoing one is numbered when it is sent."""
    details = {row.activity_id: msgspec.json.decode(row.details) for row in found if row.type == "WIRE"}
    wire_ids = [each["wire_id"] for each in details.values() if each.get("wire_id")]
    if not wire_ids:
        return found
    sql, then = (_WIRES, ()) if as_of is None else (_WIRES_AS_OF, (as_of,))
    rows = await conn.fetch(sql, list({row.customer_id for row in found}), wire_ids, *then)
    names = {(each["customer_id"], each["wire_id"]): {name: each[name] for name in _WIRE_NAMES} for each in rows}
    return [
        msgspec.structs.replace(row, details=msgspec.json.encode(told | named).decode()) if named else row
        for row in found
        for told in [details.get(row.activity_id, {})]
        for named in [names.get((row.customer_id, told.get("wire_id", "")))]
    ]


async def _with_ach_entries(conn: Db, found: list[TransactionRow], as_of: datetime | None) -> list[TransactionRow]:
    """Return activity with current data: ACH payments settle when their entries do, and have their trace numbers."""
    outgoing_ach = [row for row in found if row.type == "ACH" and row.direction == "DEBIT"]
    if not outgoing_ach:
        return found
    ach_ids = [msgspec.json.decode(row.details, type=_AchDetails).ach_id for row in outgoing_ach]
    customers = list({row.customer_id for row in outgoing_ach})
    sql, then = (_ACH_ENTRIES, ()) if as_of is None else (_ACH_ENTRIES_AS_OF, (as_of,))
    entries = await conn.fetch(sql, customers, [each for each in ach_ids if each is not None], *then)
    sent = {(row[0], row[1], "ACH", "DEBIT"): (row[2], row[3]) for row in entries}
    return [
        msgspec.structs.replace(row, settles_at=instant or row.settles_at, details=_with_trace(row.details, trace))
        for row in found
        for instant, trace in [sent.get((row.customer_id, row.entry_no, row.type, row.direction), (None, None))]
    ]


def _with_trace(details: str, trace_number: str | None) -> str:
    """Return the details of an ACH payment with the trace number of its entry, once it was sent."""
    told: dict[str, Any] = msgspec.json.decode(details) if trace_number else {}
    if trace_number is None or told.get("trace_number") is not None:
        return details
    return msgspec.json.encode(told | {"trace_number": trace_number}).decode()
