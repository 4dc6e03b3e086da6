"""Checks of deposits and withdrawals: they equal the logs and transactions of their chains, each unit counted once.

Also verifies that each address follows from its extended public key and index.
"""

from functools import cache

from billfold.ledger.checks import TrackedTable, change_check, creation_checks, directory_checks
from billfold.payments.crypto.chains import WatchOnlyAddresses
from billfold.payments.crypto.deposits.rules import CreditDeposit, RecordUnbooked
from billfold.payments.crypto.deposits.store import CARRIED
from billfold.payments.crypto.withdrawals import rules
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, declared, names_in_sql
from billfold.platform.database.connection import Connection

_DEPOSIT, _SEEN = "crypto_deposit", "chain_transfer"
_SENT, _ON_CHAIN, _SIGNED = "crypto_withdrawal", "crypto_transaction", "crypto_signature"
_LOG = "chain, tx_hash, log_index, block_number, block_hash, token, sender, recipient, units"
_BOOKED = """
SELECT t.customer_id, t.details->>'crypto_transfer_id' AS id, sum(t.amount) AS amount FROM transaction t
 WHERE t.type = 'GENERIC' AND t.direction = 'CREDIT' AND t.details->>'crypto_transfer_id' IS NOT NULL
 GROUP BY 1, 2
"""
_OF_DEPOSITS = {
    (_DEPOSIT, Certainty.SUSPECT): {
        "no log of its chain matches it": f"""
            SELECT d.customer_id, d.deposit_id
              FROM crypto_deposit d LEFT JOIN
                   (SELECT {_LOG}, true AS is_final FROM chain_transfer WHERE status = 'FINAL') c USING ({_LOG})
             WHERE d.status <> 'REORGED' AND c.is_final IS NULL""",
        "{amount} cents are credited, and its transactions have {booked}": f"""
            SELECT d.customer_id, d.deposit_id, d.amount, coalesce(t.amount, 0)::bigint AS booked
              FROM crypto_deposit d LEFT JOIN ({_BOOKED}) t
                   ON t.customer_id = d.customer_id AND t.id = d.deposit_id::text
             WHERE CASE WHEN d.status = 'CREDITED' OR (d.status = 'REORGED' AND d.reason = 'CREDITED')
                        THEN coalesce(t.amount, 0) <> d.amount
                        WHEN d.status IN ('CARRIED', 'QUESTIONED') THEN t.amount IS NOT NULL ELSE false END""",
        "more is booked than arrived: {carried} units are carried": f"""
            SELECT customer_id, portal_id, token, {CARRIED} AS carried FROM crypto_deposit d GROUP BY 1, 2, 3
            HAVING {CARRIED} < 0
               AND NOT EXISTS (SELECT 1 FROM crypto_deposit r
                 WHERE r.customer_id = d.customer_id AND r.portal_id = d.portal_id AND r.status = 'REORGED')""",
    },
    (_SEEN, Certainty.SUSPECT): {
        "its block is final, and no deposit has it": """
            SELECT c.chain, c.tx_hash, c.log_index FROM chain_transfer c JOIN chain_cursor r ON r.chain = c.chain
             WHERE c.status = 'FINAL' AND c.block_number <= r.final_number AND c.units <> '0'
               AND NOT EXISTS (SELECT 1 FROM crypto_deposit d
                 WHERE (d.chain, d.tx_hash, d.log_index) = (c.chain, c.tx_hash, c.log_index))"""
    },
    (_DEPOSIT, Certainty.DERIVED): {
        "its portal has another address": """
            SELECT d.customer_id, d.deposit_id FROM crypto_deposit d JOIN portal p USING (customer_id, portal_id)
             WHERE p.wallet_address IS DISTINCT FROM d.recipient OR p.pocket_id <> d.pocket_id"""
    },
}
_WITHDRAWAL = "SELECT w.customer_id, w.withdrawal_id FROM crypto_withdrawal w"
_TRANSACTION = "SELECT t.customer_id, t.withdrawal_id FROM crypto_transaction t"
_KINDS = names_in_sql(rules.SendUsdc, rules.SubmitWithdrawal, rules.CompleteWithdrawal, rules.RejectWithdrawal)
_OF_WITHDRAWALS = {
    (_SENT, Certainty.DERIVED): {
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
        "its nonce was not given by the wallet": f"""
            {_TRANSACTION} JOIN crypto_wallet v ON v.chain = t.chain AND v.address = t.wallet
             WHERE t.nonce NOT BETWEEN v.first_nonce AND v.next_nonce - 1""",
        "its state is {state}, and what was signed for it says otherwise": """
            SELECT t.customer_id, t.withdrawal_id, t.state FROM crypto_transaction t
             WHERE (t.state NOT IN ('REFUSED', 'RESERVED')) <> EXISTS (
                   SELECT 1 FROM crypto_signature s
                    WHERE s.customer_id = t.customer_id AND s.withdrawal_id = t.withdrawal_id)""",
    },
    (_SIGNED, Certainty.SUSPECT): {
        "the attempt before it is missing, or paid as much": """
            SELECT s.customer_id, s.withdrawal_id, s.attempt FROM crypto_signature s
              LEFT JOIN crypto_signature b ON b.customer_id = s.customer_id AND b.withdrawal_id = s.withdrawal_id
                    AND b.attempt = s.attempt - 1
             WHERE s.attempt > 1 AND (b.attempt IS NULL OR b.max_fee >= s.max_fee
                   OR b.intent = 'CANCEL' AND s.intent <> 'CANCEL')"""
    },
}
_TRACKED = TrackedTable(_SENT, "withdrawal_id", (rules.SendUsdc,), created_at="created_at")
CHECKS = (
    *creation_checks(TrackedTable(_DEPOSIT, "deposit_id", (CreditDeposit, RecordUnbooked), created_at="created_at")),
    *creation_checks(_TRACKED),
    *directory_checks(_TRACKED),
    change_check(_SENT, "updated_at", "withdrawal_id"),
    *declared(_OF_DEPOSITS, _OF_WITHDRAWALS),
)
COUNTED = (_DEPOSIT, _SEEN, _SENT, _ON_CHAIN, _SIGNED)


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify that addresses of portals are derived from their extended public key and their index."""
    cursor = await conn.cursor(
        """SELECT p.customer_id, p.portal_id, p.wallet_address, p.address_index, x.xpub, x.derivation_path
             FROM portal p JOIN wallet_xpub x USING (xpub_id) ORDER BY 1, 2""",
        timeout=STATEMENT_TIMEOUT_SECONDS,
    )
    while rows := await cursor.fetch(2_000, timeout=STATEMENT_TIMEOUT_SECONDS):
        for customer_id, portal_id, address, index, xpub, path in rows:
            derived = _derived(xpub, path, index)
            if derived != address:
                key = {"customer_id": customer_id, "portal_id": portal_id}
                message = f"its address must be {derived}"
                findings.add("portal", key, message, certainty=Certainty.CHANGED)


def _derived(xpub: str, path: str, index: int) -> str | None:
    try:
        return _source(xpub, path).derive(index)
    except ValueError:  # the key was tampered with
        return None


@cache
def _source(xpub: str, path: str) -> WatchOnlyAddresses:
    return WatchOnlyAddresses(xpub, path)
