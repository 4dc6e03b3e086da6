DROP FUNCTION scheduled_job_complete;
DROP FUNCTION ledger_book;
DROP FUNCTION ledger_apply;
DROP FUNCTION pockets_move;
DROP FUNCTION ledger_move;

ALTER SEQUENCE event_sequence_global_sequence_seq RENAME TO told_told_no_seq;
ALTER INDEX event_sequence_partner_time RENAME TO told_partner_time;
ALTER INDEX event_sequence_customer_time RENAME TO told_customer_time;
ALTER INDEX subscription_queue_due RENAME TO subscription_lane_due;
ALTER INDEX subscription_queue_worker RENAME TO subscription_lane_courier;
ALTER INDEX session_user_id RENAME TO session_person;
ALTER INDEX review_once_per_user RENAME TO review_one_voice;
ALTER INDEX idempotency_key_age RENAME TO request_key_age;
ALTER INDEX passkey_user RENAME TO passkey_person;
ALTER INDEX membership_user RENAME TO membership_person;
ALTER INDEX email_link_user RENAME TO mailed_link_person;
ALTER INDEX outbound_email_due RENAME TO letter_due;
ALTER INDEX journal_entry_reversed_once RENAME TO journal_reversed_once;
ALTER INDEX ledger_head_due RENAME TO head_due;
ALTER INDEX consumed_dpop_proof_age RENAME TO dpop_jti_age;
ALTER INDEX authorization_request_list RENAME TO change_request_list;
ALTER INDEX oauth_authorization_request_age RENAME TO authorization_request_age;
ALTER INDEX audit_chain_head_unsealed RENAME TO audit_head_unsealed;
ALTER INDEX scheduled_job_due RENAME TO agenda_at;
ALTER INDEX transaction_partner RENAME TO activity_partner;
ALTER INDEX transaction_activity_id RENAME TO activity_one;
ALTER INDEX transaction_of_rails RENAME TO activity_of_rails;
ALTER INDEX ach_file_unconfirmed RENAME TO ach_file_untold;
ALTER INDEX ach_return_entry_waits RENAME TO ach_answer_waits;
ALTER INDEX ach_return_entry_trace RENAME TO ach_answer_trace;
ALTER INDEX ach_return_entry_file RENAME TO ach_answer_file;
ALTER TABLE received_wire_message RENAME CONSTRAINT received_wire_message_pkey TO wire_arrival_pkey;
ALTER TABLE consumed_assertion RENAME CONSTRAINT consumed_assertion_pkey TO used_assertion_pkey;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_global_sequence_key TO told_told_no_key;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_pkey TO told_pkey;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_partner_sequence_check TO told_partner_sequence_check;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_partner_id_partner_sequence_key TO told_partner_id_partner_sequence_key;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_customer_sequence_check TO told_customer_sequence_check;
ALTER TABLE event_sequence RENAME CONSTRAINT event_sequence_customer_id_customer_sequence_key TO told_customer_id_customer_sequence_key;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_queue_subscription_id_fkey TO subscription_lane_subscription_id_fkey;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_queue_sequence_check TO subscription_lane_sequence_check;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_queue_pkey TO subscription_lane_pkey;
ALTER TABLE subscription_queue RENAME CONSTRAINT subscription_queue_failures_check TO subscription_lane_failures_check;
ALTER TABLE idempotency_key RENAME CONSTRAINT idempotency_key_pkey TO request_key_pkey;
ALTER TABLE rate_limit_window RENAME CONSTRAINT rate_limit_window_pkey TO rate_window_pkey;
ALTER TABLE login_attempt RENAME CONSTRAINT login_attempt_pkey TO proof_failure_pkey;
ALTER TABLE login_attempt RENAME CONSTRAINT login_attempt_failures_check TO proof_failure_failures_check;
ALTER TABLE login_attempt RENAME CONSTRAINT login_attempt_factor_check TO proof_failure_factor_check;
ALTER TABLE pocket RENAME CONSTRAINT pocket_uninvested_check TO pocket_idle_check;
ALTER TABLE user_password RENAME CONSTRAINT user_password_user_id_fkey TO person_password_user_id_fkey;
ALTER TABLE user_password RENAME CONSTRAINT user_password_pkey TO person_password_pkey;
ALTER TABLE user_account RENAME CONSTRAINT user_account_status_check TO person_status_check;
ALTER TABLE user_account RENAME CONSTRAINT user_account_pkey TO person_pkey;
ALTER TABLE user_account RENAME CONSTRAINT user_account_phone_number_check TO person_phone_number_check;
ALTER TABLE user_account RENAME CONSTRAINT user_account_last_name_check TO person_last_name_check;
ALTER TABLE user_account RENAME CONSTRAINT user_account_first_name_check TO person_first_name_check;
ALTER TABLE user_account RENAME CONSTRAINT user_account_email_key TO person_email_key;
ALTER TABLE user_account RENAME CONSTRAINT user_account_email_check TO person_email_check;
ALTER TABLE notification_baseline RENAME CONSTRAINT notification_baseline_pkey TO notification_past_pkey;
ALTER TABLE notification_cursor RENAME CONSTRAINT notification_cursor_singleton_check TO notification_mark_singleton_check;
ALTER TABLE notification_cursor RENAME CONSTRAINT notification_cursor_pkey TO notification_mark_pkey;
ALTER TABLE email_link RENAME CONSTRAINT email_link_user_id_fkey TO mailed_link_user_id_fkey;
ALTER TABLE email_link RENAME CONSTRAINT email_link_purpose_check TO mailed_link_purpose_check;
ALTER TABLE email_link RENAME CONSTRAINT email_link_pkey TO mailed_link_pkey;
ALTER TABLE chain_entry RENAME CONSTRAINT chain_entry_pkey TO link_pkey;
ALTER TABLE hold RENAME CONSTRAINT hold_pkey TO lien_pkey;
ALTER TABLE hold RENAME CONSTRAINT hold_amount_check TO lien_amount_check;
ALTER TABLE outbound_email RENAME CONSTRAINT outbound_email_pkey TO letter_pkey;
ALTER TABLE outbound_email RENAME CONSTRAINT outbound_email_check TO letter_check;
ALTER TABLE posting RENAME CONSTRAINT posting_pkey TO leg_pkey;
ALTER TABLE posting RENAME CONSTRAINT posting_phase_check TO leg_phase_check;
ALTER TABLE posting RENAME CONSTRAINT posting_check TO leg_check;
ALTER TABLE posting RENAME CONSTRAINT posting_amount_check TO leg_amount_check;
ALTER TABLE journal_entry RENAME CONSTRAINT journal_entry_pkey TO journal_pkey;
ALTER TABLE ledger_head RENAME CONSTRAINT ledger_head_pkey TO head_pkey;
ALTER TABLE ledger_head RENAME CONSTRAINT ledger_head_check TO head_check;
ALTER TABLE consumed_dpop_proof RENAME CONSTRAINT consumed_dpop_proof_pkey TO dpop_jti_pkey;
ALTER TABLE delivery RENAME CONSTRAINT delivery_attempts_check TO delivery_tries_check;
ALTER TABLE webhook_worker RENAME CONSTRAINT webhook_worker_pkey TO courier_pkey;
ALTER TABLE clearing RENAME CONSTRAINT clearing_outflow_check TO clearing_went_out_check;
ALTER TABLE clearing RENAME CONSTRAINT clearing_inflow_check TO clearing_came_in_check;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_status_check TO change_request_status_check;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_request_id_key TO change_request_request_id_key;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_pkey TO change_request_pkey;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_customer_id_fkey TO change_request_customer_id_fkey;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_content_hash_check TO change_request_content_hash_check;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_check1 TO change_request_check1;
ALTER TABLE authorization_request RENAME CONSTRAINT authorization_request_check TO change_request_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_uri_hash_key TO authorization_request_uri_hash_key;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_response_mode_check TO authorization_request_response_mode_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_pkey TO authorization_request_pkey;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_max_age_check TO authorization_request_max_age_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_code_challenge_check TO authorization_request_code_challenge_check;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_client_id_fkey TO authorization_request_client_id_fkey;
ALTER TABLE oauth_authorization_request RENAME CONSTRAINT oauth_authorization_request_check TO authorization_request_check;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_chain_head_pkey TO audit_head_pkey;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_chain_head_entry_no_check TO audit_head_entry_no_check;
ALTER TABLE audit_chain_head RENAME CONSTRAINT audit_chain_head_check TO audit_head_check;
ALTER TABLE scheduled_job RENAME CONSTRAINT scheduled_job_pkey TO agenda_pkey;
ALTER TABLE transaction RENAME CONSTRAINT transaction_type_check TO activity_type_check;
ALTER TABLE transaction RENAME CONSTRAINT transaction_pkey TO activity_pkey;
ALTER TABLE transaction RENAME CONSTRAINT transaction_direction_check TO activity_direction_check;
ALTER TABLE transaction RENAME CONSTRAINT transaction_amount_check TO activity_amount_check;
ALTER TABLE ach_return_entry RENAME CONSTRAINT ach_return_entry_pkey TO ach_answer_pkey;

ALTER TYPE ledger_head_move RENAME TO head_move;
ALTER TYPE pocket_counters RENAME ATTRIBUTE last_activity_date TO moved_on;
ALTER TYPE pocket_counters RENAME ATTRIBUTE next_fee_date TO charge_on;
ALTER TYPE pocket_counters RENAME ATTRIBUTE uninvested TO idle;
ALTER TYPE head_move RENAME ATTRIBUTE serialized_book TO image;
ALTER TYPE head_move RENAME ATTRIBUTE entry TO journal;
ALTER TYPE head_move RENAME ATTRIBUTE entry_was TO journal_was;
ALTER TABLE wire RENAME COLUMN entry_no TO journal_no;
ALTER TABLE trade RENAME COLUMN entry_no TO journal_no;
ALTER TABLE event_sequence RENAME COLUMN global_sequence TO told_no;
ALTER TABLE suspense_item RENAME COLUMN ended_entry_no TO ended_journal_no;
ALTER TABLE suspense_item RENAME COLUMN created_at TO held_at;
ALTER TABLE suspense_item RENAME COLUMN entry_no TO journal_no;
ALTER TABLE subscription_queue RENAME COLUMN worker_no TO courier_no;
ALTER TABLE subscription_queue RENAME COLUMN paused_until TO rests_until;
ALTER TABLE subscription_queue RENAME COLUMN queued_at TO told_at;
ALTER TABLE subscription RENAME COLUMN enabled_since_xid TO since;
ALTER TABLE snapshot RENAME COLUMN entry_no TO journal_no;
ALTER TABLE simulated_event RENAME COLUMN queued_at TO told_at;
ALTER TABLE session RENAME COLUMN last_seen_at TO seen_at;
ALTER TABLE session RENAME COLUMN authenticated_at TO proved_at;
ALTER TABLE session RENAME COLUMN auth_methods TO proved;
ALTER TABLE idempotency_key RENAME COLUMN response_body TO answer;
ALTER TABLE login_attempt RENAME COLUMN last_failed_at TO failed_at;
ALTER TABLE pocket RENAME COLUMN last_activity_date TO moved_on;
ALTER TABLE pocket RENAME COLUMN next_fee_date TO charge_on;
ALTER TABLE pocket RENAME COLUMN uninvested TO idle;
ALTER TABLE passkey_challenge RENAME COLUMN cookie_hash TO visit_hash;
ALTER TABLE notification_cursor RENAME COLUMN global_sequence TO told_no;
ALTER TABLE chain_entry RENAME COLUMN row_checksums TO marks;
ALTER TABLE chain_entry RENAME COLUMN entry_no TO journal_no;
ALTER TABLE hold RENAME COLUMN hold_id TO lien_id;
ALTER TABLE outbound_email RENAME COLUMN created_at TO written_at;
ALTER TABLE outbound_email RENAME COLUMN email_id TO letter_id;
ALTER TABLE posting RENAME COLUMN posting_no TO leg_no;
ALTER TABLE posting RENAME COLUMN entry_no TO journal_no;
ALTER TABLE known_device RENAME COLUMN last_seen_at TO seen_at;
ALTER TABLE journal_entry RENAME COLUMN entry_no TO journal_no;
ALTER TABLE ledger_head RENAME COLUMN serialized_book TO image;
ALTER TABLE ledger_head RENAME COLUMN entry_no TO journal_no;
ALTER TABLE delivery RENAME COLUMN queued_at TO told_at;
ALTER TABLE delivery RENAME COLUMN attempts TO tries;
ALTER TABLE webhook_worker RENAME COLUMN last_seen_at TO seen_at;
ALTER TABLE webhook_worker RENAME COLUMN worker_no TO courier_no;
ALTER TABLE clearing RENAME COLUMN outflow TO went_out;
ALTER TABLE clearing RENAME COLUMN inflow TO came_in;
ALTER TABLE clearing RENAME COLUMN entry_no TO journal_no;
ALTER TABLE bank RENAME COLUMN initialized_at TO founded_at;
ALTER TABLE bank RENAME COLUMN bank_customer_id TO house_customer_id;
ALTER TABLE oauth_authorization_request RENAME COLUMN decided_at TO answered_at;
ALTER TABLE scheduled_job RENAME COLUMN due_at TO at;
ALTER TABLE transaction RENAME COLUMN posting_no TO leg_no;
ALTER TABLE transaction RENAME COLUMN entry_no TO journal_no;
ALTER TABLE ach_file RENAME COLUMN confirmed_at TO told_at;
ALTER TABLE ach_entry RENAME COLUMN entry_no TO journal_no;
ALTER TABLE ach_return_entry RENAME COLUMN payload TO told;
ALTER TABLE ach_return_entry RENAME COLUMN return_entry_id TO answer_id;

ALTER TABLE rate_limit_window RENAME TO rate_window;
ALTER TABLE idempotency_key RENAME TO request_key;
ALTER TABLE audit_chain_head RENAME TO audit_head;
ALTER TABLE consumed_dpop_proof RENAME TO dpop_jti;
ALTER TABLE consumed_assertion RENAME TO used_assertion;
ALTER TABLE notification_baseline RENAME TO notification_past;
ALTER TABLE notification_cursor RENAME TO notification_mark;
ALTER TABLE received_wire_message RENAME TO wire_arrival;
ALTER TABLE ach_return_entry RENAME TO ach_answer;
ALTER TABLE subscription_queue RENAME TO subscription_lane;
ALTER TABLE webhook_worker RENAME TO courier;
ALTER TABLE user_password RENAME TO person_password;
ALTER TABLE user_account RENAME TO person;
ALTER TABLE login_attempt RENAME TO proof_failure;
ALTER TABLE email_link RENAME TO mailed_link;
ALTER TABLE outbound_email RENAME TO letter;
ALTER TABLE event_sequence RENAME TO told;
ALTER TABLE scheduled_job RENAME TO agenda;
ALTER TABLE hold RENAME TO lien;
ALTER TABLE chain_entry RENAME TO link;
ALTER TABLE ledger_head RENAME TO head;
ALTER TABLE transaction RENAME TO activity;
ALTER TABLE journal_entry RENAME TO journal;
ALTER TABLE posting RENAME TO leg;
ALTER TABLE authorization_request RENAME TO change_request;
ALTER TABLE oauth_authorization_request RENAME TO authorization_request;

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

ALTER TABLE rail_file DROP CONSTRAINT rail_file_state_check, DROP CONSTRAINT rail_file_check, DROP CONSTRAINT rail_file_check1;
UPDATE rail_file f
   SET state = s.becomes, report = replace(f.report::text, '"state":"' || s.was || '"', '"state":"' || s.becomes || '"')::json
  FROM (VALUES ('CREATED', 'MADE'), ('TRANSMITTED', 'HANDED'), ('PROCESSED', 'TAKEN')) AS s(was, becomes)
 WHERE f.state = s.was;
ALTER TABLE rail_file
  ADD CONSTRAINT rail_file_state_check CHECK (state IN ('MADE', 'HANDED', 'ARRIVED', 'TAKEN', 'REFUSED')),
  ADD CONSTRAINT rail_file_check CHECK ((direction = 'OUT') = (state IN ('MADE', 'HANDED'))),
  ADD CONSTRAINT rail_file_check1 CHECK ((done_at IS NULL) = (state IN ('MADE', 'ARRIVED')));

CREATE FUNCTION agenda_let_go(of_kind text, objects uuid[], instants timestamptz[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  DELETE FROM agenda WHERE ctid = ANY(ARRAY(
    SELECT a.ctid FROM unnest(objects, instants) AS k(object_id, at)
     CROSS JOIN LATERAL (
           SELECT b.ctid FROM agenda b
            WHERE b.kind = of_kind AND b.object_id = k.object_id AND (k.at IS NULL OR b.at = k.at)
            LIMIT 1) a));
$$;

CREATE FUNCTION ledger_move(
  journals bigint, legs bigint, heads head_move[], bases lot_basis[]
) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashagg = off
AS $$
DECLARE
  seen bigint;
  wanted bigint;
  found bigint;
BEGIN
  UPDATE head h
     SET version = h.version + 1, journal_no = n.journal, event_no = n.event, account_no = n.account,
         booked_at = n.booked, business_date = n.on_date, due_at = n.due, chain = n.chain, image = n.image
    FROM unnest(heads) AS n
   WHERE h.customer_id = n.customer AND h.version = n.was AND h.journal_no = n.journal_was AND h.event_no = n.event_was
     AND h.booked_at <= n.booked AND h.business_date <= n.on_date AND n.journal >= n.journal_was AND n.event >= n.event_was
     AND h.account_no <= n.account;
  GET DIAGNOSTICS seen = ROW_COUNT;
  IF seen <> cardinality(heads) THEN
    RAISE EXCEPTION 'a head moved: % of % are as planned', seen, cardinality(heads) USING ERRCODE = '40001';
  END IF;

  -- Numbers without gaps: what was copied is exactly what the heads now say.
  SELECT count(*) INTO seen
    FROM unnest(heads) AS n
    JOIN journal j ON j.customer_id = n.customer AND j.journal_no > n.journal_was AND j.journal_no <= n.journal
   WHERE n.journal > n.journal_was;
  SELECT coalesce(sum(n.journal - n.journal_was), 0) INTO wanted FROM unnest(heads) AS n;
  IF seen <> journals OR wanted <> journals THEN
    RAISE EXCEPTION 'journal numbers have a gap: % copied, % found, % announced', journals, seen, wanted USING ERRCODE = '23514';
  END IF;

  WITH l AS MATERIALIZED (
    SELECT l.customer_id, l.debit, l.credit, l.asset, l.amount, l.phase
      FROM unnest(heads) AS n
      JOIN leg l ON l.customer_id = n.customer AND l.journal_no > n.journal_was AND l.journal_no <= n.journal
     WHERE n.journal > n.journal_was
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
    RAISE EXCEPTION 'a leg has no account: % of % sides found theirs', seen, wanted USING ERRCODE = '23503';
  END IF;
  IF found <> legs THEN
    RAISE EXCEPTION 'legs outside the numbers of their heads: % copied, % found', legs, found USING ERRCODE = '23514';
  END IF;
END $$;

CREATE FUNCTION pockets_move(moved pocket_counters[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  UPDATE pocket p
     SET inflow = n.inflow, outflow = n.outflow, fees = n.fees, realised = n.realised, fee_accrued = n.fee_accrued,
         idle = n.idle, accrued_through = n.accrued_through, charge_on = n.charge_on, moved_on = n.moved_on,
         unsettled_until = n.unsettled_until, invest_at = n.invest_at
    FROM unnest(moved) AS n
   WHERE p.customer_id = n.customer AND p.pocket_id = n.pocket;
END $$;

CREATE FUNCTION ledger_apply(
  journals bigint, legs bigint, heads head_move[], bases lot_basis[], moved pocket_counters[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(journals, legs, heads, bases);
  PERFORM pockets_move(moved);
END $$;

CREATE FUNCTION ledger_book(
  heads head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], journals journal[],
  legs leg[], links link[], trades trade[], activities activity[], events new_event[], commands command[],
  names directory[], transfers transfer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal SELECT * FROM unnest(journals);
  INSERT INTO leg SELECT * FROM unnest(legs);
  PERFORM ledger_move(cardinality(journals), cardinality(legs), heads, bases);
  PERFORM pockets_move(moved);
  INSERT INTO link SELECT * FROM unnest(links);
  INSERT INTO trade SELECT * FROM unnest(trades);
  INSERT INTO activity SELECT * FROM unnest(activities);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
END $$;
