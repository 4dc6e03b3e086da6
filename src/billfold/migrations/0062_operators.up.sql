-- The console of operators shows what the last verification found.
CREATE INDEX audit_entry_verification ON audit_entry (recorded_at) WHERE action = 'ledger.verified';
