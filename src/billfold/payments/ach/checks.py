"""ACH: statuses follow from commands and events, money moved accordingly, and files equal their entries.

The bank raises no events for itself: its own entries are compared with files and scheduled jobs.
"""

import re
from contextlib import suppress

from billfold.data_keys.keys import DataKey
from billfold.ledger.checks import change_check
from billfold.payments.ach import commands
from billfold.payments.ach.store import TRACE_NUMBERS
from billfold.payments.files.store import open_content
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, declared, names_in_sql
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError

_RETURN_RECEIVED = names_in_sql(commands.ReceiveAchReturn)
_RETURNS_EITHER_WAY = names_in_sql(commands.ReceiveAchReturn, commands.ReturnAchEntry)
_WITH_RETURN_CODE = names_in_sql(commands.ReceiveAch, commands.ReceiveAchReturn, commands.ReturnAchEntry)
_WITH_STATUS = names_in_sql(
    commands.OriginateAch,
    commands.ReverseAch,
    commands.ReinitiateAch,
    commands.ReviewAch,
    commands.ReceiveAch,
    commands.ReceiveAchReturn,
    commands.ReturnAchEntry,
)
# The outcome with the highest rank counts: returned, settled, sent, waiting.
_EXPECTED_STATUS = f"""
  SELECT customer_id, id, status, how, rank() OVER (PARTITION BY customer_id, id
                                                    ORDER BY how DESC, at DESC) AS place
    FROM (SELECT customer_id, outcome->>'ach_id' AS id, version AS at,
                 CASE WHEN kind IN ({names_in_sql(commands.ReceiveAch)}) THEN
                        CASE outcome->>'status' WHEN 'COMPLETED' THEN 'PROCESSED'
                             ELSE 'REJECTED' END
                      WHEN kind IN ({_RETURN_RECEIVED}) THEN 'FAILED'
                      ELSE outcome->>'status' END AS status,
                 CASE WHEN kind IN ({_RETURNS_EITHER_WAY}) THEN 4 ELSE 1 END AS how
            FROM command
           WHERE accepted AND outcome->>'ach_id' IS NOT NULL
             AND kind IN ({_WITH_STATUS})
          UNION ALL
          SELECT customer_id, payload->>'ach_id', event_no,
                 CASE kind WHEN 'transfers.ach.out.sent' THEN 'IN_TRANSIT' ELSE 'PROCESSED' END,
                 CASE kind WHEN 'transfers.ach.out.sent' THEN 2 ELSE 3 END
            FROM event WHERE kind IN ('transfers.ach.out.sent', 'transfers.ach.out.success')) s
"""
_ENTRY = "SELECT e.customer_id, e.ach_id FROM ach_entry e"
_RETURN = "SELECT w.customer_id, w.return_entry_id FROM ach_return_entry w"
_FILE = "SELECT f.file_id FROM ach_file f"
_FINAL_STATUSES = "('FAILED', 'REJECTED', 'CANCELLED')"
_ENTRIES = {
    ("ach_entry", Certainty.DERIVED): {
        "status is {status}, but its last command or event left another": f"""
            WITH expected AS ({_EXPECTED_STATUS})
            SELECT e.customer_id, e.ach_id, e.status FROM ach_entry e
             WHERE (e.pocket_id IS NOT NULL OR e.status = 'FAILED')
               AND NOT EXISTS (SELECT 1 FROM expected s
                     WHERE s.customer_id = e.customer_id AND s.id = e.ach_id::text
                       AND s.place = 1 AND s.status = e.status)""",
        "return_code is {return_code}, but its return has {expected}": f"""
            SELECT e.customer_id, e.ach_id, e.return_code, c.code AS expected FROM ach_entry e
              LEFT JOIN (SELECT customer_id, outcome->>'ach_id' AS id, outcome->>'code' AS code FROM command
                          WHERE accepted AND outcome->>'ach_id' IS NOT NULL
                            AND outcome->>'code' IS NOT NULL AND kind IN ({_WITH_RETURN_CODE})) c
                ON c.customer_id = e.customer_id AND c.id = e.ach_id::text
             WHERE e.return_code IS DISTINCT FROM c.code""",
        "its status contradicts its file": f"""
            {_ENTRY} LEFT JOIN ach_file f USING (file_id)
             WHERE e.way = 'ORIGINATION'
               AND ((e.file_id IS NULL) <> (e.trace_number IS NULL)
                    OR e.file_id IS NULL
                       AND e.status NOT IN ('PENDING', 'APPROVED', 'REJECTED', 'CANCELLED')
                    OR f.confirmed_at IS NOT NULL
                       AND e.status NOT IN ('IN_TRANSIT', 'PROCESSED', 'FAILED'))""",
        "the transactions that moved its money differ from it": """
            WITH moved AS (
              SELECT customer_id, details->>'ach_id' AS id, pocket_id, amount, direction,
                     min(entry_no) AS entry_no
                FROM transaction WHERE type = 'ACH' AND details->>'ach_id' IS NOT NULL
               GROUP BY customer_id, details->>'ach_id', pocket_id, amount, direction)
            SELECT e.customer_id, e.ach_id FROM ach_entry e
              LEFT JOIN moved m ON m.customer_id = e.customer_id AND m.id = e.ach_id::text
                    AND m.direction = CASE WHEN (e.direction = 'CREDIT') = (e.way = 'ORIGINATION')
                                           THEN 'DEBIT' ELSE 'CREDIT' END
             WHERE e.pocket_id IS NOT NULL
               AND CASE WHEN e.entry_no IS NULL THEN m.id IS NOT NULL
                        ELSE (e.entry_no, e.pocket_id, e.amount)
                             IS DISTINCT FROM (m.entry_no, m.pocket_id, m.amount) END""",
        "the bank's own posting of it is missing": f"""
            {_ENTRY} WHERE e.pocket_id IS NULL AND NOT EXISTS (
               SELECT 1 FROM posting l JOIN account a
                 ON a.customer_id = l.customer_id AND a.account_no = l.credit
              WHERE l.customer_id = e.customer_id AND l.entry_no = e.entry_no
                AND l.amount = e.amount AND a.kind = 'rail:ach')""",
        "its final status contradicts the reversal of its money": f"""
            WITH last AS (
              SELECT customer_id, details->>'ach_id' AS id, amount, max(entry_no) AS entry_no
                FROM transaction WHERE type = 'ACH' GROUP BY 1, 2, 3)
            SELECT e.customer_id, e.ach_id FROM ach_entry e
              JOIN pocket p ON p.customer_id = e.customer_id AND p.pocket_id = e.pocket_id
              LEFT JOIN last l ON l.customer_id = e.customer_id AND l.id = e.ach_id::text AND l.amount = e.amount
             WHERE e.entry_no IS NOT NULL
               AND (e.status IN {_FINAL_STATUSES}) <> coalesce(l.entry_no > e.entry_no, false)
               AND NOT (e.status = 'FAILED' AND p.status = 'CLOSED')""",
        "the entry that it reverses is missing, or its amount differs": f"""
            {_ENTRY} WHERE e.reverses_id IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM ach_entry o WHERE o.customer_id = e.customer_id
                  AND o.ach_id = e.reverses_id AND o.amount = e.amount
                  AND o.direction <> e.direction)""",
        "no command recorded its notification of change": f"""
            {_ENTRY} WHERE (e.change_code IS NOT NULL OR e.corrected IS NOT NULL) AND NOT EXISTS (
              SELECT 1 FROM command c WHERE c.customer_id = e.customer_id AND c.accepted
                 AND c.kind IN ({names_in_sql(commands.RecordNoc)}) AND c.outcome->>'ach_id' = e.ach_id::text
                 AND c.outcome->>'code' = e.change_code
                 AND c.outcome->>'corrected' = e.corrected)""",
        "its file is missing or was refused": f"""
            {_ENTRY} WHERE e.way = 'RECEIVING' AND NOT EXISTS (
               SELECT 1 FROM rail_file f WHERE f.file_id = e.file_id AND f.rail = 'ACH'
                  AND f.direction = 'IN' AND f.state <> 'REFUSED')""",
    }
}

# Pending work has a scheduled job, which is removed when all of it is done.
_SCHEDULED_WORK = {
    ("counterparty", Certainty.SUSPECT): {
        "it waits for micro-deposits, and none are scheduled": """
            SELECT c.customer_id, c.counterparty_id FROM counterparty c
             WHERE c.status = 'PENDING' AND c.verification->>'type' = 'micro_deposits'
               AND NOT EXISTS (SELECT 1 FROM scheduled_job a WHERE a.kind = 'ach.micro_deposits'
                                  AND a.object_id = c.counterparty_id)
               AND NOT EXISTS (SELECT 1 FROM ach_entry e
                                WHERE e.counterparty_id = c.counterparty_id)"""
    },
    ("ach_entry", Certainty.SUSPECT): {
        "it waits for a window, and no window is scheduled": f"""
            {_ENTRY} WHERE e.status = 'APPROVED' AND e.file_id IS NULL AND NOT EXISTS (
               SELECT 1 FROM scheduled_job a WHERE a.kind = 'ach.window' AND a.due_at >= e.due_at)""",
        "it is in transit, and its settlement is not scheduled": f"""
            {_ENTRY} JOIN ach_file f USING (file_id)
             WHERE e.way = 'ORIGINATION' AND e.status = 'IN_TRANSIT' AND f.confirmed_at IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM scheduled_job a
                                WHERE a.kind = 'ach.count' AND a.object_id = f.file_id)""",
        "it has settled, and its money was neither posted nor held": f"""
            {_ENTRY} JOIN ach_file f USING (file_id)
             WHERE e.way = 'ORIGINATION' AND e.direction = 'DEBIT' AND e.entry_no IS NULL
               AND e.status IN ('IN_TRANSIT', 'PROCESSED') AND f.confirmed_at IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM scheduled_job a
                                WHERE a.kind = 'ach.collect' AND a.object_id = f.file_id)
               AND NOT EXISTS (SELECT 1 FROM suspense_item i WHERE i.item_id = e.ach_id)""",
    },
    ("ach_return_entry", Certainty.SUSPECT): {
        "it waits for a window, and no window is scheduled": f"""
            {_RETURN} WHERE w.file_id IS NULL AND NOT EXISTS (
               SELECT 1 FROM scheduled_job a WHERE a.kind = 'ach.window' AND a.due_at >= w.due_at)"""
    },
    ("ach_file", Certainty.SUSPECT): {
        "it is not transmitted, and no window is scheduled": f"""
            {_FILE} WHERE f.confirmed_at IS NULL AND NOT EXISTS (
               SELECT 1 FROM scheduled_job a WHERE a.kind = 'ach.window')"""
    },
}

_RETURNS = {
    ("ach_return_entry", Certainty.DERIVED): {
        "it differs from the item that was held in suspense": f"""
            {_RETURN} JOIN suspense_item i ON i.item_id = w.return_entry_id
             WHERE w.payload::jsonb - 'reason' IS DISTINCT FROM (i.details::jsonb->'answer') - 'reason'
                OR w.payload->>'reason' NOT IN (i.details::jsonb->'answer'->>'reason', i.return_reason)
                OR i.status <> 'RETURNED'"""
    },
    ("ach_return_entry", Certainty.MISSING): {
        "it was released from suspense, and is missing": """
            SELECT i.customer_id, i.item_id AS return_entry_id FROM suspense_item i
             WHERE i.rail = 'ACH' AND i.status = 'RETURNED'
               AND i.details::jsonb->'answer' IS NOT NULL
               AND i.details::jsonb->'answer' <> 'null'
               AND NOT EXISTS (SELECT 1 FROM ach_return_entry w WHERE w.return_entry_id = i.item_id)
               AND NOT EXISTS (SELECT 1 FROM scheduled_job a
                                WHERE a.kind = 'ach.suspense_return' AND a.object_id = i.item_id)"""
    },
}

_FILE_ITEMS = """
  SELECT file_id, 'ach_entry' AS part, trace_number,
         CASE WHEN direction = 'CREDIT' THEN amount ELSE 0 END AS credits,
         CASE WHEN direction = 'DEBIT' THEN amount ELSE 0 END AS debits,
         CASE WHEN routing_number ~ '^\\d{9}$' THEN left(routing_number, 8)::bigint END AS bank,
         1 + cardinality(lines) AS records
    FROM ach_entry WHERE way = 'ORIGINATION' AND file_id IS NOT NULL
   UNION ALL
  SELECT file_id, 'ach_return_entry', trace_number,
         CASE WHEN substr(payload->>'code', 2, 1) < '5' THEN (payload->>'amount')::bigint ELSE 0 END,
         CASE WHEN substr(payload->>'code', 2, 1) >= '5' THEN (payload->>'amount')::bigint ELSE 0 END,
         CASE WHEN payload->>'routing_number' ~ '^\\d{9}$'
              THEN left(payload->>'routing_number', 8)::bigint END, 2
    FROM ach_return_entry WHERE file_id IS NOT NULL
"""
# Numbers continue from file to file; within a file, entries come first, then returns.
_MISNUMBERED = f"""
  SELECT n.part, n.customer_id, n.ach_id, n.return_entry_id
    FROM (SELECT file_id, 'ach_entry' AS part, customer_id, ach_id, NULL::uuid AS return_entry_id,
                 trace_number, 0 AS first,
                 row_number() OVER (PARTITION BY file_id
                   ORDER BY customer_id, company_name, sec_code, description, effective_on,
                            direction, ach_id) AS nth
            FROM ach_entry WHERE way = 'ORIGINATION' AND file_id IS NOT NULL
          UNION ALL
          SELECT a.file_id, 'ach_return_entry', NULL, NULL, return_entry_id, trace_number, e.entries,
                 row_number() OVER (PARTITION BY a.file_id
                   ORDER BY payload->>'company', payload->>'company_id', payload->>'entry_class',
                            payload->>'purpose', return_entry_id)
            FROM ach_return_entry a, LATERAL (
                   SELECT count(*) AS entries FROM ach_entry x
                    WHERE x.file_id = a.file_id AND x.way = 'ORIGINATION') e
           WHERE a.file_id IS NOT NULL) n
    JOIN (SELECT f.file_id, coalesce(sum(p.parts) OVER (
                   ORDER BY f.day, f.number, f.file_id ROWS UNBOUNDED PRECEDING), 0)
                 - coalesce(p.parts, 0) AS before
            FROM ach_file f LEFT JOIN (
                   SELECT file_id, count(*) AS parts FROM ({_FILE_ITEMS}) p GROUP BY 1) p
                 USING (file_id)) b USING (file_id)
   WHERE (SELECT traces FROM ach_counter) <= {TRACE_NUMBERS}
     AND right(n.trace_number, 7) IS DISTINCT FROM lpad((b.before + n.first + n.nth - 1)::text, 7, '0')
"""
_FILES = {
    ("ach_entry", Certainty.DERIVED): {
        "its file is missing": f"""
            {_ENTRY} WHERE e.way = 'ORIGINATION' AND e.file_id IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM ach_file f WHERE f.file_id = e.file_id)"""
    },
    ("ach_return_entry", Certainty.DERIVED): {
        "its file is missing": f"""
            {_RETURN} WHERE w.file_id IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM ach_file f WHERE f.file_id = w.file_id)"""
    },
    ("ach_file", Certainty.MISSING): {
        # In one list: Citus 13 ends the whole server at two of EXISTS as alternatives.
        "entries refer to it, and it is missing": """
            SELECT r.file_id FROM rail_file r
             WHERE r.rail = 'ACH' AND r.direction = 'OUT' AND NOT EXISTS (
               SELECT 1 FROM ach_file f WHERE f.file_id = r.file_id)
               AND r.file_id IN (SELECT file_id FROM ach_entry UNION ALL SELECT file_id FROM ach_return_entry)"""
    },
    ("ach_file", Certainty.DERIVED): {
        "its name, day and number differ": f"""
            {_FILE} WHERE f.day IS DISTINCT FROM (f.made_at AT TIME ZONE 'America/New_York')::date
                OR f.name IS DISTINCT FROM 'ACH-' || to_char(f.day, 'YYYYMMDD') || '-'
                                           || lpad((f.number + 1)::text, 3, '0') || '.ach'""",
        "its number is {number}, but it is number {nth} of its day": """
            SELECT f.file_id, f.number, f.nth FROM (
              SELECT *, row_number() OVER (PARTITION BY day ORDER BY number, file_id) - 1 AS nth
                FROM ach_file) f
             WHERE f.number <> f.nth""",
        "its settlement times differ from its entries'": f"""
            {_FILE} LEFT JOIN (
              SELECT file_id, max(settles_at) AS settles_at, max(settled_at) AS settled_at
                FROM ach_entry WHERE way = 'ORIGINATION' GROUP BY file_id) e USING (file_id)
             WHERE (f.settles_at, f.settled_at) IS DISTINCT FROM (e.settles_at, e.settled_at)""",
    },
    ("ach_file", Certainty.SUSPECT): {
        "the archived file differs from it": f"""
            {_FILE} LEFT JOIN rail_file r ON r.file_id = f.file_id
             WHERE (f.confirmed_at IS NOT NULL OR r.file_id IS NOT NULL)
               AND (r.rail, r.direction, r.name, r.state, r.created_at) IS DISTINCT FROM
                   ('ACH', 'OUT', f.name,
                    CASE WHEN f.confirmed_at IS NULL AND r.done_at IS NULL THEN 'CREATED'
                         ELSE 'TRANSMITTED' END, f.made_at)""",
        "its trace numbers are not unique, or of several banks": f"""
            SELECT f.file_id FROM ({_FILE_ITEMS}) f GROUP BY f.file_id
            HAVING count(DISTINCT f.trace_number) <> count(*)
                OR count(DISTINCT left(f.trace_number, 8)) <> 1""",
    },
    ("ach_counter", Certainty.SUSPECT): {
        "it is {traces}, but {used} trace numbers are in use": f"""
            SELECT traces, used FROM ach_counter, (SELECT count(*) AS used FROM ({_FILE_ITEMS}) p) p
             WHERE traces < used OR traces > used AND traces <= {TRACE_NUMBERS}"""
    },
}
# After the other checks: one lost entry shifts the numbers of those behind it.
_NUMBERS = {
    ("ach_entry", Certainty.DERIVED): {
        "its trace number is not the next one": f"""
            SELECT customer_id, ach_id FROM ({_MISNUMBERED}) n WHERE part = 'ach_entry'"""
    },
    ("ach_return_entry", Certainty.DERIVED): {
        "its trace number is not the next one": f"""
            SELECT return_entry_id FROM ({_MISNUMBERED}) n WHERE part = 'ach_return_entry'"""
    },
}

CHECKS = (
    *declared(_ENTRIES, _RETURNS, _FILES, _NUMBERS, _SCHEDULED_WORK),
    change_check("ach_entry", "updated_at", "ach_id"),
)
COUNTED = ("ach_file",)

# File control record: Nacha Operating Rules, Appendix Three. At most nine lines follow it.
_CONTROL_RECORD = re.compile(rb"\n9(\d{12})(\d{8})(\d{10})(\d{12})(\d{12}) ")
_CONTROL_BYTES = 1_100
_SENT_FILES = f"""
SELECT r.file_id, r.content, h.records, h.hash, h.debits, h.credits
  FROM ach_file f JOIN rail_file r USING (file_id) LEFT JOIN (
    SELECT file_id, sum(records)::bigint AS records, (sum(bank) % 10000000000)::bigint AS hash,
           sum(debits)::bigint AS debits, sum(credits)::bigint AS credits
      FROM ({_FILE_ITEMS}) p GROUP BY file_id) h USING (file_id)
 ORDER BY r.file_id
"""


async def check_opened(conn: Connection, findings: Findings, bank_key: DataKey) -> None:
    """Compare the control record of every file that was sent with its entries."""
    async for row in conn.cursor(_SENT_FILES, prefetch=1, timeout=STATEMENT_TIMEOUT_SECONDS):
        file_id, content = row["file_id"], row["content"]
        with suppress(InvariantError):  # the checks of files report it
            written = _CONTROL_RECORD.search(open_content(bank_key, file_id, content)[-_CONTROL_BYTES:])
            expected = tuple(row[name] for name in ("records", "hash", "debits", "credits"))
            if written is None or tuple(map(int, written.groups()[1:])) != expected:
                message = "its file control record differs from its entries"
                findings.add("ach_file", {"file_id": file_id}, message, certainty=Certainty.SUSPECT)
