"""What withdrawals moved by the crypto rail: as the clearing of rails reads it."""

_EASTERN = "(t.settles_at AT TIME ZONE 'America/New_York')::date"
_COLUMNS = f"""
SELECT 'CRYPTO' AS rail, {_EASTERN} AS settles_on, t.settles_at, t.direction, t.amount, t.customer_id,
       t.entry_no, t.activity_id
"""
# A withdrawal settles when it is booked, and when it comes back.
MOVEMENTS = f"""
{_COLUMNS}
  FROM crypto_withdrawal w JOIN transaction t ON t.customer_id = w.customer_id AND t.pocket_id = w.pocket_id
       AND t.entry_no = w.entry_no AND t.details->>'crypto_transfer_id' = w.withdrawal_id::text
 WHERE w.created_at >= $3 AND w.created_at <= $5
 UNION ALL
{_COLUMNS}
  FROM crypto_withdrawal w JOIN transaction t ON t.customer_id = w.customer_id AND t.pocket_id = w.pocket_id
       AND t.entry_no = w.return_entry_no AND t.details->>'crypto_transfer_id' = w.withdrawal_id::text
 WHERE w.status = 'REJECTED' AND w.updated_at >= $3 AND w.updated_at <= $5
"""
