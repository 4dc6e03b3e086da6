"""Checks of holds and card payments: their rows equal the reservations and transactions in the ledger.

A message approved after it had been declined is reversed, or a scheduled job will reverse it.
"""

from billfold.ledger.checks import TrackedTable, change_check, creation_checks
from billfold.payments.cards.authorizations import commands
from billfold.platform.database.checks import Certainty, Findings, declared
from billfold.platform.database.connection import Connection
from billfold.platform.ids import command_id

_AUTHORIZATION, _PAYMENT, _LIMITS = "card_authorization", "card_payment", "card_limits"
_HOLD = f"SELECT h.customer_id, h.authorization_id FROM {_AUTHORIZATION} h"
_PAID = f"SELECT p.customer_id, p.record_id FROM {_PAYMENT} p"
_QUERIES = {
    (_AUTHORIZATION, Certainty.DERIVED): {
        "its transaction does not show what it holds": f"""
            {_HOLD} WHERE h.remaining > 0 AND NOT EXISTS (
              SELECT 1 FROM transaction a JOIN posting l USING (customer_id, entry_no, posting_no)
               WHERE a.customer_id = h.customer_id AND a.pocket_id = h.pocket_id AND a.entry_no = h.hold_entry_no
                 AND a.type = 'CARD' AND NOT a.swept AND a.transaction_id = h.transaction_id AND l.phase = 1
                 AND a.amount = h.remaining AND a.details->>'card_id' = h.card_id::text)""",
        "what was cleared differs from its payments": f"""
            {_HOLD} WHERE h.cleared <> (
              SELECT coalesce(sum(p.amount), 0) FROM {_PAYMENT} p
               WHERE p.customer_id = h.customer_id AND p.authorization_id = h.authorization_id)""",
        "it holds money, and its expiry is not scheduled": f"""
            {_HOLD} WHERE h.remaining > 0 AND NOT EXISTS (
              SELECT 1 FROM scheduled_job j
               WHERE j.kind = '{commands.EXPIRY_JOB}' AND j.object_id = h.authorization_id
                 AND j.customer_id = h.customer_id AND j.due_at = h.expires_at)""",
        "its card is of another Pocket": f"""
            {_HOLD} WHERE NOT EXISTS (SELECT 1 FROM card c
              WHERE c.customer_id = h.customer_id AND c.card_id = h.card_id AND c.pocket_id = h.pocket_id)""",
    },
    (_PAYMENT, Certainty.DERIVED): {
        "its transaction differs": f"""
            {_PAID} WHERE NOT EXISTS (
              SELECT 1 FROM transaction a
               WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id AND a.entry_no = p.entry_no
                 AND a.type = 'CARD' AND a.swept AND a.transaction_id = p.transaction_id AND a.amount = p.amount
                 AND a.details->>'card_id' = p.card_id::text
                 AND a.direction = CASE WHEN p.kind IN ('REFUND', 'CHARGEBACK') THEN 'CREDIT' ELSE 'DEBIT' END)""",
        "what is disputed differs from its chargebacks": f"""
            {_PAID} WHERE p.disputed <> (
              SELECT coalesce(sum(CASE d.kind WHEN 'CHARGEBACK' THEN d.amount ELSE -d.amount END), 0)
                FROM {_PAYMENT} d WHERE d.customer_id = p.customer_id AND d.original_id = p.record_id)""",
        "no authorization has cleared it": f"""
            {_PAID} WHERE p.authorization_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {_AUTHORIZATION} h
              WHERE h.customer_id = p.customer_id AND h.authorization_id = p.authorization_id
                AND h.card_id = p.card_id)""",
    },
    ("transaction", Certainty.DERIVED): {
        "no record of the card processor's settlement explains it": f"""
            SELECT a.customer_id, a.pocket_id, a.entry_no, a.posting_no FROM transaction a
             WHERE a.type = 'CARD' AND a.swept AND NOT EXISTS (SELECT 1 FROM {_PAYMENT} p
               WHERE p.customer_id = a.customer_id AND p.entry_no = a.entry_no)"""
    },
    ("account", Certainty.SUSPECT): {
        "{reserved} cents are reserved, but payments by card hold {held}": f"""
            SELECT a.customer_id, a.account_no, a.reserved, coalesce(h.held, 0)::bigint AS held FROM account a
              LEFT JOIN (SELECT customer_id, pocket_id, sum(remaining) AS held FROM {_AUTHORIZATION}
                          GROUP BY customer_id, pocket_id) h USING (customer_id, pocket_id)
             WHERE a.kind = 'cash' AND a.reserved <> coalesce(h.held, 0)"""
    },
}
CHECKS = (
    *creation_checks(
        TrackedTable(
            _AUTHORIZATION,
            "authorization_id",
            (commands.AuthorizeCard, commands.ReverseAuthorization, commands.ClearCard),
            created_at="created_at",
        )
    ),
    *creation_checks(
        TrackedTable(
            _PAYMENT,
            "record_id",
            (commands.ClearCard, commands.RefundCard, commands.ChargeBack, commands.Represent),
            created_at="created_at",
        )
    ),
    *creation_checks(TrackedTable(_LIMITS, "card_id", (commands.SetCardLimits,), created_at="created_at")),
    change_check(_AUTHORIZATION, "updated_at", "authorization_id"),
    change_check(_PAYMENT, "updated_at", "record_id"),
    *declared(_QUERIES),
)
_LATE_MESSAGES = f"""
SELECT m.customer_id, m.message_id FROM card_late_message m
 WHERE NOT EXISTS (SELECT 1 FROM scheduled_job j
        WHERE j.kind = '{commands.LATE_JOB}' AND j.object_id = m.message_id AND j.customer_id = m.customer_id)
"""
_APPROVED = """
SELECT d.customer_id, d.message_id, (c.outcome->>'approved_amount')::bigint AS cents, r.command_id AS reversed_by
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) AS d(customer_id, message_id, decided_by, reversed_by)
  LEFT JOIN command c ON c.customer_id = d.customer_id AND c.command_id = d.decided_by
  LEFT JOIN command r ON r.customer_id = d.customer_id AND r.command_id = d.reversed_by
"""


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Find messages that were declined as too late but still hold money."""
    late = await conn.fetch(_LATE_MESSAGES)
    decided, reversals = (
        [command_id(who, each["message_id"]) for each in late] for who in (commands.PROCESSOR, commands.LATE)
    )
    keys = [[each[name] for each in late] for name in ("customer_id", "message_id")]
    for each in await conn.fetch(_APPROVED, *keys, decided, reversals):
        if each["cents"] is None or (each["cents"] and each["reversed_by"] is None):
            what = "was not decided" if each["cents"] is None else "was not reversed"
            key = {"customer_id": each["customer_id"], "message_id": each["message_id"]}
            findings.add("card_late_message", key, f"it came too late and {what}, and no job is scheduled to do it")


COUNTED = (_AUTHORIZATION, _PAYMENT, _LIMITS)
