DROP FUNCTION ledger_book;
DROP FUNCTION ledger_apply;
DROP FUNCTION ledger_move;

ALTER VIEW posting RENAME TO posting_shown;
CREATE TABLE posting (
  customer_id  uuid NOT NULL,
  entry_no     bigint NOT NULL,
  posting_no   smallint NOT NULL,
  debit        int NOT NULL,
  credit       int NOT NULL,
  asset        text NOT NULL,
  amount       bigint NOT NULL CHECK (amount > 0),
  phase        smallint NOT NULL DEFAULT 0 CHECK (phase IN (0, 1, 2)),
  PRIMARY KEY (customer_id, entry_no, posting_no),
  CHECK (debit <> credit)
);
INSERT INTO posting SELECT * FROM posting_shown ORDER BY customer_id, entry_no, posting_no;
DROP VIEW posting_shown;
ALTER TABLE journal_entry DROP COLUMN postings;
DROP FUNCTION postings_are_valid;
DROP TYPE packed_posting;

CREATE FUNCTION ledger_move(
  entries bigint, postings bigint, heads ledger_head_move[], bases lot_basis[]
) RETURNS void LANGUAGE plpgsql
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

  -- Numbers without gaps: what was copied is exactly what the heads now say.
  SELECT count(*) INTO seen
    FROM unnest(heads) AS n
    JOIN journal_entry j ON j.customer_id = n.customer AND j.entry_no > n.entry_was AND j.entry_no <= n.entry
   WHERE n.entry > n.entry_was;
  SELECT coalesce(sum(n.entry - n.entry_was), 0) INTO wanted FROM unnest(heads) AS n;
  IF seen <> entries OR wanted <> entries THEN
    RAISE EXCEPTION 'entry numbers have a gap: % copied, % found, % announced', entries, seen, wanted USING ERRCODE = '23514';
  END IF;

  WITH l AS MATERIALIZED (
    SELECT l.customer_id, l.debit, l.credit, l.asset, l.amount, l.phase
      FROM unnest(heads) AS n
      JOIN posting l ON l.customer_id = n.customer AND l.entry_no > n.entry_was AND l.entry_no <= n.entry
     WHERE n.entry > n.entry_was
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
  SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM side), (SELECT count(*) FROM l) INTO seen, wanted, found;
  IF seen <> wanted THEN
    RAISE EXCEPTION 'a posting has no account: % of % sides found theirs', seen, wanted USING ERRCODE = '23503';
  END IF;
  IF found <> postings THEN
    RAISE EXCEPTION 'postings outside the numbers of their heads: % copied, % found', postings, found USING ERRCODE = '23514';
  END IF;
END $$;

CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[], accounts new_account[],
  entries journal_entry[], postings posting[], chain_entries chain_entry[], trades trade[], transactions new_transaction[],
  events new_event[], commands command[], names directory[], transfers transfer[], authorizations card_authorization[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal_entry SELECT * FROM unnest(entries);
  INSERT INTO posting SELECT * FROM unnest(postings);
  PERFORM ledger_move(cardinality(entries), cardinality(postings), heads, bases);
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
  INSERT INTO card_authorization SELECT * FROM unnest(authorizations);
END $$;

CREATE FUNCTION ledger_apply(
  entries bigint, postings bigint, heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(entries, postings, heads, bases);
  PERFORM pockets_move(moved);
  IF cardinality(jobs) > 0 THEN PERFORM scheduled_job_set(jobs); END IF;
END $$;
