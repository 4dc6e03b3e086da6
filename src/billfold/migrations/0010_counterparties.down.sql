DROP TABLE document;
DROP INDEX counterparty_review;
ALTER TABLE counterparty DROP CONSTRAINT counterparty_verification;
UPDATE counterparty SET verification =
  (verification::jsonb - 'document_ids' || '{"supporting_documents": []}')::json;
ALTER TABLE counterparty ALTER COLUMN details SET DEFAULT '{}';
