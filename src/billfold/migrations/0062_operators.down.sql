DROP INDEX audit_entry_verification;
