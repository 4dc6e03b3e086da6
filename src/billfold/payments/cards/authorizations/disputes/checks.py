"""Checks of disputes: created by a command, of a purchase of their card, and explaining what the bank has advanced."""

from billfold.ledger.checks import TrackedTable, account_total, change_check, creation_checks, directory_checks
from billfold.payments.cards.authorizations.disputes.commands import OpenDispute
from billfold.platform.database.checks import Certainty, declared

_DISPUTE = TrackedTable("card_dispute", "dispute_id", (OpenDispute,), created_at="created_at")
_QUERIES = {
    ("card_dispute", Certainty.DERIVED): {
        "its purchase is missing, of another card, or disputed for more than its amount": """
            SELECT d.customer_id, d.dispute_id FROM card_dispute d
              LEFT JOIN card_payment p ON p.customer_id = d.customer_id AND p.record_id = d.record_id
               AND p.kind = 'PURCHASE' AND p.card_id = d.card_id AND p.pocket_id = d.pocket_id
             WHERE p.record_id IS NULL OR p.amount < (
               SELECT sum(CASE s.status WHEN 'WITHDRAWN' THEN s.recovered ELSE s.amount END) FROM card_dispute s
                WHERE s.customer_id = d.customer_id AND s.record_id = d.record_id)""",
        "{advanced} cents are advanced or written off, but its transactions explain {expected}": """
            SELECT d.customer_id, d.dispute_id, d.advanced + coalesce(d.written_off, 0) AS advanced,
                   coalesce(t.cents, 0) AS expected FROM card_dispute d
              LEFT JOIN (SELECT customer_id, details->>'dispute_id' AS dispute_id,
                                sum(CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END)::bigint AS cents
                           FROM transaction WHERE type = 'GENERIC' AND details->>'dispute_id' IS NOT NULL
                          GROUP BY 1, 2) t ON t.customer_id = d.customer_id AND t.dispute_id = d.dispute_id::text
             WHERE d.advanced + coalesce(d.written_off, 0) <> coalesce(t.cents, 0)""",
        "nothing will decide it in time: no job is scheduled": """
            SELECT d.customer_id, d.dispute_id FROM card_dispute d
             WHERE d.status IN ('OPENED', 'PROVISIONALLY_CREDITED') AND NOT EXISTS (
               SELECT 1 FROM scheduled_job j WHERE j.kind = 'card.dispute' AND j.object_id = d.dispute_id
                  AND j.customer_id = d.customer_id)""",
    },
}
CHECKS = (
    *creation_checks(_DISPUTE),
    *directory_checks(_DISPUTE),
    change_check("card_dispute", "updated_at", "dispute_id"),
    *declared(_QUERIES),
    account_total("disputes", "SELECT -sum(advanced) FROM card_dispute"),
)
COUNTED = ("card_dispute",)
