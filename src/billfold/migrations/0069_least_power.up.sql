-- Needs a stop: the release before locks tables of the market and renumbers events of a restored bank by rights it loses.
-- The application adds rows, and changes or removes them only where a statement of it does. Postings, entries, the chain,
-- commands, events, names of the directory, transactions, trades and statements are never changed. A new table may be
-- read and added to; what more is done to it, its migration grants in one line, and a test compares that with the code.
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE UPDATE, DELETE ON TABLES FROM billfold_app;
REVOKE UPDATE, DELETE ON ALL TABLES IN SCHEMA public FROM billfold_app;
GRANT UPDATE ON
  ach_counter, ach_entry, ach_file, ach_return_entry, application, application_invite,
  approval_rule, auction, audit_chain_head, authenticator, authorization_code,
  authorization_request, calendar_override, card, card_authorization, card_detail_key, card_limits,
  card_order, card_payment, chain_block, chain_cursor, chain_transfer, client_key, clock,
  counterparty, crypto_deposit, crypto_signature, crypto_transaction, crypto_wallet,
  crypto_withdrawal, customer, customer_feature, daily_root_refusal, data_key, delivery,
  deprecated_call, document, dual_control, email_link, event_reader, failed_work, freeze_proposal,
  hold, idempotency_key, invitation, invite_draft, invite_email_count, invite_session, known_device,
  ledger_head, linking_exchange, login_attempt, membership, notification, notification_audience,
  notification_cursor, notification_recipient, oauth_authorization_request, oauth_client,
  oauth_grant, outbound_email, partner, partner_key, partner_secret, partner_user, passkey, pocket,
  portal, rail_file, rate_limit_window, refresh_token, related_party_application, report_format,
  report_request, review, sanctions_hit, sanctions_list, scheduled_job, security_transfer, session,
  signing_key, subscription, subscription_queue, subscription_secret, suspense_item, transfer,
  transfer_request, user_account, user_password, webhook_worker, wire, wire_case, wire_message,
  wire_sequence, work_claim
  TO billfold_app;
GRANT DELETE ON
  access_token, application_invite, approval_rule, authenticator, authorization_code,
  awaited_team_member, calendar_override, chain_block, client_key, consumed_assertion,
  consumed_dpop_proof, daily_root_page, delivery_attempt, document, email_link, failed_work,
  idempotency_key, invitation, invite_draft, invite_email_count, invite_session, known_device,
  linking_exchange, login_attempt, notification_audience, oauth_authorization_request,
  outbound_email, partner_token, passkey, passkey_challenge, rate_limit_window, refresh_token,
  related_party_application, report_file, report_format, report_request, request_log,
  sanctions_backlog, sanctions_entry, scheduled_job, session, signing_key, subscription_secret,
  webhook_worker, work_claim
  TO billfold_app;
-- Of an account the balances, of the bank what tells its key and its domain: whose they are stays.
GRANT UPDATE (debits, credits, reserved, tax_basis, earnings_basis, live) ON account TO billfold_app;
GRANT UPDATE (key_check, domain) ON bank TO billfold_app;

-- A dump contains transaction ids of a server that had counted further than the one it is restored on. The application
-- notices when it opens the bank, and owns no event: this changes nothing else of them, and nothing otherwise.
CREATE FUNCTION event_renumber(reader text) RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, public, pg_temp
AS $$
  UPDATE event SET xid = CASE WHEN pg_visible_in_snapshot(xid, position) THEN xid8 '3' ELSE pg_current_xact_id() END
    FROM event_reader
   WHERE name = reader
     AND EXISTS (SELECT FROM event_reader WHERE pg_snapshot_xmax(position) > pg_snapshot_xmax(pg_current_snapshot()));
$$;
REVOKE EXECUTE ON FUNCTION event_renumber FROM PUBLIC;
GRANT EXECUTE ON FUNCTION event_renumber TO billfold_app;
