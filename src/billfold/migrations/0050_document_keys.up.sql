-- The keys that documents are signed with, one from `active_at` of the business clock until that of the next. They stay:
-- what was signed with a key is checked with it for good.
CREATE TABLE document_key (
  key_no      int PRIMARY KEY CHECK (key_no > 0),
  key_id      text NOT NULL UNIQUE CHECK (key_id ~ '^[A-Za-z0-9_-]{43}$'),
  public_key  bytea NOT NULL UNIQUE CHECK (length(public_key) = 32),
  sealed      bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  active_at   timestamptz NOT NULL CHECK (active_at >= created_at)
);
CREATE TRIGGER document_key_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON document_key
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON document_key FROM billfold_app;
