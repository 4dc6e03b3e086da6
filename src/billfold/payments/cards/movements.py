"""What moved by the card rail: the records of the processor's settlement that are booked to cards."""

MOVEMENTS = """
SELECT 'CARD' AS rail, settles_on, settles_on::timestamp AT TIME ZONE 'America/New_York' AS settles_at,
       CASE WHEN kind IN ('REFUND', 'CHARGEBACK') THEN 'CREDIT' ELSE 'DEBIT' END AS direction,
       amount, customer_id, entry_no, transaction_id AS activity_id
  FROM card_payment WHERE settles_on BETWEEN $2 AND $4
"""
