-- Needs a stop: the postings of every journal entry are moved into its row, and the functions that book change.
-- The postings of a journal entry lie in its row: one row and one index entry where there were five of each.
-- `posting` shows them one by one, as before.
DROP FUNCTION ledger_book;
DROP FUNCTION ledger_apply;
DROP FUNCTION ledger_move;

-- In the order that takes the least room. Phase: 0 posted, 1 reserved, 2 released.
CREATE TYPE packed_posting AS (amount bigint, debit int, credit int, phase smallint, asset text);

-- One debit, one credit, one asset: an unbalanced entry cannot be written down.
CREATE FUNCTION postings_are_valid(postings packed_posting[]) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  each record;
BEGIN
  IF array_ndims(postings) > 1 THEN RETURN false; END IF;
  FOREACH each IN ARRAY postings LOOP
    IF (each.amount > 0 AND each.debit <> each.credit AND each.phase IN (0, 1, 2) AND each.asset IS NOT NULL) IS NOT TRUE
    THEN RETURN false; END IF;
  END LOOP;
  RETURN true;
END $$;

ALTER TABLE journal_entry ADD COLUMN postings packed_posting[];
UPDATE journal_entry e
   SET postings = ARRAY(SELECT ROW(p.amount, p.debit, p.credit, p.phase, p.asset)::packed_posting
                          FROM posting p WHERE p.customer_id = e.customer_id AND p.entry_no = e.entry_no
                         ORDER BY p.posting_no);

-- A posting is found by its place: numbers have no gaps, and none belongs to an entry that is not there.
DO $$
BEGIN
  IF EXISTS (SELECT FROM posting GROUP BY customer_id, entry_no HAVING max(posting_no) <> count(*) OR min(posting_no) <> 1)
     OR (SELECT count(*) FROM posting) <> (SELECT coalesce(sum(cardinality(postings)), 0) FROM journal_entry) THEN
    RAISE EXCEPTION 'postings are missing: run `billfold verify`';
  END IF;
END $$;

DROP TABLE posting;
ALTER TABLE journal_entry ALTER COLUMN postings SET NOT NULL,
  ADD CONSTRAINT journal_entry_postings_check CHECK (postings_are_valid(postings));
CREATE VIEW posting AS
SELECT e.customer_id, e.entry_no, p.posting_no::smallint AS posting_no, p.debit, p.credit, p.asset, p.amount, p.phase
  FROM journal_entry e
 CROSS JOIN LATERAL unnest(e.postings) WITH ORDINALITY AS p(amount, debit, credit, phase, asset, posting_no);
GRANT SELECT ON posting TO billfold_app;

-- The one writer of balances. The entries have been written; balances are derived from those rows.
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

-- As they were, but that postings come with their entry.
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[], accounts new_account[],
  entries journal_entry[], chain_entries chain_entry[], trades trade[], transactions new_transaction[],
  events new_event[], commands command[], names directory[], transfers transfer[], authorizations card_authorization[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal_entry SELECT * FROM unnest(entries);
  PERFORM ledger_move(cardinality(entries), heads, bases);
  PERFORM pockets_move(moved);
  IF cardinality(jobs) > 0 THEN PERFORM scheduled_job_set(jobs); END IF;
  INSERT INTO chain_entry SELECT * FROM unnest(chain_entries);
  INSERT INTO trade SELECT * FROM unnest(trades);
  INSERT INTO transaction (
    customer_id, pocket_id, entry_no, posting_no, activity_id, transaction_id, partner_id, type, direction, amount,
    swept, title, description, booked_at, business_date, settles_at, details, remittance
  ) SELECT * FROM unnest(transactions);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
  IF cardinality(authorizations) > 0 THEN INSERT INTO card_authorization SELECT * FROM unnest(authorizations); END IF;
END $$;

CREATE FUNCTION ledger_apply(
  entries bigint, heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(entries, heads, bases);
  PERFORM pockets_move(moved);
  IF cardinality(jobs) > 0 THEN PERFORM scheduled_job_set(jobs); END IF;
END $$;
