"""Wires: what the commands said of each is what its row says, and the money moved accordingly."""

from __future__ import annotations

from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.wires.commands import (
    CompleteWire,
    ReceiveWireReturn,
    RejectWire,
    ReturnWire,
    SendWire,
    SubmitWire,
)
from billfold.verify.query_check import Check, names_in_sql
from billfold.verify.report import MISSING

WIRE_COMMANDS = (SendWire, SubmitWire, CompleteWire, RejectWire, ReceiveMoney, ReceiveWireReturn, ReturnWire)
"""Commands whose outcome says what a wire is from then on."""

WIRE_OUTCOMES = """
(SELECT customer_id, kind, accepted, booked_at, version, outcome->>'wire_id' AS wire_id,
        outcome->>'status' AS status, outcome->>'reason' AS reason
   FROM command
  UNION ALL
 SELECT (outcome->>'owner_id')::uuid, 'ReceiveMoney', accepted, booked_at, version,
        outcome->>'wire_id', 'COMPLETED', NULL
   FROM command WHERE accepted AND kind = 'AssignFromSuspense' AND outcome->>'wire_id' IS NOT NULL)
"""
"""What commands say of wires. What the house held and assigns is its owner's wire."""
_KINDS = names_in_sql(*WIRE_COMMANDS)

WIRE_CHECKS = (
    Check(
        "commands",
        "wire",
        "its last command said something else became of it",
        f"""SELECT w.customer_id, w.wire_id FROM wire w JOIN (
             SELECT DISTINCT ON (customer_id, id) *
               FROM (SELECT customer_id, wire_id AS id, version, status, reason
                       FROM {WIRE_OUTCOMES} t WHERE accepted AND kind IN ({_KINDS})) c
              ORDER BY customer_id, id, version DESC) c
               ON c.customer_id = w.customer_id AND c.id = w.wire_id::text
            WHERE (w.status, w.reason) IS DISTINCT FROM (c.status, c.reason)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wires",
        "wire",
        "what moved is not what it says",
        """WITH moved AS (
             SELECT customer_id, pocket_id, journal_no, amount, details->>'wire_id' AS id,
                    details->>'wire_type' AS type, direction
               FROM activity WHERE type = 'WIRE' AND details->>'wire_type' <> 'REVERSAL')
           SELECT w.customer_id, w.wire_id FROM wire w
             LEFT JOIN moved m ON m.customer_id = w.customer_id AND m.id = w.wire_id::text
            WHERE (w.journal_no, w.pocket_id, w.amount, w.wire_type,
                   CASE w.direction WHEN 'OUTGOING' THEN 'DEBIT' ELSE 'CREDIT' END)
                  IS DISTINCT FROM (m.journal_no, m.pocket_id, m.amount, m.type, m.direction)
              AND NOT (w.journal_no IS NULL AND m.id IS NULL AND w.status = 'REJECTED')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wires",
        "wire",
        "it went out and was rejected, and the money has not come back",
        """SELECT w.customer_id, w.wire_id FROM wire w
            WHERE w.direction = 'OUTGOING' AND w.journal_no IS NOT NULL
              AND (w.status = 'REJECTED') <> EXISTS (
                SELECT 1 FROM activity a WHERE a.customer_id = w.customer_id AND a.type = 'WIRE'
                   AND a.details->>'wire_id' = w.wire_id::text
                   AND a.details->>'wire_type' = 'REVERSAL' AND a.amount = w.amount
                UNION ALL
                SELECT 1 FROM suspense_item s WHERE s.details->>'wire_id' = w.wire_id::text
                   AND s.amount - coalesce((s.details->>'fee')::bigint, 0) = w.amount
                   AND coalesce((s.details->>'fee')::bigint, w.fee) = w.fee)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wires",
        "wire",
        "it returns a wire that is not there, or more than that",
        """SELECT w.customer_id, w.wire_id FROM wire w
            WHERE w.original_wire_id IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM wire o WHERE o.customer_id = w.customer_id
                   AND o.wire_id = w.original_wire_id
                   AND w.amount BETWEEN CASE w.direction WHEN 'INCOMING' THEN 1 ELSE o.amount END
                                    AND o.amount
                   AND o.direction <> w.direction)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "wires",
        "wire",
        "it waits to be sent, and its message is not there",
        """SELECT w.customer_id, w.wire_id FROM wire w
            WHERE w.direction = 'OUTGOING' AND w.journal_no IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM wire_message m WHERE m.wire_id = w.wire_id
                   AND m.kind = CASE w.wire_type WHEN 'RETURN' THEN 'pacs.004' ELSE 'pacs.008' END)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
)
