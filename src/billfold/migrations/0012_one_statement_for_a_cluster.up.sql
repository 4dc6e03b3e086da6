-- What one server and a cluster read by the same statements.
CREATE FUNCTION ledger_heads_locked(customers uuid[]) RETURNS SETOF ledger_head LANGUAGE sql AS $$
  SELECT * FROM ledger_head WHERE customer_id = ANY(customers) ORDER BY customer_id FOR UPDATE
$$;

-- The entry that an entry stands in after it was reversed, its reversal was reversed, and so on: none, itself.
CREATE FUNCTION last_reversal(of_customer uuid, of_entry bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  later bigint;
BEGIN
  LOOP
    SELECT entry_no INTO later FROM journal_entry WHERE customer_id = of_customer AND reverses = of_entry;
    EXIT WHEN later IS NULL;
    of_entry := later;
  END LOOP;
  RETURN of_entry;
END $$;
