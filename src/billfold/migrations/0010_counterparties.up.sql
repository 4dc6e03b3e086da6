-- What was said of a counterparty's account, in the fields of its variant; and what people upload.

UPDATE counterparty SET details = json_build_object('account_number', account_number);
UPDATE counterparty SET verification =
  (verification::jsonb - 'supporting_documents' || '{"document_ids": []}')::json;
ALTER TABLE counterparty ALTER COLUMN details DROP DEFAULT;
ALTER TABLE counterparty ADD CONSTRAINT counterparty_verification CHECK (
  verification->>'status' IN ('PENDING_REVIEW', 'APPROVED', 'REJECTED', 'EXPIRED', 'NOT_REQUIRED')
  AND (status <> 'PENDING' OR verification->>'status' = 'PENDING_REVIEW')
  AND (status <> 'VERIFIED' OR verification->>'status' = 'APPROVED')
  AND (status <> 'LINKED' OR verification->>'status' IN ('APPROVED', 'NOT_REQUIRED'))
);
CREATE INDEX counterparty_review ON counterparty (created_at, counterparty_id)
 WHERE status = 'PENDING';

CREATE TABLE document (
  customer_id      uuid NOT NULL,
  document_id      uuid NOT NULL,
  type             text NOT NULL,
  status           text NOT NULL CHECK (status IN ('PENDING_UPLOAD', 'PENDING_REVIEW', 'APPROVED', 'INVALID')),
  exception_reason text,
  name             text CHECK (length(name) <= 255),
  media_type       text,
  file_key         text,
  size_bytes       bigint CHECK (size_bytes > 0),
  sha256           text,
  created_at       timestamptz NOT NULL,
  uploaded_at      timestamptz,
  PRIMARY KEY (customer_id, document_id),
  UNIQUE (document_id),
  CHECK ((status = 'PENDING_UPLOAD') <= (file_key IS NULL)),
  CHECK (num_nulls(media_type, file_key, size_bytes, sha256, uploaded_at) IN (0, 5)),
  CHECK (status = 'INVALID' OR exception_reason IS NULL)
);
