"""Checks of on-us transfers: each equals its commands' outcomes and its transactions."""

from billfold.ledger.checks import TrackedTable, creation_checks, directory_checks
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform.database.checks import Certainty, declared, names_in_sql

_TRANSFERS = TrackedTable("transfer", "transfer_id", (TransferOnUs,), created_at="created_at")

_QUERIES = {
    ("transfer", Certainty.DERIVED): {
        "status is {status}, but its last command left {expected}, or other values differ": f"""
            SELECT t.customer_id, t.transfer_id, t.status, c.status AS expected FROM transfer t JOIN (
              SELECT DISTINCT ON (customer_id, outcome->>'transfer_id')
                     customer_id, outcome->>'transfer_id' AS id, outcome->>'status' AS status,
                     outcome->>'reason' AS reason, outcome->>'amount' AS amount
                FROM command WHERE accepted AND kind IN ({names_in_sql(TransferOnUs)})
               ORDER BY customer_id, outcome->>'transfer_id', version DESC) c
                ON c.customer_id = t.customer_id AND c.id = t.transfer_id::text
             WHERE (t.status, t.reason, t.amount::text) IS DISTINCT FROM (c.status, c.reason, c.amount)""",
        "partner differs from its payer's": """
            SELECT t.customer_id, t.transfer_id FROM transfer t JOIN customer c USING (customer_id)
             WHERE t.partner_id IS DISTINCT FROM c.partner_id""",
        "its Pocket is not the payer's": """
            SELECT t.customer_id, t.transfer_id FROM transfer t WHERE NOT EXISTS (
              SELECT 1 FROM pocket p
               WHERE p.customer_id = t.customer_id AND p.pocket_id = t.from_pocket_id)""",
        "the transactions that moved its money differ from it": """
            WITH moved AS (
              SELECT details->>'on_us_transfer_id' AS id,
                     details->>'on_us_transfer_type' AS type, direction = 'DEBIT' AS paid,
                     customer_id, pocket_id, amount
                FROM transaction WHERE type = 'ON_US'
              UNION ALL
              SELECT transfer_id::text, 'INTERNAL_REALLOCATION', NOT incoming, customer_id,
                     pocket_id, sum(notional)::bigint
                FROM trade WHERE transfer_id IS NOT NULL
               GROUP BY transfer_id, incoming, customer_id, pocket_id)
            SELECT t.customer_id, t.transfer_id FROM transfer t
              LEFT JOIN moved p ON p.id = t.transfer_id::text AND p.paid
              LEFT JOIN moved r ON r.id = t.transfer_id::text AND NOT r.paid
             WHERE CASE WHEN t.status = 'COMPLETED'
                   THEN (p.customer_id, p.pocket_id, p.amount, p.type, r.pocket_id, r.amount, r.type)
                        IS DISTINCT FROM (t.customer_id, t.from_pocket_id, t.amount, t.type,
                                          t.to_pocket_id, t.amount, t.type)
                   ELSE p.id IS NOT NULL OR r.id IS NOT NULL END""",
    },
    ("transaction", Certainty.DERIVED): {
        "its transfer is missing": """
            WITH a AS MATERIALIZED (
              SELECT customer_id, pocket_id, entry_no, posting_no, details->>'on_us_transfer_id' AS id
                FROM transaction WHERE type = 'ON_US'),
            t AS MATERIALIZED (SELECT transfer_id::text AS id FROM transfer)
            SELECT a.customer_id, a.pocket_id, a.entry_no, a.posting_no FROM a
             WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = a.id)"""
    },
}
CHECKS = (*creation_checks(_TRANSFERS), *directory_checks(_TRANSFERS), *declared(_QUERIES))
COUNTED = ("transfer",)
