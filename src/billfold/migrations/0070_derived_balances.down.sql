ALTER TABLE account DROP CONSTRAINT account_derived;
UPDATE account a SET debits = f.debits, credits = f.credits
  FROM (SELECT customer_id, account_no, sum(debit)::bigint AS debits, sum(credit)::bigint AS credits
          FROM (SELECT customer_id, debit AS account_no, amount AS debit, 0 AS credit FROM posting WHERE phase = 0
                 UNION ALL
                SELECT customer_id, credit, 0, amount FROM posting WHERE phase = 0) s
         GROUP BY customer_id, account_no) f
 WHERE a.customer_id = f.customer_id AND a.account_no = f.account_no AND a.kind IN ('bank', 'on_us', 'street', 'treasury');
ALTER TABLE account ADD CONSTRAINT account_bank_is_zero CHECK (kind <> 'bank' OR (debits = credits AND reserved = 0));

DROP FUNCTION ledger_move;
CREATE FUNCTION ledger_move(entries bigint, heads ledger_head_move[], bases lot_basis[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashagg = off
AS $$
DECLARE
  seen bigint;
  wanted bigint;
  found bigint;
BEGIN
  UPDATE ledger_head h
     SET version = h.version + 1, entry_no = n.entry, event_no = n.event, account_no = n.account,
         booked_at = n.booked, business_date = n.on_date, due_at = n.due, chain = n.chain, serialized_book = n.serialized_book
    FROM unnest(heads) AS n
   WHERE h.customer_id = n.customer AND h.version = n.was AND h.entry_no = n.entry_was AND h.event_no = n.event_was
     AND h.booked_at <= n.booked AND h.business_date <= n.on_date AND n.entry >= n.entry_was AND n.event >= n.event_was
     AND h.account_no <= n.account;
  GET DIAGNOSTICS seen = ROW_COUNT;
  IF seen <> cardinality(heads) THEN
    RAISE EXCEPTION 'ledger heads have moved: % of % are as planned', seen, cardinality(heads) USING ERRCODE = '40001';
  END IF;

  WITH entry AS MATERIALIZED (
    SELECT j.customer_id, j.postings
      FROM unnest(heads) AS n
      JOIN journal_entry j ON j.customer_id = n.customer AND j.entry_no > n.entry_was AND j.entry_no <= n.entry
     WHERE n.entry > n.entry_was
  ), l AS MATERIALIZED (
    SELECT entry.customer_id, p.debit, p.credit, p.asset, p.amount, p.phase
      FROM entry CROSS JOIN LATERAL unnest(entry.postings) AS p
  ), side AS (
    SELECT customer_id, account_no, asset, sum(debit)::bigint AS debit, sum(credit)::bigint AS credit, sum(reserve)::bigint AS reserve,
           max(tax) AS tax, max(earnings) AS earnings, bool_and(live) AS live
      FROM (
        SELECT customer_id, debit AS account_no, asset, CASE phase WHEN 0 THEN amount ELSE 0 END AS debit, 0::bigint AS credit,
               CASE phase WHEN 1 THEN amount WHEN 2 THEN -amount ELSE 0 END AS reserve,
               NULL::bigint AS tax, NULL::bigint AS earnings, NULL::boolean AS live FROM l
        UNION ALL
        SELECT customer_id, credit, asset, 0, CASE phase WHEN 0 THEN amount ELSE 0 END, 0, NULL, NULL, NULL FROM l
        UNION ALL
        SELECT customer, account, asset, 0, 0, 0, tax, earnings, live
          FROM unnest(bases) AS b
      ) s GROUP BY customer_id, account_no, asset
  ), moved AS (
    UPDATE account a
       SET debits = a.debits + s.debit, credits = a.credits + s.credit, reserved = a.reserved + s.reserve,
           tax_basis = coalesce(s.tax, a.tax_basis), earnings_basis = coalesce(s.earnings, a.earnings_basis),
           live = coalesce(s.live, a.live)
      FROM side s
     WHERE a.customer_id = s.customer_id AND a.account_no = s.account_no AND a.asset = s.asset
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM side), (SELECT count(*) FROM entry) INTO seen, wanted, found;
  IF seen <> wanted THEN
    RAISE EXCEPTION 'a posting has no account: % of % sides found theirs', seen, wanted USING ERRCODE = '23503';
  END IF;
  -- Numbers without gaps: what was written is exactly what the heads now say.
  SELECT coalesce(sum(n.entry - n.entry_was), 0) INTO wanted FROM unnest(heads) AS n;
  IF found <> entries OR wanted <> entries THEN
    RAISE EXCEPTION 'entry numbers have a gap: % written, % found, % announced', entries, found, wanted USING ERRCODE = '23514';
  END IF;
END $$;
