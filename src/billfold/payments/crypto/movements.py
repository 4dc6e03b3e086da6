"""Deposits and withdrawals as the clearing of rails reads them."""

_MOVED = """
SELECT 'CRYPTO' AS rail, (t.settles_at AT TIME ZONE 'America/New_York')::date AS settles_on, t.settles_at, t.direction,
       t.amount, t.customer_id, t.entry_no, t.activity_id
  FROM transaction t JOIN
"""
_OF_WITHDRAWAL = f"""{_MOVED} crypto_withdrawal w ON t.customer_id = w.customer_id AND t.pocket_id = w.pocket_id
       AND t.details->>'crypto_transfer_id' = w.withdrawal_id::text AND t.entry_no =
"""
# Deposits also where an operator released them. A withdrawal settles when it is booked, and when it comes back.
MOVEMENTS = f"""
{_MOVED} crypto_deposit d
    ON d.customer_id = t.customer_id AND d.deposit_id::text = t.details->>'crypto_transfer_id'
 WHERE t.type = 'GENERIC' AND t.direction = 'CREDIT' AND t.settles_at >= $3 AND t.settles_at <= $5
 UNION ALL
{_OF_WITHDRAWAL} w.entry_no WHERE w.created_at >= $3 AND w.created_at <= $5
 UNION ALL
{_OF_WITHDRAWAL} w.return_entry_no WHERE w.status = 'REJECTED' AND w.updated_at >= $3 AND w.updated_at <= $5
"""
