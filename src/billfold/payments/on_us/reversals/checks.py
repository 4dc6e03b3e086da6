"""Checks of reversals: each pays back a transfer of the opposite way, together no more than that; requests follow."""

from billfold.ledger.checks import TrackedTable, creation_checks, directory_checks
from billfold.payments.on_us.reversals.commands import RequestReversal
from billfold.platform.database.checks import Certainty, declared

_REQUEST = TrackedTable("reversal_request", "reversal_id", (RequestReversal,), created_at="created_at")
_QUERIES = {
    ("transfer", Certainty.DERIVED): {
        "it reverses another transfer than its order": """
            SELECT t.customer_id, t.transfer_id FROM transfer t
             WHERE t.reverses_id::text IS DISTINCT FROM t.request->>'reverses'""",
        "it does not go the way back of the transfer that it reverses, or pays back more": """
            WITH t AS MATERIALIZED (
              SELECT customer_id, transfer_id, reverses_id, from_pocket_id, to_pocket_id,
                     sum(amount) OVER (PARTITION BY customer_id, reverses_id) AS paid_back
                FROM transfer WHERE reverses_id IS NOT NULL AND status = 'COMPLETED'),
            o AS MATERIALIZED (
              SELECT transfer_id, from_pocket_id, to_pocket_id, amount FROM transfer
               WHERE transfer_id IN (SELECT reverses_id FROM t) AND status = 'COMPLETED' AND reverses_id IS NULL)
            SELECT t.customer_id, t.transfer_id FROM t
              LEFT JOIN o ON o.transfer_id = t.reverses_id AND o.from_pocket_id = t.to_pocket_id
                AND o.to_pocket_id = t.from_pocket_id
             WHERE o.transfer_id IS NULL OR o.amount < t.paid_back""",
    },
    ("reversal_request", Certainty.DERIVED): {
        "no transfer paid what was accepted, or one did though it was not": """
            SELECT q.customer_id, q.reversal_id FROM reversal_request q
              LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.reversed_by
               AND t.reverses_id = q.transfer_id AND t.amount = q.amount AND t.status = 'COMPLETED'
             WHERE (q.status = 'ACCEPTED') <> (t.transfer_id IS NOT NULL)""",
    },
}
CHECKS = (*creation_checks(_REQUEST), *directory_checks(_REQUEST), *declared(_QUERIES))
COUNTED = ("reversal_request",)
