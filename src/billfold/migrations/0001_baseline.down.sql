-- Everything of the bank is lost. The role stays: another database of the server may use it.
DROP FUNCTION customer_features, event_renumber, ledger_apply, ledger_book, ledger_move, ledger_retire, pockets_move,
  scheduled_job_complete, scheduled_job_set;
DROP VIEW posting;
DROP TABLE access_token, account, ach_counter, ach_entry, ach_file, ach_return_entry, agreement_acceptance,
  agreement_document, agreement_version, application, application_invite, application_move, approval_rule, auction,
  audit_chain_head, audit_entry, audit_seal, authenticator, authorization_code, authorization_request,
  awaited_team_member, bank, bill_rate, calendar_override, card, card_authorization, card_detail_key,
  card_late_message, card_limits, card_order, card_payment, card_settlement_file, card_settlement_record, cash_back,
  cash_back_rule, chain_block, chain_cursor, chain_entry, chain_transfer, clearing, client_key, clock, closing_price,
  command, consumed_assertion, consumed_dpop_proof, counterparty, crypto_deposit, crypto_signature,
  crypto_transaction, crypto_wallet, crypto_withdrawal, customer, customer_feature, daily_root, daily_root_page,
  daily_root_purge, daily_root_refusal, data_key, delivery, delivery_attempt, deprecated_call, directory, document,
  document_key, document_key_revocation, dual_control, earlier_link, email_link, event, event_reader, event_sequence,
  failed_work, freeze_proposal, hold, idempotency_key, invitation, invite_draft, invite_session, journal_entry,
  known_device, ledger_head, linking_exchange, login_attempt, membership, notification, notification_audience,
  notification_baseline, notification_cursor, notification_recipient, oauth_authorization_request, oauth_client,
  oauth_grant, outbound_email, partner, partner_key, partner_secret, partner_token, partner_user, passkey,
  passkey_challenge, pocket, portal, rail_file, rate_limit_window, received_wire_message, refresh_token,
  related_party_application, report_file, report_file_part, report_format, report_request, request_log, review,
  sanctions_backlog, sanctions_entry, sanctions_hit, sanctions_list, scheduled_job, security, security_transfer,
  session, settlement, signing_key, simulated_event, snapshot, statement, statement_run, subscription,
  subscription_queue, subscription_secret, suspense_item, tax_run, tax_status, trade, transaction, transfer,
  transfer_request, usage_count, user_account, user_password, wallet_xpub, webhook_worker, wire, wire_case,
  wire_message, wire_sequence, work_claim;
DROP FUNCTION postings_are_valid, refuse_change, refuse_unpurged_page;
DROP TYPE ledger_head_move, lot_basis, new_account, new_event, new_transaction, packed_posting, pocket_counters;
DROP SEQUENCE wallet_index;
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON SEQUENCES FROM billfold_app;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM billfold_app;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM billfold_app;
REVOKE ALL ON SCHEMA public FROM billfold_app;
