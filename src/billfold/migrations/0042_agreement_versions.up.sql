-- Versions of the agreements: their texts and files as they were published, for ever. A version is the day from which
-- on it is in force. The bank's own audit log proves the rows.
CREATE TABLE agreement_version (
  customer_id  uuid NOT NULL, -- the bank itself
  version      text PRIMARY KEY CHECK (version = to_char(release_date, 'YYYY-MM-DD')),
  release_date date NOT NULL,
  required_by  date CHECK (required_by >= release_date),
  published_at timestamptz NOT NULL -- wall time
);
CREATE TABLE agreement_document (
  customer_id uuid NOT NULL, -- the bank itself
  version     text NOT NULL REFERENCES agreement_version,
  type        text NOT NULL,
  document_no integer NOT NULL CHECK (document_no >= 0),
  title       text NOT NULL,
  category    text NOT NULL CHECK (category IN ('BANK', 'BROKERAGE', 'GENERAL', 'E-SIGN')),
  content     text NOT NULL, -- JSON
  pdf         bytea NOT NULL,
  PRIMARY KEY (version, type)
);
CREATE TRIGGER agreement_version_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_version
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER agreement_document_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_document
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON agreement_version, agreement_document FROM billfold_app;

-- Acceptances are written by commands, whose outcomes prove them; those of earlier releases name nobody.
ALTER TABLE agreement_acceptance
  ADD COLUMN acceptance_id  uuid NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN accepted_by    text CHECK (accepted_by IN ('USER', 'PARTNER', 'INVITED', 'OPERATOR')),
  ADD COLUMN accepted_by_id uuid,
  ALTER COLUMN application_id DROP NOT NULL,
  ADD UNIQUE (acceptance_id),
  -- Rows of one commit are not written in the order of their tables.
  ALTER CONSTRAINT agreement_acceptance_customer_id_fkey DEFERRABLE INITIALLY DEFERRED;
CREATE TRIGGER agreement_acceptance_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_acceptance
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON agreement_acceptance FROM billfold_app;

-- Who was invited to accept them and submit the application.
ALTER TABLE application ADD COLUMN submitted_invite_id uuid;

-- The version that a customer accepted last.
ALTER TABLE customer ADD COLUMN agreement_version text CHECK (agreement_version ~ '^\d{4}-\d{2}-\d{2}$');
UPDATE customer c SET agreement_version = a.version
  FROM (SELECT customer_id, max(version) AS version FROM agreement_acceptance
         WHERE version ~ '^\d{4}-\d{2}-\d{2}$' GROUP BY customer_id) a
 WHERE a.customer_id = c.customer_id;
