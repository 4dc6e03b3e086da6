"""What goes out to the rails and comes from them: files, the messages in them, requests for wires.

A file is what was kept, byte for byte; a message that has gone is in one and has the next number;
a message that waits has an appointment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.verify.query_check import Check, run_checks
from billfold.verify.report import CHANGED, MISSING, SUSPECT

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.report import Findings

_FILES = (
    Check(
        "rail files",
        "rail_file",
        "it is not what was kept",
        """SELECT file_id FROM rail_file WHERE sha256 IS DISTINCT FROM sha256(content)
            ORDER BY 1 LIMIT 100""",
        CHANGED,
    ),
    Check(
        "rail files",
        "rail_file",
        "it is there twice",
        "SELECT file_id FROM rail_file GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 100",
        MISSING,
    ),
    Check(
        "rail files",
        "rail_file",
        "the same content was taken twice",
        """SELECT max(file_id::text)::uuid AS file_id FROM rail_file
            WHERE direction = 'IN' AND state <> 'REFUSED' GROUP BY rail, sha256
           HAVING count(*) > 1 ORDER BY 1 LIMIT 100""",
    ),
    Check(
        "rail files",
        "rail_file",
        "its state, its direction and its end do not agree",
        """SELECT file_id FROM rail_file
            WHERE (direction, state, done_at IS NULL) NOT IN (
                  ('OUT', 'MADE', true), ('OUT', 'HANDED', false), ('IN', 'ARRIVED', true),
                  ('IN', 'TAKEN', false), ('IN', 'REFUSED', false))
               OR (direction, state) IS NULL OR rail NOT IN ('ACH', 'WIRE')
            ORDER BY 1 LIMIT 100""",
    ),
    Check(
        "rail files",
        "rail_file",
        "its report says something else became of it",
        """SELECT file_id FROM rail_file
            WHERE direction = 'IN' AND done_at IS NOT NULL
              AND (report->>'state', report->>'file') IS DISTINCT FROM (state, name)
            ORDER BY 1 LIMIT 100""",
    ),
    Check(
        "rail files",
        "rail_file",
        "what it holds has other numbers",
        """SELECT f.file_id FROM rail_file f
             LEFT JOIN (SELECT file_id, min(imad) AS first, count(*) AS messages
                          FROM wire_message WHERE file_id IS NOT NULL GROUP BY file_id) m
                    USING (file_id)
            WHERE f.rail = 'WIRE' AND f.direction = 'OUT'
              AND (f.name IS DISTINCT FROM 'fedwire-' || m.first || '.xml'
                   OR f.done_at IS NOT NULL AND f.report->>'messages' <> m.messages::text)
            ORDER BY 1 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "rail files",
        "rail_file",
        "its messages were never noted, or were though it was refused",
        """SELECT f.file_id FROM rail_file f
            WHERE f.rail = 'WIRE' AND f.direction = 'IN' AND f.done_at IS NOT NULL
              AND (f.state = 'TAKEN') <> EXISTS (
                    SELECT 1 FROM wire_arrival a WHERE a.file_id = f.file_id)
            ORDER BY 1 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "rail files",
        "rail_file",
        "messages name it, and it is not there",
        """SELECT file_id FROM (SELECT file_id, count(*) AS times FROM wire_arrival GROUP BY 1
                                UNION ALL
                                SELECT file_id, count(*) FROM wire_message
                                 WHERE file_id IS NOT NULL GROUP BY 1
                                UNION ALL
                                SELECT file_id, count(*) FROM ach_entry
                                 WHERE way = 'RECEIVING' GROUP BY 1) n
            WHERE NOT EXISTS (SELECT 1 FROM rail_file f WHERE f.file_id = n.file_id)
              AND times > 1
            ORDER BY 1 LIMIT 100""",
        MISSING,
    ),
    Check(
        "rail files",
        "wire_arrival",
        "a wire came by it, and it is not there",
        """SELECT 'uetr:' || w.uetr AS number FROM wire w
            WHERE w.direction = 'INCOMING' AND w.wire_type = 'PAYMENT' AND w.message IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM wire_arrival a WHERE a.number = 'uetr:' || w.uetr)
            ORDER BY 1 LIMIT 100""",
        MISSING,
    ),
    Check(
        "rail files",
        "wire_arrival",
        "its file brought more than was noted",
        """SELECT f.file_id FROM rail_file f JOIN (
             SELECT file_id, count(*) AS numbers FROM wire_arrival
              WHERE number NOT LIKE 'uetr:%' GROUP BY 1) a USING (file_id)
            WHERE f.state = 'TAKEN' AND f.report->>'messages' <> a.numbers::text
            ORDER BY 1 LIMIT 100""",
    ),
    Check(
        "rail files",
        "wire_arrival",
        "it came in no file that was taken",
        """SELECT a.number FROM wire_arrival a WHERE NOT EXISTS (
             SELECT 1 FROM rail_file f WHERE f.file_id = a.file_id AND f.rail = 'WIRE'
                AND f.direction = 'IN' AND f.state <> 'REFUSED') ORDER BY 1 LIMIT 100""",
        SUSPECT,
    ),
)

# The numbers of a day go on from file to file; a file's name says its first.
_MESSAGES = (
    Check(
        "wire messages",
        "wire_message",
        "its file is not there",
        """SELECT m.customer_id, m.message_id FROM wire_message m
            WHERE m.file_id IS NOT NULL AND NOT EXISTS (
              SELECT 1 FROM rail_file f WHERE f.file_id = m.file_id AND f.rail = 'WIRE'
                 AND f.direction = 'OUT') ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "its wire is not there",
        """SELECT m.customer_id, m.message_id FROM wire_message m
            WHERE CASE WHEN m.customer_id = (SELECT house_customer_id FROM bank)
                  THEN m.kind <> 'pacs.004' OR NOT EXISTS (
                    SELECT 1 FROM suspense_item i
                     WHERE i.item_id = m.wire_id AND i.rail = 'WIRE' AND i.status = 'RETURNED'
                       AND m.terms->>'amount' = i.amount::text)
                  ELSE NOT EXISTS (
                    SELECT 1 FROM wire w
                     WHERE w.customer_id = m.customer_id AND w.wire_id = m.wire_id) END
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "it goes at another hour than its wire",
        """SELECT m.customer_id, m.message_id FROM wire_message m
             JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
            WHERE m.send_at > w.send_at AND m.kind LIKE 'pacs.%' ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "it did not go with its file",
        """SELECT m.customer_id, m.message_id FROM wire_message m JOIN rail_file f USING (file_id)
            WHERE m.sent_at IS DISTINCT FROM f.created_at ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "its number is not the next one of its file",
        """SELECT m.customer_id, m.message_id
             FROM (SELECT *, row_number() OVER (PARTITION BY file_id
                                                ORDER BY send_at, message_id) - 1 AS nth
                     FROM wire_message WHERE file_id IS NOT NULL) m
             LEFT JOIN rail_file f ON f.file_id = m.file_id AND f.rail = 'WIRE'
                                  AND f.direction = 'OUT'
            WHERE m.imad IS DISTINCT FROM substr(f.name, 9, 16)
                  || lpad((substring(f.name FROM 25 FOR 6)::int + m.nth)::text, 6, '0')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "it has gone by halves",
        """SELECT customer_id, message_id FROM wire_message
            WHERE num_nulls(imad, file_id, sent_at) NOT IN (0, 3) OR sent_at < send_at
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire messages",
        "wire_message",
        "it waits, and nobody will send it",
        """SELECT m.customer_id, m.message_id FROM wire_message m
            WHERE m.file_id IS NULL AND NOT EXISTS (
              SELECT 1 FROM agenda a WHERE a.kind = 'wire.send'
                 AND (a.object_id = m.message_id OR a.at >= m.send_at))
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "wire messages",
        "wire_message",
        "nobody asked for that wire, or in other words",
        """SELECT m.customer_id, m.message_id FROM wire_message m
            WHERE m.kind IN ('camt.056', 'camt.029') AND NOT EXISTS (
              SELECT 1 FROM wire_case c
               WHERE c.customer_id = m.customer_id AND c.wire_id = m.wire_id
                 AND CASE m.kind WHEN 'camt.056'
                     THEN c.direction = 'OUTGOING' AND c.message::jsonb = m.terms::jsonb
                     ELSE c.direction = 'INCOMING' AND m.terms->>'case_id' = c.case_id END)
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "wire messages",
        "wire_sequence",
        "as many messages of this day have no number of it",
        """SELECT s.day FROM (SELECT day, last, to_char(day, 'YYYYMMDD') AS opens
                                FROM wire_sequence) s
             FULL JOIN (SELECT left(imad, 8) AS opens, count(*) AS last FROM wire_message
                         WHERE imad IS NOT NULL GROUP BY 1) m USING (opens)
            WHERE s.last IS DISTINCT FROM m.last ORDER BY 1 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "wire messages",
        "wire",
        "its number is not that of its message",
        """SELECT w.customer_id, w.wire_id FROM wire w
             LEFT JOIN wire_message m ON m.customer_id = w.customer_id AND m.wire_id = w.wire_id
                   AND m.kind LIKE 'pacs.%' LEFT JOIN rail_file f USING (file_id)
            WHERE w.direction = 'OUTGOING' AND w.imad IS DISTINCT FROM m.imad
              AND CASE WHEN w.imad IS NULL THEN f.state <> 'MADE' AND w.status <> 'REJECTED'
                       ELSE m.imad IS NOT NULL OR w.status = 'PENDING' END
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "wire messages",
        "wire",
        "it did not settle then",
        """SELECT w.customer_id, w.wire_id FROM wire w
            WHERE w.settled_at IS NOT NULL AND NOT EXISTS (
              SELECT 1 FROM command c WHERE c.customer_id = w.customer_id AND c.accepted
                 AND c.booked_at = w.settled_at AND c.outcome->>'wire_id' = w.wire_id::text)
              AND NOT EXISTS (
              SELECT 1 FROM journal j WHERE j.customer_id = w.customer_id
                 AND w.direction = 'INCOMING' AND j.journal_no = w.journal_no
                 AND j.booked_at = w.settled_at)
            ORDER BY 1, 2 LIMIT 100""",
    ),
)

_CASES = (
    Check(
        "wire cases",
        "wire_case",
        "it is about no wire of its direction",
        """SELECT c.direction, c.case_id FROM wire_case c
            WHERE NOT EXISTS (SELECT 1 FROM wire w WHERE w.customer_id = c.customer_id
                     AND w.wire_id = c.wire_id AND w.direction = c.direction)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire cases",
        "wire_case",
        "its state, its end and its message do not agree",
        """SELECT c.direction, c.case_id FROM wire_case c
            WHERE c.status NOT IN ('OPEN', 'ACCEPTED', 'REFUSED')
               OR (c.status = 'OPEN') <> (c.closed_at IS NULL) OR c.closed_at < c.opened_at
               OR c.message->>'case_id' IS DISTINCT FROM c.case_id
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire cases",
        "wire_case",
        "it was answered otherwise",
        """SELECT c.direction, c.case_id FROM wire_case c JOIN wire_message m
               ON m.customer_id = c.customer_id AND m.wire_id = c.wire_id AND m.kind = 'camt.029'
              AND m.terms->>'case_id' = c.case_id
            WHERE c.direction = 'INCOMING'
              AND c.status <> CASE m.terms->>'verdict' WHEN 'RJCR' THEN 'REFUSED'
                                   ELSE 'ACCEPTED' END
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wire cases",
        "wire_message",
        "it must be said about the wire, and is not there",
        """SELECT c.customer_id, c.wire_id FROM wire_case c
            WHERE (c.direction = 'OUTGOING' OR c.status <> 'OPEN') AND NOT EXISTS (
              SELECT 1 FROM wire_message m
               WHERE m.customer_id = c.customer_id AND m.wire_id = c.wire_id
                 AND m.kind = CASE c.direction WHEN 'OUTGOING' THEN 'camt.056'
                                   ELSE 'camt.029' END
                 AND m.terms->>'case_id' = c.case_id)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "wire cases",
        "wire_case",
        "a message is about it, and it is not there",
        """SELECT CASE m.kind WHEN 'camt.056' THEN 'OUTGOING' ELSE 'INCOMING' END AS direction,
                  m.terms->>'case_id' AS case_id FROM wire_message m
            WHERE m.kind LIKE 'camt.%' AND NOT EXISTS (
              SELECT 1 FROM wire_case c WHERE c.wire_id = m.wire_id)
              AND EXISTS (SELECT 1 FROM wire w
                           WHERE w.customer_id = m.customer_id AND w.wire_id = m.wire_id)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "wire cases",
        "wire_case",
        "the wire that was promised has not gone back",
        """SELECT c.direction, c.case_id FROM wire_case c
            WHERE c.direction = 'INCOMING' AND c.status = 'ACCEPTED' AND NOT EXISTS (
              SELECT 1 FROM wire w WHERE w.customer_id = c.customer_id
                 AND w.original_wire_id = c.wire_id)
            ORDER BY 1, 2 LIMIT 100""",
    ),
)

_SCHEDULED_JOBS = (
    Check(
        "agenda",
        "counterparty",
        "it waits for a wire, and nobody will end the waiting",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.status = 'PENDING' AND c.verification->>'type' = 'incoming_wire'
              AND NOT EXISTS (SELECT 1 FROM agenda a WHERE a.kind = 'counterparty.expire'
                                 AND a.object_id = c.counterparty_id)
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "agenda",
        "counterparty",
        "it waits for two deposits, and nobody will send them",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.status = 'PENDING' AND c.verification->>'type' = 'micro_deposits'
              AND NOT EXISTS (SELECT 1 FROM agenda a WHERE a.kind = 'ach.micro_deposits'
                                 AND a.object_id = c.counterparty_id)
              AND NOT EXISTS (SELECT 1 FROM ach_entry e
                               WHERE e.counterparty_id = c.counterparty_id)
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "agenda",
        "suspense_item",
        "it is held, and nobody will send it back",
        """SELECT i.customer_id, i.item_id FROM suspense_item i
            WHERE i.rail = 'ACH' AND i.status = 'HELD' AND i.details::jsonb ? 'answer'
              AND NOT EXISTS (SELECT 1 FROM agenda a
                               WHERE a.kind = 'ach.unclaimed' AND a.object_id = i.item_id)
            ORDER BY 1, 2 LIMIT 100""",
        SUSPECT,
    ),
    Check(
        "agenda",
        "counterparty",
        "its account is not the one of its details",
        """SELECT customer_id, counterparty_id FROM counterparty
            WHERE account_number IS DISTINCT FROM
                  coalesce(details->>'account_number', details->>'identifier')
            ORDER BY 1, 2 LIMIT 100""",
    ),
)


async def check_rail_files(conn: Connection, findings: Findings) -> None:
    """Compare files with what they hold, and see to it that nothing waits for nobody."""
    await run_checks(conn, findings, (*_FILES, *_MESSAGES, *_CASES, *_SCHEDULED_JOBS))
    for table in ("rail_file", "wire_case"):
        findings.checked[table] = await conn.fetchval(f"SELECT count(*) FROM {table}")
