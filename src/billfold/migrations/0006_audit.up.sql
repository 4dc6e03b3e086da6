-- Who did what, in the commit of its cause, and the role that may add to it and never change it.

-- The application works as this role; whoever migrates owns the tables. Roles belong to the whole
-- server, so another database, or another run at this moment, may have made it already.
DO $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'billfold_app') THEN
    CREATE ROLE billfold_app NOLOGIN;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the role billfold_app is missing and % may not create it', current_user
      USING HINT = 'Let an administrator run: CREATE ROLE billfold_app NOLOGIN;',
            ERRCODE = 'insufficient_privilege';
END $$;
DO $$
BEGIN
  PERFORM set_config('role', 'billfold_app', true);
  PERFORM set_config('role', 'none', true);
EXCEPTION WHEN insufficient_privilege THEN
  EXECUTE format('GRANT billfold_app TO %I', current_user);
END $$;

GRANT USAGE ON SCHEMA public TO billfold_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO billfold_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO billfold_app;
REVOKE INSERT, UPDATE, DELETE ON schema_migration FROM billfold_app;

-- The audit log -----------------------------------------------------------------------

-- Where a customer's chain ends: one row is locked, and so his entries have one order.
CREATE TABLE audit_head (
  customer_id  uuid PRIMARY KEY,
  entry_no     bigint NOT NULL CHECK (entry_no >= 0),
  hash         bytea NOT NULL,
  recorded_at  timestamptz NOT NULL,
  sealed_no    bigint NOT NULL DEFAULT 0 CHECK (sealed_no BETWEEN 0 AND entry_no)
) WITH (fillfactor = 50);
CREATE INDEX audit_head_unsealed ON audit_head (customer_id) WHERE entry_no > sealed_no;

-- hash: the id of the key, then HMAC-SHA256 under it over the entry before and all columns of this.
CREATE TABLE audit_entry (
  customer_id    uuid NOT NULL,
  entry_no       bigint NOT NULL CHECK (entry_no > 0),
  entry_id       uuid NOT NULL,
  recorded_at    timestamptz NOT NULL,
  actor          text NOT NULL CHECK (actor IN ('MEMBER', 'CLIENT', 'PARTNER', 'OPERATOR', 'SYSTEM')),
  member_id      uuid,
  actor_name     text NOT NULL,
  client_id      text,
  action         text NOT NULL CHECK (action ~ '^[a-z_]+\.[a-z_]+$'),
  resource_type  text NOT NULL,
  resource_id    text,
  outcome        text NOT NULL CHECK (outcome IN ('SUCCESS', 'FAILURE')),
  ip_address     text,
  user_agent     text,
  details        json NOT NULL,
  hash           bytea NOT NULL,
  PRIMARY KEY (customer_id, entry_no)
);
CREATE INDEX audit_entry_time ON audit_entry (customer_id, recorded_at, entry_no);
CREATE INDEX audit_entry_member ON audit_entry (customer_id, member_id, recorded_at, entry_no)
  WHERE member_id IS NOT NULL;

-- The ends of all chains that moved since the seal before, signed; a copy leaves the database.
CREATE TABLE audit_seal (
  seal_no    bigint PRIMARY KEY CHECK (seal_no > 0),
  sealed_at  timestamptz NOT NULL,
  line       text NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are added and never changed', TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_entry_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_seal_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seal
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON audit_entry, audit_seal FROM billfold_app;
REVOKE DELETE ON audit_head FROM billfold_app;
