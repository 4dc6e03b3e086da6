-- The role stays: another database of the server may use it.
DROP TABLE audit_seal;
DROP TABLE audit_entry;
DROP TABLE audit_head;
DROP FUNCTION refuse_change();
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON SEQUENCES FROM billfold_app;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM billfold_app;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM billfold_app;
REVOKE ALL ON SCHEMA public FROM billfold_app;
