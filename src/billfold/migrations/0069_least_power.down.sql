DROP FUNCTION event_renumber;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT UPDATE, DELETE ON TABLES TO billfold_app;
GRANT UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO billfold_app;
REVOKE UPDATE, DELETE ON
  audit_entry, audit_seal, wallet_xpub, daily_root, daily_root_page, daily_root_purge, document_key,
  document_key_revocation, agreement_version, agreement_document, agreement_acceptance, cash_back_rule, tax_status,
  schema_migration
  FROM billfold_app;
GRANT DELETE ON daily_root_page TO billfold_app;
REVOKE DELETE ON audit_chain_head, sanctions_hit, freeze_proposal, data_key FROM billfold_app;
