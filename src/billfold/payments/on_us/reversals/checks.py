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
            SELECT t.customer_id, t.transfer_id FROM transfer t
              LEFT JOIN transfer o ON o.transfer_id = t.reverses_id AND o.from_pocket_id = t.to_pocket_id
                AND o.to_pocket_id = t.from_pocket_id AND o.status = 'COMPLETED' AND o.reverses_id IS NULL
             WHERE t.reverses_id IS NOT NULL AND t.status = 'COMPLETED' AND (o.transfer_id IS NULL OR o.amount < (
               SELECT sum(r.amount) FROM transfer r
                WHERE r.customer_id = t.customer_id AND r.reverses_id = t.reverses_id AND r.status = 'COMPLETED'))""",
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
