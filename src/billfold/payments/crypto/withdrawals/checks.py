"""Withdrawals: rows equal the outcomes of commands, their money moved once, and chains hold what paid them."""

from billfold.ledger.checks import TrackedTable, change_check, creation_checks, directory_checks
from billfold.payments.crypto.withdrawals.commands import (
    CompleteWithdrawal,
    RejectWithdrawal,
    SendUsdc,
    SubmitWithdrawal,
)
from billfold.platform.checks import Certainty, declared, names_in_sql

_TABLE, _ON_CHAIN, _SIGNED = "crypto_withdrawal", "crypto_transaction", "crypto_signature"
_WITHDRAWAL = "SELECT w.customer_id, w.withdrawal_id FROM crypto_withdrawal w"
_TRANSACTION = "SELECT t.customer_id, t.withdrawal_id FROM crypto_transaction t"
_KINDS = names_in_sql(SendUsdc, SubmitWithdrawal, CompleteWithdrawal, RejectWithdrawal)
_QUERIES = {
    (_TABLE, Certainty.DERIVED): {
        "status is {status}, but its last command left {expected}, or other values differ": f"""
            SELECT w.customer_id, w.withdrawal_id, w.status, c.outcome->>'status' AS expected
              FROM crypto_withdrawal w JOIN (
                SELECT DISTINCT ON (customer_id, outcome->>'withdrawal_id') * FROM command
                 WHERE accepted AND kind IN ({_KINDS}) AND outcome->>'withdrawal_id' IS NOT NULL
                 ORDER BY customer_id, outcome->>'withdrawal_id', version DESC) c
                ON c.customer_id = w.customer_id AND c.outcome->>'withdrawal_id' = w.withdrawal_id::text
             WHERE (w.status, w.reason) IS DISTINCT FROM (c.outcome->>'status', c.outcome->>'reason')
                OR w.status IN ('COMPLETED', 'REJECTED')
                   AND w.transaction_hash IS DISTINCT FROM c.outcome->>'transaction_hash'""",
        "the transactions that moved its money differ from it": f"""
            {_WITHDRAWAL} LEFT JOIN LATERAL (
              SELECT count(*) FILTER (WHERE direction = 'DEBIT' AND entry_no = w.entry_no) AS sent,
                     count(*) FILTER (WHERE direction = 'CREDIT') AS returned, count(*) AS moved,
                     bool_and(amount = w.amount AND pocket_id = w.pocket_id AND type = 'GENERIC') AS is_equal
                FROM transaction m WHERE m.customer_id = w.customer_id
                 AND m.details->>'crypto_transfer_id' = w.withdrawal_id::text) m ON true
             WHERE (m.sent, m.returned, m.moved, m.is_equal) IS DISTINCT FROM
                   (1::bigint, CASE w.status WHEN 'REJECTED' THEN 1 ELSE 0 END::bigint,
                    CASE w.status WHEN 'REJECTED' THEN 2 ELSE 1 END::bigint, true)""",
        "its status contradicts what became of it on its chain": f"""
            {_WITHDRAWAL} LEFT JOIN crypto_transaction t USING (customer_id, withdrawal_id)
             WHERE CASE w.status
                   WHEN 'COMPLETED' THEN t.state IS DISTINCT FROM 'CONFIRMED'
                   WHEN 'REJECTED' THEN coalesce(t.state NOT IN ('REFUSED', 'REVERTED', 'CANCELED', 'DISPLACED'), true)
                                     OR t.reason IS DISTINCT FROM w.reason
                   WHEN 'PROCESSING' THEN coalesce(t.state IN ('REFUSED', 'RESERVED'), true)
                   ELSE false END
                OR w.status IN ('COMPLETED', 'REJECTED') AND t.transaction_hash IS DISTINCT FROM w.transaction_hash
                OR t.chain IS DISTINCT FROM w.chain AND t.chain IS NOT NULL""",
    },
    (_ON_CHAIN, Certainty.DERIVED): {
        "its final transaction was not signed for it, or says otherwise": f"""
            {_TRANSACTION} LEFT JOIN crypto_signature s USING (customer_id, withdrawal_id, transaction_hash)
             WHERE CASE t.state
                   WHEN 'CANCELED' THEN s.intent IS DISTINCT FROM 'CANCEL'
                   WHEN 'REVERTED' THEN coalesce(s.intent <> 'PAY', false)
                   WHEN 'CONFIRMED' THEN coalesce(s.intent <> 'PAY', false)
                   WHEN 'DISPLACED' THEN s.intent IS NOT NULL
                   ELSE false END""",
        "its nonce is none that the wallet has given": f"""
            {_TRANSACTION} JOIN crypto_wallet v ON v.chain = t.chain AND v.address = t.wallet
             WHERE t.nonce NOT BETWEEN v.first_nonce AND v.next_nonce - 1""",
        "its state is {state}, and what was signed for it says otherwise": """
            SELECT t.customer_id, t.withdrawal_id, t.state FROM crypto_transaction t
             WHERE (t.state NOT IN ('REFUSED', 'RESERVED')) <> EXISTS (
                   SELECT FROM crypto_signature s
                    WHERE s.customer_id = t.customer_id AND s.withdrawal_id = t.withdrawal_id)""",
    },
    (_SIGNED, Certainty.SUSPECT): {
        "the attempt before it is missing, or paid as much": """
            SELECT s.customer_id, s.withdrawal_id, s.attempt FROM crypto_signature s
              LEFT JOIN crypto_signature b ON b.customer_id = s.customer_id AND b.withdrawal_id = s.withdrawal_id
                    AND b.attempt = s.attempt - 1
             WHERE s.attempt > 1 AND (b.attempt IS NULL OR b.max_fee >= s.max_fee
                   OR b.intent = 'CANCEL' AND s.intent <> 'CANCEL')""",
    },
}
_TRACKED = TrackedTable(_TABLE, "withdrawal_id", (SendUsdc,), created_at="created_at")

CHECKS = (
    *creation_checks(_TRACKED),
    *directory_checks(_TRACKED),
    change_check(_TABLE, "updated_at", "withdrawal_id"),
    *declared(_QUERIES),
)
COUNTED = (_TABLE, _ON_CHAIN, _SIGNED)
