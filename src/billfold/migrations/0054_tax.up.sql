-- What a customer is to the Internal Revenue Service, by what it or the Service said. The last version holds.
CREATE TABLE tax_status (
  customer_id        uuid NOT NULL REFERENCES customer,
  version            int NOT NULL CHECK (version > 0),
  exempt             boolean, -- NULL: its type of business decides
  withholding_from   date,
  withholding_until  date CHECK (withholding_until > withholding_from),
  created_at         timestamptz NOT NULL,
  PRIMARY KEY (customer_id, version),
  CHECK (withholding_until IS NULL OR withholding_from IS NOT NULL)
);
CREATE TRIGGER tax_status_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON tax_status
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON tax_status FROM billfold_app;
