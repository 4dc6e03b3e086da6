-- Tables, columns and what belongs to them get the names of the field. No row is touched: what the hash chain
-- covers are values in the order of columns, and words that are stored (fingerprints, actions) stay.

DROP FUNCTION agenda_let_go;
DROP FUNCTION ledger_book;
DROP FUNCTION ledger_apply;
DROP FUNCTION pockets_move;
DROP FUNCTION ledger_move;

-- Tables
ALTER TABLE authorization_request RENAME TO oauth_authorization_request;
ALTER TABLE change_request RENAME TO authorization_request;
ALTER TABLE leg RENAME TO posting;
ALTER TABLE journal RENAME TO journal_entry;
ALTER TABLE activity RENAME TO transaction;
ALTER TABLE head RENAME TO ledger_head;
ALTER TABLE link RENAME TO chain_entry;
ALTER TABLE lien RENAME TO hold;
ALTER TABLE agenda RENAME TO scheduled_job;
ALTER TABLE told RENAME TO event_sequence;
ALTER TABLE letter RENAME TO outbound_email;
ALTER TABLE mailed_link RENAME TO email_link;
ALTER TABLE proof_failure RENAME TO login_attempt;
ALTER TABLE person RENAME TO user_account;
ALTER TABLE person_password RENAME TO user_password;
ALTER TABLE courier RENAME TO webhook_worker;
ALTER TABLE subscription_lane RENAME TO subscription_queue;
ALTER TABLE ach_answer RENAME TO ach_return_entry;
ALTER TABLE wire_arrival RENAME TO received_wire_message;
ALTER TABLE notification_mark RENAME TO notification_cursor;
ALTER TABLE notification_past RENAME TO notification_baseline;
ALTER TABLE used_assertion RENAME TO consumed_assertion;
ALTER TABLE dpop_jti RENAME TO consumed_dpop_proof;
ALTER TABLE audit_head RENAME TO audit_chain_head;
ALTER TABLE request_key RENAME TO idempotency_key;
ALTER TABLE rate_window RENAME TO rate_limit_window;

-- Columns
ALTER TABLE ach_return_entry RENAME COLUMN answer_id TO return_entry_id;
ALTER TABLE ach_return_entry RENAME COLUMN told TO payload;
ALTER TABLE ach_entry RENAME COLUMN journal_no TO entry_no;
ALTER TABLE ach_file RENAME COLUMN told_at TO confirmed_at;
ALTER TABLE transaction RENAME COLUMN journal_no TO entry_no;
ALTER TABLE transaction RENAME COLUMN leg_no TO posting_no;
ALTER TABLE scheduled_job RENAME COLUMN at TO due_at;
ALTER TABLE oauth_authorization_request RENAME COLUMN answered_at TO decided_at;
ALTER TABLE bank RENAME COLUMN house_customer_id TO bank_customer_id;
ALTER TABLE bank RENAME COLUMN founded_at TO initialized_at;
ALTER TABLE clearing RENAME COLUMN journal_no TO entry_no;
ALTER TABLE clearing RENAME COLUMN came_in TO inflow;
ALTER TABLE clearing RENAME COLUMN went_out TO outflow;
ALTER TABLE webhook_worker RENAME COLUMN courier_no TO worker_no;
ALTER TABLE webhook_worker RENAME COLUMN seen_at TO last_seen_at;
ALTER TABLE delivery RENAME COLUMN tries TO attempts;
ALTER TABLE delivery RENAME COLUMN told_at TO queued_at;
ALTER TABLE ledger_head RENAME COLUMN journal_no TO entry_no;
ALTER TABLE ledger_head RENAME COLUMN image TO serialized_book;
ALTER TABLE journal_entry RENAME COLUMN journal_no TO entry_no;
ALTER TABLE known_device RENAME COLUMN seen_at TO last_seen_at;
ALTER TABLE posting RENAME COLUMN journal_no TO entry_no;
ALTER TABLE posting RENAME COLUMN leg_no TO posting_no;
ALTER TABLE outbound_email RENAME COLUMN letter_id TO email_id;
ALTER TABLE outbound_email RENAME COLUMN written_at TO created_at;
ALTER TABLE hold RENAME COLUMN lien_id TO hold_id;
ALTER TABLE chain_entry RENAME COLUMN journal_no TO entry_no;
ALTER TABLE chain_entry RENAME COLUMN marks TO row_checksums;
ALTER TABLE notification_cursor RENAME COLUMN told_no TO global_sequence;
ALTER TABLE passkey_challenge RENAME COLUMN visit_hash TO cookie_hash;
ALTER TABLE pocket RENAME COLUMN idle TO uninvested;
ALTER TABLE pocket RENAME COLUMN charge_on TO next_fee_date;
ALTER TABLE pocket RENAME COLUMN moved_on TO last_activity_date;
ALTER TABLE login_attempt RENAME COLUMN failed_at TO last_failed_at;
ALTER TABLE idempotency_key RENAME COLUMN answer TO response_body;
ALTER TABLE session RENAME COLUMN proved TO auth_methods;
ALTER TABLE session RENAME COLUMN proved_at TO authenticated_at;
ALTER TABLE session RENAME COLUMN seen_at TO last_seen_at;
ALTER TABLE simulated_event RENAME COLUMN told_at TO queued_at;
ALTER TABLE snapshot RENAME COLUMN journal_no TO entry_no;
ALTER TABLE subscription RENAME COLUMN since TO enabled_since_xid;
ALTER TABLE subscription_queue RENAME COLUMN told_at TO queued_at;
ALTER TABLE subscription_queue RENAME COLUMN rests_until TO paused_until;
ALTER TABLE subscription_queue RENAME COLUMN courier_no TO worker_no;
ALTER TABLE suspense_item RENAME COLUMN journal_no TO entry_no;
ALTER TABLE suspense_item RENAME COLUMN held_at TO created_at;
ALTER TABLE suspense_item RENAME COLUMN ended_journal_no TO ended_entry_no;
ALTER TABLE event_sequence RENAME COLUMN told_no TO global_sequence;
ALTER TABLE trade RENAME COLUMN journal_no TO entry_no;
ALTER TABLE wire RENAME COLUMN journal_no TO entry_no;
ALTER TYPE head_move RENAME ATTRIBUTE journal_was TO entry_was;
ALTER TYPE head_move RENAME ATTRIBUTE journal TO entry;
ALTER TYPE head_move RENAME ATTRIBUTE image TO serialized_book;
ALTER TYPE pocket_counters RENAME ATTRIBUTE idle TO uninvested;
ALTER TYPE pocket_counters RENAME ATTRIBUTE charge_on TO next_fee_date;
ALTER TYPE pocket_counters RENAME ATTRIBUTE moved_on TO last_activity_date;
ALTER TYPE head_move RENAME TO ledger_head_move;

-- Constraints, indexes and the sequence
ALTER TABLE ach_return_entry RENAME CONSTRAINT ach_answer_pkey TO ach_return_entry_pkey;
ALTER TABLE transaction RENAME CONSTRAINT activity_amount_check TO transaction_amount_check;
ALTER TABLE transaction RENAME CONSTRAINT activity_direction_check TO transaction_direction_check;
ALTER TABLE transaction RENAME CONSTRAINT activity_pkey TO transaction_pkey;
ALTER TABLE transaction RENAME CONSTRAINT activity_type_check TO transaction_type_check;
ALTER TABLE scheduled_job RENAME CONSTRAINT agenda_pkey TO scheduled_job_pkey;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_head_check TO audit_chain_head_check;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_head_entry_no_check TO audit_chain_head_entry_no_check;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_head_pkey TO audit_chain_head_pkey;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_check TO oauth_authorization_request_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_client_id_fkey TO oauth_authorization_request_client_id_fkey;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_code_challenge_check TO oauth_authorization_request_code_challenge_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_max_age_check TO oauth_authorization_request_max_age_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_pkey TO oauth_authorization_request_pkey;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_response_mode_check TO oauth_authorization_request_response_mode_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT authorization_request_uri_hash_key TO oauth_authorization_request_uri_hash_key;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_check TO authorization_request_check;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_check1 TO authorization_request_check1;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_content_hash_check TO authorization_request_content_hash_check;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_customer_id_fkey TO authorization_request_customer_id_fkey;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_pkey TO authorization_request_pkey;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_request_id_key TO authorization_request_request_id_key;
ALTER TABLE authorization_request RENAME CONSTRAINT change_request_status_check TO authorization_request_status_check;
ALTER TABLE clearing RENAME CONSTRAINT clearing_came_in_check TO clearing_inflow_check;
ALTER TABLE clearing RENAME CONSTRAINT clearing_went_out_check TO clearing_outflow_check;
ALTER TABLE webhook_worker RENAME CONSTRAINT courier_pkey TO webhook_worker_pkey;
ALTER TABLE delivery RENAME CONSTRAINT delivery_tries_check TO delivery_attempts_check;
ALTER TABLE consumed_dpop_proof RENAME CONSTRAINT dpop_jti_pkey TO consumed_dpop_proof_pkey;
ALTER TABLE ledger_head RENAME CONSTRAINT head_check TO ledger_head_check;
ALTER TABLE ledger_head RENAME CONSTRAINT head_pkey TO ledger_head_pkey;
ALTER TABLE journal_entry RENAME CONSTRAINT journal_pkey TO journal_entry_pkey;
ALTER TABLE posting RENAME CONSTRAINT leg_amount_check TO posting_amount_check;
ALTER TABLE posting RENAME CONSTRAINT leg_check TO posting_check;
ALTER TABLE posting RENAME CONSTRAINT leg_phase_check TO posting_phase_check;
ALTER TABLE posting RENAME CONSTRAINT leg_pkey TO posting_pkey;
ALTER TABLE outbound_email RENAME CONSTRAINT letter_check TO outbound_email_check;
ALTER TABLE outbound_email RENAME CONSTRAINT letter_pkey TO outbound_email_pkey;
ALTER TABLE hold RENAME CONSTRAINT lien_amount_check TO hold_amount_check;
ALTER TABLE hold RENAME CONSTRAINT lien_pkey TO hold_pkey;
ALTER TABLE chain_entry RENAME CONSTRAINT link_pkey TO chain_entry_pkey;
ALTER TABLE email_link RENAME CONSTRAINT mailed_link_pkey TO email_link_pkey;
ALTER TABLE email_link RENAME CONSTRAINT mailed_link_purpose_check TO email_link_purpose_check;
ALTER TABLE email_link RENAME CONSTRAINT mailed_link_user_id_fkey TO email_link_user_id_fkey;
ALTER TABLE notification_cursor RENAME CONSTRAINT notification_mark_pkey TO notification_cursor_pkey;
ALTER TABLE notification_cursor RENAME CONSTRAINT notification_mark_singleton_check TO notification_cursor_singleton_check;
ALTER TABLE notification_baseline RENAME CONSTRAINT notification_past_pkey TO notification_baseline_pkey;
ALTER TABLE user_account RENAME CONSTRAINT person_email_check TO user_account_email_check;
ALTER TABLE user_account RENAME CONSTRAINT person_email_key TO user_account_email_key;
ALTER TABLE user_account RENAME CONSTRAINT person_first_name_check TO user_account_first_name_check;
ALTER TABLE user_account RENAME CONSTRAINT person_last_name_check TO user_account_last_name_check;
ALTER TABLE user_account RENAME CONSTRAINT person_phone_number_check TO user_account_phone_number_check;
ALTER TABLE user_account RENAME CONSTRAINT person_pkey TO user_account_pkey;
ALTER TABLE user_account RENAME CONSTRAINT person_status_check TO user_account_status_check;
ALTER TABLE user_password RENAME CONSTRAINT person_password_pkey TO user_password_pkey;
ALTER TABLE user_password RENAME CONSTRAINT person_password_user_id_fkey TO user_password_user_id_fkey;
ALTER TABLE pocket RENAME CONSTRAINT pocket_idle_check TO pocket_uninvested_check;
ALTER TABLE login_attempt RENAME CONSTRAINT proof_failure_factor_check TO login_attempt_factor_check;
ALTER TABLE login_attempt RENAME CONSTRAINT proof_failure_failures_check TO login_attempt_failures_check;
ALTER TABLE login_attempt RENAME CONSTRAINT proof_failure_pkey TO login_attempt_pkey;
ALTER TABLE rate_limit_window RENAME CONSTRAINT rate_window_pkey TO rate_limit_window_pkey;
ALTER TABLE idempotency_key RENAME CONSTRAINT request_key_pkey TO idempotency_key_pkey;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_lane_failures_check TO subscription_queue_failures_check;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_lane_pkey TO subscription_queue_pkey;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_lane_sequence_check TO subscription_queue_sequence_check;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_lane_subscription_id_fkey TO subscription_queue_subscription_id_fkey;
ALTER TABLE event_sequence RENAME CONSTRAINT told_customer_id_customer_sequence_key TO event_sequence_customer_id_customer_sequence_key;
ALTER TABLE event_sequence RENAME CONSTRAINT told_customer_sequence_check TO event_sequence_customer_sequence_check;
ALTER TABLE event_sequence RENAME CONSTRAINT told_partner_id_partner_sequence_key TO event_sequence_partner_id_partner_sequence_key;
ALTER TABLE event_sequence RENAME CONSTRAINT told_partner_sequence_check TO event_sequence_partner_sequence_check;
ALTER TABLE event_sequence RENAME CONSTRAINT told_pkey TO event_sequence_pkey;
ALTER TABLE event_sequence RENAME CONSTRAINT told_told_no_key TO event_sequence_global_sequence_key;
ALTER TABLE consumed_assertion RENAME CONSTRAINT used_assertion_pkey TO consumed_assertion_pkey;
ALTER TABLE received_wire_message RENAME CONSTRAINT wire_arrival_pkey TO received_wire_message_pkey;
ALTER INDEX ach_answer_file RENAME TO ach_return_entry_file;
ALTER INDEX ach_answer_trace RENAME TO ach_return_entry_trace;
ALTER INDEX ach_answer_waits RENAME TO ach_return_entry_waits;
ALTER INDEX ach_file_untold RENAME TO ach_file_unconfirmed;
ALTER INDEX activity_of_rails RENAME TO transaction_of_rails;
ALTER INDEX activity_one RENAME TO transaction_activity_id;
ALTER INDEX activity_partner RENAME TO transaction_partner;
ALTER INDEX agenda_at RENAME TO scheduled_job_due;
ALTER INDEX audit_head_unsealed RENAME TO audit_chain_head_unsealed;
ALTER INDEX authorization_request_age RENAME TO oauth_authorization_request_age;
ALTER INDEX change_request_list RENAME TO authorization_request_list;
ALTER INDEX dpop_jti_age RENAME TO consumed_dpop_proof_age;
ALTER INDEX head_due RENAME TO ledger_head_due;
ALTER INDEX journal_reversed_once RENAME TO journal_entry_reversed_once;
ALTER INDEX letter_due RENAME TO outbound_email_due;
ALTER INDEX mailed_link_person RENAME TO email_link_user;
ALTER INDEX membership_person RENAME TO membership_user;
ALTER INDEX passkey_person RENAME TO passkey_user;
ALTER INDEX request_key_age RENAME TO idempotency_key_age;
ALTER INDEX review_one_voice RENAME TO review_once_per_user;
ALTER INDEX session_person RENAME TO session_user_id;
ALTER INDEX subscription_lane_courier RENAME TO subscription_queue_worker;
ALTER INDEX subscription_lane_due RENAME TO subscription_queue_due;
ALTER INDEX told_customer_time RENAME TO event_sequence_customer_time;
ALTER INDEX told_partner_time RENAME TO event_sequence_partner_time;
ALTER SEQUENCE told_told_no_seq RENAME TO event_sequence_global_sequence_seq;

-- From PostgreSQL 18 on NOT NULL has a name too, which follows those of table and column.
DO $$
DECLARE
  each record;
BEGIN
  FOR each IN
    SELECT c.conrelid::regclass AS of_table, c.conname AS was, t.relname || '_' || a.attname || '_not_null' AS becomes
      FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
     WHERE c.contype = 'n' AND c.connamespace = 'public'::regnamespace
       AND c.conname <> t.relname || '_' || a.attname || '_not_null'
  LOOP
    EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', each.of_table, each.was, each.becomes);
  END LOOP;
END $$;

-- States of files, in the row and in its report
ALTER TABLE rail_file DROP CONSTRAINT rail_file_state_check, DROP CONSTRAINT rail_file_check, DROP CONSTRAINT rail_file_check1;
UPDATE rail_file f
   SET state = s.becomes, report = replace(f.report::text, '"state":"' || s.was || '"', '"state":"' || s.becomes || '"')::json
  FROM (VALUES ('MADE', 'CREATED'), ('HANDED', 'TRANSMITTED'), ('TAKEN', 'PROCESSED')) AS s(was, becomes)
 WHERE f.state = s.was;
ALTER TABLE rail_file
  ADD CONSTRAINT rail_file_state_check CHECK (state IN ('CREATED', 'TRANSMITTED', 'ARRIVED', 'PROCESSED', 'REFUSED')),
  ADD CONSTRAINT rail_file_check CHECK ((direction = 'OUT') = (state IN ('CREATED', 'TRANSMITTED'))),
  ADD CONSTRAINT rail_file_check1 CHECK ((done_at IS NULL) = (state IN ('CREATED', 'ARRIVED')));

-- A job is removed by its key, one look each; one that was rescheduled meanwhile stays. The settings keep a plan
-- made on an empty table from reading all of a full one.
CREATE FUNCTION scheduled_job_complete(of_kind text, objects uuid[], instants timestamptz[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  DELETE FROM scheduled_job WHERE ctid = ANY(ARRAY(
    SELECT a.ctid FROM unnest(objects, instants) AS k(object_id, due_at)
     CROSS JOIN LATERAL (
           SELECT b.ctid FROM scheduled_job b
            WHERE b.kind = of_kind AND b.object_id = k.object_id AND (k.due_at IS NULL OR b.due_at = k.due_at)
            LIMIT 1) a));
$$;

-- The one writer of balances. The entries and postings have been written; balances are derived from those rows.
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

CREATE FUNCTION pockets_move(moved pocket_counters[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  UPDATE pocket p
     SET inflow = n.inflow, outflow = n.outflow, fees = n.fees, realised = n.realised, fee_accrued = n.fee_accrued,
         uninvested = n.uninvested, accrued_through = n.accrued_through, next_fee_date = n.next_fee_date, last_activity_date = n.last_activity_date,
         unsettled_until = n.unsettled_until, invest_at = n.invest_at
    FROM unnest(moved) AS n
   WHERE p.customer_id = n.customer AND p.pocket_id = n.pocket;
END $$;

-- Many books, their rows copied before: planned for the batch at hand.
CREATE FUNCTION ledger_apply(
  entries bigint, postings bigint, heads ledger_head_move[], bases lot_basis[], moved pocket_counters[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(entries, postings, heads, bases);
  PERFORM pockets_move(moved);
END $$;

-- Few books with all their rows: the plans are kept.
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], entries journal_entry[],
  postings posting[], chain_entries chain_entry[], trades trade[], transactions transaction[], events new_event[], commands command[],
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
  INSERT INTO transaction SELECT * FROM unnest(transactions);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
END $$;
