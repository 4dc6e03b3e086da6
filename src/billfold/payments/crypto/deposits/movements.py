"""What came in by the crypto rail: the transactions of deposits, also of those that an operator released."""

MOVEMENTS = """
SELECT 'CRYPTO' AS rail, (t.settles_at AT TIME ZONE 'America/New_York')::date AS settles_on, t.settles_at, t.direction,
       t.amount, t.customer_id, t.entry_no, t.activity_id
  FROM transaction t JOIN crypto_deposit d
    ON d.customer_id = t.customer_id AND d.deposit_id::text = t.details->>'crypto_transfer_id'
 WHERE t.type = 'GENERIC' AND t.direction = 'CREDIT' AND t.settles_at >= $3 AND t.settles_at <= $5
"""
