ALTER TABLE customer DROP COLUMN agreement_version;
ALTER TABLE application DROP COLUMN submitted_invite_id;
DROP TRIGGER agreement_acceptance_stays ON agreement_acceptance;
GRANT UPDATE, DELETE ON agreement_acceptance TO billfold_app;
DELETE FROM agreement_acceptance WHERE application_id IS NULL;
ALTER TABLE agreement_acceptance
  ALTER CONSTRAINT agreement_acceptance_customer_id_fkey NOT DEFERRABLE,
  ALTER COLUMN application_id SET NOT NULL,
  DROP COLUMN acceptance_id,
  DROP COLUMN accepted_by,
  DROP COLUMN accepted_by_id;
DROP TABLE agreement_document, agreement_version;
