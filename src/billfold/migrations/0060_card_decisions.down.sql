DROP FUNCTION ledger_book;
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], entries journal_entry[],
  postings posting[], chain_entries chain_entry[], trades trade[], transactions new_transaction[], events new_event[], commands command[],
  names directory[], transfers transfer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal_entry SELECT * FROM unnest(entries);
  INSERT INTO posting SELECT * FROM unnest(postings);
  PERFORM ledger_move(cardinality(entries), cardinality(postings), heads, bases);
  PERFORM pockets_move(moved);
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
END $$;

DROP FUNCTION ledger_apply;
CREATE FUNCTION ledger_apply(
  entries bigint, postings bigint, heads ledger_head_move[], bases lot_basis[], moved pocket_counters[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(entries, postings, heads, bases);
  PERFORM pockets_move(moved);
END $$;

DROP FUNCTION scheduled_job_set;
