"""Checks of wires, their messages and recalls: rows equal the outcomes of commands, and the money moved accordingly."""

from billfold.ledger.checks import TrackedTable, change_check, creation_checks, directory_checks
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.payments.suspense.rules import AssignFromSuspense
from billfold.payments.wires.commands import (
    CancelWire,
    CompleteWire,
    HoldWire,
    ReceiveWireReturn,
    RejectWire,
    ReleaseWire,
    ReturnWire,
    SendWire,
    SubmitWire,
)
from billfold.platform.database.checks import Certainty, declared, names_in_sql

WIRE_COMMANDS = (
    SendWire,
    HoldWire,
    ReleaseWire,
    SubmitWire,
    CompleteWire,
    RejectWire,
    CancelWire,
    ReceiveMoney,
    ReceiveWireReturn,
    ReturnWire,
)
"""Commands whose outcome has the new state of a wire."""

WIRE_OUTCOMES = f"""
(SELECT customer_id, kind, accepted, booked_at, version, outcome->>'wire_id' AS wire_id,
        outcome->>'status' AS status, outcome->>'reason' AS reason
   FROM command
  UNION ALL
 SELECT (outcome->>'owner_id')::uuid, '{ReceiveMoney.__name__}', accepted, booked_at, version,
        outcome->>'wire_id', 'COMPLETED', NULL
   FROM command WHERE accepted AND kind IN ({names_in_sql(AssignFromSuspense)}) AND outcome->>'wire_id' IS NOT NULL)
"""
"""Outcomes about wires. A payment that the bank assigns from suspense is a wire of its owner."""
_WIRE = "SELECT w.customer_id, w.wire_id FROM wire w"
_MESSAGE = "SELECT m.customer_id, m.message_id FROM wire_message m"
_CASE = "SELECT c.direction, c.case_id FROM wire_case c"
# The command that assigned it from suspense is the bank's; its money is in a journal entry of the owner.
_IS_ASSIGNED = """EXISTS (SELECT 1 FROM journal_entry j WHERE j.customer_id = t.customer_id
                    AND j.entry_no = t.entry_no AND j.booked_at = t.updated_at)"""
_KINDS = names_in_sql(*WIRE_COMMANDS)

_WIRES = {
    ("wire", Certainty.DERIVED): {
        "status is {status}, but its last command left {expected}, or other values differ": f"""
            SELECT w.customer_id, w.wire_id, w.status, c.status AS expected FROM wire w JOIN (
              SELECT DISTINCT ON (customer_id, wire_id) customer_id, wire_id AS id, status, reason
                FROM {WIRE_OUTCOMES} t WHERE accepted AND kind IN ({_KINDS})
               ORDER BY customer_id, wire_id, version DESC) c
                ON c.customer_id = w.customer_id AND c.id = w.wire_id::text
             WHERE (w.status, w.reason) IS DISTINCT FROM (c.status, c.reason)""",
        "the transactions that moved its money differ from it": """
            WITH moved AS (
              SELECT customer_id, pocket_id, entry_no, amount, details->>'wire_id' AS id,
                     details->>'wire_type' AS type, direction
                FROM transaction WHERE type = 'WIRE' AND details->>'wire_type' <> 'REVERSAL')
            SELECT w.customer_id, w.wire_id FROM wire w
              LEFT JOIN moved m ON m.customer_id = w.customer_id AND m.id = w.wire_id::text
             WHERE (w.entry_no, w.pocket_id, w.amount, w.wire_type,
                    CASE w.direction WHEN 'OUTGOING' THEN 'DEBIT' ELSE 'CREDIT' END)
                   IS DISTINCT FROM (m.entry_no, m.pocket_id, m.amount, m.type, m.direction)
               AND NOT (w.entry_no IS NULL AND m.id IS NULL AND w.status = 'REJECTED')""",
        "its status contradicts the reversal of its money": f"""
            {_WIRE} LEFT JOIN (
              SELECT DISTINCT customer_id, details->>'wire_id' AS id, amount FROM transaction
               WHERE type = 'WIRE' AND details->>'wire_type' = 'REVERSAL') a
                ON a.customer_id = w.customer_id AND a.id = w.wire_id::text AND a.amount = w.amount
              LEFT JOIN (
              SELECT DISTINCT details->>'wire_id' AS id, amount, (details->>'fee')::bigint AS fee FROM suspense_item) s
                ON s.id = w.wire_id::text AND s.amount - coalesce(s.fee, 0) = w.amount
               AND coalesce(s.fee, w.fee) = w.fee
             WHERE w.direction = 'OUTGOING' AND w.entry_no IS NOT NULL
               AND (w.status = 'REJECTED') <> (a.id IS NOT NULL OR s.id IS NOT NULL)""",
        "it returns a missing wire, or more than its amount": f"""
            {_WIRE} WHERE w.original_wire_id IS NOT NULL AND NOT EXISTS (
                 SELECT 1 FROM wire o WHERE o.customer_id = w.customer_id
                    AND o.wire_id = w.original_wire_id
                    AND w.amount BETWEEN CASE w.direction WHEN 'INCOMING' THEN 1 ELSE o.amount END
                                     AND o.amount
                    AND o.direction <> w.direction)""",
        "its returns come to more than its amount": f"""
            {_WIRE} WHERE w.original_wire_id IS NULL AND w.amount < (
                 SELECT sum(r.amount) FROM wire r WHERE r.customer_id = w.customer_id
                    AND r.original_wire_id = w.wire_id AND r.status <> 'REJECTED')""",
    },
    ("wire", Certainty.MISSING): {
        "it is to be sent, and its message is missing": f"""
            {_WIRE} WHERE w.direction = 'OUTGOING' AND w.entry_no IS NOT NULL AND NOT EXISTS (
                 SELECT 1 FROM wire_message m WHERE m.wire_id = w.wire_id
                    AND m.kind = CASE w.wire_type WHEN 'RETURN' THEN 'pacs.004' ELSE 'pacs.008' END)"""
    },
}

# The numbers of a day continue from file to file; a file's name contains its first number.
_MESSAGES = {
    ("wire_message", Certainty.DERIVED): {
        "its file is missing": f"""
            {_MESSAGE} WHERE m.file_id IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM rail_file f WHERE f.file_id = m.file_id AND f.rail = 'WIRE'
                  AND f.direction = 'OUT')""",
        "its wire is missing": f"""
            {_MESSAGE} WHERE CASE WHEN m.customer_id = (SELECT bank_customer_id FROM bank)
                   THEN m.kind <> 'pacs.004' OR NOT EXISTS (
                     SELECT 1 FROM suspense_item i
                      WHERE i.item_id = m.wire_id AND i.rail = 'WIRE' AND i.status = 'RETURNED'
                        AND m.terms->>'amount' = i.amount::text)
                   ELSE NOT EXISTS (
                     SELECT 1 FROM wire w
                      WHERE w.customer_id = m.customer_id AND w.wire_id = m.wire_id) END""",
        "its send time is after its wire's": f"""
            {_MESSAGE} JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
             WHERE m.send_at > w.send_at AND m.kind LIKE 'pacs.%'""",
        "sent_at differs from its file's creation": f"""
            {_MESSAGE} JOIN rail_file f USING (file_id)
             WHERE m.sent_at IS DISTINCT FROM f.created_at""",
        "its IMAD is not the next one of its file": """
            SELECT m.customer_id, m.message_id
              FROM (SELECT *, row_number() OVER (PARTITION BY file_id
                                                 ORDER BY send_at, message_id) - 1 AS nth
                      FROM wire_message WHERE file_id IS NOT NULL) m
              LEFT JOIN rail_file f ON f.file_id = m.file_id AND f.rail = 'WIRE'
                                   AND f.direction = 'OUT'
             WHERE m.imad IS DISTINCT FROM substr(f.name, 9, 16)
                   || lpad((substring(f.name FROM 25 FOR 6)::int + m.nth)::text, 6, '0')""",
        "sent_at is {sent_at}, before its time {send_at}": """
            SELECT customer_id, message_id, sent_at, send_at FROM wire_message
             WHERE sent_at < send_at""",
    },
    ("wire_message", Certainty.SUSPECT): {
        "it is queued, and no job will send it": f"""
            {_MESSAGE} WHERE m.file_id IS NULL AND NOT EXISTS (
               SELECT 1 FROM scheduled_job a WHERE a.kind = 'wire.send'
                  AND (a.object_id = m.message_id OR a.due_at >= m.send_at))
               AND NOT EXISTS (SELECT 1 FROM wire w
                                WHERE w.customer_id = m.customer_id AND w.wire_id = m.wire_id
                                  AND w.direction = 'OUTGOING' AND w.status = 'REJECTED' AND m.kind = 'pacs.008')""",
        "it differs from its recall case, or the case is missing": f"""
            {_MESSAGE} WHERE m.kind IN ('camt.056', 'camt.029') AND NOT EXISTS (
               SELECT 1 FROM wire_case c
                WHERE c.customer_id = m.customer_id AND c.wire_id = m.wire_id
                  AND CASE m.kind WHEN 'camt.056'
                      THEN c.direction = 'OUTGOING' AND c.message::jsonb = m.terms::jsonb
                      ELSE c.direction = 'INCOMING' AND m.terms->>'case_id' = c.case_id END)""",
    },
    ("wire_sequence", Certainty.SUSPECT): {
        "it differs from the messages sent on its day": """
            SELECT s.day FROM (SELECT day, last, to_char(day, 'YYYYMMDD') AS opens
                                 FROM wire_sequence) s
              FULL JOIN (SELECT left(imad, 8) AS opens, count(*) AS last FROM wire_message
                          WHERE imad IS NOT NULL GROUP BY 1) m USING (opens)
             WHERE s.last IS DISTINCT FROM m.last"""
    },
    ("wire", Certainty.SUSPECT): {
        "its IMAD differs from its message's": f"""
            {_WIRE} LEFT JOIN wire_message m ON m.customer_id = w.customer_id AND m.wire_id = w.wire_id
                    AND m.kind LIKE 'pacs.%' LEFT JOIN rail_file f USING (file_id)
             WHERE w.direction = 'OUTGOING' AND w.imad IS DISTINCT FROM m.imad
               AND CASE WHEN w.imad IS NULL THEN f.state <> 'CREATED' AND w.status <> 'REJECTED'
                        ELSE m.imad IS NOT NULL OR w.status = 'PENDING' END"""
    },
    ("wire", Certainty.DERIVED): {
        "no command or journal was booked at its settled_at": f"""
            {_WIRE} WHERE w.settled_at IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM command c WHERE c.customer_id = w.customer_id AND c.accepted
                  AND c.booked_at = w.settled_at AND c.outcome->>'wire_id' = w.wire_id::text)
               AND NOT EXISTS (
               SELECT 1 FROM journal_entry j WHERE j.customer_id = w.customer_id
                  AND w.direction = 'INCOMING' AND j.entry_no = w.entry_no
                  AND j.booked_at = w.settled_at)"""
    },
}

_CASES = {
    ("wire_case", Certainty.DERIVED): {
        "its wire is missing or has another direction": f"""
            {_CASE} WHERE NOT EXISTS (SELECT 1 FROM wire w WHERE w.customer_id = c.customer_id
                      AND w.wire_id = c.wire_id AND w.direction = c.direction)""",
        "it was closed before it was opened, or its message names another case": f"""
            {_CASE} WHERE c.closed_at < c.opened_at
                OR c.message->>'case_id' IS DISTINCT FROM c.case_id""",
        "its status differs from the answer that was sent": f"""
            {_CASE} JOIN wire_message m
                ON m.customer_id = c.customer_id AND m.wire_id = c.wire_id AND m.kind = 'camt.029'
               AND m.terms->>'case_id' = c.case_id
             WHERE c.direction = 'INCOMING'
               AND c.status <> CASE m.terms->>'verdict' WHEN 'RJCR' THEN 'REFUSED'
                                    ELSE 'ACCEPTED' END""",
        "it is accepted, and its wire has not been returned": f"""
            {_CASE} WHERE c.direction = 'INCOMING' AND c.status = 'ACCEPTED' AND NOT EXISTS (
               SELECT 1 FROM wire w WHERE w.customer_id = c.customer_id
                  AND w.original_wire_id = c.wire_id)""",
    },
    ("wire_message", Certainty.MISSING): {
        "the case requires it, and it is missing": """
            SELECT c.customer_id, c.wire_id FROM wire_case c
             WHERE (c.direction = 'OUTGOING' OR c.status <> 'OPEN') AND NOT EXISTS (
               SELECT 1 FROM wire_message m
                WHERE m.customer_id = c.customer_id AND m.wire_id = c.wire_id
                  AND m.kind = CASE c.direction WHEN 'OUTGOING' THEN 'camt.056'
                                    ELSE 'camt.029' END
                  AND m.terms->>'case_id' = c.case_id)"""
    },
    ("wire_case", Certainty.MISSING): {
        "a message refers to it, and it is missing": """
            SELECT CASE m.kind WHEN 'camt.056' THEN 'OUTGOING' ELSE 'INCOMING' END AS direction,
                   m.terms->>'case_id' AS case_id FROM wire_message m
             WHERE m.kind LIKE 'camt.%' AND NOT EXISTS (
               SELECT 1 FROM wire_case c WHERE c.wire_id = m.wire_id)
               AND EXISTS (SELECT 1 FROM wire w
                            WHERE w.customer_id = m.customer_id AND w.wire_id = m.wire_id)"""
    },
}

_TRACKED = TrackedTable(
    "wire", "wire_id", WIRE_COMMANDS, created_at="created_at", outcomes=f"{WIRE_OUTCOMES} t", id_in_outcome="wire_id"
)

CHECKS = (
    *creation_checks(_TRACKED),
    *directory_checks(_TRACKED),
    change_check("wire", "updated_at", "wire_id", unless=_IS_ASSIGNED),
    *declared(_WIRES, _MESSAGES, _CASES),
)
COUNTED = ("wire", "wire_case")
